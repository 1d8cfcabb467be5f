/** Downloads one resource into the store: resumes, retries and verifies it. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { computeBackoffMs, sleep } from '../values/promises.ts'
import { Assembly, type DigestMismatch } from './assembly.ts'
import type { Database } from './database.ts'
import { CHUNK_BYTES, type WantedResource } from './db.ts'
import { runExclusive } from './exclusive.ts'
import { trackDeletion } from './pending-deletions.ts'
import { readResource, removeResource } from './resources.ts'

/** Settings of a download. */
export interface DownloadTuning {
  /** Bytes of a chunk; default 16 MiB. Chunk hashes in a catalog refer to chunks of this size. */
  chunkBytes: number
  /** Number of failures in a row, with no new byte in between, that end the download; default 6. */
  maxAttempts: number
  /** Delay in milliseconds before the first retry; doubled for each further one. Default 500. */
  backoffMs: number
  /** Time in milliseconds without data after which a connection counts as dead; default 30 000. */
  stallTimeoutMs: number
}

const DEFAULT_TUNING: Readonly<DownloadTuning> = {
  chunkBytes: CHUNK_BYTES,
  maxAttempts: 6,
  backoffMs: 500,
  stallTimeoutMs: 30_000,
}

/**
 * Resolves with the bytes of a resource, from the store or downloaded. Only one thread of the
 * origin downloads a resource; others wait and then find it stored. Rejects with `unavailable`,
 * naming the URL, if the download fails, and with `aborted` if the signal aborts. Complete chunks
 * stay stored, unless their hash is wrong. The caller must make space before.
 *
 * `onBytes` is called after every piece, with the stored bytes of the resource and the bytes just
 * received over the network. The first number may decrease when the download starts over.
 */
export async function download(
  database: Database,
  wanted: WantedResource,
  options: {
    signal: AbortSignal
    onBytes?: (stored: number, received: number) => void
    tag?: Tag | undefined
    tuning?: Partial<DownloadTuning> | undefined
  },
): Promise<Blob> {
  const { signal, onBytes, tag } = options
  const settings = { ...DEFAULT_TUNING, ...options.tuning }
  const { chunkBytes } = settings
  const lock = toDownloadLockName(database, wanted.sha256)
  try {
    return await runExclusive(lock, { signal }, async (exclusive) => {
      const stored = await readResource(database, wanted.sha256)
      if (stored) return stored
      const assembly = await Assembly.open(database, wanted, { chunkBytes, signal: exclusive, tag })
      const report = (received: number) => onBytes?.(assembly.storedBytes, received)
      report(0)
      await new Download({ database, wanted, assembly, settings, signal: exclusive, report }).run()
      const blob = await readResource(database, wanted.sha256)
      if (!blob) throw downloadFailedError(wanted, 'the browser lost the stored data')
      return blob
    })
  } catch (thrown) {
    if (!signal.aborted) throw thrown
    throw new InoriginError('aborted', `The download of ${wanted.name} was canceled.`, {
      cause: signal.reason,
    })
  }
}

/** Returns the name of the lock that the writer of a resource holds. */
export const toDownloadLockName = ({ name }: Database, sha256: string): string =>
  `${name}:download:${sha256}`

/** What a download works with. `report` is called with the bytes of each piece. */
interface Job {
  database: Database
  wanted: WantedResource
  assembly: Assembly
  settings: DownloadTuning
  signal: AbortSignal
  report: (received: number) => void
}

/** Download of one resource, which this thread alone writes. */
class Download {
  readonly #job: Job
  /** `false` after a response that did not match the stored bytes: ranges are not used then. */
  #useRanges = true
  #maxStored: number
  #failures = 0
  #lastEndPosition = -1

  constructor(job: Job) {
    this.#job = job
    this.#maxStored = job.assembly.storedBytes
  }

  /** Sends requests until the whole resource is stored and its hash is right, or rejects. */
  async run(): Promise<void> {
    const { database, wanted, assembly } = this.#job
    let damagedChunk = -1
    for (;;) {
      if (assembly.position === wanted.bytes) {
        const mismatch = await assembly.finish()
        if (!mismatch) return
        if (!assembly.joined && !assembly.isRepair) {
          await trackDeletion(database, wanted.bytes, () => removeResource(database, wanted.sha256))
          throw digestMismatchError(wanted, mismatch)
        }
        await this.#startOver()
      }

      const outcome = await this.#requestRange()
      if (assembly.position === wanted.bytes) continue
      if (outcome.type === 'damaged') {
        if (damagedChunk === outcome.damage.index) throw digestMismatchError(wanted, outcome.damage)
        damagedChunk = outcome.damage.index ?? -1
      } else if (outcome.type === 'restart') {
        if (!this.#useRanges) throw downloadFailedError(wanted, outcome.why)
        await this.#startOver()
      } else if (outcome.type === 'next') {
        this.#failures = 0
      } else {
        await this.#waitForRetry(outcome)
        if (!this.#useRanges) await this.#startOver()
      }
    }
  }

  async #startOver(): Promise<void> {
    this.#useRanges = false
    await this.#job.assembly.restart(null)
    this.#job.report(0)
  }

  /** Waits before the next request after a failed one. Rejects if another one cannot help. */
  async #waitForRetry(outcome: Exclude<RangeOutcome, { type: 'damaged' | 'restart' }>) {
    const { wanted, assembly, settings, signal } = this.#job
    const { position, storedBytes } = assembly
    const { maxAttempts, backoffMs } = settings
    if (outcome.type !== 'retry') {
      // A second end at the same byte is no network failure: the file is that short.
      if (this.#lastEndPosition === position) throw wrongLengthError(wanted, String(position))
      this.#lastEndPosition = position
    }
    if (storedBytes > this.#maxStored) this.#failures = 0
    this.#maxStored = Math.max(this.#maxStored, storedBytes)
    this.#failures++
    const { why, after, cause } =
      outcome.type === 'retry'
        ? { ...outcome, why: `${outcome.why},` }
        : { why: 'the response ended too early', after: null, cause: undefined }
    if (this.#failures === maxAttempts) {
      const reached = `${storedBytes} of ${wanted.bytes} bytes were received`
      const all = `${why} ${maxAttempts} times in a row; ${reached}`
      throw downloadFailedError(wanted, all, {}, cause)
    }
    const backoff = computeBackoffMs(this.#failures, backoffMs)
    await sleep(Math.max((after ?? 0) * 1000, backoff), signal)
  }

  /**
   * Requests the bytes from the assembly's position on and writes them as they arrive. Throws an
   * `InoriginError` if a retry cannot help, and the signal's reason if it was aborted.
   */
  async #requestRange(): Promise<RangeOutcome> {
    const { wanted, assembly, report } = this.#job
    const ending = new AbortController()
    const signal = AbortSignal.any([this.#job.signal, ending.signal])
    try {
      const part = getPartAt(wanted, assembly.position)
      const partEnd = part.start + part.bytes
      const end = Math.min(partEnd, assembly.end)
      // Where the request begins and ends in the part; `null` for the end of the part.
      const from = assembly.position - part.start
      const last = end < partEnd ? end - part.start - 1 : null
      // This simple form of a range needs no CORS preflight, but `If-Range` would.
      const headers: HeadersInit =
        from > 0 || last !== null ? { range: `bytes=${from}-${last ?? ''}` } : {}
      const { value: response, retry } = await this.#receive(
        ending,
        // Firefox truncates huge responses while it writes them to its cache.
        () => fetch(part.url, { headers, cache: 'no-store', signal }),
        'it cannot be reached, or its server rejects this origin (CORS)',
      )
      if (retry) return retry
      const file = { ...wanted, url: part.url, bytes: part.bytes }
      // The recorded ETag is that of the first part.
      const etag = part.start === 0 ? assembly.etag : null
      const action = interpretResponse(response, file, from, etag)
      if (action.type !== 'take') return action
      if (part.start === 0 && mustRestart(response, assembly))
        await assembly.restart(getEtag(response))
      else if (from > 0) assembly.joined = true
      /** Number of stored bytes that a server without range support sends again. */
      let resentBytes = assembly.position - part.start - action.from
      if (!response.body) return { type: 'ended' }
      const reader = response.body.getReader()
      for (;;) {
        const read = await this.#receive(ending, () => reader.read(), 'the connection failed')
        if (read.retry) return read.retry
        const piece = read.value.value
        const isThere = assembly.position >= end && end < wanted.bytes
        if (!piece) return { type: isThere ? 'next' : 'ended' }
        const missing = end - assembly.position
        const newBytes = piece.subarray(resentBytes)
        resentBytes = Math.max(0, resentBytes - piece.length)
        if (newBytes.length > missing && last === null) {
          if (action.from === 0) throw wrongLengthError(file, 'more')
          return { type: 'restart', why: 'the server sent more bytes than are missing' }
        }
        const damage = await assembly.write(newBytes.subarray(0, missing))
        report(piece.length)
        if (damage) return { type: 'damaged', damage }
        // Bytes past the requested range are stored already.
        if (last !== null && assembly.position >= end) return { type: 'next' }
      }
    } finally {
      ending.abort()
    }
  }

  /**
   * Waits for data. Resolves with `retry` if they do not come in time, which aborts `ending`, or for
   * the reason `why`. Rejects if the caller aborted the download.
   */
  async #receive<T>(
    ending: AbortController,
    work: () => Promise<T>,
    why: string,
  ): Promise<{ value: T; retry?: undefined } | { value?: undefined; retry: RangeOutcome }> {
    const { stallTimeoutMs } = this.#job.settings
    const timer = setTimeout(() => ending.abort(), stallTimeoutMs)
    try {
      return { value: await work() }
    } catch (cause) {
      this.#job.signal.throwIfAborted()
      const silent = `no data arrived for ${stallTimeoutMs / 1000} s`
      const reason = ending.signal.aborted ? silent : why
      return { retry: { type: 'retry', why: reason, after: null, cause } }
    } finally {
      clearTimeout(timer)
    }
  }
}

/**
 * Result of a request. `ended` means that the body ended, complete or not. `next` means that a part
 * of the file, or a gap between stored chunks, is complete.
 */
type RangeOutcome =
  | Exclude<ResponseAction, { type: 'take' }>
  | { type: 'ended' | 'next' }
  | { type: 'damaged'; damage: DigestMismatch }

function digestMismatchError(wanted: WantedResource, { index, expected, got }: DigestMismatch) {
  const what = index === undefined ? 'It' : `Its chunk ${index}`
  return new InoriginError(
    'unavailable',
    `${wanted.name} from ${wanted.url} is not the file the catalog describes. ${what} should ` +
      `have the sha256 ${expected} and has ${got}. The wrong data was deleted. ` +
      'Correct the file or the catalog entry.',
    { code: 'hash_mismatch', details: { url: wanted.url, expected, got } },
  )
}

type ResponseAction =
  /** The body holds the bytes from `from` on. */
  | { type: 'take'; from: number }
  /** Retry later, in `after` seconds if the server sent a retry-after. */
  | { type: 'retry'; why: string; after: number | null; cause?: unknown }
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
  if (status === 416 && from > 0)
    return { type: 'restart', why: 'the server rejected the range (416)' }
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const after = parseRetryAfter(response.headers.get('retry-after'), Date.now())
    if (after !== null && after > MAX_RETRY_AFTER_SECONDS) {
      const { url } = wanted
      const what = `${url} returned ${status} and asks to retry after ${after} s.`
      const details = { code: 'download_failed', details: { url, status } } as const
      throw new InoriginError('unavailable', what, { ...details, retryAfter: after })
    }
    return { type: 'retry', why: `the server returned ${status}`, after }
  }
  throw downloadFailedError(wanted, `the server returned ${status}`, { status })
}

/** Returns the ETag of a response; `null` if it has none or CORS hides it. */
const getEtag = (response: Response): string | null => response.headers.get('etag')

/** Compares the strong forms of ETags, since a compressed response carries the weak form. */
function isOtherEtag(response: Response, known: string | null): boolean {
  const got = getEtag(response)
  return got !== null && known !== null && got.replace(/^W\//, '') !== known.replace(/^W\//, '')
}

/** Returns the error for a download that cannot succeed. The message names the URL. */
const downloadFailedError = (
  wanted: WantedResource,
  why: string,
  details: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): InoriginError =>
  new InoriginError('unavailable', `Could not download ${wanted.url}: ${why}.`, {
    code: 'download_failed',
    details: { url: wanted.url, ...details },
    cause,
  })

/** Returns the error for a body whose length is not that of the resource. */
function wrongLengthError(wanted: WantedResource, got: string): InoriginError {
  const why = `the catalog says ${wanted.bytes} bytes, the server has ${got}`
  return downloadFailedError(wanted, why, { expectedBytes: wanted.bytes })
}

function interpretFullResponse(response: Response, wanted: WantedResource): ResponseAction {
  const { headers } = response
  if (/^\s*(text\/html|application\/xhtml)/i.test(headers.get('content-type') ?? ''))
    throw downloadFailedError(
      wanted,
      'the response is an HTML page, which many servers send for missing files. ' +
        'Check that the file is where the catalog says',
    )
  const length = headers.get('content-length')
  // CORS hides the content-encoding of another origin, and then content-length may be the length
  // of the encoded body.
  const comparable = response.type !== 'cors' && !headers.has('content-encoding')
  if (comparable && length !== null && Number(length) !== wanted.bytes)
    throw wrongLengthError(wanted, length)
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
  if (!wanted.chunks && isOtherEtag(response, etag))
    return { type: 'restart', why: 'the file has changed on the server' }
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

/**
 * Returns `true` if a response with the whole file makes the stored bytes useless: there are none,
 * or its ETag is of another version. A repair keeps its chunks, whose hashes are known.
 */
function mustRestart(response: Response, { storedBytes, etag, isRepair }: Assembly): boolean {
  if (isRepair || response.status !== 200) return false
  return storedBytes === 0 || isOtherEtag(response, etag)
}

/**
 * Returns the file that holds the byte at `position`, with its length and its offset in the resource.
 * An unsplit file is its only part. Index 2 of `https://host/model.onnx?v=1` is
 * `https://host/model.onnx.2?v=1`.
 */
export function getPartAt({ url, bytes, partBytes }: WantedResource, position: number) {
  if (partBytes === undefined) return { url, start: 0, bytes }
  const index = Math.floor(position / partBytes)
  const start = index * partBytes
  const part = new URL(url)
  part.pathname += `.${index}`
  return { url: part.href, start, bytes: Math.min(partBytes, bytes - start) }
}
