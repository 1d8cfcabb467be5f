import type { LoadProgress, Route, Tag } from './predictor.ts'

/** A JSON Schema. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown }

/** A function that the model may call. */
export interface Tool {
  name: string
  description?: string
  /** Schema of the arguments. It must describe an object. That of a custom tool is `true`. */
  parameters: JsonSchema
  /**
   * JSON text of `parameters` for chat templates, where its value has lost something: 1.0, digits of
   * a long integer, or the order of numeric keys. Default: nothing is lost.
   */
  parametersText?: string
  /** `true` to reject a schema that cannot be kept exactly. Default: it is loosened. */
  strict?: boolean
  /** Format of `input`, the only argument of a custom tool. Default: the tool is a function. */
  input?: ToolInput
}

/** Format of a text: any text, or that of a grammar. A regular expression matches the whole text. */
export type ToolInput =
  | { type: 'text' }
  | { type: 'grammar'; syntax: 'lark' | 'regex'; definition: string }

/** One tool call that the model generated. */
export interface ToolCall {
  /** Id of the call, unique within the conversation. The tool's result refers to it. */
  id: string
  name: string
  /** The arguments: a JSON object as text, or any text that a limit has cut. */
  arguments: string
}

/** One message of a conversation, independent of the wire format. */
export type ChatMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/** Instructions of the app to the model. */
export interface SystemMessage {
  role: 'system'
  content: string
}

/** A message of the user: text and images. */
export interface UserMessage {
  role: 'user'
  content: string
  /** Images of the message, in order. Only models with the `imageInput` capability accept them. */
  images?: readonly Image[]
}

/** An encoded image. Its bytes are not decoded yet. */
export interface Image {
  /** Media type; `application/octet-stream` until the image of a URL is fetched. */
  mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'application/octet-stream'
  /** URL from which the host fetches the image; `bytes` is empty until then. Default: not fetched. */
  url?: string
  bytes: Uint8Array<ArrayBuffer>
  /** Number of characters of the message's content that come before the image. */
  at: number
  /** Resolution: `high` shows small things, and costs more. Default: the model's own. */
  detail?: 'low' | 'high'
  /** Path of the image in the body for errors, such as `messages[0].content[1]`. */
  place: string
}

/** An earlier message of the model. */
export interface AssistantMessage {
  role: 'assistant'
  content: string
  /** Reasoning that came before the content. */
  reasoning?: string
  toolCalls?: readonly ToolCall[]
}

/** The result of a tool call. */
export interface ToolMessage {
  role: 'tool'
  toolCallId: string
  /** Name of the tool; empty if it is not known, or if a chat completion does not tell it. */
  name: string
  content: string
  /** `true` if the tool failed; `content` then describes the error. */
  isError?: boolean
}

/** Parameters of the sampler. The default of an absent field is the model's own setting. */
export interface Sampling {
  /** Temperature of the softmax; 0 always picks the most probable token. */
  temperature?: number
  /** Nucleus sampling, in (0, 1]: the smallest set of tokens with this total probability. */
  topP?: number
  /** Number of most probable tokens to choose from; 0 means all tokens. */
  topK?: number
  /** Minimum probability relative to the most probable token, in [0, 1]; 0 means none. */
  minP?: number
  /** Amount subtracted from a token's logit for each time it was generated, -2 to 2. */
  frequencyPenalty?: number
  /** Amount subtracted once from the logit of every token that was generated, -2 to 2. */
  presencePenalty?: number
  /** Divisor of positive logits, and factor of negative ones, of tokens that occurred already. */
  repetitionPenalty?: number
  /** Logit bias by token id. -100 practically forbids a token, 100 practically forces it. */
  logitBias?: Readonly<Record<number, number>>
  /** Seed of the sampler. The same seed gives the same text on the same device. Default: random. */
  seed?: number
}

/** The tools of a request and the rules for calling them. */
export interface ToolUse {
  tools: readonly Tool[]
  /** `auto`: as the model decides; `none`: only text; `required`: at least one call. */
  choice: 'auto' | 'none' | 'required'
  /** Names of the only tools that may be called. Default: all tools. */
  only?: readonly string[]
  /** `true` if one completion may contain several calls. */
  parallel: boolean
}

/** Required format of the completion's text. */
export type AnswerFormat =
  /** A JSON object. */
  | { type: 'json_object' }
  /** JSON that is valid against the schema. `strict` has the meaning that it has in tools. */
  | { type: 'json_schema'; schema: JsonSchema; strict?: boolean }
  /** Text that matches an ECMAScript pattern as a whole. Flags: `i`, `s` and `u`. */
  | { type: 'regex'; pattern: string; flags?: string }
  /** One of these texts. */
  | { type: 'choice'; choices: readonly string[] }
  /** Text of a grammar in this syntax. Default: `ebnf`, that of xgrammar. */
  | { type: 'grammar'; grammar: string; syntax?: GrammarSyntax }

/**
 * Syntax of a grammar: the EBNF of xgrammar, the GBNF of llama.cpp, both with the rule `root`, or
 * the Lark of llguidance with the rule `start`.
 */
export type GrammarSyntax = 'ebnf' | 'gbnf' | 'lark'

/** Name of a reasoning effort. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** A generation request, parsed from any of the wire formats. */
export interface GenerationRequest {
  model: Tag
  messages: ChatMessage[]
  /**
   * The beginning of the completion, for the model to continue. The generated text starts after it
   * and does not repeat it, and there is no reasoning. With `format`, both together have that format.
   * It cannot be combined with the tool choice `required`.
   */
  responsePrefix?: string
  /** Maximum number of tokens to generate. Default and upper bound: the model's own limit. */
  maxTokens?: number
  sampling: Sampling
  /** Stop sequences. The text ends before the first match, which the `finish` event reports. */
  stop: string[]
  /** Tools that the model may call. Default: none. */
  tools?: ToolUse
  /** Format of the text. Default: any text. */
  format?: AnswerFormat
  /**
   * Maximum number of reasoning tokens. 0 turns reasoning off; `Infinity` sets no limit besides
   * that of the completion. Default: the model's own. It has no effect on models that do not
   * reason.
   */
  reasoningBudget?: number
  /** Reasoning effort by name, for chat templates that read it. Default: that of the template. */
  reasoningEffort?: ReasoningEffort
  /**
   * Variables for the chat template, as parsed JSON. They override others of the same name, but not
   * the messages and the tools. Default: none.
   */
  templateVariables?: Readonly<Record<string, unknown>>
  /** Number of most probable tokens to report for each token, 0 to 20. Default: no logprobs. */
  logprobs?: number
  /** Maximum number of draft tokens of one forward pass; 0 for no drafts. Default: no limit. */
  maxDraftTokens?: number
  /** Tokens of a host that stopped, with the same seed. Their events come again. Default: none. */
  resumeTokens?: readonly number[]
  /** The delivered part of an answer that an upstream server may continue. Default: nothing. */
  interrupted?: InterruptedAnswer
  /** The only place where the request may be answered. Default: any that the catalog allows. */
  route?: Route
}

/** Beginning of an answer that another server continues. */
export interface InterruptedAnswer {
  text: string
  /** Number of tokens that were generated for it, including reasoning. */
  tokens: number
}

/** Exact token counts of one generation. */
export interface Usage {
  /** Number of tokens of the prompt, including cached ones. */
  promptTokens: number
  /** Number of prompt tokens whose keys and values came from the prefix cache. */
  cachedTokens: number
  /** Number of generated tokens, including the end token. */
  completionTokens: number
  /** Number of generated tokens that are reasoning. */
  reasoningTokens: number
  /** Draft tokens of the host that finished. Absent if the answer could have none. */
  drafts?: DraftCounts
}

/** Numbers of draft tokens that were computed for one answer. */
export interface DraftCounts {
  /** Number of draft tokens that became part of the answer. */
  accepted: number
  /** Number of all other draft tokens, which are not among the completion tokens. */
  rejected: number
}

/** A token and its log probability, before penalties and constraints. */
export interface TokenProbability {
  /** Text of the token, or name of a special one. Incomplete UTF-8 characters are replaced. */
  text: string
  /** Exact UTF-8 bytes that the token adds to the text. A special token adds none. */
  bytes: readonly number[]
  /** Natural logarithm of the probability. */
  logprob: number
}

/** A generated token, with the most probable tokens at its position. */
export interface TokenLogprob extends TokenProbability {
  top: readonly TokenProbability[]
}

/**
 * The reason why a generation ended. `stop`: the model ended it; `length`: a token limit was
 * reached; `stop_sequence`: a stop sequence was generated; `tool_calls`: the model called tools.
 */
export type FinishReason = 'stop' | 'length' | 'stop_sequence' | 'tool_calls'

/**
 * The next part of a completion. `tokens` are the ids of the tokens since the last event that had
 * any. They include those of the event. So another host can continue the completion.
 */
export type ContentEvent = { tokens?: readonly number[] } & (
  | { type: 'reasoning'; text: string }
  | { type: 'text'; text: string; logprobs?: readonly TokenLogprob[] }
  /**
   * A tool call starts. `index` counts from 0. Its arguments follow before any other content.
   * `isCustom` marks the call of a custom tool, whose text follows instead.
   */
  | { type: 'tool_call'; index: number; id: string; name: string; isCustom?: boolean }
  /** The next part of the JSON text of that call's arguments, or of its text. */
  | { type: 'tool_arguments'; index: number; text: string }
)

/**
 * The host accepts a generation: its prompt is tokenized and queued, and its model does not fail to
 * load at once. Only `progress` and heartbeats come before it. A refused request throws instead.
 */
export interface AcceptedEvent {
  type: 'accepted'
  /** Fields of {@link GenerationRequest} that have no effect. */
  ignored: readonly string[]
  /** Place that answers the request. Absent if that is not decided yet. */
  servedBy?: Route
}

/** Event of a generation: `start`, then reasoning, text and calls in any order, then `finish`. */
export type GenerationEvent =
  /** The model is still loading. This event may occur any number of times before `start`. */
  | { type: 'progress'; progress: LoadProgress }
  /** A sign of life, sent when there was no other event for about 10 s. */
  | { type: 'heartbeat' }
  /** Another server answers, or `continues` an answer of this device. It precedes `start`. */
  | { type: 'served_by'; servedBy: Route; continues?: boolean }
  /** Prefill starts; the tokens of the prompt are counted. */
  | { type: 'start'; promptTokens: number; cachedTokens: number }
  | ContentEvent
  | { type: 'finish'; reason: FinishReason; stopSequence: string | null; usage: Usage }
