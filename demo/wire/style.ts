import type { ServerSentEvent } from './sse.ts'

/** One question with its answer, independent of the wire style. */
export interface Exchange {
  question: string
  /** Images of the question as data URLs. Default: none. */
  images?: readonly string[]
  answer: string
}

/** Settings of the user. The model's default applies to an absent field. */
export interface Settings {
  system?: string
  temperature?: number
  maxTokens?: number
  seed?: number
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
  settings: Settings
}

/** Content of one event of an answer. */
export interface Piece {
  text?: string
  /** Number of tokens generated so far, as the server counts them. */
  completionTokens?: number
  promptTokens?: number
  /** Finish reason, in the words of the style. */
  finish?: string
  /** Message of an error in the middle of the answer. */
  error?: string
  /** `true` for the last event. An answer that ends without one was cut off. */
  done?: boolean
}

export interface WireRequest {
  /** Path below the server's base URL, such as `chat/completions`. */
  path: string
  headers: Record<string, string>
  body: Record<string, unknown>
}

/** Encoder of a question and parser of its answer for one wire style. */
export interface WireStyle {
  request(question: Question): WireRequest
  read(event: ServerSentEvent): Piece
}
