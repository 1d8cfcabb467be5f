/** One resource, from its server into the store: resumed, retried, verified. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { alone } from './alone.ts'
import { failed, wrongLength } from './answer.ts'
import { openAssembly, type Assembly, type Damage } from './assembly.ts'
import { CHUNK_BYTES, type WantedResource } from './db.ts'
import type { Database } from './open.ts'
import { deleting } from './owed.ts'
import { backoff, sleep } from './patience.ts'
import { readResource, removeResource } from './resources.ts'
import { transfer, type Outcome } from './transfer.ts'

/** How a download goes about it. */
export interface Tuning {
  /** Bytes of a chunk; default 16 MiB. A catalog's chunk hashes are of chunks of this size. */
  chunkBytes: number
  /** Failures in a row, without a new byte between them, after which it gives up; default 6. */
  attempts: number
  /** Milliseconds before the second try; doubled each time. Default 500. */
  backoff: number
  /** Milliseconds without a byte after which a connection counts as dead; default 30 000. */
  stall: number
}

const TUNING: Readonly<Tuning> = {
  chunkBytes: CHUNK_BYTES,
  attempts: 6,
  backoff: 500,
  stall: 30_000,
}

export interface DownloadOptions {
  signal: AbortSignal
  /**
   * Told after every piece: bytes of the resource that are here, and how many of them just came
   * over the network. The first may step back, when the server makes us start over.
   */
  onBytes?: (here: number, received: number) => void
  /** What it is for. */
  tag?: Tag | undefined
  tuning?: Partial<Tuning>
}

/**
 * The resource's bytes, out of the store if they are there, else downloaded. Only one thread of the
 * origin downloads a resource; others that ask wait and find it. Rejects with `unavailable` naming
 * the URL when it cannot be had, `aborted` when given up; whole chunks are kept for the next time,
 * unless their hash turned out wrong. Room is the caller's question.
 */
export async function download(
  database: Database,
  wanted: WantedResource,
  { signal, onBytes = () => undefined, tag, tuning }: DownloadOptions,
): Promise<Blob> {
  const settings = { ...TUNING, ...tuning }
  const { chunkBytes } = settings
  try {
    return await alone(downloadLock(database, wanted.sha256), { signal }, async (turn) => {
      const there = await readResource(database, wanted.sha256)
      if (there) return there
      const assembly = await openAssembly(database, wanted, { chunkBytes, signal: turn, tag })
      onBytes(assembly.here, 0)
      const received = (bytes: number) => onBytes(assembly.here, bytes)
      await complete(database, wanted, assembly, settings, turn, received)
      const blob = await readResource(database, wanted.sha256)
      if (!blob) throw failed(wanted, 'the browser did not keep what was stored')
      return blob
    })
  } catch (thrown) {
    if (!signal.aborted) throw thrown
    throw new InoriginError('aborted', `The download of ${wanted.name} was cancelled.`, {
      cause: signal.reason,
    })
  }
}

/** The name of the lock under which a resource is written. */
export function downloadLock({ name }: Database, sha256: string): string {
  return `${name}:download:${sha256}`
}

/** Asks until everything is here and its hash is right, or until asking again is no use. */
async function complete(
  database: Database,
  wanted: WantedResource,
  assembly: Assembly,
  settings: Tuning,
  signal: AbortSignal,
  onBytes: (received: number) => void,
): Promise<void> {
  const { attempts, stall } = settings
  /** Once an answer did not go with what was here, only answers to all of it are trusted. */
  let ranges = true
  let most = assembly.here
  let failures = 0
  let damagedChunk = -1
  let lastEnd = -1

  async function startOver(): Promise<void> {
    ranges = false
    await assembly.restart(null)
    onBytes(0)
  }

  for (;;) {
    if (assembly.position === wanted.bytes) {
      const damage = await assembly.finish()
      if (!damage) return
      if (!assembly.joined && !assembly.repairs) {
        await deleting(database, wanted.bytes, () => removeResource(database, wanted.sha256))
        throw mismatch(wanted, damage)
      }
      await startOver()
    }

    const outcome = await transfer(wanted, assembly, { signal, stall, onBytes })
    const { position } = assembly
    if (position === wanted.bytes) continue
    if (outcome.type === 'damaged') {
      if (damagedChunk === outcome.damage.index) throw mismatch(wanted, outcome.damage)
      damagedChunk = outcome.damage.index ?? -1
      continue
    }
    if (outcome.type === 'restart') {
      if (!ranges) throw failed(wanted, outcome.why)
      await startOver()
      continue
    }

    if (outcome.type === 'next') {
      failures = 0
      continue
    }

    if (outcome.type === 'ended') {
      // Twice at the same byte is not the network: the file is that short.
      if (lastEnd === position) throw wrongLength(wanted, String(position))
      lastEnd = position
    }
    if (assembly.here > most) failures = 0
    most = Math.max(most, assembly.here)
    failures++
    if (failures === attempts) throw gaveUp(wanted, outcome, assembly.here, failures)
    const after = outcome.type === 'retry' ? (outcome.after ?? 0) : 0
    await sleep(Math.max(after * 1000, backoff(failures, settings.backoff)), signal)
    if (!ranges) await startOver()
  }
}

function gaveUp(
  wanted: WantedResource,
  outcome: Extract<Outcome, { type: 'ended' | 'retry' }>,
  position: number,
  failures: number,
): InoriginError {
  const reached = `${position} of ${wanted.bytes} bytes are here`
  if (outcome.type === 'ended') {
    return failed(wanted, `the answer ended too early ${failures} times in a row; ${reached}`)
  }
  const why = `${outcome.why}, ${failures} times in a row; ${reached}`
  return failed(wanted, why, {}, outcome.cause)
}

function mismatch(wanted: WantedResource, { index, expected, got }: Damage): InoriginError {
  const what = index === undefined ? 'It' : `Its chunk ${index}`
  return new InoriginError(
    'unavailable',
    `${wanted.name} from ${wanted.url} is not the file the catalog describes. ${what} should ` +
      `have the sha256 ${expected} and has ${got}. What is wrong was deleted; ` +
      'either the file or the catalog must be corrected.',
    { code: 'hash_mismatch', details: { url: wanted.url, expected, got } },
  )
}
