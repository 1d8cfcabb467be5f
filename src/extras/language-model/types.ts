/** The dictionaries and interfaces of the Prompt API, named as in its specification. */
import type { Server } from '../../server.ts'
import type { Tag } from '../../types/index.ts'
import type { CreateMonitor } from './create-monitor.ts'

/** The parts of a server that a language model needs. */
export type LanguageModelServer = Pick<Server, 'fetch' | 'baseURL' | 'models'>

/** Options of `installLanguageModel` and `defineLanguageModel`. */
export interface LanguageModelOptions {
  /** The server, or a function that opens it when the page first needs it. */
  server: LanguageModelServer | (() => Promise<LanguageModelServer>)
  /** Tag of the model that answers. */
  model: Tag
  /** API key of the server, if it was opened with `apiKeys`. Default: none. */
  apiKey?: string
  /** Languages of the model, as BCP 47 tags. Default: all languages that the browser can name. */
  languages?: readonly string[]
  /**
   * `true` to add the names that the specification limits to extensions: `params()`, `topK`,
   * `temperature`, `inputUsage`, `inputQuota`, `measureInputUsage()` and `onquotaoverflow`. Default:
   * `false`.
   */
  legacy?: boolean
}

/** Options of `installLanguageModel`. */
export interface InstallOptions extends LanguageModelOptions {
  /** `true` to replace a `LanguageModel` of the browser. Default: `false`. */
  force?: boolean
}

/** State of a model with certain options: whether `create()` works, and whether it downloads first. */
export type Availability = 'unavailable' | 'downloadable' | 'downloading' | 'available'

export const SAMPLING_MODES = [
  'most-predictable',
  'predictable',
  'slightly-predictable',
  'balanced',
  'slightly-creative',
  'creative',
  'most-creative',
] as const

/** Preset of the sampler, from the most probable tokens to the most varied ones. */
export type LanguageModelSamplingMode = (typeof SAMPLING_MODES)[number]

export const ROLES = ['system', 'user', 'assistant'] as const

/** Author of a message. */
export type LanguageModelMessageRole = (typeof ROLES)[number]

export const MESSAGE_TYPES = ['text', 'image', 'audio', 'tool-call', 'tool-response'] as const

/** Kind of one part of a message. */
export type LanguageModelMessageType = (typeof MESSAGE_TYPES)[number]

/** Value of one part of a message, which must fit its type. */
export type LanguageModelMessageValue =
  | ImageBitmapSource
  | BufferSource
  | string
  | LanguageModelToolCall
  | LanguageModelToolSuccess
  | LanguageModelToolError

/** One part of a message. */
export interface LanguageModelMessageContent {
  type: LanguageModelMessageType
  value: LanguageModelMessageValue
}

/** A message of a conversation. */
export interface LanguageModelMessage {
  role: LanguageModelMessageRole
  content: string | LanguageModelMessageContent[]
  /** `true` if the answer continues this text. Only the last message of role assistant may have it. */
  prefix?: boolean
}

/** Input of a prompt: the text of a user, or messages. */
export type LanguageModelPrompt = string | LanguageModelMessage[]

/** A message whose content is a list, as all messages are inside of a session. */
export interface Message extends LanguageModelMessage {
  content: LanguageModelMessageContent[]
  prefix: boolean
}

/** A kind of inputs or outputs that a session needs. `create()` fails if the model lacks it. */
export interface LanguageModelExpected {
  type: LanguageModelMessageType
  languages?: string[]
}

/** A function of the page that the model may call. */
export interface LanguageModelTool {
  name: string
  description: string
  /** JSON Schema of the arguments, whose type is `object`. */
  inputSchema: object
  /**
   * Called with the arguments. The model reads what it resolves with. Without it, `prompt()` resolves
   * with the calls.
   */
  execute?: (input: never) => Promise<string> | string
}

/** Options of `availability()`, which are also options of `create()`. */
export interface LanguageModelCreateCoreOptions {
  /** Number of most probable tokens to choose from; has an effect only with `legacy`. */
  topK?: number
  /** Temperature of the sampler; has an effect only with `legacy`. */
  temperature?: number
  samplingMode?: LanguageModelSamplingMode
  expectedInputs?: LanguageModelExpected[]
  expectedOutputs?: LanguageModelExpected[]
  tools?: LanguageModelTool[]
}

/** Options of `create()`. */
export interface LanguageModelCreateOptions extends LanguageModelCreateCoreOptions {
  /** Signal that cancels the creation, and afterwards destroys the session. */
  signal?: AbortSignal
  /** Called once with an event target for the progress of the download. */
  monitor?: (monitor: CreateMonitor) => void
  initialPrompts?: LanguageModelMessage[]
}

/** Options of `prompt()`, `promptStreaming()` and `measureContextUsage()`. */
export interface LanguageModelPromptOptions {
  /** JSON Schema or regular expression that the answer matches. */
  responseConstraint?: object
  /** `true` to leave the constraint out of the prompt. Default: `false`. */
  omitResponseConstraintInput?: boolean
  signal?: AbortSignal
}

/** Options of `append()` and `clone()`. */
export interface LanguageModelSignalOptions {
  signal?: AbortSignal
}

/** Limits and defaults of the sampler. */
export interface LanguageModelParams {
  readonly defaultTopK: number
  readonly maxTopK: number
  readonly defaultTemperature: number
  readonly maxTemperature: number
}

/** Answer of a prompt: its text, or its parts if the model called tools that have no `execute`. */
export type LanguageModelAnswer = string | LanguageModelMessageContent[]

/** Next part of an answer: text, or a call of a tool that has no `execute`. */
export type LanguageModelChunk = string | LanguageModelMessageContent

/** A part of a result: a text, or a value that JSON can have. */
export interface LanguageModelToolResult {
  type: 'text' | 'object'
  value: unknown
}

/** A call that the model made. */
export class LanguageModelToolCall {
  readonly callID: string
  readonly name: string
  readonly arguments: object

  constructor(init: { callID: string; name: string; arguments?: object }) {
    this.callID = String(init.callID)
    this.name = String(init.name)
    this.arguments = init.arguments ?? {}
  }
}

/** The result of a call. */
export class LanguageModelToolSuccess {
  readonly callID: string
  readonly name: string
  readonly result: readonly LanguageModelToolResult[]

  constructor(init: { callID: string; name: string; result: LanguageModelToolResult[] }) {
    this.callID = String(init.callID)
    this.name = String(init.name)
    this.result = [...init.result]
  }
}

/** The failure of a call. */
export class LanguageModelToolError {
  readonly callID: string
  readonly name: string
  readonly errorMessage: string

  constructor(init: { callID: string; name: string; errorMessage: string }) {
    this.callID = String(init.callID)
    this.name = String(init.name)
    this.errorMessage = String(init.errorMessage)
  }
}
