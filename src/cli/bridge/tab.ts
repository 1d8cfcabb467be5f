/** The server's end of one connected tab: sends it requests and receives its responses. */
import type { RawData, WebSocket } from 'ws'
import {
  CLOSE_CODES,
  encodePiece,
  parseTabFrame,
  splitIntoPieces,
  type Piece,
  type ServerMessage,
  type TabCapability,
  type TabMessage,
} from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'
import { createExchange, tabGoneError, type Exchange, type TabResponse } from './exchange.ts'

/** Request of a client, read to its end, so that another tab can answer it too. */
export interface ClientRequest {
  method: string
  /** Path with the query. */
  path: string
  headers: [string, string][]
  body: Uint8Array
}

export interface Tab {
  readonly capability: TabCapability
  /** Origin of the page, as its browser says. */
  readonly origin: string
  /**
   * Resolves with the response when the tab has sent its status. The signal cancels the request at
   * any time. Rejects with `bridge_tab_gone` if the tab closes or stops to react.
   */
  request(request: ClientRequest, signal: AbortSignal): Promise<TabResponse>
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>
  close(code: number, reason: string): void
}

export interface TabTimes {
  /** Milliseconds between questions whether the page lives, while it has requests. */
  pingIntervalMs: number
  /** Milliseconds that a page has for an answer to such a question. */
  pongTimeoutMs: number
}

/** A page's main thread may be busy for seconds. Its requests run in workers. */
export const TAB_TIMES: TabTimes = { pingIntervalMs: 15_000, pongTimeoutMs: 15_000 }

export function createTab(
  socket: WebSocket,
  facts: { capability: TabCapability; origin: string },
  times: TabTimes = TAB_TIMES,
): Tab {
  const exchanges = new Map<number, Exchange>()
  let lastId = 0
  const send = (message: ServerMessage): void => sendMessage(socket, message)
  const pings = createPings(times, {
    ping: () => send({ type: 'ping' }),
    fail() {
      socket.close(CLOSE_CODES.timeout, 'The page did not react.')
      // A frozen page does not confirm the close, so nothing waits for that.
      failAll()
    },
  })
  const failAll = (): void => {
    pings.stop()
    for (const { onError } of exchanges.values()) onError(tabGoneError())
    exchanges.clear()
  }

  socket.on('message', (data, isBinary) => {
    const message = parseTabFrame(toFrame(data, isBinary))
    if (message && 'type' in message && message.type === 'pong') pings.pong()
    else if (!message || !dispatch(message, exchanges)) {
      socket.close(CLOSE_CODES.invalidMessage, 'The page sent an invalid message.')
      failAll()
    } else if (exchanges.size === 0) pings.stop()
  })
  socket.on('close', failAll)
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  return {
    ...facts,
    request(request, signal) {
      const id = (lastId += 1)
      const { exchange, response } = createExchange({
        grant: (bytes) => send({ type: 'credit', id, bytes }),
        cancel() {
          if (!exchanges.delete(id)) return
          if (exchanges.size === 0) pings.stop()
          send({ type: 'cancel', id })
        },
        signal,
      })
      if (socket.readyState !== socket.OPEN) exchange.onError(tabGoneError())
      else if (!signal.aborted) {
        exchanges.set(id, exchange)
        sendRequest(socket, id, request)
        pings.start()
      }
      return response
    },
    closed,
    close: (code, reason) => socket.close(code, reason),
  }
}

const sendMessage = (socket: WebSocket, message: ServerMessage): void =>
  socket.send(JSON.stringify(message))

function sendRequest(socket: WebSocket, id: number, { body, ...head }: ClientRequest): void {
  sendMessage(socket, { type: 'request', id, ...head, bodyBytes: body.byteLength })
  for (const piece of splitIntoPieces(body)) socket.send(encodePiece(id, piece))
}

/**
 * Passes a message to its request, and removes the request if it is the last one. Returns `false`
 * if the message breaks the protocol.
 */
function dispatch(message: TabMessage | Piece, exchanges: Map<number, Exchange>): boolean {
  if ('type' in message && (message.type === 'hello' || message.type === 'pong')) return false
  const exchange = exchanges.get(message.id)
  // A canceled request may still send something, which nobody reads.
  if (!exchange) return true
  if (!('type' in message)) return exchange.onPiece(message.bytes)
  if (message.type === 'response') exchange.onResponse(message.status, message.headers)
  else exchanges.delete(message.id)
  if (message.type === 'end') exchange.onEnd()
  if (message.type === 'fail') exchange.onError(new InoriginError('internal', message.message))
  return true
}

/** Asks the page whether it lives, again and again while it has requests. */
function createPings(times: TabTimes, on: { ping(): void; fail(): void }) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const ask = (): void => {
    on.ping()
    timer = setTimeout(on.fail, times.pongTimeoutMs)
  }
  return {
    start() {
      if (timer === undefined) ask()
    },
    pong() {
      if (timer === undefined) return
      clearTimeout(timer)
      timer = setTimeout(ask, times.pingIntervalMs)
    },
    stop() {
      clearTimeout(timer)
      timer = undefined
    },
  }
}

/** Returns the text or the bytes of a frame in the form that pages receive it. */
export function toFrame(data: RawData, isBinary: boolean): string | ArrayBuffer {
  const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Uint8Array)
  if (!isBinary) return bytes.toString('utf8')
  return new Uint8Array(bytes).buffer
}
