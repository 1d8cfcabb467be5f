/**
 * The key a request carries, `null` when none. Either header does on every path, since the clients
 * of one style send what belongs to the other; when both are there, the bearer token counts. An
 * empty header is no key.
 */
export function keyOf(headers: Headers): string | null {
  const bearer = /^bearer\s+(.*)$/i.exec(headers.get('authorization') ?? '')?.[1]?.trim()
  return bearer || headers.get('x-api-key')?.trim() || null
}
