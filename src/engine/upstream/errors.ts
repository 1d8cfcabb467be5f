/** Errors of upstream servers. Each message says which server it came from. */
import { InoriginError, messageOf, type ErrorKind } from '../../error.ts'
import type { ErrorCode } from '../../error-codes.ts'
import { isObject } from '../../values/objects.ts'
import { shorten } from '../../values/shorten.ts'

/** Maximum length in UTF-16 units of a server's own message in an error. */
const MAX_MESSAGE_CHARACTERS = 500

/** Kinds of statuses that mean the same as one of inorigin's own. Others are `unavailable`. */
const KINDS: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  401: 'authentication',
  402: 'permission',
  403: 'permission',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'too_large',
  422: 'invalid_request',
  429: 'rate_limit',
}

/** Returns the error for an HTTP status and body of a server. `retryAfter` is in seconds. */
export function upstreamStatusError(
  url: string,
  status: number,
  body: string,
  retryAfter: number | undefined,
): InoriginError {
  const why = shorten(findMessage(body), MAX_MESSAGE_CHARACTERS)
  const upstreamStatus = status >= 400 && status <= 599 ? status : 502
  return new InoriginError(
    KINDS[status] ?? 'unavailable',
    `The upstream server ${url} responded with status ${status}${why && `: ${why}`}`,
    { code: 'upstream_error', upstreamStatus, retryAfter },
  )
}

/** Returns the error that a server reported within a stream. */
export function upstreamStreamError(url: string, error: unknown): InoriginError {
  const why = shorten(describeError(error), MAX_MESSAGE_CHARACTERS)
  return unavailable('upstream_error', `The upstream server ${url} ended its answer: ${why}`)
}

/** Returns the error for a connection that failed. */
export function unreachableError(url: string, cause: unknown): InoriginError {
  const what = `The upstream server ${url} cannot be reached (${messageOf(cause)}).`
  const todo = 'Check its URL and, on another origin, that it allows this origin by CORS.'
  return unavailable('upstream_unreachable', `${what} ${todo}`, cause)
}

/** Returns the error for a server that sent nothing of use for that many milliseconds. */
export function silentError(url: string, milliseconds: number): InoriginError {
  const what = `The upstream server ${url} sent no event or whole response for ${milliseconds / 1000} s.`
  return unavailable('upstream_timeout', `${what} Try again, or check the server.`)
}

/** Returns the error for a response that is not what chat completions or embeddings send. */
export function invalidResponseError(url: string, what: string, cause?: unknown): InoriginError {
  const todo = 'Check that the URL in the catalog is the base of an API with chat completions.'
  const message = `The upstream server ${url} sent an invalid response: ${what}. ${todo}`
  return unavailable('upstream_invalid', message, cause)
}

function unavailable(code: ErrorCode, message: string, cause?: unknown): InoriginError {
  return new InoriginError('unavailable', message, { code, upstreamStatus: 502, cause })
}

/** Returns the message in an error body, in any of the usual shapes, or the body itself. */
function findMessage(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body)
    return describeError(isObject(parsed) ? (parsed['error'] ?? parsed) : parsed)
  } catch {
    return body.trim()
  }
}

function describeError(error: unknown): string {
  const message = isObject(error) ? (error['message'] ?? error['detail']) : error
  if (typeof message === 'string') return message
  try {
    return JSON.stringify(message ?? error)
  } catch {
    return 'its message is nested too deeply'
  }
}
