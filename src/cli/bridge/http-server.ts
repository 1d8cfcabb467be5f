/** The loopback server of `inorigin bridge`: `/v1` for clients, a page, and a WebSocket for tabs. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { type Duplex, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import { type WebSocket, WebSocketServer } from 'ws'
import * as protocol from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'
import { shorten } from '../../values/text.ts'
import { listEndpoints } from '../../wire/handler.ts'
import { findApiKey } from '../../wire/http.ts'
import { collectLibraryFiles, INORIGIN_FOLDER } from '../library-files.ts'
import { type Content, readContent } from '../write-file.ts'
import {
  isForbiddenMethod,
  outsideError,
  refuseMethod,
  sendRawRefusal,
  sendRefusal,
  toParserRefusal,
  toResponse,
  withRequestId,
} from './refusals.ts'
import { readBody } from './request-body.ts'
import { type Exchange, RESPONSES_PATH, ResponseSockets } from './response-socket.ts'
import { MAX_TABS, Tab, Tabs, toFrame } from './tab.ts'

interface BridgeServerOptions {
  port: number
  token: string
  /** `true` if clients must send the token as their API key. */
  requireKey: boolean
  /** Origins of web pages that may send requests. */
  origins: readonly string[]
  files: ReturnType<typeof openPageFiles>
  onTab(tab: Tab): void
}

/** The only address that the server listens at, so no other machine reaches it. */
const LOOPBACK = '127.0.0.1'
const MAX_CONNECTIONS = 256
const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
  'access-control-max-age': '600',
}

export type BridgeServer = Awaited<ReturnType<typeof openBridgeServer>>

/**
 * Starts the server.
 *
 * @throws InoriginError `unavailable` if the port is in use or may not be used.
 */
export async function openBridgeServer(options: BridgeServerOptions) {
  const tabs = new Tabs()
  /** The last response of each connection. Nothing may be written between its pieces. */
  const openResponses = new WeakMap<Duplex, ServerResponse>()
  const relay = new Relay(tabs, options)
  const sockets = new TabSockets(options.token, (tab) => {
    tabs.add(tab)
    options.onTab(tab)
  })
  const clients = new ResponseSockets()
  const server = createServer({ requireHostHeader: false })
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    openResponses.set(request.socket, response)
    answer(request, response).catch((error: unknown) =>
      sendRefusal(request, response, toResponse(error, { path: request.url ?? '' })),
    )
  }
  server.on('request', onRequest)
  // The client sends the body after a response with the status 100, which the first read of the body sends.
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', (request, response) => {
    const what = `The header Expect "${shorten(request.headers.expect ?? '')}" is not supported.`
    const error = new InoriginError('invalid_request', `${what} Send 100-continue or none.`)
    void sendRefusal(request, response, toResponse(error, { status: 417 }))
  })
  server.on('connect', ({ url = '' }, socket) => {
    socket.on('error', () => socket.destroy())
    void sendRawRefusal(socket, refuseMethod('CONNECT', url))
  })
  server.on('clientError', (error, socket) => {
    const open = openResponses.get(socket)
    const isInterrupted = open?.headersSent === true && !open.writableEnded
    if (isInterrupted || (error as NodeJS.ErrnoException).code === 'ECONNRESET') socket.destroy()
    else void sendRawRefusal(socket, toParserRefusal(error))
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    assertHost(request)
    const { url = '', method = 'GET' } = request
    const whole = `http://${LOOPBACK}${url}`
    if (!url.startsWith('/') || !URL.canParse(whole)) throw outsideError(method, url)
    // Dot segments, which would lead a tab out of `/v1`, are resolved here.
    const { pathname, search } = new URL(whole)
    if (!`${pathname}/`.startsWith('/v1/')) return options.files.send(request, response, pathname)
    const cors = checkOrigin(request, options)
    for (const [name, value] of Object.entries(cors)) response.setHeader(name, value)
    if (request.method === 'OPTIONS') {
      const asked = request.headers['access-control-request-headers'] ?? ''
      return void response
        .writeHead(204, { ...PREFLIGHT_HEADERS, 'access-control-allow-headers': asked })
        .end()
    }
    await relay.pass(pathname + search, request, response)
  }

  server.on('upgrade', (request, socket, head) => {
    if (!isWebSocket(request)) {
      socket.unshift(withoutUpgrade(request, head))
      return server.emit('connection', socket)
    }
    socket.on('error', () => socket.destroy())
    try {
      assertHost(request)
      if (request.url?.split('?')[0] === RESPONSES_PATH) {
        checkOrigin(request, options)
        return clients.upgrade(request, socket, head, relay.openExchange(request))
      }
      if (request.url !== protocol.SOCKET_PATH) throw noSocketError(request.url)
    } catch (error) {
      return void sendRawRefusal(socket, toResponse(error, { path: request.url ?? '' }))
    }
    sockets.upgrade(request, socket, head)
  })
  server.maxConnections = MAX_CONNECTIONS
  server.listen(options.port, LOOPBACK)
  await once(server, 'listening').catch((cause: unknown) => {
    const what = `Port ${options.port} cannot be used: ${InoriginError.from(cause).message}.`
    throw new InoriginError('unavailable', `${what} Choose another one with --port.`, { cause })
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${LOOPBACK}:${port}`,
    /** Closes all connections. Resolves when the port is free. */
    async close() {
      sockets.close()
      clients.close()
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'

/**
 * Returns the bytes of a request without its offer to change the protocol, which a server may ignore.
 * Java's HttpClient offers HTTP/2 with each first request.
 */
function withoutUpgrade({ method, url, rawHeaders, httpVersion }: IncomingMessage, head: Buffer) {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (!/^upgrade$/i.test(name)) lines.push(`${name}: ${rawHeaders[index + 1]}`)
  }
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head])
}

function noSocketError(url = ''): InoriginError {
  const what = `${shorten(url)} is no WebSocket here.`
  const todo = 'Use HTTP: POST /v1/responses and POST /v1/chat/completions, with stream: true'
  return new InoriginError('not_found', `${what} ${todo}. GET /v1 lists all endpoints.`)
}

// Refuses requests that no program of the user meant to send.

/**
 * Throws `permission` for a `Host` that is not this machine: a web page can point a name of its own
 * at 127.0.0.1 (DNS rebinding), and would then be of the same origin.
 */
function assertHost({ headers, socket }: IncomingMessage): void {
  const { host } = headers
  const port = socket.localPort
  if (host === undefined) {
    const what = `The header Host is missing. Send "Host: 127.0.0.1:${port}".`
    throw new InoriginError('invalid_request', what)
  }
  const named = /^(127\.0\.0\.1|localhost)(?::(\d+))?$/i.exec(host)
  if (named && (named[2] ?? '80') === String(port)) return
  const what = `The header Host is "${shorten(host)}", not this machine.`
  throw new InoriginError('permission', `${what} Use http://127.0.0.1:${port}.`)
}

/**
 * Returns the CORS headers of a response, none for a request that comes from no web page.
 *
 * @throws InoriginError `permission` for a page whose origin is not allowed.
 */
function checkOrigin(
  { headers }: IncomingMessage,
  { origins }: BridgeServerOptions,
): Record<string, string> {
  const { origin } = headers
  // Images and scripts of other sites send no origin.
  const site = headers['sec-fetch-site'] ?? 'none'
  if (origin === undefined && (site === 'none' || site === 'same-origin')) return {}
  if (origin !== undefined && origins.includes(origin))
    return {
      'access-control-allow-origin': origin,
      'access-control-expose-headers': '*',
      vary: 'origin',
    }
  const what = `${origin === undefined ? 'This web page' : shorten(origin)} must not use the bridge.`
  const todo = 'Start `inorigin bridge --origin <origin>` to allow the pages of an origin.'
  throw new InoriginError('permission', `${what} ${todo}`)
}

/** Throws `authentication` if clients need the token and this one does not send it. */
function assertKey(headers: Headers, { token, requireKey }: BridgeServerOptions): void {
  if (!requireKey || isToken(findApiKey(headers) ?? '', token)) return
  const what = 'Invalid API key. Send the token that `inorigin bridge` printed as the API key.'
  throw new InoriginError('authentication', what, { code: 'invalid_api_key' })
}

/** Compares in a time that does not depend on the text. */
function isToken(text: string, token: string): boolean {
  const hash = (each: string) => createHash('sha256').update(each).digest()
  return timingSafeEqual(hash(text), hash(token))
}

// Passes one HTTP request of a client to a tab, and its response back.

/** Maximum number of bytes of request bodies that wait for the status of a tab, of all clients. */
const MAX_WAITING_BYTES = 4 * protocol.MAX_BODY_BYTES

/** Maximum number of requests that are open at once. A tab queues fewer. */
const MAX_OPEN_REQUESTS = 64

/** Headers that reach the tab. Others, such as cookies, are not for it. */
const PASSED_HEADERS = [
  'accept',
  'anthropic-beta',
  'anthropic-version',
  'authorization',
  'content-type',
  'if-range',
  'range',
  'x-api-key',
  'x-inorigin-route',
]

const KEY_HEADERS = ['authorization', 'x-api-key']

/** Headers of a response that are about a connection of its own. */
const CONNECTION_HEADERS = ['connection', 'keep-alive', 'transfer-encoding', 'upgrade']

/** Passes requests of clients to tabs, and limits how many. */
class Relay {
  readonly #tabs: Tabs
  readonly #options: BridgeServerOptions
  #openRequests = 0
  /** Bytes of all bodies that are kept, because another tab may have to answer. */
  #waitingBytes = 0

  constructor(tabs: Tabs, options: BridgeServerOptions) {
    this.#tabs = tabs
    this.#options = options
  }

  /**
   * Passes a request for the path, with its query. Resolves when the response was sent. Rejects before
   * the first byte was sent, or if the client left, or if the tab was closed in the middle.
   */
  async pass(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    await this.#whileOpen(async () => {
      const headers = this.#authorize(request)
      const { method = 'GET' } = request
      const own = await respondWithoutTab(method, path)
      if (own) return await sendRefusal(request, response, own)
      const left = new AbortController()
      response.once('close', () => left.abort())
      const answer = await this.#withBody(request, response, (sent) => {
        // The body of such a request means nothing, and a `Request` can have none.
        const body = method === 'GET' || method === 'HEAD' ? new Uint8Array() : sent
        return this.#tabs.request({ method, path, headers: [...headers], body }, left.signal)
      })
      const passed = answer.headers.filter(([name]) => !CONNECTION_HEADERS.includes(name))
      response.writeHead(answer.status, passed.flat())
      response.flushHeaders()
      await pipeline(Readable.fromWeb(answer.body as NodeStream), response)
    })
  }

  /**
   * Returns a function that sends requests of a client with a WebSocket, which this request opens.
   *
   * @throws InoriginError `authentication` if the client needs the token and does not send it.
   */
  openExchange(request: IncomingMessage): Exchange {
    const headers = this.#authorize(request)
    headers.set('content-type', 'application/json')
    const head = { method: 'POST', headers: [...headers] }
    return (path, body, signal, read) =>
      this.#whileOpen(async () => {
        this.#waitingBytes += body.byteLength
        const asked = this.#tabs.request({ ...head, path, body }, signal)
        await read(await asked.finally(() => (this.#waitingBytes -= body.byteLength)))
      })
  }

  /** Returns the headers for the tab. */
  #authorize(request: IncomingMessage): Headers {
    const headers = pickHeaders(request)
    assertKey(headers, this.#options)
    // The key was for the bridge. An app with keys of its own would refuse it.
    if (this.#options.requireKey) for (const name of KEY_HEADERS) headers.delete(name)
    return headers
  }

  /** Does the work of one request, unless too many are open. */
  async #whileOpen(work: () => Promise<void>): Promise<void> {
    if (this.#openRequests >= MAX_OPEN_REQUESTS) throw fullError(`${MAX_OPEN_REQUESTS} requests`)
    this.#openRequests += 1
    try {
      await work()
    } finally {
      this.#openRequests -= 1
    }
  }

  async #withBody<T>(
    request: IncomingMessage,
    response: ServerResponse,
    work: (body: Uint8Array) => Promise<T>,
  ): Promise<T> {
    let length = 0
    const onBytes = (count: number): void => {
      length += count
      this.#waitingBytes += count
      if (this.#waitingBytes > MAX_WAITING_BYTES) throw fullError(`${MAX_WAITING_BYTES} bytes`)
    }
    const onBegin = (): void => {
      if (request.headers.expect) response.writeContinue()
    }
    try {
      const options = { maxBytes: protocol.MAX_BODY_BYTES, onBegin, onBytes }
      return await work(await readBody(request, options))
    } finally {
      this.#waitingBytes -= length
    }
  }
}

/** Returns the response to a request that is the same for all tabs, or that no tab can answer. */
async function respondWithoutTab(method: string, path: string): Promise<Response | null> {
  if (isForbiddenMethod(method)) return refuseMethod(method, path)
  const [plain = ''] = path.split('?')
  if (!/^\/v1\/*$/.test(plain)) return null
  return method === 'GET' || method === 'HEAD'
    ? withRequestId(await listEndpoints())
    : refuseMethod(method, path)
}

function pickHeaders({ headers }: IncomingMessage): Headers {
  const picked = new Headers()
  for (const name of PASSED_HEADERS) {
    const value = headers[name]
    if (typeof value === 'string') picked.set(name, value)
  }
  return picked
}

function fullError(what: string): InoriginError {
  const message = `The bridge already has ${what}. Retry after 1 s.`
  return new InoriginError('rate_limit', message, { code: 'queue_full', retryAfter: 1 })
}

// Accepts the WebSockets of tabs that know the token.

/** Time in milliseconds until a new connection must say what its tab can do. */
const HELLO_TIMEOUT_MS = 10_000
const GOING_AWAY = 1001

class TabSockets {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: protocol.MAX_FRAME_BYTES,
    handleProtocols: (protocols) =>
      protocols.has(protocol.SUBPROTOCOL) ? protocol.SUBPROTOCOL : false,
  })
  readonly #token: string
  readonly #onTab: (tab: Tab) => void

  constructor(token: string, onTab: (tab: Tab) => void) {
    this.#token = token
    this.#onTab = onTab
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#server.handleUpgrade(request, socket, head, (one) => this.#welcome(one, request))
  }

  close(): void {
    for (const client of this.#server.clients) client.close(GOING_AWAY, 'The command ended.')
  }

  #welcome(socket: WebSocket, request: IncomingMessage): void {
    // A frame that is too long or no WebSocket frame ends the connection. Its close is handled.
    socket.on('error', () => socket.terminate())
    const refusal = findRefusal(request, this.#token, this.#server.clients.size)
    if (refusal) return socket.close(...refusal)
    const end = () => socket.close(protocol.CLOSE_CODES.timeout, 'The page sent no hello.')
    const timer = setTimeout(end, HELLO_TIMEOUT_MS)
    socket.once('close', () => clearTimeout(timer))
    socket.once('message', (data, isBinary) => {
      clearTimeout(timer)
      const message = protocol.parseTabFrame(toFrame(data, isBinary))
      if (!message || !('type' in message) || message.type !== 'hello')
        return socket.close(protocol.CLOSE_CODES.invalidMessage, 'The hello is invalid.')
      const { capability } = message
      this.#onTab(new Tab(socket, { capability, origin: request.headers.origin ?? 'no page' }))
      socket.send(JSON.stringify({ type: 'welcome' }))
    })
  }
}

/** Returns why the tab is refused. A page learns it from the close of an accepted connection only. */
function findRefusal(
  { headers }: IncomingMessage,
  token: string,
  count: number,
): [code: number, reason: string] | undefined {
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((one) => one.trim())
  const own = offered.find((one) => one.startsWith(protocol.TOKEN_PREFIX)) ?? ''
  if (!isToken(own.slice(protocol.TOKEN_PREFIX.length), token))
    return [
      protocol.CLOSE_CODES.wrongToken,
      'Wrong token. Pass the one that `inorigin bridge` printed.',
    ]
  const wrongVersion = 'The page has another version of inorigin than the command. Update both.'
  if (!offered.includes(protocol.SUBPROTOCOL))
    return [protocol.CLOSE_CODES.wrongVersion, wrongVersion]
  return count > MAX_TABS
    ? [protocol.CLOSE_CODES.tooManyTabs, `More than ${MAX_TABS} tabs.`]
    : undefined
}

// The small page that lends itself, with the library's files, as the command serves them.

const TYPES: Readonly<Record<string, string>> = {
  '': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
}

/** The page uses its own origin, its WebSocket, and the hub that models come from. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "frame-src 'self'",
  "connect-src 'self' https: ws://127.0.0.1:* ws://localhost:*",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Isolation gives WASM its threads. No page of another origin may embed or read the files. */
const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-cache',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const HTML = `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>inorigin bridge</title>
  <h1>inorigin bridge</h1>
  <p id="state" role="status">Starting.</p>
  <button id="stop" disabled>Stop lending this tab</button>
  <script type="module" src="/bridge-page.js"></script>
</html>
`

/** Finds the files of the package at `dist`. Throws `unavailable` if it is incomplete. */
export function openPageFiles(dist: string, runtime: string) {
  const library = collectLibraryFiles({ guide: true, mlc: true, webgpu: true, dist, runtime })
  const files = new Map<string, Content>([
    ['/', { text: HTML }],
    ['/sw.js', { from: join(dist, 'sw.js') }],
    ['/bridge-page.js', { from: join(dist, 'bridge-page.js') }],
  ])
  for (const [name, content] of library) files.set(`/${INORIGIN_FOLDER}/${name}`, content)
  return {
    /** Answers a request for a file. Throws `not_found` or `method_not_allowed`. */
    send({ method = 'GET' }: IncomingMessage, response: ServerResponse, path: string) {
      const content = files.get(decodePath(path))
      if (!content) throw outsideError(method, path)
      if (method !== 'GET' && method !== 'HEAD') {
        response.setHeader('allow', 'GET, HEAD')
        throw new InoriginError('method_not_allowed', 'Files are only read. Use GET or HEAD.')
      }
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream')
      response.writeHead(200, HEADERS).end(method === 'HEAD' ? null : readContent(content))
    },
  }
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
