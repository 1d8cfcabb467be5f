/** Lends this tab to programs outside the browser: connects it to `inorigin bridge`. */
import { probeDevice, type Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import type { Bridge, BridgeOptions, BridgeState } from '../types/index.ts'
import { createAnswers, type Answers } from './answers.ts'
import {
  CLOSE_CODES,
  encodePiece,
  parseServerFrame,
  SOCKET_PATH,
  SUBPROTOCOL,
  TOKEN_PREFIX,
  type TabCapability,
  type TabMessage,
} from './protocol.ts'

/** The server in this page. */
export interface LentServer {
  /** Without a slash at its end. */
  origin: string
  fetch: (request: Request) => Promise<Response>
  /** Signal that is aborted when the server is closed. */
  closing: AbortSignal
}

/** Time in milliseconds until a connection must be welcome. */
const CONNECT_TIMEOUT_MS = 15_000

/** Code of a WebSocket that a page closes without an error. */
const NORMAL_CLOSURE = 1000

const noop = (): void => {}

/**
 * Connects the tab to the command at that URL. Resolves when the command accepted the tab.
 *
 * @throws InoriginError `invalid_request` for invalid arguments; `unavailable` with
 * `bridge_unreachable` if nothing answers; `authentication` with `bridge_refused` for a wrong token.
 */
export async function lend(
  url: string | URL,
  options: BridgeOptions,
  server: LentServer,
): Promise<Bridge> {
  const address = toSocketAddress(url)
  const protocols = [SUBPROTOCOL, TOKEN_PREFIX + parseToken(options.token)]
  const signals = [server.closing, ...(options.signal ? [options.signal] : [])]
  const capability = toCapability(await probeDevice())
  for (const signal of signals) signal.throwIfAborted()

  const socket = new WebSocket(address, protocols)
  socket.binaryType = 'arraybuffer'
  const { report, getState } = createReport(options.onChange ?? noop)
  const answers = createAnswers({
    origin: server.origin,
    fetch: server.fetch,
    send: (message) => sendMessage(socket, message),
    sendPiece: ({ id, bytes }) => sendFrame(socket, encodePiece(id, bytes)),
    onCount: (requests) => report({ requests }),
  })
  let isClosing = false
  const close = (): void => {
    isClosing = true
    answers.cancelAll()
    socket.close(NORMAL_CLOSURE)
  }
  const accepted = receiveFrames(socket, answers)
  socket.addEventListener('open', () => sendMessage(socket, { type: 'hello', capability }))
  const closed = waitForClose(socket, (event) => (isClosing ? null : toCloseError(event, address)))
  for (const signal of signals) signal.addEventListener('abort', close)
  const settled = closed.catch(noop).then(() => {
    answers.cancelAll()
    for (const signal of signals) signal.removeEventListener('abort', close)
  })
  const timer = setTimeout(() => socket.close(NORMAL_CLOSURE), CONNECT_TIMEOUT_MS)
  await Promise.race([accepted, closed]).finally(() => clearTimeout(timer))
  for (const signal of signals) signal.throwIfAborted()
  report({})
  void settled.then(() => report({ status: 'closed' }))
  return {
    get state() {
      return getState()
    },
    closed,
    close,
  }
}

/** Creates the state of a bridge, and the function that changes it. */
function createReport(onChange: (state: BridgeState) => void): {
  report(changed: Partial<Pick<BridgeState, 'status' | 'requests'>>): void
  getState(): BridgeState
} {
  let state: BridgeState = { status: 'connected', requests: 0, answered: 0 }
  return {
    report(changed) {
      const { requests = state.requests } = changed
      const answered = state.answered + Math.max(0, state.requests - requests)
      state = { ...state, ...changed, answered }
      onChange(state)
    },
    getState: () => state,
  }
}

/** Passes all frames to the answers. Resolves when the server accepts the tab. */
function receiveFrames(socket: WebSocket, answers: Answers): Promise<void> {
  return new Promise((resolve) => {
    socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) => {
      const message = parseServerFrame(data)
      if (!message || !answers.receive(message)) socket.close(CLOSE_CODES.invalidMessage)
      else if ('type' in message && message.type === 'welcome') resolve()
    })
  })
}

/** Settles when the connection is closed. Rejects with the error, if it is one. */
function waitForClose(
  socket: WebSocket,
  toError: (event: CloseEvent) => InoriginError | null,
): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.addEventListener('close', (event) => {
      const error = toError(event)
      if (error) reject(error)
      else resolve()
    })
  })
}

const sendMessage = (socket: WebSocket, message: TabMessage): void =>
  sendFrame(socket, JSON.stringify(message))

/** Sends a frame, unless the connection is closed: an answer may end after it. */
function sendFrame(socket: WebSocket, frame: string | Uint8Array<ArrayBuffer>): void {
  if (socket.readyState === WebSocket.OPEN) socket.send(frame)
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

function toSocketAddress(url: string | URL): string {
  const parsed = URL.canParse(String(url)) ? new URL(url) : null
  if (parsed && /^(http|ws):$/.test(parsed.protocol) && LOOPBACK.test(parsed.hostname)) {
    return new URL(SOCKET_PATH, `ws://${parsed.host}`).href
  }
  const what = 'url must be an http URL of this machine, such as http://127.0.0.1:11435'
  throw invalidArgument('url', `${what}, not ${String(url).slice(0, 100)}.`)
}

function parseToken(token: unknown): string {
  if (typeof token === 'string' && /^[\w-]{1,200}$/.test(token)) return token
  throw invalidArgument('token', 'token must be the text that `inorigin bridge` printed.')
}

function invalidArgument(param: string, message: string): InoriginError {
  return new InoriginError('invalid_request', message, { code: 'invalid_value', param })
}

function toCapability({ webgpu, memory, cores, wasm }: Capabilities): TabCapability {
  return {
    gpu: webgpu ? (webgpu.software ? 'software' : 'hardware') : 'none',
    gpuBufferBytes: webgpu?.limits['maxBufferSize'] ?? 0,
    memoryBytes: memory ?? 0,
    threads: wasm.threads ? cores : 1,
  }
}

function toCloseError({ code, reason }: CloseEvent, address: string): InoriginError {
  if (code === CLOSE_CODES.wrongToken || code === CLOSE_CODES.wrongVersion) {
    return new InoriginError('authentication', reason, { code: 'bridge_refused' })
  }
  const what = `The bridge at ${address} ${reason ? `closed the connection: ${reason}` : 'is not reachable.'}`
  const todo = 'Start `inorigin bridge`, and allow the connection if the browser asks.'
  return new InoriginError('unavailable', `${what} ${todo}`, { code: 'bridge_unreachable' })
}
