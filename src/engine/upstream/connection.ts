/** Sends requests to upstream servers: headers, retries, time limits and errors. */
import type { Upstream } from '../../catalog/upstream-schema.ts'
import { type ErrorCode, type ErrorKind, InoriginError, messageOf } from '../../error.ts'
import { isObject } from '../../values/objects.ts'
import { sleep } from '../../values/promises.ts'
import { shorten } from '../../values/text.ts'

/**
 * Time in milliseconds that a reader waits for a response, for the next event of a stream, or for the
 * whole of another body. Single bytes do not start it anew.
 */
export const SILENCE_TIMEOUT_MS = 120_000
/** Maximum number of retries of a request that the server rejects with `retry-after`. */
const MAX_RETRIES = 2
/** Maximum time in milliseconds that the retries of a request wait in total. */
const MAX_RETRY_WAIT_MS = 10_000
/** Statuses with which a server asks to come back later. */
const RETRIED_STATUSES: readonly number[] = [429, 503]
/** Minimum length in UTF-16 units of a part of a header that errors must not quote. */
const MIN_SECRET_CHARACTERS = 8
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

/** Posts JSON below the URL of the upstream. Resolves when the server has accepted the request. */
export async function postUpstream(
  path: string,
  body: object,
  call: UpstreamCall,
): Promise<UpstreamResponse> {
  let waitedMs = 0
  for (let retries = 0; ; retries += 1) {
    const opened = new UpstreamResponse(call)
    const { ok, status, headers } = await opened.send(path, body)
    if (ok) return opened
    const retryAfter = parseRetryAfter(headers.get('retry-after'))
    const waitMs = (retryAfter ?? Infinity) * 1000
    const isRetried = RETRIED_STATUSES.includes(status) && retries < MAX_RETRIES
    if (!isRetried || waitedMs + waitMs > MAX_RETRY_WAIT_MS) {
      const text = opened.redact(await opened.readErrorText())
      if (call.signal.aborted) throw InoriginError.from(call.signal.reason)
      throw upstreamStatusError(call.upstream.url, status, text, retryAfter)
    }
    opened.close()
    waitedMs += waitMs
    await sleep(waitMs, call.signal).catch(() => {
      throw InoriginError.from(call.signal.reason)
    })
  }
}

/** A response and its connection. Its body must be read with `readBytes`, or closed. */
export class UpstreamResponse {
  readonly #call: UpstreamCall
  /** Its signal aborts with the request, on silence, and when the connection is closed. */
  readonly #ending = new AbortController()
  #leftMs = SILENCE_TIMEOUT_MS
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Parts of the headers that were sent, which errors must not quote. */
  #secrets: readonly string[] = []
  #response: Response | undefined

  constructor(call: UpstreamCall) {
    this.#call = call
    if (call.signal.aborted) this.#abort()
    call.signal.addEventListener('abort', this.#abort, { once: true })
  }

  /** Sends the request. Resolves with the head of the response. */
  async send(path: string, body: object): Promise<Response> {
    try {
      const headers = await createHeaders(this.#call)
      const responding = fetch(`${this.#call.upstream.url}/${path}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
        signal: this.#ending.signal,
        cache: 'no-store',
        referrerPolicy: 'no-referrer',
        // A redirect would send the prompt to a server that the app did not name.
        redirect: 'error',
      })
      const response = await this.#limit(responding)
      this.heard()
      this.#secrets = secretsOf(headers)
      this.#response = response
      return response
    } catch (cause) {
      this.close()
      throw this.#explain(cause)
    }
  }

  get contentType(): string {
    return this.#response?.headers.get('content-type') ?? ''
  }

  /**
   * Yields the body. Throws if the server takes too long or the connection breaks. Time in which
   * nobody reads does not count.
   */
  async *readBytes(): AsyncGenerator<Uint8Array> {
    const reader = this.#response?.body?.getReader()
    try {
      for (;;) {
        const piece = reader && (await this.#limit(reader.read()))
        if (!piece || piece.done) return
        yield piece.value
      }
    } catch (cause) {
      throw this.#explain(cause)
    } finally {
      this.close()
    }
  }

  /** Resolves with the beginning of the body of an error. */
  async readErrorText(): Promise<string> {
    const decoder = new TextDecoder()
    let text = ''
    let bytes = 0
    try {
      for await (const piece of this.readBytes()) {
        bytes += piece.length
        text += decoder.decode(piece, { stream: true })
        if (bytes > MAX_ERROR_BYTES) break
      }
    } catch {
      // The status says enough.
    }
    return text
  }

  /** Starts the time limit anew. The reader calls it for each event. */
  heard(): void {
    this.#leftMs = SILENCE_TIMEOUT_MS
  }

  /** Returns the text without values of the headers that were sent, which a server may quote. */
  redact(text: string): string {
    return this.#secrets.reduce((left, secret) => left.replaceAll(secret, '[redacted]'), text)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#call.signal.removeEventListener('abort', this.#abort)
    this.#ending.abort()
  }

  readonly #abort = (): void => this.#ending.abort(this.#call.signal.reason)

  /** Resolves as the work does, which uses up the time limit. */
  async #limit<T>(work: Promise<T>): Promise<T> {
    const startedAt = performance.now()
    this.#timer = setTimeout(() => {
      const seconds = SILENCE_TIMEOUT_MS / 1000
      const what = `The upstream server ${this.#call.upstream.url} sent no event or whole response`
      const message = `${what} for ${seconds} s. Try again, or check the server.`
      this.#ending.abort(unavailable('upstream_timeout', message))
    }, this.#leftMs)
    try {
      return await work
    } finally {
      clearTimeout(this.#timer)
      this.#leftMs -= performance.now() - startedAt
    }
  }

  /** Returns the error for a failed fetch or read. */
  #explain(cause: unknown): unknown {
    const { signal, upstream } = this.#call
    if (signal.aborted) return InoriginError.from(signal.reason)
    if (cause instanceof InoriginError) return cause
    const { reason } = this.#ending.signal
    if (reason instanceof InoriginError) return reason
    const what = `The upstream server ${upstream.url} cannot be reached (${messageOf(cause)}).`
    const todo = 'Check its URL and, on another origin, that it allows this origin by CORS.'
    return unavailable('upstream_unreachable', `${what} ${todo}`, cause)
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
  } catch {
    // The cause would quote the value, which may be a key.
    const what = `The headers for ${upstream.url} are not valid HTTP headers. Check serve({ upstreams }).`
    throw new InoriginError('unavailable', what, { code: 'upstream_headers' })
  }
  if (upstream.forwardAuthorization && key !== null) headers.set('authorization', `Bearer ${key}`)
  headers.set('content-type', 'application/json')
  return headers
}

/** Returns the parts of the headers' values that may be secret. */
const secretsOf = (headers: Headers): string[] =>
  [...headers]
    .filter(([name]) => name !== 'content-type')
    .flatMap(([, value]) => value.split(/\s+/))
    .filter((part) => part.length >= MIN_SECRET_CHARACTERS)

/** Returns the seconds of a `retry-after` header, which is a number or a date. */
function parseRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined
  const seconds = /^\d+(\.\d+)?$/.test(header.trim())
    ? Number(header)
    : (Date.parse(header) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

// Errors of upstream servers. Each message says which server it came from.

/** Maximum length in UTF-16 units of a server's own message in an error. */
const MAX_MESSAGE_CHARACTERS = 500

/** Kinds of statuses that mean the same as one of inorigin's own. Others are `unavailable`. */
const KINDS: Readonly<Record<number, ErrorKind>> = {
  400: 'invalid_request',
  401: 'authentication',
  402: 'permission',
  403: 'permission',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'too_large',
  422: 'invalid_request',
  429: 'rate_limit',
}

/** Returns the error for an HTTP status and body of a server. `retryAfter` is in seconds. */
function upstreamStatusError(url: string, status: number, body: string, retryAfter?: number) {
  const why = shorten(findMessage(body), MAX_MESSAGE_CHARACTERS)
  const upstreamStatus = status >= 400 && status <= 599 ? status : 502
  return new InoriginError(
    KINDS[status] ?? 'unavailable',
    `The upstream server ${url} responded with status ${status}${why && `: ${why}`}`,
    { code: 'upstream_error', upstreamStatus, retryAfter },
  )
}

/** Returns the error that a server reported within a stream. */
export function upstreamStreamError(url: string, error: unknown): InoriginError {
  const why = shorten(describeError(error), MAX_MESSAGE_CHARACTERS)
  return unavailable('upstream_error', `The upstream server ${url} ended its answer: ${why}`)
}

/** Returns the error for a response that is not what chat completions or embeddings send. */
export function invalidResponseError(url: string, what: string, cause?: unknown): InoriginError {
  const todo = 'Check that the URL in the catalog is the base of an API with chat completions.'
  const message = `The upstream server ${url} sent an invalid response: ${what}. ${todo}`
  return unavailable('upstream_invalid', message, cause)
}

const unavailable = (code: ErrorCode, message: string, cause?: unknown): InoriginError =>
  new InoriginError('unavailable', message, { code, upstreamStatus: 502, cause })

/** Returns the message in an error body, in any of the usual shapes, or the body itself. */
function findMessage(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body)
    return describeError(isObject(parsed) ? (parsed['error'] ?? parsed) : parsed)
  } catch {
    return body.trim()
  }
}

function describeError(error: unknown): string {
  const message = isObject(error) ? (error['message'] ?? error['detail']) : error
  if (typeof message === 'string') return message
  try {
    return JSON.stringify(message ?? error)
  } catch {
    return 'its message is nested too deeply'
  }
}
