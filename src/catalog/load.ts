/** Loads the catalog of a server: the app's own, then the one of the package. */
import { InoriginError, messageOf } from '../error.ts'
import { readStream } from '../values/bytes.ts'
import type { Catalog, CatalogInput } from './schema.ts'
import type { UpstreamPolicy } from './upstreams.ts'
import {
  referencesMlcList,
  toAbsoluteUrl,
  validateCatalog,
  type ValidateOptions,
} from './validate.ts'

export const MAX_CATALOG_BYTES = 4 * 1024 * 1024

const FETCH_TIMEOUT_MS = 30_000
const COPY_TIMEOUT_MS = 3_000

export interface CatalogText {
  text: string
  /** URL that the catalog came from, against which its relative URLs are resolved. */
  base: string
}

/** Copies of catalogs, for starts without a network. */
export interface CatalogCopies {
  /** Resolves with the copy of the catalog that was fetched from that URL last. */
  find(url: string): Promise<CatalogText | undefined>
  put(url: string, catalog: CatalogText): Promise<void>
}

/**
 * Resolves with all entries, the app's first. `source` is the URL or document of the app's catalog,
 * or `null` for none. `defaultUrl` is the URL of the package's catalog. Relative URLs resolve
 * against the catalog's URL, or against `base` in a document. With an app catalog, the package's
 * one may be missing. `copies` answer for the app's catalog while its server does not send it.
 * `allowedUpstreams` are the URLs that the app allows as upstream of a catalog from a URL. Rejects
 * with `unavailable` if a catalog cannot be fetched, and with `invalid_request` if it is none.
 */
export async function loadCatalog(
  source: string | CatalogInput | null,
  defaultUrl: string,
  base: string = defaultUrl,
  copies?: CatalogCopies,
  allowedUpstreams: readonly string[] = [],
): Promise<Catalog> {
  if (source === null) return loadEmbedded(defaultUrl)
  const url = typeof source === 'string' ? parseCatalogUrl(source, base) : null
  if (url === defaultUrl) return loadEmbedded(defaultUrl)
  const upstreams = { scope: base, isGiven: url === null, allowed: allowedUpstreams }
  const [own, embedded] = await Promise.all([
    url === null
      ? validateDocument(source, { source: 'given to serve()', base, embedded: false, upstreams })
      : fetchCatalog(url, false, copies, upstreams),
    fetchCatalog(defaultUrl, true).catch((thrown: unknown) => {
      if (thrown instanceof InoriginError && thrown.kind === 'unavailable') return null
      throw thrown
    }),
  ])
  const tags = new Set(own.entries.map((entry) => entry.tag))
  const others = embedded?.entries.filter((entry) => !tags.has(entry.tag)) ?? []
  return { ...embedded, ...own, entries: [...own.entries, ...others] }
}

async function loadEmbedded(url: string): Promise<Catalog> {
  try {
    return await fetchCatalog(url, true)
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    if (error.kind !== 'unavailable') throw error
    const todo = 'Run "npx inorigin init <public folder>", or pass a catalog to serve().'
    const details = { code: error.code, cause: error }
    throw new InoriginError('unavailable', `${error.message} ${todo}`, details)
  }
}

async function fetchCatalog(
  url: string,
  embedded: boolean,
  copies?: CatalogCopies,
  upstreams?: UpstreamPolicy,
): Promise<Catalog> {
  const fetched = await fetchText(url, await copies?.find(url))
  const { text, base } = fetched
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (thrown) {
    if (isPage(text)) throw catalogUnavailableError(url, 'the response is an HTML page, not JSON')
    throw invalidCatalogError(`The catalog ${url} is not JSON: ${messageOf(thrown)}.`, thrown)
  }
  const found = await validateDocument(document, { embedded, upstreams, source: url, base })
  await copies?.put(url, fetched)
  return found
}

async function validateDocument(document: unknown, options: ValidateOptions): Promise<Catalog> {
  const mlc = referencesMlcList(document) ? (await import('./mlc/list.ts')).MLC_LIST : undefined
  return validateCatalog(document, { ...options, mlc })
}

async function fetchText(url: string, copy?: CatalogText): Promise<CatalogText> {
  try {
    // `no-cache` revalidates a cached copy with the server.
    const response = await fetch(url, {
      cache: 'no-cache',
      signal: AbortSignal.timeout(copy ? COPY_TIMEOUT_MS : FETCH_TIMEOUT_MS),
    })
    if (copy && !response.ok) return copy
    if (!response.ok) throw catalogUnavailableError(url, `the server returned ${response.status}`)
    const text = await readText(response, url)
    return copy && isPage(text) ? copy : { text, base: response.url }
  } catch (thrown) {
    if (thrown instanceof InoriginError) throw thrown
    if (copy) return copy
    const hint = 'a server on another origin must allow this origin by CORS'
    throw catalogUnavailableError(url, `${messageOf(thrown)} (${hint})`, thrown)
  }
}

/** Servers of single-page apps send their index page for missing files, captive portals their own. */
const isPage = (text: string): boolean => /^\s*</.test(text)

async function readText(response: Response, url: string): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const piece of readStream(response.body ?? new Blob().stream())) {
    bytes += piece.length
    const limit = `the limit of ${MAX_CATALOG_BYTES} bytes`
    if (bytes > MAX_CATALOG_BYTES)
      throw invalidCatalogError(`The catalog ${url} is larger than ${limit}.`)
    text += decoder.decode(piece, { stream: true })
  }
  return text + decoder.decode()
}

function parseCatalogUrl(url: string, base: string): string {
  const absoluteUrl = toAbsoluteUrl(url, base)
  if (absoluteUrl) return absoluteUrl
  throw invalidCatalogError(`The catalog ${JSON.stringify(url)} is not an http or https URL.`)
}

const invalidCatalogError = (message: string, cause?: unknown): InoriginError =>
  new InoriginError('invalid_request', message, { code: 'invalid_catalog', cause })

const catalogUnavailableError = (url: string, why: string, cause?: unknown): InoriginError =>
  new InoriginError('unavailable', `The catalog ${url} could not be read: ${why}.`, {
    code: 'catalog_unavailable',
    cause,
  })
