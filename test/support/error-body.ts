import { ensure, keys, object, oneOf, parseObject, text } from './sse-grammar.ts'

/** The error of a body, in the form that all clients read. */
export interface WireError {
  type: string
  message: string
  param: string | null
  code: string | null
  details: Record<string, unknown>
}

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

/** Parses the body of an error. Throws on the first thing out of place. */
export function parseErrorBody(raw: string, headers: Readonly<Record<string, string>>): WireError {
  const body = keys(parseObject(raw), 'error body', 'type error request_id errors')
  oneOf(body['type'], 'type', ['error'])
  ensure(body['request_id'] === headers['request-id'], 'request_id is not that of the header')
  const error = keys(body['error'], 'error', 'message type param code details')
  const message = text(error['message'], 'message')
  oneOf(error['type'], 'error type', TYPES)
  for (const name of ['param', 'code']) {
    ensure(error[name] === null || typeof error[name] === 'string', `${name} is no text`)
  }
  object(error['details'], 'details')
  const { errors } = body
  ensure(Array.isArray(errors) && errors.length === 1, 'not one of errors')
  const [first] = errors as unknown[]
  oneOf(keys(first, 'errors[0]', 'message')['message'], 'errors[0].message', [message])
  return error as unknown as WireError
}

/** Checks the body of an error, and the headers that say if a client is to try again. */
export function checkErrorBody(raw: string, headers: Readonly<Record<string, string>>): void {
  parseErrorBody(raw, headers)
  const again = headers['x-should-retry']
  ensure((again === 'false') !== 'retry-after' in headers, 'whether to try again is not said')
}
