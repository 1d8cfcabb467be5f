/** Responses of the bridge itself to requests that it does not pass on. All have a body. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { InoriginError } from '../../error.ts'
import { shorten } from '../../values/text.ts'
import { errorResponse } from '../../wire/errors.ts'
import { refuseForbiddenMethod } from '../../wire/handler.ts'
import { createId } from '../../wire/http.ts'
import { discardBody, ENCODINGS } from './request-body.ts'

/** Origin of a URL of which only the path counts. */
const ORIGIN = 'http://127.0.0.1'

/** Methods that a tab cannot make a request with. */
const FORBIDDEN_METHODS = ['CONNECT', 'TRACE', 'TRACK']

/** Returns `true` for a method that {@link refuseMethod} must answer. */
export const isForbiddenMethod = (method = 'GET'): boolean => FORBIDDEN_METHODS.includes(method)

/** Returns the 405 for a method of a path, or the 404 for a path that is no endpoint. */
export function refuseMethod(method: string, path: string): Response {
  const url = ORIGIN + (path.startsWith('/') ? path : '/')
  const id = createId('req_')
  try {
    if (!/^\/v1(\/|\?|$)/.test(path)) throw outsideError(method, path)
    return withRequestId(refuseForbiddenMethod({ method, url }, id), id)
  } catch (error) {
    return toResponse(error, { path })
  }
}

/** Request that an error answers. */
interface Refused {
  /** Path of the request. Errors below `/api/` have the form that Ollama's clients read. */
  path?: string
  /** Status, if it is not that of the error's kind. */
  status?: number
}

/** Returns the response for an error, in the style of the path. */
export function toResponse(thrown: unknown, { path = '', status }: Refused = {}): Response {
  const error = InoriginError.from(thrown)
  const id = createId('req_')
  const response = errorResponse(error, id, {
    ...(status !== undefined && { status }),
    ...(error.kind === 'unsupported_media_type' && { headers: { 'accept-encoding': ENCODINGS } }),
  })
  const text = JSON.stringify({ error: error.message })
  return withRequestId(isOllamaPath(path) ? new Response(text, response) : response, id)
}

/** Returns the response with its id. OpenAI's clients read the first header, Anthropic's the second. */
export function withRequestId(response: Response, id = createId('req_')): Response {
  response.headers.set('x-request-id', id)
  response.headers.set('request-id', id)
  return response
}

/**
 * Sends a response of the bridge itself. Its client gets the whole of it first, and then the rest of
 * the body is read: a connection that is closed before loses the response.
 */
export async function sendRefusal(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Response,
): Promise<void> {
  if (response.headersSent || response.destroyed) return void response.destroy()
  const text = Buffer.from(await refusal.text())
  for (const [name, value] of refusal.headers) response.setHeader(name, value)
  response.setHeader('content-length', text.byteLength)
  if (!request.complete) response.setHeader('connection', 'close')
  response.writeHead(refusal.status)
  if (request.method !== 'HEAD') response.write(text)
  else response.flushHeaders()
  await discardBody(request)
  response.end()
}

/** Sends a response over a connection for which Node.js has made none, and closes it. */
export async function sendRawRefusal(socket: Duplex, refusal: Response): Promise<void> {
  const text = await refusal.text()
  if (!socket.writable) return void socket.destroy()
  const headers = [
    ...refusal.headers,
    ['content-length', String(Buffer.byteLength(text))],
    ['connection', 'close'],
  ]
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? 'Refused'}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`)
}

// Requests that are no valid HTTP, for which Node.js sends no body.

/** Error of Node's parser. `rawPacket` has the bytes in which it occurred. */
interface ParserError extends Error {
  code?: string
  bytesParsed?: number
  rawPacket?: Uint8Array
}

const TOO_SLOW = 'The request did not arrive in time. Send it again.'
const TOO_MUCH_HEADER = 'The headers are larger than 16 KiB. Send fewer or shorter ones.'

/** Messages and statuses of parser errors. Any other has 400. */
const PARSER_ERRORS: Readonly<Record<string, readonly [status: number, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, TOO_SLOW],
  HPE_HEADER_OVERFLOW: [431, TOO_MUCH_HEADER],
  HPE_PAUSED_H2_UPGRADE: [505, 'The request is HTTP/2. Send HTTP/1.1.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The chunk extensions are too large. Send none.'],
}

/** Returns the response to bytes that are no request. */
export function toParserRefusal(error: ParserError): Response {
  const { code = '', message } = error
  const line = code === 'HPE_INVALID_METHOD' ? findRequestLine(error) : undefined
  if (line) return refuseMethod(line.method, line.path)
  const [status, what] = PARSER_ERRORS[code] ?? [
    400,
    `The request is no valid HTTP/1.1: ${message.replace(/^Parse Error: /, '')}.`,
  ]
  return toResponse(new InoriginError('invalid_request', what), { status })
}

/** Returns the method and the path of the request whose method the parser does not know. */
function findRequestLine({ rawPacket, bytesParsed = 0 }: ParserError) {
  const text = Buffer.from(rawPacket ?? []).toString('latin1')
  const begin = text.lastIndexOf('\n', Math.max(0, bytesParsed - 1)) + 1
  const found = /^([!#$%&'*+.^_`|~\w-]+) (\S+) HTTP\/1\.[01]\r?\n/.exec(text.slice(begin))
  const [, method, path] = found ?? []
  return method && path ? { method, path } : undefined
}

// Paths outside of `/v1`, mostly those of other servers.

const isOllamaPath = (path: string): boolean => /^\/api(\/|$)/.test(path)

/** Paths of Ollama's own API, and the endpoints that do the same. */
const OLLAMA: Readonly<Record<string, string>> = {
  '/api/chat': 'POST /v1/chat/completions',
  '/api/generate': 'POST /v1/chat/completions',
  '/api/embed': 'POST /v1/embeddings',
  '/api/embeddings': 'POST /v1/embeddings',
  '/api/show': 'GET /v1/models/{tag}',
  '/api/tags': 'GET /v1/models',
  '/api/ps': 'GET /v1/models',
}

/** Returns the error for a path outside of `/v1`. It names what is there. */
export function outsideError(method: string, path: string): InoriginError {
  const what = `${shorten(method)} ${shorten(path)} is not an endpoint here`
  const instead = OLLAMA[path.replace(/\/+$/, '')]
  const own = isOllamaPath(path)
    ? `${instead ? `use ${instead}` : 'use the paths below /v1'}. Ollama's own API is not here`
    : 'use the paths below /v1'
  const todo =
    'GET /v1 lists all endpoints: chat completions, responses, messages, embeddings and models'
  return new InoriginError('not_found', `${what}; ${own}. ${todo}.`)
}
