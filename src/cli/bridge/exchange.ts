/** The server's end of one request to a tab: its response, and the messages that make it. */
import { WINDOW_BYTES } from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'

export interface TabResponse {
  status: number
  headers: [string, string][]
  /** Body. It fails with `bridge_tab_gone` if the tab is closed. */
  body: ReadableStream<Uint8Array>
}

/** Receiver of the messages of one request. */
export interface Exchange {
  onResponse(status: number, headers: [string, string][]): void
  /** Returns `false` if the tab sent more than it may. */
  onPiece(bytes: Uint8Array): boolean
  onEnd(): void
  onError(error: unknown): void
}

export interface ExchangeOptions {
  /** Lets the tab send as many more bytes. */
  grant(bytes: number): void
  /** Tells the tab that nobody reads its response. */
  cancel(): void
  /** Signal of the client. */
  signal: AbortSignal
}

/** Creates the two ends of a request: the tab's messages, and the response that they make. */
export function createExchange(options: ExchangeOptions): {
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

export function tabGoneError(): InoriginError {
  const what = 'The tab that answered was closed, or it stopped to react.'
  return new InoriginError('unavailable', `${what} Send the request again.`, {
    code: 'bridge_tab_gone',
    retryAfter: 1,
  })
}
