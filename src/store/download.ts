/** Downloads one resource into the store: resumes, retries and verifies it. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { runExclusive } from './exclusive.ts'
import { downloadFailedError, wrongLengthError } from './download-response.ts'
import { openAssembly, type Assembly, type DigestMismatch } from './assembly.ts'
import { CHUNK_BYTES, type WantedResource } from './db.ts'
import type { Database } from './database.ts'
import { trackDeletion } from './pending-deletions.ts'
import { computeBackoffMs, sleep } from './timeouts.ts'
import { readResource, removeResource } from './resources.ts'
import { requestRange, type RangeOutcome } from './range-request.ts'

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

export interface DownloadOptions {
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
export function toDownloadLockName({ name }: Database, sha256: string): string {
  return `${name}:download:${sha256}`
}

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
  if (outcome.type === 'ended') {
    return downloadFailedError(
      wanted,
      `the response ended too early ${failures} times in a row; ${reached}`,
    )
  }
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
