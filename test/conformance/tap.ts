/**
 * Stands between the clients and `fetch` of the page: keeps what goes through, and adds fields to
 * requests where a check has to drive the model. Answers pass piece by piece, as they come.
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
  /** Holds until it is set anew. */
  drive(by: Drive | null): void
  /** What went through since the last time. */
  take(): Exchange[]
}

/** Longer bodies are not looked into. */
const LONGEST = 1_000_000

export function createTap(): Tap {
  const real = globalThis.fetch.bind(globalThis)
  let exchanges: Exchange[] = []
  let driver: Drive | null = null

  globalThis.fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input, location.href)
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

  return {
    drive: (by) => (driver = by),
    take() {
      const taken = exchanges
      exchanges = []
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
