/** Interprets a server's response to a request for a resource or the rest of one. */
import { InoriginError } from '../error.ts'
import type { WantedResource } from './db.ts'

/** Next step after a response. */
export type ResponseAction =
  /** The body holds the bytes from `from` on. */
  | { type: 'take'; from: number }
  /** Retry later, in `after` seconds if the server sent a retry-after. */
  | { type: 'retry'; why: string; after: number | null }
  /** The stored bytes do not match the server's file. Request the whole file, without a range. */
  | { type: 'restart'; why: string }

/** Longest retry-after in seconds that is waited for. A longer one is an error. */
const MAX_RETRY_AFTER_SECONDS = 60

/**
 * Decides what to do with the response to a request for the bytes from `from` on. A `from` of 0
 * means a request for the whole file, without a range. Throws `unavailable` if a retry cannot help.
 */
export function interpretResponse(
  response: Response,
  wanted: WantedResource,
  from: number,
  etag: string | null,
): ResponseAction {
  const { status } = response
  if (status === 200) return interpretFullResponse(response, wanted)
  if (status === 206) return interpretPartialResponse(response, wanted, from, etag)
  if (status === 416 && from > 0) {
    return { type: 'restart', why: 'the server rejected the range (416)' }
  }
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const after = parseRetryAfter(response.headers.get('retry-after'), Date.now())
    if (after !== null && after > MAX_RETRY_AFTER_SECONDS) {
      throw new InoriginError(
        'unavailable',
        `${wanted.url} returned ${status} and asks to retry after ${after} s.`,
        { code: 'download_failed', retryAfter: after, details: { url: wanted.url, status } },
      )
    }
    return { type: 'retry', why: `the server returned ${status}`, after }
  }
  throw downloadFailedError(wanted, `the server returned ${status}`, { status })
}

/** Returns the ETag of a response; `null` if it has none or CORS hides it. */
export function getEtag(response: Response): string | null {
  return response.headers.get('etag')
}

/** Returns `true` if both tags are known and differ. */
export function isOtherEtag(one: string | null, other: string | null): boolean {
  return one !== null && other !== null && toStrongEtag(one) !== toStrongEtag(other)
}

/** Returns the error for a download that cannot succeed. The message names the URL. */
export function downloadFailedError(
  wanted: WantedResource,
  why: string,
  details: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): InoriginError {
  return new InoriginError('unavailable', `Could not download ${wanted.url}: ${why}.`, {
    code: 'download_failed',
    details: { url: wanted.url, ...details },
    cause,
  })
}

/** Returns the error for a body whose length is not that of the resource. */
export function wrongLengthError(wanted: WantedResource, got: string): InoriginError {
  const why = `the catalog says ${wanted.bytes} bytes, the server has ${got}`
  return downloadFailedError(wanted, why, { expectedBytes: wanted.bytes })
}

function interpretFullResponse(response: Response, wanted: WantedResource): ResponseAction {
  const { headers } = response
  if (/^\s*(text\/html|application\/xhtml)/i.test(headers.get('content-type') ?? '')) {
    throw downloadFailedError(
      wanted,
      'the response is an HTML page, which many servers send for missing files. ' +
        'Check that the file is where the catalog says',
    )
  }
  const length = headers.get('content-length')
  // CORS hides the content-encoding of another origin, and then content-length may be the length
  // of the encoded body.
  const comparable = response.type !== 'cors' && !headers.has('content-encoding')
  if (comparable && length !== null && Number(length) !== wanted.bytes) {
    throw wrongLengthError(wanted, length)
  }
  return { type: 'take', from: 0 }
}

function interpretPartialResponse(
  response: Response,
  wanted: WantedResource,
  from: number,
  etag: string | null,
): ResponseAction {
  // With chunk hashes the ETag does not matter: servers of one farm may tag the same file
  // differently.
  if (!wanted.chunks && isOtherEtag(etag, getEtag(response))) {
    return { type: 'restart', why: 'the file has changed on the server' }
  }
  // The range counts bytes of the encoded file, and a part of that cannot be decoded.
  const encoding = response.headers.get('content-encoding') ?? 'identity'
  if (encoding !== 'identity') return { type: 'restart', why: `the 206 response is ${encoding}` }
  const range = response.headers.get('content-range')
  if (range === null) {
    // CORS mostly hides it. The hash of the whole file then decides.
    if (response.type === 'cors') return { type: 'take', from }
    return { type: 'restart', why: 'the 206 response has no content-range header' }
  }
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range.trim()) ?? []
  if (Number(start) !== from || (total !== '*' && Number(total) !== wanted.bytes)) {
    const asked = `bytes from ${from} of ${wanted.bytes}`
    return { type: 'restart', why: `asked for ${asked}, the server sent "${range}"` }
  }
  return { type: 'take', from }
}

/** Parses a `retry-after` header, a number of seconds or a date, into seconds from `now`. */
function parseRetryAfter(header: string | null, now: number): number | null {
  if (header === null) return null
  if (/^\s*\d+\s*$/.test(header)) return Number(header)
  const moment = Date.parse(header)
  return Number.isNaN(moment) ? null : Math.max(0, Math.ceil((moment - now) / 1000))
}

/** Returns the strong form of an ETag. A compressed response carries the weak form of it. */
function toStrongEtag(etag: string): string {
  return etag.replace(/^W\//, '')
}
