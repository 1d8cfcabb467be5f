/** The server's end of one connected tab: sends it requests and receives its responses. */
import type { RawData, WebSocket } from 'ws'
import {
  CLOSE_CODES,
  encodePiece,
  parseTabFrame,
  type Piece,
  type ServerMessage,
  splitIntoPieces,
  type TabCapability,
  type TabMessage,
  WINDOW_BYTES,
} from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'

/** Request of a client, read to its end, so that another tab can answer it too. */
interface ClientRequest {
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

interface TabTimes {
  /** Milliseconds between questions whether the page lives, while it has requests. */
  pingIntervalMs: number
  /** Milliseconds that a page has for an answer to such a question. */
  pongTimeoutMs: number
}

/** A page's main thread may be busy for seconds. Its requests run in workers. */
const TAB_TIMES: TabTimes = { pingIntervalMs: 15_000, pongTimeoutMs: 15_000 }

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

interface TabResponse {
  status: number
  headers: [string, string][]
  /** Body. It fails with `bridge_tab_gone` if the tab is closed. */
  body: ReadableStream<Uint8Array>
}

/** Receiver of the messages of one request. */
interface Exchange {
  onResponse(status: number, headers: [string, string][]): void
  /** Returns `false` if the tab sent more than it may. */
  onPiece(bytes: Uint8Array): boolean
  onEnd(): void
  onError(error: unknown): void
}

interface ExchangeOptions {
  /** Lets the tab send as many more bytes. */
  grant(bytes: number): void
  /** Tells the tab that nobody reads its response. */
  cancel(): void
  /** Signal of the client. */
  signal: AbortSignal
}

/** Creates the two ends of a request: the tab's messages, and the response that they make. */
function createExchange(options: ExchangeOptions): {
  exchange: Exchange
  response: Promise<TabResponse>
} {
  const { cancel, signal } = options
  const source = createBody(options)
  const { promise, resolve, reject } = createDeferred<TabResponse>()
  let hasStatus = false
  const fail = (error: unknown): void => {
    reject(error)
    source.fail(error)
  }
  const stop = (): void => {
    cancel()
    fail(signal.reason)
  }
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  return {
    response: promise,
    exchange: {
      onResponse(status, headers) {
        hasStatus = true
        resolve({ status, headers, body: source.body })
      },
      onPiece: source.add,
      onEnd() {
        if (hasStatus) source.end()
        else fail(new InoriginError('internal', 'The tab sent no response.'))
      },
      onError: fail,
    },
  }
}

/** Bytes that a client must have read before the tab gets credit for them. */
const GRANT_BYTES = WINDOW_BYTES / 4

/** Creates the body of a response. It gives the tab credit for what the client has read. */
function createBody({ grant, cancel }: ExchangeOptions) {
  let controller: ReadableStreamDefaultController<Uint8Array>
  /** Bytes that the tab may still send, and those that it sent since the last credit. */
  let allowed = WINDOW_BYTES
  let received = 0
  let isOver = false
  const body = new ReadableStream<Uint8Array>(
    {
      start: (given) => void (controller = given),
      // It runs while less than half of a window waits for the client.
      pull() {
        if (isOver || received < GRANT_BYTES) return
        allowed += received
        grant(received)
        received = 0
      },
      cancel() {
        isOver = true
        cancel()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: WINDOW_BYTES / 2 }),
  )
  /** Returns `true` the first time that the body ends. */
  const finish = (): boolean => {
    const isFirst = !isOver
    isOver = true
    return isFirst
  }
  return {
    body,
    add(bytes: Uint8Array): boolean {
      if (isOver) return true
      allowed -= bytes.byteLength
      received += bytes.byteLength
      if (allowed < 0) return false
      controller.enqueue(bytes)
      return true
    },
    end(): void {
      if (finish()) controller.close()
    },
    fail(error: unknown): void {
      if (finish()) controller.error(error)
    },
  }
}

function createDeferred<T>() {
  let resolve!: (value: T) => void
  let reject!: (reason: unknown) => void
  const promise = new Promise<T>((...given) => ([resolve, reject] = given))
  return { promise, resolve, reject }
}

function tabGoneError(): InoriginError {
  const what = 'The tab that answered was closed, or it stopped to react.'
  return new InoriginError('unavailable', `${what} Send the request again.`, {
    code: 'bridge_tab_gone',
    retryAfter: 1,
  })
}

/** Maximum number of connected tabs. */
export const MAX_TABS = 16

export interface Tabs {
  readonly size: number
  /** Adds the tab until it is closed. */
  add(tab: Tab): void
  /**
   * Resolves with the response of the most capable tab. If a tab is closed before it has sent a
   * status, the next one is asked.
   *
   * @throws InoriginError `unavailable` with `bridge_no_tab` or `bridge_tab_gone`.
   */
  request(request: ClientRequest, signal: AbortSignal): Promise<TabResponse>
}

export function createTabs(): Tabs {
  const tabs = new Set<Tab>()
  return {
    get size() {
      return tabs.size
    },
    add(tab) {
      tabs.add(tab)
      void tab.closed.then(() => tabs.delete(tab))
    },
    async request(request, signal) {
      let failure = noTabError()
      // A tab that connects after the request began may answer it, too.
      for (const tried = new Set<Tab>(); ;) {
        const [tab] = [...tabs].filter((one) => !tried.has(one)).toSorted(compareTabs)
        if (!tab) throw failure
        tried.add(tab)
        try {
          return await tab.request(request, signal)
        } catch (error) {
          const isGone = error instanceof InoriginError && error.code === 'bridge_tab_gone'
          if (!isGone) throw error
          failure = error
        }
      }
    },
  }
}

/** Orders tabs by capability. The sort is stable, so the first of equal tabs answers. */
function compareTabs(one: Tab, other: Tab): number {
  const [first, second] = [toRanks(one.capability), toRanks(other.capability)]
  const at = first.findIndex((rank, index) => rank !== second[index])
  return (second[at] ?? 0) - (first[at] ?? 0)
}

/** A software GPU is slower than WASM, so it counts as no GPU. */
const toRanks = ({ gpu, gpuBufferBytes, memoryBytes, threads }: TabCapability): number[] =>
  gpu === 'hardware' ? [1, gpuBufferBytes, memoryBytes, threads] : [0, 0, threads, memoryBytes]

function noTabError(): InoriginError {
  const what = 'No tab is connected to the bridge.'
  const todo = 'Open the page that `inorigin bridge` printed, or lend a tab with server.bridge().'
  return new InoriginError('unavailable', `${what} ${todo}`, {
    code: 'bridge_no_tab',
    retryAfter: 2,
  })
}
