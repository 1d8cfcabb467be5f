import type { ErrorCode } from './error-codes.ts'

/**
 * What went wrong, named after what the caller can do about it. Each kind has one HTTP status;
 * `src/wire/errors.ts` turns a kind into the words each client style expects.
 */
export type ErrorKind =
  | 'invalid_request' // 400: the request itself is wrong, sending it again cannot help
  | 'authentication' // 401: no key, or not one of this server's
  | 'permission' // 403: understood and refused
  | 'not_found' // 404: no such path, model, predictor or prediction
  | 'method_not_allowed' // 405
  | 'too_large' // 413: the body is over the stated limit
  | 'rate_limit' // 429: the queue is full, try again after `retryAfter`
  | 'aborted' // 499: the caller gave up
  | 'internal' // 500: a fault of ours
  | 'unavailable' // 503: no host, no device, not loadable here and now

export const STATUS: Readonly<Record<ErrorKind, number>> = {
  invalid_request: 400,
  authentication: 401,
  permission: 403,
  not_found: 404,
  method_not_allowed: 405,
  too_large: 413,
  rate_limit: 429,
  aborted: 499,
  internal: 500,
  unavailable: 503,
}

/** What an error tells beside its kind and message. */
export interface ErrorDetails {
  /** Machine-readable reason within the kind, such as `model_not_found` or `context_length_exceeded`. */
  code?: ErrorCode
  /** Path of the field at fault, such as `messages[2].content[0].type`. */
  param?: string
  /** Seconds after which the same request may succeed. An `unavailable` without it is for good. */
  retryAfter?: number
  /** Anything else a client can read, such as `{ unsupported: ['thread'] }`. */
  details?: Readonly<Record<string, unknown>>
  cause?: unknown
}

/** The plain form of an {@link InoriginError}: what crosses a port. */
export interface ErrorRecord extends Omit<ErrorDetails, 'cause'> {
  kind: ErrorKind
  message: string
}

/** The one error class. Its message says what happened and what to do. */
export class InoriginError extends Error {
  override readonly name = 'InoriginError'
  readonly kind: ErrorKind
  readonly code: ErrorCode | undefined
  readonly param: string | undefined
  readonly retryAfter: number | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined

  constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.kind = kind
    this.code = details.code
    this.param = details.param
    this.retryAfter = details.retryAfter
    this.details = details.details
  }

  /** The HTTP status of the kind. */
  get status(): number {
    return STATUS[this.kind]
  }

  toRecord(): ErrorRecord {
    const { kind, message, code, param, retryAfter, details } = this
    return { kind, message, code, param, retryAfter, details }
  }

  static fromRecord(record: ErrorRecord): InoriginError {
    return new InoriginError(record.kind, record.message, record)
  }

  /** Wraps whatever was thrown; an abort stays an abort, anything unknown becomes `internal`. */
  static from(thrown: unknown): InoriginError {
    if (thrown instanceof InoriginError) return thrown
    if (thrown instanceof Error && thrown.name === 'AbortError') {
      return new InoriginError('aborted', 'The request was cancelled.', { cause: thrown })
    }
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    return new InoriginError('internal', message, { cause: thrown })
  }
}
