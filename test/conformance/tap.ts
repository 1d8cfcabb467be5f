/**
 * Stands between the clients and `fetch`: keeps what goes through, and adds fields to requests where a
 * check has to drive the model. Answers pass piece by piece, as they come.
 */
export type Fields = Record<string, unknown>

export interface Exchange {
  method: string
  path: string
  /** The body that was sent; `null`: none, or no JSON object. */
  sent: Fields | null
  status: number
  headers: Record<string, string>
  /** As much as was received. */
  received: string
  /** How the answer ended: by itself, because the client gave up, broken off, or not yet. */
  end: 'whole' | 'given up' | 'broken' | 'open'
}

/** Fields that a request is sent with in addition to its client's. */
export type Drive = (sent: Fields) => Fields

export interface Tap {
  /** Sends requests on. */
  fetch: typeof fetch
  /** Sets the fields of the next requests. They hold until they are set anew. */
  drive(by: Drive | null): void
  /** Returns the exchanges since the last time. */
  take(): Exchange[]
  /** Takes them once each answer has ended or {@link SETTLE_TIMEOUT_MS} is over. */
  settled(): Promise<Exchange[]>
}

/** Longer bodies are not looked into. */
const LONGEST = 1_000_000
/** A client that leaves a stream unread keeps its answer open; the check then says so. */
const SETTLE_TIMEOUT_MS = 10_000

export function createTap(real: typeof fetch): Tap {
  let exchanges: Exchange[] = []
  let driver: Drive | null = null

  const tapped: typeof fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input, globalThis.location?.href)
    const sent = bodyOf(init)
    const extra = sent && driver ? driver(sent) : {}
    const driven = sent && { ...sent, ...extra }
    const changed = Object.keys(extra).length > 0 && { body: JSON.stringify(driven) }
    const response = await real(input, { ...init, ...changed })
    const exchange: Exchange = {
      method: init?.method ?? 'GET',
      path: url.pathname,
      sent: driven,
      status: response.status,
      headers: Object.fromEntries(response.headers),
      received: '',
      end: 'open',
    }
    exchanges.push(exchange)
    if (!response.body) {
      exchange.end = 'whole'
      return response
    }
    const { status, statusText, headers } = response
    const body = through(response.body, exchange, init?.signal ?? undefined)
    const passed = new Response(body, { status, statusText, headers })
    return Object.defineProperty(passed, 'url', { value: response.url })
  }

  function take(): Exchange[] {
    const taken = exchanges
    exchanges = []
    return taken
  }

  return {
    fetch: tapped,
    drive: (by) => (driver = by),
    take,
    async settled() {
      const taken = take()
      const deadline = performance.now() + SETTLE_TIMEOUT_MS
      while (taken.some(({ end }) => end === 'open') && performance.now() < deadline) {
        // oxlint-disable-next-line tests/no-fixed-wait -- This is a poll.
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return taken
    },
  }
}

function bodyOf(init: RequestInit | undefined): Fields | null {
  if (typeof init?.body !== 'string' || init.body.length > LONGEST) return null
  try {
    return JSON.parse(init.body) as Fields
  } catch {
    return null
  }
}

function through(
  body: ReadableStream<Uint8Array>,
  exchange: Exchange,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) {
            exchange.received += decoder.decode(value, { stream: true })
            return controller.enqueue(value)
          }
          exchange.end = 'whole'
          controller.close()
        } catch (thrown) {
          exchange.end = signal?.aborted ? 'given up' : 'broken'
          controller.error(thrown)
        }
      },
      cancel(reason) {
        exchange.end = 'given up'
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
