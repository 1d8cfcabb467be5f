/**
 * The key a request carries, `null` when none. Either header does on every path, since the clients
 * of one style send what belongs to the other; when both are there, the bearer token counts. An
 * empty header is no key.
 */
export function keyOf(headers: Headers): string | null {
  const bearer = /^bearer\s+(.*)$/i.exec(headers.get('authorization') ?? '')?.[1]?.trim()
  return bearer || headers.get('x-api-key')?.trim() || null
}

/** A controller that is aborted with a request that is not yet, and by whoever cancels the answer. */
export function workOf(request: Request): AbortController {
  const work = new AbortController()
  const { signal } = request
  signal.addEventListener('abort', () => work.abort(signal.reason), { once: true })
  return work
}
