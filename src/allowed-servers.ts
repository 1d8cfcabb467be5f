/**
 * The options of `serve()` that allow other servers: `upstreams`, which may answer, and `imageUrls`,
 * from which images are fetched.
 */
import { isBelow } from './values/text.ts'
import { InoriginError } from './error.ts'

/** Server that may answer in place of this device. */
export interface UpstreamServer {
  /** URL that includes all paths below it. */
  url: string | URL
  /**
   * Headers of the requests to it, or a function that returns them for each request, for tokens
   * that expire. They stay in the memory of the page and of its worker. Default: none.
   */
  headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>)
}

type HeaderRecord = Record<string, string>

export interface ParsedUpstreams {
  /** Absolute URLs. */
  upstreams: string[]
  /** Resolves with the headers for the URL, from the first server that includes it. */
  getHeaders(url: string): Promise<HeaderRecord>
}

/** Parses the option. Throws `invalid_request` that names the server that is not valid. */
export function parseUpstreams(
  given: readonly (string | URL | UpstreamServer)[] = [],
): ParsedUpstreams {
  if (!Array.isArray(given)) throw invalid('upstreams', 'must be an array of URLs')
  const servers = given.map((one: string | URL | UpstreamServer, at) => {
    const { url, headers = {} } =
      typeof one === 'string' || one instanceof URL ? { url: one } : (one ?? {})
    const href = toHttpUrl(url)
    if (!href) throw invalid('upstreams', 'must have an http or https URL', at)
    if (!['object', 'function'].includes(typeof headers) || headers === null)
      throw invalid('upstreams', 'must have `headers` that are an object or a function', at)
    return { href, headers }
  })
  return {
    upstreams: servers.map(({ href }) => href),
    async getHeaders(url) {
      const server = servers.find(({ href }) => isBelow(new URL(url), href))
      const { headers = {} } = server ?? {}
      const found: unknown = await (typeof headers === 'function' ? headers() : headers)
      try {
        // A `Headers` object or a function cannot be sent to the worker as it is.
        return Object.fromEntries(new Headers(found as HeadersInit))
      } catch {
        // The browser's own message may quote the value, which may be a key.
        throw new TypeError('they are not valid HTTP headers')
      }
    },
  }
}

/** Parses the option to absolute URLs. Throws `invalid_request` that names the invalid URL. */
export function parseImageUrls(given: readonly (string | URL)[] = []): string[] {
  if (!Array.isArray(given)) throw invalid('imageUrls', 'must be an array of URLs')
  return given.map((url: string | URL, at) => {
    const href = toHttpUrl(url)
    if (!href) throw invalid('imageUrls', 'must be an http or https URL', at)
    return href
  })
}

function toHttpUrl(given: unknown): string | undefined {
  if (!URL.canParse(String(given), document.baseURI)) return undefined
  const { href } = new URL(String(given), document.baseURI)
  return /^https?:/.test(href) ? href : undefined
}

function invalid(option: string, what: string, at?: number): InoriginError {
  const param = at === undefined ? option : `${option}[${at}]`
  return new InoriginError('invalid_request', `\`${param}\` ${what}.`, { param })
}
