/** The catalog of a server: the app's own, then the one that comes with the package. */
import { InoriginError } from '../error.ts'
import type { Catalog, CatalogDocument } from './schema.ts'
import { namesMlc, validateCatalog, type ValidateOptions } from './validate.ts'

/** Bytes a catalog document may have. */
export const CATALOG_LIMIT = 4 * 1024 * 1024

/** Milliseconds after which a server that does not send a catalog counts as not there. */
const PATIENCE = 30_000

/**
 * All entries, the app's first. `source` is the URL or the document of the app's catalog, `null`
 * for none; `defaultUrl` is where the embedded one lies. Relative URLs start from the catalog's own
 * URL, in a document from `base`. Where there is an app's catalog the embedded one may be missing.
 * Rejects with `unavailable` when a catalog cannot be fetched, `invalid_request` when it is not a
 * catalog.
 */
export async function loadCatalog(
  source: string | CatalogDocument | null,
  defaultUrl: string,
  base: string = defaultUrl,
): Promise<Catalog> {
  if (source === null) return loadEmbedded(defaultUrl)
  const url = typeof source === 'string' ? absoluteUrl(source, base) : null
  if (url === defaultUrl) return loadEmbedded(defaultUrl)
  const [own, embedded] = await Promise.all([
    url === null
      ? checked(source, { source: 'given to serve()', base, embedded: false })
      : fetchCatalog(url, false),
    fetchCatalog(defaultUrl, true).catch((thrown: unknown) => {
      if (thrown instanceof InoriginError && thrown.kind === 'unavailable') return null
      throw thrown
    }),
  ])
  const tags = new Set(own.entries.map((entry) => entry.tag))
  const others = embedded?.entries.filter((entry) => !tags.has(entry.tag)) ?? []
  return { ...own, entries: [...own.entries, ...others] }
}

async function loadEmbedded(url: string): Promise<Catalog> {
  try {
    return await fetchCatalog(url, true)
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    if (error.kind !== 'unavailable') throw error
    const todo = 'Run "npx inorigin init <public folder>", or give serve() a catalog.'
    throw new InoriginError('unavailable', `${error.message} ${todo}`, {
      code: error.code,
      cause: error,
    })
  }
}

async function fetchCatalog(url: string, embedded: boolean): Promise<Catalog> {
  const { text, base } = await fetchText(url)
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (thrown) {
    // Servers of single-page apps answer their index page for files they do not have.
    if (/^\s*</.test(text)) throw unavailable(url, 'the answer is an HTML page, not JSON')
    throw invalid(`The catalog ${url} is not JSON: ${messageOf(thrown)}.`, thrown)
  }
  return checked(document, { source: url, base, embedded })
}

async function checked(document: unknown, options: ValidateOptions): Promise<Catalog> {
  const mlc = namesMlc(document) ? (await import('./mlc/list.ts')).MLC_LIST : undefined
  return validateCatalog(document, { ...options, mlc })
}

async function fetchText(url: string): Promise<{ text: string; base: string }> {
  try {
    // `no-cache` asks the server whether the copy that is here is still right.
    const response = await fetch(url, { cache: 'no-cache', signal: AbortSignal.timeout(PATIENCE) })
    if (!response.ok) throw unavailable(url, `the server answers ${response.status}`)
    return { text: await readText(response, url), base: response.url }
  } catch (thrown) {
    if (thrown instanceof InoriginError) throw thrown
    const hint = 'on another origin, its server must allow this one by CORS'
    throw unavailable(url, `${messageOf(thrown)} (${hint})`, thrown)
  }
}

async function readText({ body }: Response, url: string): Promise<string> {
  const decoder = new TextDecoder()
  const reader = body?.getReader()
  let text = ''
  let bytes = 0
  for (;;) {
    const piece = (await reader?.read())?.value
    if (!piece) return text + decoder.decode()
    bytes += piece.length
    if (bytes > CATALOG_LIMIT) {
      await reader?.cancel()
      throw invalid(`The catalog ${url} is larger than the ${CATALOG_LIMIT} bytes that are read.`)
    }
    text += decoder.decode(piece, { stream: true })
  }
}

function absoluteUrl(url: string, base: string): string {
  const resolved = URL.canParse(url, base) ? new URL(url, base) : null
  if (resolved && /^https?:$/.test(resolved.protocol)) return resolved.href
  throw invalid(`The catalog ${JSON.stringify(url)} is not an http or https URL.`)
}

function invalid(message: string, cause?: unknown): InoriginError {
  return new InoriginError('invalid_request', message, { code: 'invalid_catalog', cause })
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

function unavailable(url: string, why: string, cause?: unknown): InoriginError {
  return new InoriginError('unavailable', `The catalog ${url} could not be read: ${why}.`, {
    code: 'catalog_unavailable',
    cause,
  })
}
