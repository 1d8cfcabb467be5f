import type { ServerSentEvent } from './sse.ts'

/** One question with its answer. Neither style is in it, so a conversation outlives a switch. */
export interface Exchange {
  question: string
  answer: string
}

/** What the reader has set. An absent field is left to the model. */
export interface Settings {
  system?: string
  temperature?: number
  maxTokens?: number
  seed?: number
}

export interface Question {
  model: string
  /** Most tokens the model answers with, as `GET /v1/models` tells; absent when it does not. */
  modelMaxTokens?: number
  /** What was said before, oldest first. */
  history: readonly Exchange[]
  question: string
  settings: Settings
}

/** What one event of an answer tells. */
export interface Piece {
  text?: string
  /** Tokens generated so far, as the server counts them. */
  completionTokens?: number
  promptTokens?: number
  /** Why it ended, in the words of the style. */
  finish?: string
  /** The answer failed after it had begun. */
  error?: string
  /** The last event: an answer that ends without one was cut off. */
  done?: boolean
}

export interface WireRequest {
  /** Under the server's base URL, such as `chat/completions`. */
  path: string
  headers: Record<string, string>
  body: Record<string, unknown>
}

/** One way to put a question and to read its answer. */
export interface WireStyle {
  request(question: Question): WireRequest
  read(event: ServerSentEvent): Piece
}
