import { type ErrorCode, type ErrorKind, type ErrorRecord, InoriginError } from '../error.ts'
import { httpResponse } from './http.ts'

/** Error types that clients of both styles know. Kinds without a type of their own share one. */
const TYPE: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  authentication: 'authentication_error',
  permission: 'permission_error',
  not_found: 'not_found_error',
  method_not_allowed: 'invalid_request_error',
  too_large: 'request_too_large',
  unsupported_media_type: 'invalid_request_error',
  rate_limit: 'rate_limit_error',
  aborted: 'api_error',
  internal: 'api_error',
  unavailable: 'overloaded_error',
}

/** Codes of `unavailable` that are no overload of this server: another server cannot be reached. */
const UNREACHABLE: ReadonlySet<string | null> = new Set<ErrorCode>([
  'catalog_unavailable',
  'download_failed',
  'hub_unreachable',
  'resource_unreachable',
  'upstream_unreachable',
])

/** Returns the error for a request that is wrong, with the path of the field. */
export const invalidRequest = (message: string, code: ErrorCode, param?: string): InoriginError =>
  new InoriginError('invalid_request', message, { code, param })

/** Returns the object `error` of a failed stream or body, as OpenAI's clients read it. */
export function wireError(error: InoriginError | ErrorRecord) {
  const { message, kind, param = null, code = null } = error
  const type = UNREACHABLE.has(code) ? 'api_error' : TYPE[kind]
  return { message, type, param, code }
}

/** Returns the body of a request that failed. It serves the clients of all styles. */
export const errorJson = (error: InoriginError, requestId: string): string =>
  JSON.stringify({
    type: 'error',
    error: { ...wireError(error), details: error.details ?? {} },
    request_id: requestId,
    errors: [{ message: error.message }],
  })

/** Returns the response to a request that failed. */
export function errorResponse(
  error: InoriginError,
  requestId: string,
  init: { status?: number; headers?: Record<string, string> } = {},
): Response {
  return httpResponse(errorJson(error, requestId), {
    status: init.status ?? error.status,
    headers: { ...retryHeaders(error), ...init.headers },
  })
}

/** Returns headers that say when a retry can help. Without them, clients retry all 429 and 5xx. */
function retryHeaders(error: InoriginError): Record<string, string> {
  if (error.kind === 'internal') return {}
  const after = error.retryAfter ?? (error.kind === 'rate_limit' ? 1 : undefined)
  if (after === undefined) return { 'x-should-retry': 'false' }
  return {
    'retry-after': String(Math.ceil(after)),
    'retry-after-ms': String(Math.round(after * 1000)),
  }
}
