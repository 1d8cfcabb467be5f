/** Features of language model clients, in the order of the page. One check covers each of them. */
export const FEATURES = {
  text: 'text response',
  turns: 'conversation of several turns',
  system: 'system prompt',
  stream: 'streaming',
  helper: "the client's own streaming helper",
  usage: 'usage, with and without streaming',
  limit: 'token limit',
  stop: 'stop sequence',
  abort: 'abort during a stream',
  toolsAuto: 'tools: `auto`',
  toolsNone: 'tools: `none`',
  toolsRequired: 'tools: call required',
  toolsNamed: 'tools: one named tool',
  toolsStream: 'tools: streamed calls',
  toolsTwo: 'tools: two parallel calls and their results',
  toolsSingle: 'tools: parallel calls disabled',
  toolLoop: "the client's own tool loop",
  functions: 'functions, the older form of tools',
  jsonObject: 'JSON object',
  jsonSchema: 'JSON that matches a schema',
  thinking: 'reasoning: separate from the text, within its budget, sent back',
  thinkingStream: 'reasoning: streamed',
  logprobs: 'log probabilities',
  countTokens: 'token counting',
  models: 'models: list',
  model: 'models: one, with its slash as the client encodes it',
  embeddings: 'embeddings',
  image: 'image input',
  document: 'document input',
  serverTool: 'built-in tool of the vendor',
  several: 'several choices per request',
  stored: 'conversation that the server stores',
  invalid: 'error 400 that names the field',
  unauthorised: 'error 401',
  unknown: 'error 404',
  tooLarge: 'error 413',
  overflow: 'error for a prompt that is too long',
} as const

export type Feature = keyof typeof FEATURES

/** Requests of the predictor client, in the order of the page. */
export const REQUESTS = {
  user: 'user of the API key',
  rawModel: 'model, with an unencoded slash',
  predictor: 'predictor, with an unencoded slash',
  unknownPredictor: 'predictor that does not exist',
  prediction: 'prediction: configuration and resources',
  samePrediction: 'prediction: the same one again',
  resource: 'prediction: bytes of a resource',
  unknownTag: 'prediction with an unknown tag',
  remote: 'remote prediction: image input, label and number outputs',
  remoteStream: 'remote prediction: streamed',
  invalidInput: 'remote prediction: invalid input',
} as const

export type PredictorRequest = keyof typeof REQUESTS
