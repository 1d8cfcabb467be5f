/** Measures the implementations of a tag, to find the fastest one on this device. */
import { sumResourceBytes, hasResources } from '../catalog/memory-bytes.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import type { GpuVerdict } from '../device/gpu-verdict.ts'
import { InoriginError } from '../error.ts'
import { call } from '../link/ask.ts'
import type { ModelCalls } from '../link/protocol.ts'
import { hasResource } from '../store/resources.ts'
import type { Database } from '../store/database.ts'
import type { Models } from './models.ts'
import type { Found } from './speeds.ts'
import { verdictOf } from './trust.ts'

/** Size in bytes below which an implementation is downloaded only to be measured. */
const SMALL = 8_000_000

/** Largest size in bytes of an implementation that is loaded beside the one in use. */
const LARGE = 2 ** 28

/** Timeouts in milliseconds: to load one implementation, to measure it, and for the whole race. */
const LOADING = 60_000
const MEASURING = 10_000
const ALL = 90_000

/** Codes of temporary failures, which say nothing about the implementation. */
const PASSING: ReadonlySet<string | undefined> = new Set([
  'unloaded',
  'queue_full',
  'storage_damaged',
])

/** Codes of failures that may be caused by other programs or by other models in memory. */
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
 * Resolves with the implementations that may be measured: those that are stored or small. Large
 * ones are excluded, because two might not fit in memory. With `saveData`, only stored ones count.
 */
export async function eligible(
  database: Database,
  implementations: readonly Implementation[],
): Promise<Implementation[]> {
  const { connection } = navigator as { connection?: { saveData?: boolean } }
  const few = connection?.saveData ? 0 : SMALL
  const found = await Promise.all(
    implementations.map(async (implementation) => {
      if (!hasResources(implementation)) return false
      const bytes = sumResourceBytes(implementation)
      if (bytes < few) return true
      return bytes <= LARGE && (await areHere(database, implementation))
    }),
  )
  return implementations.filter((_, index) => found[index])
}

/** Resolves with `true` if all files of the implementation are stored. */
export async function areHere(
  database: Database,
  { resources }: Pick<Implementation, 'resources'>,
): Promise<boolean> {
  const here = await Promise.all(resources.map(({ sha256 }) => hasResource(database, sha256)))
  return here.every(Boolean)
}

/**
 * Measures the implementations one after the other, because they would disturb each other, and
 * reports each result. The measurement is `null` for an implementation that rejects sample inputs.
 * A download that times out is not reported. The race ends when requests use the language model.
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
      // A slow network and a rejected GPU say nothing about the speed of the implementation.
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
  const limits = `${LOADING / 1000} s to load or ${MEASURING / 1000} s to run`
  return new InoriginError('unavailable', `it took longer than ${limits}`, { code: 'too_slow' })
}

function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
