/** The server's end of one connected tab: sends it requests and receives its responses. */
import type { RawData, WebSocket } from 'ws'
import * as protocol from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'

/** Request of a client, read to its end, so that another tab can answer it too. */
type ClientRequest = Pick<protocol.RequestMessage, 'method' | 'path' | 'headers'> & {
  body: Uint8Array
}

interface TabResponse {
  status: number
  headers: [string, string][]
  /** Body. It fails with `bridge_tab_gone` if the tab is closed. */
  body: ReadableStream<Uint8Array>
}

/**
 * Milliseconds between questions whether the page lives, while it has requests, and for an answer.
 * A page's main thread may be busy for seconds. Its requests run in workers.
 */
const TAB_TIMES = { pingIntervalMs: 15_000, pongTimeoutMs: 15_000 }

export class Tab {
  readonly capability: protocol.TabCapability
  readonly origin: string
  readonly closed: Promise<void>
  readonly #socket: WebSocket
  readonly #times: typeof TAB_TIMES
  readonly #exchanges = new Map<number, Exchange>()
  #lastId = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    socket: WebSocket,
    { capability, origin }: { capability: protocol.TabCapability; origin: string },
    times = TAB_TIMES,
  ) {
    this.capability = capability
    this.origin = origin
    this.#socket = socket
    this.#times = times
    socket.on('message', (data, isBinary) =>
      this.#receive(protocol.parseTabFrame(toFrame(data, isBinary))),
    )
    socket.on('close', () => this.#failAll())
    this.closed = new Promise((resolve) => socket.on('close', () => resolve()))
  }

  /**
   * Resolves with the response when the tab has sent its status. The signal cancels the request at
   * any time. Rejects with `bridge_tab_gone` if the tab closes or stops to react.
   */
  request({ body, ...head }: ClientRequest, signal: AbortSignal): Promise<TabResponse> {
    const id = (this.#lastId += 1)
    const grant = (bytes: number): void => this.#send({ type: 'credit', id, bytes })
    const cancel = (): void => {
      if (!this.#exchanges.delete(id)) return
      if (this.#exchanges.size === 0) this.#stopPings()
      this.#send({ type: 'cancel', id })
    }
    const exchange = new Exchange(grant, cancel, signal)
    if (this.#socket.readyState !== this.#socket.OPEN) exchange.fail(tabGoneError())
    else if (!signal.aborted) {
      this.#exchanges.set(id, exchange)
      this.#send({ type: 'request', id, ...head, bodyBytes: body.byteLength })
      for (const piece of protocol.splitIntoPieces(body))
        this.#socket.send(protocol.encodePiece(id, piece))
      if (this.#timer === undefined) this.#ping()
    }
    return exchange.response
  }

  #send(message: protocol.ServerMessage): void {
    this.#socket.send(JSON.stringify(message))
  }

  #receive(message: protocol.TabMessage | protocol.Piece | undefined): void {
    if (message && 'type' in message && message.type === 'pong') {
      if (this.#timer === undefined) return
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => this.#ping(), this.#times.pingIntervalMs)
    } else if (!message || !this.#dispatch(message)) {
      this.#socket.close(protocol.CLOSE_CODES.invalidMessage, 'The page sent an invalid message.')
      this.#failAll()
    } else if (this.#exchanges.size === 0) this.#stopPings()
  }

  /**
   * Passes a message to its request, and removes the request if it is the last one. Returns `false`
   * if the message breaks the protocol.
   */
  #dispatch(message: protocol.TabMessage | protocol.Piece): boolean {
    if ('type' in message && (message.type === 'hello' || message.type === 'pong')) return false
    const exchange = this.#exchanges.get(message.id)
    // A canceled request may still send something, which nobody reads.
    if (!exchange) return true
    if (!('type' in message)) return exchange.add(message.bytes)
    if (message.type === 'response') exchange.respond(message.status, message.headers)
    else this.#exchanges.delete(message.id)
    if (message.type === 'end') exchange.end()
    if (message.type === 'fail') exchange.fail(new InoriginError('internal', message.message))
    return true
  }

  /** Asks the page whether it lives. Its answer lets the next question follow. */
  #ping(): void {
    this.#send({ type: 'ping' })
    this.#timer = setTimeout(() => {
      this.#socket.close(protocol.CLOSE_CODES.timeout, 'The page did not react.')
      // A frozen page does not confirm the close, so nothing waits for that.
      this.#failAll()
    }, this.#times.pongTimeoutMs)
  }

  #stopPings(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #failAll(): void {
    this.#stopPings()
    for (const exchange of this.#exchanges.values()) exchange.fail(tabGoneError())
    this.#exchanges.clear()
  }
}

/** Returns a frame in the form in which pages receive it. */
export function toFrame(data: RawData, isBinary: boolean): string | ArrayBuffer {
  const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Uint8Array)
  return isBinary ? new Uint8Array(bytes).buffer : bytes.toString('utf8')
}

/** Bytes that a client must have read before the tab gets credit for them. */
const GRANT_BYTES = protocol.WINDOW_BYTES / 4

/** One request: it turns the tab's messages into the response of the client. */
class Exchange {
  readonly response: Promise<TabResponse>
  readonly #body: ReadableStream<Uint8Array>
  #resolve!: (response: TabResponse) => void
  #reject!: (error: unknown) => void
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #hasStatus = false
  /** Bytes that the tab may still send, and those that it sent since the last credit. */
  #allowed = protocol.WINDOW_BYTES
  #received = 0
  #isOver = false

  /**
   * `grant` lets the tab send as many more bytes; it follows what the client has read. `cancel`
   * tells the tab that nobody reads its response. The signal is that of the client.
   */
  constructor(grant: (bytes: number) => void, cancel: () => void, signal: AbortSignal) {
    this.response = new Promise((...given) => ([this.#resolve, this.#reject] = given))
    this.#body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#controller = controller),
        // It runs while less than half of a window waits for the client.
        pull: () => {
          if (this.#isOver || this.#received < GRANT_BYTES) return
          this.#allowed += this.#received
          grant(this.#received)
          this.#received = 0
        },
        cancel: () => {
          this.#isOver = true
          cancel()
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: protocol.WINDOW_BYTES / 2 }),
    )
    const stop = (): void => {
      cancel()
      this.fail(signal.reason)
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  }

  respond(status: number, headers: [string, string][]): void {
    this.#hasStatus = true
    this.#resolve({ status, headers, body: this.#body })
  }

  add(bytes: Uint8Array): boolean {
    if (this.#isOver) return true
    this.#allowed -= bytes.byteLength
    this.#received += bytes.byteLength
    if (this.#allowed < 0) return false
    this.#controller.enqueue(bytes)
    return true
  }

  end(): void {
    if (!this.#hasStatus)
      return this.fail(new InoriginError('internal', 'The tab sent no response.'))
    if (!this.#isOver) this.#controller.close()
    this.#isOver = true
  }

  fail(error: unknown): void {
    this.#reject(error)
    if (!this.#isOver) this.#controller.error(error)
    this.#isOver = true
  }
}

const tabGoneError = (): InoriginError =>
  new InoriginError(
    'unavailable',
    'The tab that answered was closed, or it stopped to react. Send the request again.',
    { code: 'bridge_tab_gone', retryAfter: 1 },
  )

export const MAX_TABS = 16

export class Tabs {
  readonly #tabs = new Set<Tab>()

  add(tab: Tab): void {
    this.#tabs.add(tab)
    void tab.closed.then(() => this.#tabs.delete(tab))
  }

  /**
   * Resolves with the response of the most capable tab. If a tab is closed before it has sent a
   * status, the next one is asked.
   *
   * @throws InoriginError `unavailable` with `bridge_no_tab` or `bridge_tab_gone`.
   */
  async request(request: ClientRequest, signal: AbortSignal): Promise<TabResponse> {
    let failure = noTabError()
    // A tab that connects after the request began may answer it, too.
    for (const tried = new Set<Tab>(); ;) {
      const [tab] = [...this.#tabs].filter((one) => !tried.has(one)).toSorted(compareTabs)
      if (!tab) throw failure
      tried.add(tab)
      try {
        return await tab.request(request, signal)
      } catch (error) {
        if (!(error instanceof InoriginError && error.code === 'bridge_tab_gone')) throw error
        failure = error
      }
    }
  }
}

/** Orders tabs by capability. The sort is stable, so the first of equal tabs answers. */
function compareTabs(one: Tab, other: Tab): number {
  const second = toRanks(other.capability)
  const gaps = toRanks(one.capability).map((rank, index) => (second[index] ?? 0) - rank)
  return gaps.find((gap) => gap !== 0) ?? 0
}

/** A software GPU is slower than WASM, so it counts as no GPU. */
const toRanks = ({ gpu, gpuBufferBytes, memoryBytes, threads }: protocol.TabCapability): number[] =>
  gpu === 'hardware' ? [1, gpuBufferBytes, memoryBytes, threads] : [0, 0, threads, memoryBytes]

const noTabError = (): InoriginError =>
  new InoriginError(
    'unavailable',
    'No tab is connected to the bridge. Open the page that `inorigin bridge` printed, or lend a ' +
      'tab with server.bridge().',
    { code: 'bridge_no_tab', retryAfter: 2 },
  )
