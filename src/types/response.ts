import type { ErrorRecord } from '../error.ts'
import type { GenerationEvent, GenerationRequest } from './generation.ts'
import type { EventStream } from './service.ts'

/** An item of a conversation in JSON, as clients send and receive it. */
export interface StoredItem {
  readonly id: string
  readonly [field: string]: unknown
}

/** A stored response that clients can refer to in later requests. */
export interface StoredResponse {
  /** Id of the response. It cannot be guessed. */
  id: string
  /** The response body as it was sent to the client. */
  body: Readonly<Record<string, unknown>>
  /** The whole conversation before the response, without its instructions. */
  input: readonly StoredItem[]
  /** The items of the response. A client can refer to each of them by its id. */
  output: readonly StoredItem[]
}

/** A response that the host computes in the background, as it is stored. */
export interface BackgroundResponse {
  /** Id of the response. It cannot be guessed. */
  id: string
  /** Time of creation in seconds since 1970. */
  createdAt: number
  request: GenerationRequest
  /** Fields of the body that the response repeats. Only `src/wire` reads them. */
  fields: Readonly<Record<string, unknown>>
  /** The whole conversation before the response, without its instructions. */
  input: readonly StoredItem[]
}

/**
 * An event of a background response. The first one is `queued`, the last one `finish`. All but
 * `progress` and `heartbeat` are stored.
 */
export type BackgroundEvent =
  | { type: 'queued' }
  | GenerationEvent
  | { type: 'finish'; reason: 'failed'; error: ErrorRecord }
  | { type: 'finish'; reason: 'cancelled' }

/** The events of a background response. */
export interface BackgroundStream extends EventStream<BackgroundEvent> {
  response: BackgroundResponse
}

/** A background response and its stored events so far. */
export interface BackgroundLog {
  response: BackgroundResponse
  events: readonly BackgroundEvent[]
}
