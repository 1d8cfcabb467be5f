export const JSON_TYPE = 'application/json'
export const SSE_TYPE = 'text/event-stream; charset=utf-8'

/** Returns a `Response` with the common headers. Its type is JSON unless `headers` sets another. */
export function httpResponse(
  body: BodyInit | null,
  init: { status?: number; headers?: Record<string, string> } = {},
): Response {
  return new Response(body, {
    status: init.status ?? 200,
    headers: {
      'content-type': JSON_TYPE,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...init.headers,
    },
  })
}

/** Returns an unguessable id such as `msg_2f9c...`: the prefix and 24 hexadecimal digits. */
export function createId(prefix: string): string {
  // `randomUUID` does not exist on pages that are served over plain http.
  const bytes = crypto.getRandomValues(new Uint8Array(12))
  return prefix + Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Returns the current time in whole seconds since 1970. */
export const nowInSeconds = (): number => Math.floor(Date.now() / 1000)

/**
 * Returns the API key of a request, or `null`. Both headers work on every path, because clients of
 * one style may send the header of the other. The bearer token wins over `x-api-key`. An empty
 * header counts as absent.
 */
export function findApiKey(headers: Headers): string | null {
  const bearer = /^bearer\s+(.*)$/i.exec(headers.get('authorization') ?? '')?.[1]?.trim()
  return bearer || headers.get('x-api-key')?.trim() || null
}

/**
 * Encodes one server-sent event. JSON has no raw line breaks, so one `data:` line is enough.
 * OpenAI's clients need no event name; Anthropic's drop events without one.
 */
export function frame(data: unknown, name?: string): string {
  const head = name === undefined ? '' : `event: ${name}\n`
  return `${head}data: ${JSON.stringify(data)}\n\n`
}

/** Sentinel that ends a chat stream, the only `data:` that is not JSON. */
export const DONE = 'data: [DONE]\n\n'

/** Encodes a comment. Clients skip it, but it keeps the connection alive. */
export const comment = (text: string): string => `: ${text.replaceAll(/[\r\n]+/g, ' ')}\n\n`

/** Returns the signal of a request, and a function to abort it when the response is canceled. */
export function createCancellation(request: Request) {
  const controller = new AbortController()
  const { signal } = request
  signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true })
  return {
    signal: controller.signal,
    cancel: () => controller.abort(new DOMException('The answer was canceled.', 'AbortError')),
    // Node does not abort the signal of a request that was garbage collected.
    request,
  }
}

export type Cancellation = ReturnType<typeof createCancellation>
