/**
 * Returns the API key of a request, or `null`. Both headers work on every path, because clients of
 * one style may send the header of the other. The bearer token wins over `x-api-key`. An empty
 * header counts as absent.
 */
export function findApiKey(headers: Headers): string | null {
  const bearer = /^bearer\s+(.*)$/i.exec(headers.get('authorization') ?? '')?.[1]?.trim()
  return bearer || headers.get('x-api-key')?.trim() || null
}
