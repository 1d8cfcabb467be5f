/** Lends this tab to programs outside the browser: connects it to `inorigin bridge`. */
import { probeDevice, type Capabilities } from '../device/capabilities.ts'
import { InoriginError, messageOf } from '../error.ts'
import { readStream } from '../values/bytes.ts'
import { computeBackoffMs, sleep, unlessAborted } from '../values/promises.ts'
import type { Bridge, BridgeOptions, BridgeState } from '../types/index.ts'
import { disposeKey } from '../values/objects.ts'
import * as protocol from './protocol.ts'

export interface LentServer {
  /** Without a slash at its end. */
  origin: string
  fetch: (request: Request) => Promise<Response>
  /** Signal that is aborted when the server is closed. */
  closing: AbortSignal
}

const FIRST_RECONNECT_MS = 1_000

/**
 * Connects the tab to the command at that URL. Resolves when the command accepted the tab. Rejects
 * with `invalid_request` for invalid arguments, with `bridge_unreachable` if nothing answers, and
 * with `bridge_refused` for a wrong token.
 */
export async function lend(
  url: string | URL,
  options: BridgeOptions,
  server: LentServer,
): Promise<Bridge> {
  const address = toSocketAddress(url)
  const token = parseToken(options.token)
  const ending = new AbortController()
  const close = (): void => ending.abort()
  const { signal: own = ending.signal } = options
  const signal = AbortSignal.any([server.closing, own, ending.signal])
  let state: BridgeState = { status: 'connected', requests: 0, answered: 0 }
  const report: Report = (changed) => {
    const { requests = state.requests } = changed
    const answered = state.answered + Math.max(0, state.requests - requests)
    state = { ...state, ...changed, answered }
    options.onChange?.(state)
  }
  const capability = toCapability(await probeDevice())
  signal.throwIfAborted()
  const { origin, fetch } = server
  const onCount = (requests: number): void => report({ requests })
  const request = { address, token, capability, origin, fetch, onCount, signal }
  const connection = await connect(request)
  report({})
  const closed = stayConnected(connection, request, options.reconnect ?? false, report)
  const finish = (): void => report({ status: 'closed' })
  closed.then(finish, finish)
  return {
    get state() {
      return state
    },
    closed,
    close,
    [disposeKey]: close,
  }
}

type Report = (changed: Partial<Pick<BridgeState, 'status' | 'requests'>>) => void

/**
 * Resolves when the signal ended the connection. If the command ended it, rejects with the error, or
 * connects again until the command is back or refuses the tab.
 */
async function stayConnected(
  first: Connection,
  options: ConnectionOptions,
  reconnects: boolean,
  report: Report,
): Promise<void> {
  for (let { closed } = first; ;) {
    const error = await closed
    if (!error) return
    if (!reconnects || !isTemporary(error)) throw error
    report({ status: 'reconnecting' })
    const next = await reconnect(options)
    if (!next) return
    report({ status: 'connected' })
    closed = next.closed
  }
}

/** Resolves with a connection when the command is back; with `null` if the signal ends the wait. */
async function reconnect(options: ConnectionOptions): Promise<Connection | null> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      await sleep(computeBackoffMs(attempts, FIRST_RECONNECT_MS), options.signal)
      return await connect(options)
    } catch (error) {
      if (options.signal.aborted) return null
      if (!isTemporary(error)) throw error
    }
  }
}

/** Returns `false` for a refusal, which would be the same the next time. */
const isTemporary = (error: unknown) =>
  error instanceof InoriginError && error.code === 'bridge_unreachable'

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

function toSocketAddress(url: string | URL): string {
  const parsed = URL.canParse(String(url)) ? new URL(url) : null
  if (parsed && /^(http|ws):$/.test(parsed.protocol) && LOOPBACK.test(parsed.hostname))
    return new URL(protocol.SOCKET_PATH, `ws://${parsed.host}`).href
  const what = 'url must be an http URL of this machine, such as http://127.0.0.1:11435'
  throw invalidArgument('url', `${what}, not ${String(url).slice(0, 100)}.`)
}

function parseToken(token: unknown): string {
  if (typeof token === 'string' && /^[\w-]{1,200}$/.test(token)) return token
  throw invalidArgument('token', 'token must be the text that `inorigin bridge` printed.')
}

const invalidArgument = (param: string, message: string) =>
  new InoriginError('invalid_request', message, { code: 'invalid_value', param })

const toCapability = ({ webgpu, memory, cores, wasm }: Capabilities): protocol.TabCapability => ({
  gpu: webgpu ? (webgpu.software ? 'software' : 'hardware') : 'none',
  gpuBufferBytes: webgpu?.limits['maxBufferSize'] ?? 0,
  memoryBytes: memory ?? 0,
  threads: wasm.threads ? cores : 1,
})

// One connection of the tab to the command.

/** How requests of the command are answered. */
interface AnswersOptions {
  /** Origin of the server in this page, without a slash at its end. */
  origin: string
  fetch: (request: Request) => Promise<Response>
  /** Called with the number of open requests whenever a request begins or ends. */
  onCount(open: number): void
  send(message: protocol.TabMessage): void
  sendPiece(piece: protocol.Piece): void
}

interface ConnectionOptions extends Omit<AnswersOptions, 'send' | 'sendPiece'> {
  address: string
  token: string
  capability: protocol.TabCapability
  signal: AbortSignal
}

type Connection = Awaited<ReturnType<typeof connect>>

const CONNECT_TIMEOUT_MS = 15_000
/** Code of a WebSocket that a page closes without an error. */
const NORMAL_CLOSURE = 1000

/**
 * Connects the tab. Resolves when the command accepted it. Rejects with `bridge_unreachable` or
 * `bridge_refused`.
 */
async function connect({ address, token, capability, signal, ...rest }: ConnectionOptions) {
  const socket = new WebSocket(address, [protocol.SUBPROTOCOL, protocol.TOKEN_PREFIX + token])
  socket.binaryType = 'arraybuffer'
  // An answer may end after the connection was closed.
  const sendFrame = (frame: string | Uint8Array<ArrayBuffer>): void => {
    if (socket.readyState === WebSocket.OPEN) socket.send(frame)
  }
  const send = (message: protocol.TabMessage): void => sendFrame(JSON.stringify(message))
  const sendPiece = ({ id, bytes }: protocol.Piece): void =>
    sendFrame(protocol.encodePiece(id, bytes))
  const answers = new Answers({ ...rest, send, sendPiece })
  const close = (): void => {
    answers.cancelAll()
    socket.close(NORMAL_CLOSURE)
  }
  const accepted = new Promise<void>((resolve) => {
    socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
      const message = protocol.parseServerFrame(data)
      if (!message || !answers.receive(message)) socket.close(protocol.CLOSE_CODES.invalidMessage)
      else if ('type' in message && message.type === 'welcome') resolve()
    })
  })
  socket.addEventListener('open', () => send({ type: 'hello', capability }))
  signal.addEventListener('abort', close)
  const closed = new Promise<InoriginError | null>((resolve) =>
    socket.addEventListener('close', (event) => {
      signal.removeEventListener('abort', close)
      answers.cancelAll()
      resolve(signal.aborted ? null : toCloseError(event, address))
    }),
  )
  const timer = setTimeout(() => socket.close(NORMAL_CLOSURE), CONNECT_TIMEOUT_MS)
  const failure = await Promise.race([accepted, closed]).finally(() => clearTimeout(timer))
  signal.throwIfAborted()
  if (failure) throw failure
  /** `closed` resolves when the connection is closed: with the error, or `null` by the signal. */
  return { closed }
}

function toCloseError({ code, reason }: CloseEvent, address: string): InoriginError {
  if (code === protocol.CLOSE_CODES.wrongToken || code === protocol.CLOSE_CODES.wrongVersion)
    return new InoriginError('authentication', reason, { code: 'bridge_refused' })
  const what = `The bridge at ${address} ${reason ? `closed the connection: ${reason}` : 'is not reachable.'}`
  const todo = 'Start `inorigin bridge`, and allow the connection if the browser asks.'
  return new InoriginError('unavailable', `${what} ${todo}`, { code: 'bridge_unreachable' })
}

interface OpenRequest {
  message: protocol.RequestMessage
  abort: AbortController
  /** Body so far; `filled` is the number of its bytes that have arrived. */
  body: Uint8Array<ArrayBuffer>
  filled: number
  /** Bytes of the response that may be sent. */
  credit: number
  onCredit: () => void
}

/** The answers of one connection to the requests that arrive over the WebSocket. */
export class Answers {
  readonly #options: AnswersOptions
  readonly #open = new Map<number, OpenRequest>()

  constructor(options: AnswersOptions) {
    this.#options = options
  }

  /** Handles a message. Returns `false` if it breaks the protocol. */
  receive(message: protocol.ServerMessage | protocol.Piece): boolean {
    if (!('type' in message) || message.type === 'credit') {
      const request = this.#open.get(message.id)
      // The rest of a body, and credit, may arrive after the request was canceled.
      if (!request) return true
      if (!('type' in message)) return this.#addPiece(request, message.bytes)
      request.credit += message.bytes
      request.onCredit()
      return request.credit <= protocol.WINDOW_BYTES
    }
    if (message.type === 'request') return this.#begin(message)
    if (message.type === 'cancel') this.#cancel(message.id)
    if (message.type === 'ping') this.#options.send({ type: 'pong' })
    return true
  }

  cancelAll(): void {
    for (const id of this.#open.keys()) this.#cancel(id)
  }

  #begin(message: protocol.RequestMessage): boolean {
    if (this.#open.has(message.id)) return false
    const request: OpenRequest = {
      message,
      abort: new AbortController(),
      body: new Uint8Array(message.bodyBytes),
      filled: 0,
      credit: protocol.WINDOW_BYTES,
      onCredit: () => {},
    }
    this.#open.set(message.id, request)
    this.#options.onCount(this.#open.size)
    if (message.bodyBytes === 0) void this.#answer(request)
    return true
  }

  /** Returns `false` for more bytes than the request has. */
  #addPiece(request: OpenRequest, bytes: Uint8Array): boolean {
    const { body, filled } = request
    if (filled + bytes.byteLength > body.byteLength) return false
    body.set(bytes, filled)
    request.filled += bytes.byteLength
    if (request.filled === body.byteLength) void this.#answer(request)
    return true
  }

  async #answer(request: OpenRequest): Promise<void> {
    const { id } = request.message
    try {
      await sendAnswer(request, this.#options)
      this.#options.send({ type: 'end', id })
    } catch (error) {
      // A canceled request has nobody left who would read this.
      if (!request.abort.signal.aborted)
        this.#options.send({ type: 'fail', id, message: messageOf(error) })
    }
    this.#forget(id)
  }

  #cancel(id: number): void {
    this.#open.get(id)?.abort.abort()
    this.#forget(id)
  }

  #forget(id: number): void {
    if (this.#open.delete(id)) this.#options.onCount(this.#open.size)
  }
}

async function sendAnswer(request: OpenRequest, options: AnswersOptions): Promise<void> {
  const { id, method, path, headers } = request.message
  const { signal } = request.abort
  const body = request.body.byteLength > 0 ? request.body : null
  const asked = new Request(options.origin + path, { method, headers, body, signal })
  // `/v1/../account` would be a page of the app, fetched with the cookies of its user.
  if (!asked.url.startsWith(`${options.origin}/v1/`)) throw new Error('The path is not in /v1/.')
  const response = await options.fetch(asked)
  signal.throwIfAborted()
  options.send({ type: 'response', id, status: response.status, headers: [...response.headers] })
  if (!response.body) return
  // The next piece is read when this one was sent, so a client that stops reading stops the model.
  for await (const bytes of readStream(response.body)) {
    for (const piece of protocol.splitIntoPieces(bytes)) {
      while (request.credit < piece.byteLength)
        await unlessAborted(new Promise<void>((resolve) => (request.onCredit = resolve)), signal)
      request.credit -= piece.byteLength
      options.sendPiece({ id, bytes: piece })
    }
  }
  signal.throwIfAborted()
}
