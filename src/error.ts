/**
 * Kind of an error, named after what the caller can do about it. Each kind has one HTTP status;
 * `src/wire/errors.ts` translates it into the error types of each wire format.
 */
export type ErrorKind = keyof typeof STATUS

export const STATUS = {
  invalid_request: 400, // The request is wrong, and a retry fails too.
  authentication: 401, // The API key is missing or invalid.
  permission: 403, // The request is valid, but not allowed.
  not_found: 404, // There is no such path, model, predictor or prediction.
  method_not_allowed: 405,
  too_large: 413, // The body is larger than the stated limit.
  unsupported_media_type: 415, // The body is compressed in a way that is not decoded here.
  rate_limit: 429, // The queue is full; retry after `retryAfter`.
  aborted: 499, // The caller canceled the request.
  internal: 500, // This is a bug in inorigin.
  unavailable: 503, // There is no host or no suitable device, or the model cannot be loaded now.
} as const

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
  declare readonly kind: ErrorKind
  declare readonly code: ErrorCode | undefined
  declare readonly param: string | undefined
  declare readonly retryAfter: number | undefined
  declare readonly upstreamStatus: number | undefined
  declare readonly mayContinueUpstream: boolean | undefined
  declare readonly details: Readonly<Record<string, unknown>> | undefined

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
    if (thrown instanceof Error && thrown.name === 'AbortError')
      return new InoriginError('aborted', 'The request was canceled.', { cause: thrown })
    return new InoriginError('internal', messageOf(thrown), { cause: thrown })
  }
}

/** Returns the message of an error, or any other thrown value as a string. */
export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown)

/** The reason codes of errors. `docs/errors.md` gives cause and remedy of each; a test compares the two. */
export const ERROR_CODES = [
  'background_full',
  'bridge_no_tab',
  'bridge_refused',
  'bridge_tab_gone',
  'bridge_unreachable',
  'catalog_unavailable',
  'constraint_dead_end',
  'constraint_missing',
  'constraint_too_slow',
  'constraint_trap',
  'context_length_exceeded',
  'device_lost',
  'download_failed',
  'download_replaced',
  'duplicate_item',
  'engine_missing',
  'foreign_service_worker',
  'gpu_error',
  'gpu_untrusted',
  'hash_mismatch',
  'host_gone',
  'host_replaced',
  'host_unreachable',
  'hub_not_found',
  'hub_refused',
  'hub_unfit',
  'hub_unreachable',
  'image_download_failed',
  'image_too_large',
  'image_url_not_allowed',
  'implementation_gone',
  'import_changed',
  'import_lost',
  'import_mismatch',
  'import_tag',
  'import_unfit',
  'insecure_context',
  'invalid_api_key',
  'invalid_catalog',
  'invalid_content_encoding',
  'invalid_content_type',
  'invalid_form',
  'invalid_grammar',
  'invalid_image',
  'invalid_input',
  'invalid_json',
  'invalid_numbers',
  'invalid_value',
  'item_not_found',
  'load_crashed',
  'load_paused',
  'missing_required_parameter',
  'model_failed',
  'model_not_found',
  'model_unresponsive',
  'model_unusable',
  'nested_too_deeply',
  'no_chat_template',
  'no_host',
  'no_implementation',
  'no_service_worker',
  'no_webgpu',
  'not_controlled',
  'not_finite',
  'not_in_background',
  'operator_unsupported',
  'out_of_memory',
  'prediction_not_found',
  'predictor_unusable',
  'previous_response_not_found',
  'protocol_mismatch',
  'queue_full',
  'replaced',
  'request_too_large',
  'resource_gone',
  'resource_unreachable',
  'response_not_finished',
  'response_not_found',
  'runtime_crashed',
  'runtime_missing',
  'scope_refused',
  'script_missing',
  'scripted_answer',
  'storage_damaged',
  'storage_full',
  'store_blocked',
  'store_newer',
  'store_unavailable',
  'template_failed',
  'template_refused',
  'too_many_files',
  'too_many_images',
  'too_many_values',
  'too_slow',
  'unloaded',
  'unsupported_constraint',
  'unsupported_model',
  'unsupported_parameter',
  'unsupported_schema',
  'upstream_error',
  'upstream_headers',
  'upstream_invalid',
  'upstream_not_allowed',
  'upstream_refused',
  'upstream_timeout',
  'upstream_unreachable',
  'worker_ended',
  'worker_not_started',
] as const

/** Machine-readable reason of an error within its kind. */
export type ErrorCode = (typeof ERROR_CODES)[number]
