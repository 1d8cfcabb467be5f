/** The option `upstreams` of `serve()`: the servers that may answer, and their headers. */
import { isBelow } from './catalog/upstream-url.ts'
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
  if (!Array.isArray(given)) throw invalidUpstream('must be an array of URLs')
  const servers = given.map((one: string | URL | UpstreamServer, at) => {
    const { url, headers = {} } =
      typeof one === 'string' || one instanceof URL ? { url: one } : (one ?? {})
    const href = URL.canParse(String(url), document.baseURI)
      ? new URL(String(url), document.baseURI).href
      : ''
    if (!/^https?:/.test(href)) throw invalidUpstream(`must have an http or https URL`, at)
    if (!['object', 'function'].includes(typeof headers) || headers === null)
      throw invalidUpstream('must have `headers` that are an object or a function', at)
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

function invalidUpstream(what: string, at?: number): InoriginError {
  const param = at === undefined ? 'upstreams' : `upstreams[${at}]`
  return new InoriginError('invalid_request', `\`${param}\` ${what}.`, { param })
}
