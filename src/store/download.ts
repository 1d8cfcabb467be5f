/** Downloads one resource into the store: resumes, retries and verifies it. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { computeBackoffMs, sleep } from '../values/promises.ts'
import { type Assembly, type DigestMismatch, openAssembly } from './assembly.ts'
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

interface DownloadOptions {
  signal: AbortSignal
  /**
   * Called after every piece, with the stored bytes of the resource and the bytes just received
   * over the network. The first number may decrease when the download starts over.
   */
  onBytes?: (stored: number, received: number) => void
  /** Tag that the resource is for. */
  tag?: Tag | undefined
  tuning?: Partial<DownloadTuning>
}

/**
 * Resolves with the bytes of a resource, from the store or downloaded. Only one thread of the
 * origin downloads a resource; others wait and then find it stored. Rejects with `unavailable`,
 * naming the URL, if the download fails, and with `aborted` if the signal aborts. Complete chunks
 * stay stored, unless their hash is wrong. The caller must make space before.
 */
export async function download(
  database: Database,
  wanted: WantedResource,
  { signal, onBytes = () => undefined, tag, tuning }: DownloadOptions,
): Promise<Blob> {
  const settings = { ...DEFAULT_TUNING, ...tuning }
  const { chunkBytes } = settings
  try {
    return await runExclusive(
      toDownloadLockName(database, wanted.sha256),
      { signal },
      async (exclusive) => {
        const stored = await readResource(database, wanted.sha256)
        if (stored) return stored
        const assembly = await openAssembly(database, wanted, {
          chunkBytes,
          signal: exclusive,
          tag,
        })
        onBytes(assembly.storedBytes, 0)
        const received = (bytes: number) => onBytes(assembly.storedBytes, bytes)
        await fetchUntilVerified(database, wanted, assembly, settings, exclusive, received)
        const blob = await readResource(database, wanted.sha256)
        if (!blob) throw downloadFailedError(wanted, 'the browser lost the stored data')
        return blob
      },
    )
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

/** Sends requests until the whole resource is stored and its hash is right, or throws. */
async function fetchUntilVerified(
  database: Database,
  wanted: WantedResource,
  assembly: Assembly,
  settings: DownloadTuning,
  signal: AbortSignal,
  onBytes: (received: number) => void,
): Promise<void> {
  const { stallTimeoutMs } = settings
  const retries = createRetries(wanted, assembly, settings, signal)
  /** `false` after a response that did not match the stored bytes: ranges are not used then. */
  let useRanges = true
  let damagedChunk = -1

  async function startOver(): Promise<void> {
    useRanges = false
    await assembly.restart(null)
    onBytes(0)
  }

  for (;;) {
    if (assembly.position === wanted.bytes) {
      const mismatch = await assembly.finish()
      if (!mismatch) return
      if (!assembly.joined && !assembly.isRepair) {
        await trackDeletion(database, wanted.bytes, () => removeResource(database, wanted.sha256))
        throw digestMismatchError(wanted, mismatch)
      }
      await startOver()
    }

    const outcome = await requestRange(wanted, assembly, { signal, stallTimeoutMs, onBytes })
    if (assembly.position === wanted.bytes) continue
    if (outcome.type === 'damaged') {
      if (damagedChunk === outcome.damage.index) throw digestMismatchError(wanted, outcome.damage)
      damagedChunk = outcome.damage.index ?? -1
      continue
    }
    if (outcome.type === 'restart') {
      if (!useRanges) throw downloadFailedError(wanted, outcome.why)
      await startOver()
      continue
    }

    if (outcome.type === 'next') {
      retries.reset()
      continue
    }

    await retries.wait(outcome)
    if (!useRanges) await startOver()
  }
}

/** Outcome of a failed request, after which another one may succeed. */
type FailedRange = Extract<RangeOutcome, { type: 'ended' | 'retry' }>

/** Counts failures in a row. */
interface Retries {
  reset(): void
  /** Waits before the next request. Rejects if another one cannot help. */
  wait(outcome: FailedRange): Promise<void>
}

function createRetries(
  wanted: WantedResource,
  assembly: Assembly,
  { maxAttempts, backoffMs }: DownloadTuning,
  signal: AbortSignal,
): Retries {
  let maxStored = assembly.storedBytes
  let failures = 0
  let lastEndPosition = -1
  return {
    reset() {
      failures = 0
    },
    async wait(outcome) {
      const { position, storedBytes } = assembly
      if (outcome.type === 'ended') {
        // A second end at the same byte is no network failure: the file is that short.
        if (lastEndPosition === position) throw wrongLengthError(wanted, String(position))
        lastEndPosition = position
      }
      if (storedBytes > maxStored) failures = 0
      maxStored = Math.max(maxStored, storedBytes)
      failures++
      if (failures === maxAttempts)
        throw retriesExhaustedError(wanted, outcome, storedBytes, failures)
      const after = outcome.type === 'retry' ? (outcome.after ?? 0) : 0
      await sleep(Math.max(after * 1000, computeBackoffMs(failures, backoffMs)), signal)
    },
  }
}

function retriesExhaustedError(
  wanted: WantedResource,
  outcome: FailedRange,
  position: number,
  failures: number,
): InoriginError {
  const reached = `${position} of ${wanted.bytes} bytes were received`
  if (outcome.type === 'ended')
    return downloadFailedError(
      wanted,
      `the response ended too early ${failures} times in a row; ${reached}`,
    )
  const why = `${outcome.why}, ${failures} times in a row; ${reached}`
  return downloadFailedError(wanted, why, {}, outcome.cause)
}

function digestMismatchError(
  wanted: WantedResource,
  { index, expected, got }: DigestMismatch,
): InoriginError {
  const what = index === undefined ? 'It' : `Its chunk ${index}`
  return new InoriginError(
    'unavailable',
    `${wanted.name} from ${wanted.url} is not the file the catalog describes. ${what} should ` +
      `have the sha256 ${expected} and has ${got}. The wrong data was deleted. ` +
      'Correct the file or the catalog entry.',
    { code: 'hash_mismatch', details: { url: wanted.url, expected, got } },
  )
}

/** Next step after a response. */
type ResponseAction =
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
  if (status === 416 && from > 0)
    return { type: 'restart', why: 'the server rejected the range (416)' }
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const after = parseRetryAfter(response.headers.get('retry-after'), Date.now())
    if (after !== null && after > MAX_RETRY_AFTER_SECONDS)
      throw new InoriginError(
        'unavailable',
        `${wanted.url} returned ${status} and asks to retry after ${after} s.`,
        { code: 'download_failed', retryAfter: after, details: { url: wanted.url, status } },
      )
    return { type: 'retry', why: `the server returned ${status}`, after }
  }
  throw downloadFailedError(wanted, `the server returned ${status}`, { status })
}

/** Returns the ETag of a response; `null` if it has none or CORS hides it. */
const getEtag = (response: Response): string | null => response.headers.get('etag')

/** Returns `true` if both tags are known and differ. */
const isOtherEtag = (one: string | null, other: string | null): boolean =>
  one !== null && other !== null && toStrongEtag(one) !== toStrongEtag(other)

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
  if (!wanted.chunks && isOtherEtag(etag, getEtag(response)))
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

/** Returns the strong form of an ETag. A compressed response carries the weak form of it. */
const toStrongEtag = (etag: string): string => etag.replace(/^W\//, '')

/**
 * Result of a request. `ended` means that the body ended, complete or not. `next` means that a part
 * of the file, or a gap between stored chunks, is complete.
 */
type RangeOutcome =
  | { type: 'ended' }
  | { type: 'next' }
  | { type: 'retry'; why: string; after: number | null; cause?: unknown }
  | { type: 'restart'; why: string }
  | { type: 'damaged'; damage: DigestMismatch }

interface RangeRequestOptions {
  signal: AbortSignal
  /** Time in milliseconds without data after which the connection counts as dead. */
  stallTimeoutMs: number
  /** Called after every piece. */
  onBytes: (received: number) => void
}

/**
 * Requests the bytes from the assembly's position on and writes them. Throws an `InoriginError`
 * if a retry cannot help, and the signal's reason if it was aborted.
 */
async function requestRange(
  wanted: WantedResource,
  assembly: Assembly,
  { signal, stallTimeoutMs, onBytes }: RangeRequestOptions,
): Promise<RangeOutcome> {
  const connection = openConnection(signal, stallTimeoutMs)
  try {
    const { part, from, end, last } = nextRange(wanted, assembly)
    const { value: response, retry } = await connection.wait(
      () =>
        fetch(part.url, {
          // This simple form of a range needs no CORS preflight, but `If-Range` would.
          headers: from > 0 || last !== null ? { range: `bytes=${from}-${last ?? ''}` } : {},
          // Firefox truncates huge responses while it writes them to its cache.
          cache: 'no-store',
          signal: connection.signal,
        }),
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
    else if (from > 0) assembly.join()
    /** Number of stored bytes that a server without range support sends again. */
    let resentBytes = assembly.position - part.start - action.from
    if (!response.body) return { type: 'ended' }
    const reader = response.body.getReader()
    for (;;) {
      const read = await connection.wait(() => reader.read(), 'the connection failed')
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
      onBytes(piece.length)
      if (damage) return { type: 'damaged', damage }
      // Bytes past the requested range are stored already.
      if (last !== null && assembly.position >= end) return { type: 'next' }
    }
  } finally {
    connection.close()
  }
}

/**
 * Returns the part of the file at the assembly's position, where the request begins and ends in it
 * (`from`, `last`; `null` for its end), and the end in the file.
 */
function nextRange(wanted: WantedResource, assembly: Assembly) {
  const part = getPartAt(wanted, assembly.position)
  const partEnd = part.start + part.bytes
  const end = Math.min(partEnd, assembly.end)
  const last = end < partEnd ? end - part.start - 1 : null
  return { part, from: assembly.position - part.start, end, last }
}

type Received<T> = { value: T; retry?: undefined } | { value?: undefined; retry: RangeOutcome }

/** Connection of one request, which ends when no data arrive for some time. */
interface Connection {
  signal: AbortSignal
  /**
   * Waits for data. Resolves with `retry` if they do not come, for the reason `why`. Rejects if the
   * caller aborted the request.
   */
  wait<T>(work: () => Promise<T>, why: string): Promise<Received<T>>
  /** Cancels the request. */
  close(): void
}

function openConnection(signal: AbortSignal, stallTimeoutMs: number): Connection {
  const ending = new AbortController()
  return {
    signal: AbortSignal.any([signal, ending.signal]),
    async wait(work, why) {
      const timer = setTimeout(() => ending.abort(), stallTimeoutMs)
      try {
        return { value: await work() }
      } catch (cause) {
        signal.throwIfAborted()
        const silent = `no data arrived for ${stallTimeoutMs / 1000} s`
        const reason = ending.signal.aborted ? silent : why
        return { retry: { type: 'retry', why: reason, after: null, cause } }
      } finally {
        clearTimeout(timer)
      }
    },
    close: () => ending.abort(),
  }
}

/**
 * Returns `true` if a response with the whole file makes the stored bytes useless: there are none,
 * or its ETag is of another version. A repair keeps its chunks, whose hashes are known.
 */
function mustRestart(response: Response, { storedBytes, etag, isRepair }: Assembly): boolean {
  if (isRepair || response.status !== 200) return false
  return storedBytes === 0 || isOtherEtag(etag, getEtag(response))
}

/** File that holds `bytes` of a resource, from offset `start` on. */
interface FilePart {
  url: string
  start: number
  bytes: number
}

/** Returns the part that holds the byte at `position`. An unsplit file is its only part. */
export function getPartAt({ url, bytes, partBytes }: WantedResource, position: number): FilePart {
  if (partBytes === undefined) return { url, start: 0, bytes }
  const index = Math.floor(position / partBytes)
  const start = index * partBytes
  return { url: toPartUrl(url, index), start, bytes: Math.min(partBytes, bytes - start) }
}

/** Returns `https://host/model.onnx.2?v=1` for index 2 of `https://host/model.onnx?v=1`. */
function toPartUrl(url: string, index: number): string {
  const part = new URL(url)
  part.pathname += `.${index}`
  return part.href
}
