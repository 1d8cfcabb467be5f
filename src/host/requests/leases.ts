/** Leases models and predictors to requests: chooses the implementation and starts its load. */
import type { Entry } from '../../catalog/schema.ts'
import type { GpuVerdict } from '../../device/gpu-verdict.ts'
import type { LoadProgress, Tag, TraceReport } from '../../types/index.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import { type Entries, findPredictor, notPredictor } from '../library/entries.ts'
import type { Predictions } from '../library/predictions.ts'
import { resolveImplementation } from '../library/stored-implementation.ts'
import { type EventHub, loadPaused } from '../models/event-hub.ts'
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
  /** Ends the loads of the tag for everyone who waits for them, and look-ups of its files. */
  pause(tag: Tag): void
}

interface LeasesOptions {
  entries: Entries
  selector: ImplementationSelector
  predictions: Predictions
  models: Models
  progress: EventHub<LoadProgress>
  trace: (event: TraceReport) => void
  verdict: () => Promise<GpuVerdict | undefined>
}

export function createLeases(options: LeasesOptions): Leases {
  const { entries, selector, predictions, models, progress, verdict } = options

  const pauses = createPauses()

  async function lease(
    { entry, implementation }: ResolvedImplementation,
    paused: AbortSignal,
  ): Promise<Lease> {
    const { id, device } = implementation
    const known = await verdict()
    paused.throwIfAborted()
    options.trace({ type: 'choice', tag: entry.tag, implementation: id, device })
    return models.acquire(entry, implementation, known)
  }

  const acquire: Leases['acquire'] = async (entry, signal, onProgress = () => undefined) => {
    const unsubscribe = progress.subscribe((step) => step.tag === entry.tag && onProgress(step))
    return pauses.run(entry.tag, async (paused) => {
      const either = AbortSignal.any([signal, paused])
      const resolved = await resolveImplementation(options, entry, either).finally(unsubscribe)
      selector.benchmarkWhenIdle(resolved.entry)
      return lease(resolved, paused)
    })
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
      return pauses.run(tag, async (paused) =>
        lease(await resolvePredictor(tag, configuration, signal), paused),
      )
    },
    resolvePredictor,
    pause(tag) {
      pauses.abort(tag)
      models.pause(tag)
    },
  }
}

/** Work that precedes loads, such as look-ups of files, which `pause` ends. */
function createPauses() {
  const running = new Map<Tag, Set<AbortController>>()
  return {
    /** Runs the work with a signal that aborts when loads of the tag are paused. */
    async run<T>(tag: Tag, work: (paused: AbortSignal) => Promise<T>): Promise<T> {
      const controller = new AbortController()
      const controllers = running.get(tag) ?? new Set()
      running.set(tag, controllers.add(controller))
      try {
        return await work(controller.signal)
      } finally {
        controllers.delete(controller)
        if (controllers.size === 0) running.delete(tag)
      }
    },
    abort(tag: Tag): void {
      for (const controller of running.get(tag) ?? []) controller.abort(loadPaused(tag))
    },
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
