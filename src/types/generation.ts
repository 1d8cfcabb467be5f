import type { LoadProgress, Tag } from './model.ts'

/** A JSON Schema. It is checked, and what is not supported refused, before it constrains anything. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown }

/** A function the model may ask to have called. */
export interface Tool {
  name: string
  description?: string
  /** Of the arguments, which are an object. */
  parameters: JsonSchema
}

/** One call of a tool, as the model asked for it. */
export interface ToolCall {
  /** Stable through a round trip; unique within a conversation. */
  id: string
  name: string
  /** A JSON object as text. */
  arguments: string
}

/** One turn of a conversation, free of wire style. */
export type ChatMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage

/** What the model is told to be, by whoever made the app. */
export interface SystemMessage {
  role: 'system'
  content: string
}

/** What the user says and shows. */
export interface UserMessage {
  role: 'user'
  content: string
  /** In their order. Only models whose capabilities say so take any. */
  images?: readonly Image[]
}

/** An image as it was sent, neither fetched nor looked into. */
export interface Image {
  mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  bytes: Uint8Array<ArrayBuffer>
  /** How many characters of the message's content stand before it. */
  at: number
  /** Where the client's body has it, such as `messages[0].content[1]`; for errors. */
  place: string
}

/** What the model said before. */
export interface AssistantMessage {
  role: 'assistant'
  content: string
  /** What it thought before it answered. */
  reasoning?: string
  toolCalls?: readonly ToolCall[]
}

/** What a called tool gave. */
export interface ToolMessage {
  role: 'tool'
  toolCallId: string
  /** Of the tool; empty where the client does not say and no call of that id is in the messages. */
  name: string
  content: string
  /** The tool failed; `content` says how. */
  isError?: boolean
}

/** How the next token is chosen. An absent field takes the model's own default. */
export interface Sampling {
  /** 0 is greedy. */
  temperature?: number
  /** Nucleus: the smallest set of tokens whose probabilities reach this sum, in (0, 1]. */
  topP?: number
  /** Only the k most probable tokens; 0 or absent is all. */
  topK?: number
  /** Only tokens at least this probable relative to the most probable, in [0, 1]; 0 or absent is all. */
  minP?: number
  /** Taken off a score for each time its token was generated, -2 to 2. */
  frequencyPenalty?: number
  /** Taken off a score once its token was generated, -2 to 2. */
  presencePenalty?: number
  /** Divides positive scores, multiplies negative ones, of tokens in prompt or answer; 1 is none. */
  repetitionPenalty?: number
  /** Added to the scores of these tokens, by id; -100 never, 100 nearly always. */
  logitBias?: Readonly<Record<number, number>>
  /** The same seed gives the same text on the same device; absent: a random one. */
  seed?: number
}

/** Which tools may or must be called. */
export interface ToolUse {
  tools: readonly Tool[]
  /** `auto`: text or calls as the model sees fit; `none`: text; `required`: at least one call. */
  choice: 'auto' | 'none' | 'required'
  /** Only these may be called; absent: any. */
  only?: readonly string[]
  /** Whether one answer may have several calls. */
  parallel: boolean
}

/** What the answer's text must be; absent: any text. */
export type AnswerFormat =
  /** A JSON object. */
  | { type: 'json_object' }
  /** JSON that the schema accepts. */
  | { type: 'json_schema'; schema: JsonSchema }
  /** Text of a grammar in xgrammar's EBNF, from its rule `root`. */
  | { type: 'grammar'; grammar: string }

/** What both wire styles decode to. */
export interface GenerationRequest {
  model: Tag
  messages: ChatMessage[]
  /**
   * The beginning of the answer, behind all messages: what is generated goes on from its end and has
   * none of it, and no reasoning comes before. Takes neither `format` nor calls that are required.
   */
  begun?: string
  /** Absent or above the model's own: the model's own limit. */
  maxTokens?: number
  sampling: Sampling
  /** Texts that end the answer; the one that matched is reported and not part of the text. */
  stop: string[]
  /** Absent: none. */
  tools?: ToolUse
  format?: AnswerFormat
  /**
   * Most tokens of reasoning; 0: none at all, `Infinity`: as many as the answer may have. Absent: the
   * model's default. Without effect on a model that does not reason.
   */
  reasoningBudget?: number
  /** How many of the most probable tokens to tell beside each token, 0 to 20; absent: nothing is told. */
  logprobs?: number
}

/** True token counts of one generation. */
export interface Usage {
  /** Tokens of the prompt, cached ones included. */
  promptTokens: number
  /** Of those, tokens whose keys and values were already there. */
  cachedTokens: number
  /** Tokens generated, the end token included. */
  completionTokens: number
  /** Of those, tokens of reasoning. */
  reasoningTokens: number
}

/** A token and how probable it was, before penalties and constraints. */
export interface TokenProbability {
  /** Its text; incomplete characters are replaced. */
  text: string
  /** Its bytes, which are exact. */
  bytes: readonly number[]
  /** Natural logarithm of its probability. */
  logprob: number
}

/** A token of the answer's text, and the most probable ones at its place. */
export interface TokenLogprob extends TokenProbability {
  top: readonly TokenProbability[]
}

/**
 * `stop`: the model ended; `length`: a limit did; `stop_sequence`: one of `stop` was generated;
 * `tool_calls`: the model wants tools called.
 */
export type FinishReason = 'stop' | 'length' | 'stop_sequence' | 'tool_calls'

/**
 * What a generation tells while it runs: `start`, then `reasoning`, `text` and calls in the order the
 * model wrote them, then `finish`.
 */
export type GenerationEvent =
  /** The model is still being loaded. May come any number of times before `start`. */
  | { type: 'progress'; progress: LoadProgress }
  /** Nothing new, but alive; every 10 s, from the thread that computes. */
  | { type: 'heartbeat' }
  /** Computing begins; the prompt has been counted. */
  | { type: 'start'; promptTokens: number; cachedTokens: number }
  | { type: 'reasoning'; text: string }
  | { type: 'text'; text: string; logprobs?: readonly TokenLogprob[] }
  /** A call begins; `index` counts from 0. Its arguments follow before anything else. */
  | { type: 'tool_call'; index: number; id: string; name: string }
  /** More of the JSON text of that call's arguments. */
  | { type: 'tool_arguments'; index: number; text: string }
  | { type: 'finish'; reason: FinishReason; stopSequence: string | null; usage: Usage }
