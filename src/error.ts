import type { ErrorCode } from './error-codes.ts'

/**
 * Kind of an error, named after what the caller can do about it. Each kind has one HTTP status;
 * `src/wire/errors.ts` translates it into the error types of each wire format.
 */
export type ErrorKind =
  | 'invalid_request' // 400: the request is wrong, and a retry fails too
  | 'authentication' // 401: the API key is missing or invalid
  | 'permission' // 403: the request is valid, but not allowed
  | 'not_found' // 404: no such path, model, predictor or prediction
  | 'method_not_allowed' // 405
  | 'too_large' // 413: the body is larger than the stated limit
  | 'rate_limit' // 429: the queue is full; retry after `retryAfter`
  | 'aborted' // 499: the caller canceled the request
  | 'internal' // 500: a bug in inorigin
  | 'unavailable' // 503: there is no host or no suitable device, or the model cannot be loaded now

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

/** Optional fields of an {@link InoriginError}. */
export interface ErrorDetails {
  /** Machine-readable error code, such as `model_not_found` or `context_length_exceeded`. */
  code?: ErrorCode
  /** Path of the invalid field, such as `messages[2].content[0].type`. */
  param?: string
  /** Time in seconds to wait before a retry. An `unavailable` error without it is permanent. */
  retryAfter?: number
  /** HTTP status of an upstream server's error. Default: the status of the kind. */
  upstreamStatus?: number
  /** `true` if an upstream server may continue the answer that the error ends. Default: `false`. */
  mayContinueUpstream?: boolean
  /** Additional machine-readable data, such as `{ unsupported: ['thread'] }`. */
  details?: Readonly<Record<string, unknown>>
  /** The error that caused this one. */
  cause?: unknown
}

/** Plain object form of an {@link InoriginError}, for messages between threads. */
export interface ErrorRecord extends Omit<ErrorDetails, 'cause'> {
  kind: ErrorKind
  message: string
}

/** The error class of this package. Its message says what happened and what to do. */
export class InoriginError extends Error {
  override readonly name = 'InoriginError'
  readonly kind: ErrorKind
  readonly code: ErrorCode | undefined
  readonly param: string | undefined
  readonly retryAfter: number | undefined
  readonly upstreamStatus: number | undefined
  readonly mayContinueUpstream: boolean | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined

  constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.kind = kind
    this.code = details.code
    this.param = details.param
    this.retryAfter = details.retryAfter
    this.upstreamStatus = details.upstreamStatus
    this.mayContinueUpstream = details.mayContinueUpstream
    this.details = details.details
  }

  /** HTTP status of the kind, or of the upstream server's error. */
  get status(): number {
    return this.upstreamStatus ?? STATUS[this.kind]
  }

  /** Returns the error as a plain object, without its cause. */
  toRecord(): ErrorRecord {
    const { kind, message, code, param, retryAfter, upstreamStatus, details } = this
    const { mayContinueUpstream } = this
    return { kind, message, code, param, retryAfter, upstreamStatus, mayContinueUpstream, details }
  }

  /** Creates an error from its plain object form. */
  static fromRecord(record: ErrorRecord): InoriginError {
    return new InoriginError(record.kind, record.message, record)
  }

  /** Converts any thrown value: an `AbortError` becomes `aborted`, unknown errors `internal`. */
  static from(thrown: unknown): InoriginError {
    if (thrown instanceof InoriginError) return thrown
    if (thrown instanceof Error && thrown.name === 'AbortError') {
      return new InoriginError('aborted', 'The request was canceled.', { cause: thrown })
    }
    return new InoriginError('internal', messageOf(thrown), { cause: thrown })
  }
}

/** Returns the message of an error, or any other thrown value as a string. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
