import type { ToolRound } from '../tools/types.ts'
import type { ServerSentEvent } from './sse.ts'

/** One question with its answer, independent of the API style. */
export interface Exchange {
  question: string
  /** Images of the question as data URLs. Default: none. */
  images?: readonly string[]
  /** Rounds of tool calls between the question and the answer. Default: none. */
  rounds?: readonly ToolRound[]
  answer: string
}

/** Reasoning efforts of the endpoints, least first. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof EFFORTS)[number]

/** Settings of the user. The model's default applies to an absent field. */
export interface Settings {
  system?: string
  temperature?: number
  topP?: number
  topK?: number
  minP?: number
  frequencyPenalty?: number
  presencePenalty?: number
  repetitionPenalty?: number
  /** Biases by token id. */
  logitBias?: Record<string, number>
  maxTokens?: number
  seed?: number
  stop?: string[]
  effort?: Effort
  /** JSON schema that the answer follows. */
  schema?: Record<string, unknown>
}

export interface Question {
  model: string
  /** Maximum number of tokens in an answer, from `GET /v1/models`; absent if not listed. */
  modelMaxTokens?: number
  /** Earlier exchanges, oldest first. */
  history: readonly Exchange[]
  question: string
  /** Images of the question as data URLs. Default: none. */
  images?: readonly string[]
  /** Rounds of tool calls between the question and the text to continue. Default: none. */
  rounds?: readonly ToolRound[]
  /** Text of the answer that the model continues. Only for a style that `canContinue`. */
  prefill?: string
  settings: Settings
}

/** Content of one event of an answer. */
export interface Piece {
  text?: string
  reasoning?: string
  /** Number of tokens generated so far, as the server counts them. */
  completionTokens?: number
  /** Number of generated tokens that are reasoning. */
  reasoningTokens?: number
  promptTokens?: number
  /** Number of tokens of the prompt that were computed for an earlier request. */
  cachedTokens?: number
  /** Finish reason, in the words of the style. */
  finish?: string
  /** Message of an error in the middle of the answer. */
  error?: string
  /** Code of that error for programs. The messages style has none. */
  code?: string
  /** `true` for the last event. An answer that ends without one was cut off. */
  done?: boolean
}

/** Returns the piece for an error in the middle of the answer. */
export function toFailure(error: { message?: string; code?: string | null }): Piece {
  return { error: error.message ?? 'The response failed.', code: error.code ?? undefined }
}

export interface WireRequest {
  /** Path below the server's base URL, such as `chat/completions`. */
  path: string
  headers: Record<string, string>
  body: Record<string, unknown>
}

/** Encoder of a question and parser of its answer for one API style. */
export interface WireStyle {
  /** Settings that the style does not take, each with the reason. */
  unsupported: Partial<Record<keyof Settings, string>>
  /** Reasoning efforts that the style has. */
  efforts: readonly Effort[]
  /** `true` if the style has a prefilled assistant message, which the model continues. */
  canContinue: boolean
  request(question: Question): WireRequest
  read(event: ServerSentEvent): Piece
}

/** Returns the sampling fields, which have the same names in all styles of this server. */
export function samplingFields(settings: Settings): Record<string, unknown> {
  return {
    temperature: settings.temperature,
    top_p: settings.topP,
    top_k: settings.topK,
    min_p: settings.minP,
    frequency_penalty: settings.frequencyPenalty,
    presence_penalty: settings.presencePenalty,
    repetition_penalty: settings.repetitionPenalty,
    logit_bias: settings.logitBias,
    seed: settings.seed,
  }
}
