/** Runs implementations of a tag against each other, to learn which is the fastest on this device. */
import { bytesOf, isListed } from '../catalog/memory.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import type { GpuVerdict } from '../device/verdict.ts'
import { InoriginError } from '../error.ts'
import { call } from '../link/ask.ts'
import type { ModelCalls } from '../link/protocol.ts'
import { hasResource } from '../store/resources.ts'
import type { Database } from '../store/open.ts'
import type { Models } from './models.ts'
import type { Found } from './speeds.ts'
import { verdictOf } from './trust.ts'

/** Bytes up to which an implementation is downloaded to be measured. */
const SMALL = 8_000_000

/** Bytes up to which one is brought into memory beside the one that is used. */
const LARGE = 2 ** 28

/** Milliseconds for one of them to be brought into memory, to be measured, and for all of them. */
const LOADING = 60_000
const MEASURING = 10_000
const ALL = 90_000

/** Codes of failures that pass: they say nothing of what failed. */
const PASSING: ReadonlySet<string | undefined> = new Set([
  'unloaded',
  'queue_full',
  'storage_damaged',
])

/** Codes of failures that another program, or what else is in memory, may be to blame for. */
const MAY_PASS: ReadonlySet<string | undefined> = new Set([
  'device_lost',
  'model_unresponsive',
  'out_of_memory',
  'too_slow',
  'worker_ended',
])

export interface RaceOptions {
  database: Database
  models: Models
  verdict: () => Promise<GpuVerdict | undefined>
}

/**
 * Those of them that may be measured: all here or small, and none so large that two would not fit. No
 * byte is fetched for it where the user saves data.
 */
export async function eligible(
  database: Database,
  implementations: readonly Implementation[],
): Promise<Implementation[]> {
  const { connection } = navigator as { connection?: { saveData?: boolean } }
  const few = connection?.saveData ? 0 : SMALL
  const found = await Promise.all(
    implementations.map(async (implementation) => {
      if (!isListed(implementation)) return false
      const bytes = bytesOf(implementation)
      if (bytes < few) return true
      return bytes <= LARGE && (await areHere(database, implementation))
    }),
  )
  return implementations.filter((_, index) => found[index])
}

/** Whether all files of an implementation are stored. */
export async function areHere(
  database: Database,
  { resources }: Pick<Implementation, 'resources'>,
): Promise<boolean> {
  const here = await Promise.all(resources.map(({ sha256 }) => hasResource(database, sha256)))
  return here.every(Boolean)
}

/**
 * Measures one after the other, as they would disturb each other, and tells each as it is known: `null`
 * for one that does not take inputs that were made up. What could not be had in time is not told, nor how
 * long a language model takes while others wait for their turns at it; it ends there then.
 */
export async function race(
  { models, verdict }: RaceOptions,
  entry: Entry,
  implementations: readonly Implementation[],
  tell: (implementation: Implementation, found: Found) => Promise<void>,
): Promise<void> {
  const over = AbortSignal.timeout(ALL)
  for (const implementation of implementations) {
    if (over.aborted || !models.hasRoom) return
    const lease = models.acquire(entry, implementation, await verdict(), true)
    const { hosted, leave } = lease
    const within = (limit: number) => AbortSignal.any([over, AbortSignal.timeout(limit)])
    const isShared = () => entry.type === 'model' && hosted.users > 1
    let signal = within(LOADING)
    try {
      await unlessAborted(hosted.load(), signal)
      if (isShared()) return
      signal = within(MEASURING)
      const milliseconds = await call<ModelCalls, 'measure'>(hosted.link, 'measure', [], { signal })
      if (isShared()) return
      await tell(implementation, { measurement: { milliseconds } })
    } catch (error) {
      const failure = signal.aborted && !over.aborted ? late() : InoriginError.from(error)
      // What the network kept back, and what the GPU's verdict decides, are no matter of speed.
      const isKnown = hosted.progress.latest.phase !== 'download' && !over.aborted && !isShared()
      if (isKnown && verdictOf(error) === null && !PASSING.has(failure.code)) {
        const measurement = failure.kind === 'invalid_request' ? null : { failure: failure.message }
        await tell(implementation, { measurement, mayPass: MAY_PASS.has(failure.code) })
      }
    } finally {
      leave()
    }
  }
}

function late(): InoriginError {
  const limits = `${LOADING / 1000} s to load and ${MEASURING / 1000} s to run`
  return new InoriginError('unavailable', `it took longer than ${limits}`, { code: 'too_slow' })
}

function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
