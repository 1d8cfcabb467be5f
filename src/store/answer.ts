/** What a server's answer to a request for (the rest of) a resource means. */
import { InoriginError } from '../error.ts'
import type { WantedResource } from './db.ts'

/** What to do with an answer. */
export type Verdict =
  /** Its body holds the bytes from `from` on. */
  | { type: 'take'; from: number }
  /** Ask again later, in `after` seconds if the server said so. */
  | { type: 'retry'; why: string; after: number | null }
  /** What is here does not go with what is there: ask for everything, without a range. */
  | { type: 'restart'; why: string }

/** Seconds that a server may keep us waiting; what asks for more is an error. */
const LONGEST_WAIT = 60

/**
 * Judges the answer to a request for the bytes from `from` on (0: for everything, without a range).
 * Throws `unavailable` when asking again cannot help.
 */
export function judge(
  response: Response,
  wanted: WantedResource,
  from: number,
  etag: string | null,
): Verdict {
  const { status } = response
  if (status === 200) return judgeWhole(response, wanted)
  if (status === 206) return judgePart(response, wanted, from, etag)
  if (status === 416 && from > 0) {
    return { type: 'restart', why: 'the server has no bytes there (416)' }
  }
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const after = retryAfter(response.headers.get('retry-after'), Date.now())
    if (after !== null && after > LONGEST_WAIT) {
      throw new InoriginError(
        'unavailable',
        `${wanted.url} answers ${status} and asks to come back in ${after} s.`,
        { code: 'download_failed', retryAfter: after, details: { url: wanted.url, status } },
      )
    }
    return { type: 'retry', why: `the server answers ${status}`, after }
  }
  throw failed(wanted, `the server answers ${status}`, { status })
}

/** The tag of the version a response carries, where the server lets us see it. */
export function etagOf(response: Response): string | null {
  return response.headers.get('etag')
}

/** Whether both tags are known and differ. */
export function isOtherVersion(one: string | null, other: string | null): boolean {
  return one !== null && other !== null && strong(one) !== strong(other)
}

/** A download that cannot succeed as things are, with the URL in its message. */
export function failed(
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

/** Why a body of another length cannot be the resource. */
export function wrongLength(wanted: WantedResource, got: string): InoriginError {
  const why = `the catalog says ${wanted.bytes} bytes, the server has ${got}`
  return failed(wanted, why, { expectedBytes: wanted.bytes })
}

function judgeWhole(response: Response, wanted: WantedResource): Verdict {
  const { headers } = response
  if (/^\s*(text\/html|application\/xhtml)/i.test(headers.get('content-type') ?? '')) {
    throw failed(
      wanted,
      'the answer is an HTML page. Servers answer so for files they do not have; ' +
        'check that the file is where the catalog says',
    )
  }
  const length = headers.get('content-length')
  // From another origin a content-encoding is not visible, and then the length is that of the
  // encoded body.
  const comparable = response.type !== 'cors' && !headers.has('content-encoding')
  if (comparable && length !== null && Number(length) !== wanted.bytes) {
    throw wrongLength(wanted, length)
  }
  return { type: 'take', from: 0 }
}

function judgePart(
  response: Response,
  wanted: WantedResource,
  from: number,
  etag: string | null,
): Verdict {
  // Where each chunk has a hash of its own, that tells: servers of one farm may tag the same file
  // differently.
  if (!wanted.chunks && isOtherVersion(etag, etagOf(response))) {
    return { type: 'restart', why: 'the file has changed on the server' }
  }
  // It counts bytes of what was encoded, of which a part cannot be decoded.
  const encoding = response.headers.get('content-encoding') ?? 'identity'
  if (encoding !== 'identity') return { type: 'restart', why: `a partial answer is ${encoding}` }
  const range = response.headers.get('content-range')
  if (range === null) {
    // Other origins seldom let us see it; the hash of the whole is the judge then.
    if (response.type === 'cors') return { type: 'take', from }
    return { type: 'restart', why: 'a partial answer (206) does not say which part it is' }
  }
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range.trim()) ?? []
  if (Number(start) !== from || (total !== '*' && Number(total) !== wanted.bytes)) {
    const asked = `bytes from ${from} of ${wanted.bytes}`
    return { type: 'restart', why: `asked for ${asked}, the server sends "${range}"` }
  }
  return { type: 'take', from }
}

/** Seconds until the moment a `retry-after` names: seconds, or a date. */
function retryAfter(header: string | null, now: number): number | null {
  if (header === null) return null
  if (/^\s*\d+\s*$/.test(header)) return Number(header)
  const moment = Date.parse(header)
  return Number.isNaN(moment) ? null : Math.max(0, Math.ceil((moment - now) / 1000))
}

/** A compressed answer carries the weak form of the same tag. */
function strong(etag: string): string {
  return etag.replace(/^W\//, '')
}
