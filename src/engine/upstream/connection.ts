/** Sends requests to upstream servers: headers, retries, time limits and errors. */
import type { Upstream } from '../../catalog/upstream-schema.ts'
import { InoriginError } from '../../error.ts'
import { sleep } from '../../store/timeouts.ts'
import { silentError, unreachableError, upstreamStatusError } from './errors.ts'

/** Time in milliseconds without a byte after which a server counts as dead. */
export const SILENCE_TIMEOUT_MS = 120_000
/** Maximum number of retries of a request that the server rejects with `retry-after`. */
export const MAX_RETRIES = 2
/** Maximum time in milliseconds that the retries of a request wait in total. */
export const MAX_RETRY_WAIT_MS = 10_000
/** Statuses with which a server asks to come back later. */
const RETRIED_STATUSES: readonly number[] = [429, 503]
/** Maximum number of bytes that are read of the body of an error. */
const MAX_ERROR_BYTES = 64 * 1024

/** A request to an upstream server. */
export interface UpstreamCall {
  upstream: Upstream
  /** API key of the request, which is sent only if the catalog entry forwards it. */
  key: string | null
  signal: AbortSignal
  /** Resolves with the headers that the app adds for that URL. */
  getHeaders: (url: string, signal: AbortSignal) => Promise<Record<string, string>>
}

/** An open response. Its body must be read with `readBytes`, or closed. */
export interface UpstreamResponse {
  contentType: string
  /** Yields the body. Throws if the server is silent for too long or the connection breaks. */
  readBytes(): AsyncGenerator<Uint8Array>
  close(): void
}

/** Posts JSON below the URL of the upstream. Resolves when the server has accepted the request. */
export async function postUpstream(
  path: string,
  body: object,
  call: UpstreamCall,
): Promise<UpstreamResponse> {
  let waitedMs = 0
  for (let retries = 0; ; retries += 1) {
    const connection = openConnection(call)
    const response = await send(path, body, call, connection)
    if (response.ok) return toUpstreamResponse(response, connection)
    const { status } = response
    const retryAfter = parseRetryAfter(response.headers.get('retry-after'))
    const waitMs = (retryAfter ?? Infinity) * 1000
    const isRetried = RETRIED_STATUSES.includes(status) && retries < MAX_RETRIES
    if (!isRetried || waitedMs + waitMs > MAX_RETRY_WAIT_MS) {
      const text = await readErrorText(response, connection)
      throw upstreamStatusError(call.upstream.url, status, text, retryAfter)
    }
    connection.close()
    waitedMs += waitMs
    await sleep(waitMs, call.signal).catch(() => throwAborted(call.signal))
  }
}

/** Headers of a POST request. Those of the app cannot replace the content type. */
async function createHeaders({
  upstream,
  key,
  signal,
  getHeaders,
}: UpstreamCall): Promise<Headers> {
  const own = await getHeaders(upstream.url, signal)
  let headers: Headers
  try {
    headers = new Headers(own)
  } catch (cause) {
    const what = `The headers for ${upstream.url} are not valid HTTP headers. Check serve({ upstreams }).`
    throw new InoriginError('unavailable', what, { code: 'upstream_headers', cause })
  }
  if (upstream.forwardAuthorization && key !== null) headers.set('authorization', `Bearer ${key}`)
  headers.set('content-type', 'application/json')
  return headers
}

async function send(
  path: string,
  body: object,
  call: UpstreamCall,
  connection: Connection,
): Promise<Response> {
  try {
    const headers = await createHeaders(call)
    return await fetch(`${call.upstream.url}/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      signal: connection.signal,
      cache: 'no-store',
      referrerPolicy: 'no-referrer',
      // A redirect would send the prompt to a server that the app did not name.
      redirect: 'error',
    })
  } catch (cause) {
    connection.close()
    throw connection.explain(cause)
  }
}

/** Limits the silence of one connection. */
interface Connection {
  /** Signal that aborts with the request, on silence, and when the connection is closed. */
  signal: AbortSignal
  /** Starts the time limit anew. */
  heard(): void
  /** Returns the error for a failed fetch or read. */
  explain(cause: unknown): unknown
  close(): void
}

function openConnection({ upstream: { url }, signal }: UpstreamCall): Connection {
  const ending = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const abort = () => ending.abort(signal.reason)
  const heard = () => {
    clearTimeout(timer)
    timer = setTimeout(() => ending.abort(silentError(url, SILENCE_TIMEOUT_MS)), SILENCE_TIMEOUT_MS)
  }
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  heard()
  return {
    signal: ending.signal,
    heard,
    explain(cause) {
      if (signal.aborted) return InoriginError.from(signal.reason)
      if (cause instanceof InoriginError) return cause
      const { reason } = ending.signal
      return reason instanceof InoriginError ? reason : unreachableError(url, cause)
    },
    close() {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      ending.abort()
    },
  }
}

function toUpstreamResponse(response: Response, connection: Connection): UpstreamResponse {
  return {
    contentType: response.headers.get('content-type') ?? '',
    async *readBytes() {
      const reader = response.body?.getReader()
      try {
        for (;;) {
          const piece = await reader?.read()
          connection.heard()
          if (!piece || piece.done) return
          yield piece.value
        }
      } catch (cause) {
        throw connection.explain(cause)
      } finally {
        connection.close()
      }
    },
    close: connection.close,
  }
}

async function readErrorText(response: Response, connection: Connection): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  try {
    for await (const piece of toUpstreamResponse(response, connection).readBytes()) {
      bytes += piece.length
      text += decoder.decode(piece, { stream: true })
      if (bytes > MAX_ERROR_BYTES) break
    }
  } catch {
    // The status says enough.
  }
  return text
}

/** Returns the seconds of a `retry-after` header, which is a number or a date. */
function parseRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined
  const seconds = /^\d+(\.\d+)?$/.test(header.trim())
    ? Number(header)
    : (Date.parse(header) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

function throwAborted(signal: AbortSignal): never {
  throw InoriginError.from(signal.reason)
}
