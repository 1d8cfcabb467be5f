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
