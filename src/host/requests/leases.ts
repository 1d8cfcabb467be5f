/** Leases models and predictors to requests: chooses the implementation and starts its load. */
import type { Entry } from '../../catalog/schema.ts'
import { comparisonFromError, type GpuVerdict, verdictFromError } from '../../device/gpu-verdict.ts'
import { unsupportedFromError } from '../../engine/failure.ts'
import { InoriginError } from '../../error.ts'
import type { Caller, LoadProgress, Tag, TraceReport } from '../../types/index.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import { type Entries, findPredictor, notPredictor } from '../library/entries.ts'
import type { Predictions } from '../library/predictions.ts'
import { resolveImplementation } from '../library/stored-implementation.ts'
import { type EventHub, loadPaused } from '../models/event-hub.ts'
import type { ModelInstance } from '../models/model-instance.ts'
import type { Lease, Models, ResolvedImplementation } from '../models/models.ts'

interface LeasesOptions {
  entries: Entries
  selector: ImplementationSelector
  predictions: Predictions
  models: Models
  progress: EventHub<LoadProgress>
  trace: (event: TraceReport) => void
  verdict: () => Promise<GpuVerdict | undefined>
}

export class Leases {
  #options: LeasesOptions
  /** Work that precedes loads, such as look-ups of files, which `pause` ends. */
  #pausable = new Map<Tag, Set<AbortController>>()

  constructor(options: LeasesOptions) {
    this.#options = options
  }

  /**
   * Resolves with a lease of the best implementation for this device. `onProgress` receives the
   * progress of a look-up of its files.
   */
  async acquire(
    entry: Entry,
    signal: AbortSignal,
    onProgress: (progress: LoadProgress) => void = () => undefined,
  ): Promise<Lease> {
    const { progress, selector } = this.#options
    const unsubscribe = progress.subscribe((step) => step.tag === entry.tag && onProgress(step))
    return this.#untilPaused(entry.tag, async (paused) => {
      const either = AbortSignal.any([signal, paused])
      const resolved = await resolveImplementation(this.#options, entry, either).finally(
        unsubscribe,
      )
      selector.benchmarkWhenIdle(resolved.entry)
      return this.#lease(resolved, paused)
    })
  }

  /** Resolves with a lease of the predictor, in its best implementation without a configuration. */
  async acquirePredictor(
    tag: Tag,
    configuration: string | undefined,
    signal: AbortSignal,
  ): Promise<Lease> {
    if (configuration === undefined)
      return this.acquire(await findPredictor(this.#options.entries, tag, signal), signal)
    return this.#untilPaused(tag, async (paused) =>
      this.#lease(await this.resolvePredictor(tag, configuration, signal), paused),
    )
  }

  /** Resolves with the implementation that `acquirePredictor` uses. */
  async resolvePredictor(
    tag: Tag,
    configuration: string | undefined,
    signal: AbortSignal,
  ): Promise<ResolvedImplementation> {
    const { entries, predictions } = this.#options
    if (configuration === undefined)
      return resolveImplementation(this.#options, await findPredictor(entries, tag, signal), signal)
    const resolved = await predictions.resolveConfiguration(tag, configuration, signal)
    if (resolved.entry.type !== 'predictor') throw notPredictor(tag)
    return resolved
  }

  /** Looks the tag up as {@link Entries.lookUp}, until loads of it are paused. */
  lookUp(tag: Tag, signal: AbortSignal): Promise<void> {
    const { entries } = this.#options
    return this.#untilPaused(tag, (paused) =>
      entries.lookUp(tag, AbortSignal.any([signal, paused])),
    )
  }

  /** Ends the loads of the tag for everyone who waits for them, and look-ups of its files. */
  pause(tag: Tag): void {
    for (const controller of this.#pausable.get(tag) ?? []) controller.abort(loadPaused(tag))
    this.#options.models.pause(tag)
  }

  async #lease(
    { entry, implementation }: ResolvedImplementation,
    paused: AbortSignal,
  ): Promise<Lease> {
    const { models, trace, verdict } = this.#options
    const { id, device } = implementation
    const known = await verdict()
    paused.throwIfAborted()
    trace({ type: 'choice', tag: entry.tag, implementation: id, device })
    return models.acquire(entry, implementation, known)
  }

  /** Runs the work with a signal that aborts when loads of the tag are paused. */
  async #untilPaused<T>(tag: Tag, work: (paused: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController()
    const controllers = this.#pausable.get(tag) ?? new Set()
    this.#pausable.set(tag, controllers.add(controller))
    try {
      return await work(controller.signal)
    } finally {
      controllers.delete(controller)
      if (controllers.size === 0) this.#pausable.delete(tag)
    }
  }
}

/**
 * Runs the work with a loaded implementation, and again with the next lease while the errors of the
 * load or the work allow that.
 */
export function withLoaded<T>(
  acquire: () => Promise<Lease>,
  { signal, onEvent }: Caller<LoadProgress>,
  work: (instance: ModelInstance) => Promise<T>,
): Promise<T> {
  return withRetry(async () => {
    const lease = await acquire()
    const { instance, release } = lease
    try {
      await waitUntilLoaded(lease, signal, onEvent)
      return await work(instance)
    } catch (error) {
      throw await instance.explainFailure(error)
    } finally {
      release()
    }
  })
}

/**
 * Yields the events of a loaded implementation. Before the first one, they are opened again as
 * {@link withLoaded} does its work.
 */
export async function* streamLoaded<Event>(
  acquire: () => Promise<Lease>,
  signal: AbortSignal,
  open: (instance: ModelInstance) => Promise<AsyncIterable<Event>>,
): AsyncGenerator<Event> {
  const shouldRetry = createRetryPolicy()
  let isBegun = false
  for (;;) {
    const lease = await acquire()
    try {
      await waitUntilLoaded(lease, signal)
      for await (const event of await open(lease.instance)) {
        isBegun = true
        yield event
      }
      return
    } catch (thrown) {
      const error = await lease.instance.explainFailure(thrown)
      if (isBegun || !shouldRetry(error)) throw error
    } finally {
      lease.release()
    }
  }
}

/** Resolves when the implementation is loaded, and reports the progress until then. */
async function waitUntilLoaded(
  { instance }: Lease,
  signal: AbortSignal,
  onProgress: (progress: LoadProgress) => void = () => undefined,
): Promise<void> {
  // The loop below reports a failed load, so its rejection is ignored here.
  instance.load().catch(() => undefined)
  for await (const progress of instance.progress.read(signal)) onProgress(progress)
  onProgress(instance.progress.latest)
}

/** Maximum number of attempts: with 16-bit floats, without them, and without the GPU. */
const MAX_ATTEMPTS = 3

/** Maximum number of implementations that are left because the runtime cannot compute them. */
const MAX_UNSUPPORTED = 8

/**
 * Codes after which the next load may succeed: it replaces the damaged files, or starts a runtime
 * with a memory and a device of its own.
 */
const RETRIED_CODES: ReadonlySet<string | undefined> = new Set([
  'device_lost',
  'storage_damaged',
  'runtime_crashed',
])

/**
 * Creates the decision for one request whether to retry it after an error. It allows retries after
 * a rejected GPU, up to {@link MAX_ATTEMPTS}; one for each implementation that the runtime cannot
 * compute, up to {@link MAX_UNSUPPORTED}; and one after each of {@link RETRIED_CODES}.
 */
export function createRetryPolicy(): (error: unknown) => boolean {
  let attempts = 1
  let unsupported = 0
  const retried = new Set<string | undefined>()
  return (error) => {
    if (verdictFromError(error) ?? comparisonFromError(error)) return ++attempts <= MAX_ATTEMPTS
    const { code } = InoriginError.from(error)
    // The implementation is not chosen again, and an error without a choice names what it lacks.
    if (unsupportedFromError(error) !== null) return ++unsupported <= MAX_UNSUPPORTED
    if (!RETRIED_CODES.has(code) || retried.has(code)) return false
    retried.add(code)
    return true
  }
}

/**
 * Runs the work and repeats it while `shouldRetry` allows. A verdict on the GPU removes features of
 * the device, so the next attempt chooses another implementation.
 */
export async function withRetry<T>(
  work: () => Promise<T>,
  shouldRetry = createRetryPolicy(),
): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!shouldRetry(error)) throw error
    }
  }
}
