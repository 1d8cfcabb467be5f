/** Leases models and predictors to requests: chooses the implementation and starts its load. */
import type { Entry } from '../../catalog/schema.ts'
import type { GpuVerdict } from '../../device/gpu-verdict.ts'
import type { LoadProgress, Tag } from '../../types/index.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import type { Entries } from '../library/entries.ts'
import { findPredictor, notPredictor } from '../library/find-entry.ts'
import type { Predictions } from '../library/predictions.ts'
import { resolveImplementation } from '../library/resolve-implementation.ts'
import type { LoadProgressHub } from '../models/load-progress.ts'
import type { Lease, Models, ResolvedImplementation } from '../models/models.ts'

export interface Leases {
  /**
   * Resolves with a lease of the best implementation for this device. `onProgress` receives the
   * progress of a look-up of its files.
   */
  acquire(
    entry: Entry,
    signal: AbortSignal,
    onProgress?: (progress: LoadProgress) => void,
  ): Promise<Lease>
  /** Resolves with a lease of the predictor, in its best implementation without a configuration. */
  acquirePredictor(tag: Tag, configuration: string | undefined, signal: AbortSignal): Promise<Lease>
  /** Resolves with the implementation that `acquirePredictor` uses. */
  resolvePredictor(
    tag: Tag,
    configuration: string | undefined,
    signal: AbortSignal,
  ): Promise<ResolvedImplementation>
}

export interface LeasesOptions {
  entries: Entries
  selector: ImplementationSelector
  predictions: Predictions
  models: Models
  progress: LoadProgressHub
  verdict: () => Promise<GpuVerdict | undefined>
}

export function createLeases(options: LeasesOptions): Leases {
  const { entries, selector, predictions, models, progress, verdict } = options

  const lease = async ({ entry, implementation }: ResolvedImplementation): Promise<Lease> =>
    models.acquire(entry, implementation, await verdict())

  const acquire: Leases['acquire'] = async (entry, signal, onProgress = () => undefined) => {
    const unsubscribe = progress.subscribe((step) => step.tag === entry.tag && onProgress(step))
    const resolved = await resolveImplementation(options, entry, signal).finally(unsubscribe)
    selector.benchmarkWhenIdle(resolved.entry)
    return lease(resolved)
  }

  const resolvePredictor: Leases['resolvePredictor'] = async (tag, configuration, signal) => {
    if (configuration === undefined)
      return resolveImplementation(options, await findPredictor(entries, tag), signal)
    const resolved = await predictions.resolveConfiguration(tag, configuration, signal)
    if (resolved.entry.type !== 'predictor') throw notPredictor(tag)
    return resolved
  }

  return {
    acquire,
    async acquirePredictor(tag, configuration, signal) {
      if (configuration === undefined) return acquire(await findPredictor(entries, tag), signal)
      return lease(await resolvePredictor(tag, configuration, signal))
    },
    resolvePredictor,
  }
}

/** Resolves when the implementation is loaded, and reports the progress until then. */
export async function waitUntilLoaded(
  { instance }: Lease,
  signal: AbortSignal,
  onProgress: (progress: LoadProgress) => void = () => undefined,
): Promise<void> {
  // The loop below reports a failed load, so its rejection is ignored here.
  instance.load().catch(() => undefined)
  for await (const progress of instance.progress.read(signal)) onProgress(progress)
  onProgress(instance.progress.latest)
}
