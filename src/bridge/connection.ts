/** One connection of this tab to `inorigin bridge`. */
import { InoriginError } from '../error.ts'
import { createAnswers, type Answers } from './answers.ts'
import {
  CLOSE_CODES,
  encodePiece,
  parseServerFrame,
  SUBPROTOCOL,
  TOKEN_PREFIX,
  type TabCapability,
  type TabMessage,
} from './protocol.ts'

export interface ConnectionOptions {
  /** URL of the WebSocket. */
  address: string
  token: string
  capability: TabCapability
  /** Origin of the server in this page, without a slash at its end. */
  origin: string
  fetch: (request: Request) => Promise<Response>
  /** Called with the number of open requests whenever a request begins or ends. */
  onCount(open: number): void
  /** Signal that closes the connection. */
  signal: AbortSignal
}

export interface Connection {
  /** Resolves when the connection is closed: with the error, or `null` if the signal closed it. */
  readonly closed: Promise<InoriginError | null>
}

/** Time in milliseconds until a connection must be welcome. */
const CONNECT_TIMEOUT_MS = 15_000

/** Code of a WebSocket that a page closes without an error. */
const NORMAL_CLOSURE = 1000

/**
 * Connects the tab. Resolves when the command accepted it.
 *
 * @throws InoriginError `unavailable` with `bridge_unreachable`; `authentication` with
 * `bridge_refused`.
 */
export async function connect(options: ConnectionOptions): Promise<Connection> {
  const { address, signal } = options
  const socket = new WebSocket(address, [SUBPROTOCOL, TOKEN_PREFIX + options.token])
  socket.binaryType = 'arraybuffer'
  const answers = createAnswers({
    origin: options.origin,
    fetch: options.fetch,
    send: (message) => sendMessage(socket, message),
    sendPiece: ({ id, bytes }) => sendFrame(socket, encodePiece(id, bytes)),
    onCount: options.onCount,
  })
  const close = (): void => {
    answers.cancelAll()
    socket.close(NORMAL_CLOSURE)
  }
  const accepted = receiveFrames(socket, answers)
  socket.addEventListener('open', () =>
    sendMessage(socket, { type: 'hello', capability: options.capability }),
  )
  signal.addEventListener('abort', close)
  const closed = waitForClose(socket).then((event) => {
    signal.removeEventListener('abort', close)
    answers.cancelAll()
    return signal.aborted ? null : toCloseError(event, address)
  })
  const timer = setTimeout(() => socket.close(NORMAL_CLOSURE), CONNECT_TIMEOUT_MS)
  const failure = await Promise.race([accepted, closed]).finally(() => clearTimeout(timer))
  signal.throwIfAborted()
  if (failure) throw failure
  return { closed }
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

const waitForClose = (socket: WebSocket): Promise<CloseEvent> =>
  new Promise((resolve) => socket.addEventListener('close', resolve))

const sendMessage = (socket: WebSocket, message: TabMessage): void =>
  sendFrame(socket, JSON.stringify(message))

/** Sends a frame, unless the connection is closed: an answer may end after it. */
function sendFrame(socket: WebSocket, frame: string | Uint8Array<ArrayBuffer>): void {
  if (socket.readyState === WebSocket.OPEN) socket.send(frame)
}

function toCloseError({ code, reason }: CloseEvent, address: string): InoriginError {
  if (code === CLOSE_CODES.wrongToken || code === CLOSE_CODES.wrongVersion) {
    return new InoriginError('authentication', reason, { code: 'bridge_refused' })
  }
  const what = `The bridge at ${address} ${reason ? `closed the connection: ${reason}` : 'is not reachable.'}`
  const todo = 'Start `inorigin bridge`, and allow the connection if the browser asks.'
  return new InoriginError('unavailable', `${what} ${todo}`, { code: 'bridge_unreachable' })
}
