import { ensure, keys, oneOf, parseObject, text } from './sse-grammar.ts'

const TYPES = [
  'invalid_request_error',
  'authentication_error',
  'permission_error',
  'not_found_error',
  'request_too_large',
  'rate_limit_error',
  'api_error',
  'overloaded_error',
]

/**
 * Checks the one body that all clients read errors from, and the headers by which they know whether
 * to try again. Throws on the first thing out of place.
 */
export function checkErrorBody(raw: string, headers: Readonly<Record<string, string>>): void {
  const body = keys(parseObject(raw), 'error body', ['type', 'error', 'request_id', 'errors'])
  oneOf(body['type'], 'type', ['error'])
  ensure(body['request_id'] === headers['request-id'], 'request_id is not that of the header')
  const error = keys(body['error'], 'error', ['message', 'type', 'param', 'code', 'details'])
  const message = text(error['message'], 'message')
  oneOf(error['type'], 'error type', TYPES)
  for (const name of ['param', 'code']) {
    ensure(error[name] === null || typeof error[name] === 'string', `${name} is no text`)
  }
  keys(error['details'], 'details', Object.keys(error['details'] ?? {}))
  const { errors } = body
  ensure(Array.isArray(errors) && errors.length === 1, 'not one of errors')
  const [first] = errors as unknown[]
  oneOf(keys(first, 'errors[0]', ['message'])['message'], 'errors[0].message', [message])
  const again = headers['x-should-retry']
  ensure((again === 'false') !== 'retry-after' in headers, 'whether to try again is not said')
}
