/** What a client can do, in the order of the page: each is shown by one check. */
export const FEATURES = {
  text: 'a text',
  turns: 'several turns',
  system: 'a system prompt',
  stream: 'a stream',
  helper: "the client's own helper for streams",
  usage: 'usage, plain and streamed',
  limit: 'a token limit',
  stop: 'a stop text',
  abort: 'abort in the middle of a stream',
  toolsAuto: 'tools: `auto`',
  toolsNone: 'tools: `none`',
  toolsRequired: 'tools: required',
  toolsNamed: 'tools: one by its name',
  toolsStream: 'tools: streamed',
  toolsTwo: 'tools: two calls at once, and their results',
  toolsSingle: 'tools: never two at once',
  toolLoop: "the client's own tool loop",
  functions: 'functions, as before there were tools',
  jsonObject: 'a JSON object',
  jsonSchema: 'JSON of a schema',
  thinking: 'thinking: apart from text, within its budget, sent back',
  thinkingStream: 'thinking: streamed',
  logprobs: 'log probabilities',
  countTokens: 'tokens counted',
  models: 'models: listed',
  model: 'models: one, its slash as the client writes it',
  embeddings: 'embeddings',
  image: 'an image',
  document: 'a document',
  serverTool: 'a tool of the vendor',
  several: 'several choices',
  stored: 'a conversation that the server keeps',
  invalid: '400, naming the field',
  unauthorised: '401',
  unknown: '404',
  tooLarge: '413',
  overflow: 'a prompt that is too long',
} as const

export type Feature = keyof typeof FEATURES

/** What the client of predictors asks for. */
export const REQUESTS = {
  user: 'whose key it is',
  rawModel: 'a model, its slash raw',
  predictor: 'a predictor, its slash raw',
  unknownPredictor: 'a predictor that is not there',
  prediction: 'a prediction: configuration and resources',
  samePrediction: 'the same prediction again',
  resource: 'the bytes of a resource',
  unknownTag: 'a prediction of nothing',
  remote: 'a predictor run: an image in, a label and numbers out',
  remoteStream: 'a predictor run, streamed',
  invalidInput: 'a predictor run on a wrong input',
} as const

export type PredictorRequest = keyof typeof REQUESTS
