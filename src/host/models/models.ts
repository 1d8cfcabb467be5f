/** The models and predictors in memory. Idle ones are evicted when another one needs the memory. */
import { listKeyParts } from '../../catalog/precision.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import type { GpuVerdict } from '../../device/gpu-verdict.ts'
import type { HostService, LoadProgress, Tag, TracedError, TraceReport } from '../../types/index.ts'
import { type EventHub, toTracedError } from './event-hub.ts'
import { ModelInstance, type ModelInstanceOptions } from './model-instance.ts'

/** Number of implementations in memory from which a new load first evicts idle ones. */
const MAX_LOADED = 4

/** An implementation and its catalog entry. */
export interface ResolvedImplementation {
  entry: Entry
  implementation: Implementation
}

/** Lease of one implementation. It stays in memory until `release`. */
export interface Lease {
  instance: ModelInstance
  release(): void
}

interface ModelsOptions extends Omit<
  ModelInstanceOptions,
  'entry' | 'implementation' | 'verdict' | 'onDirectUse' | 'onClose' | 'onProgress'
> {
  progress: EventHub<LoadProgress>
  /** Reports loads to the trace, except those of background work. */
  trace: (event: TraceReport) => void
  /** Is notified of the number of requests that use models. */
  idle: IdleMonitor
}

export class Models {
  #options: ModelsOptions
  /** Loaded and loading implementations by key, the least recently used first. */
  #instances = new Map<string, ModelInstance>()
  /** Leases of requests, without those of background work. A closed instance may still have some. */
  #leases = new Set<{ instance: ModelInstance }>()
  /** Instances that only background work has used. Their loads are not reported. */
  #background = new WeakSet<ModelInstance>()

  constructor(options: ModelsOptions) {
    this.#options = options
  }

  /**
   * Returns a lease of the implementation and starts it if it is not in memory. `verdict` is the
   * known verdict on the GPU. With `isBackground`, the progress of the load is not reported.
   */
  acquire(
    entry: Entry,
    implementation: Implementation,
    verdict?: GpuVerdict,
    isBackground = false,
  ): Lease {
    const key = keyOf(entry, implementation)
    const existing = this.#instances.get(key)
    const instance = existing ?? this.#start(key, { entry, implementation }, verdict)
    if (isBackground && !existing) this.#background.add(instance)
    // The load is reported once a request uses the instance.
    if (!isBackground && (this.#background.delete(instance) || !existing))
      this.#trace(instance, { status: 'started' })
    this.#moveToEnd(key, instance)
    const releaseInstance = instance.retain()
    const lease = { instance }
    if (!isBackground) {
      this.#leases.add(lease)
      this.#reportUse()
    }
    const release = () => {
      releaseInstance()
      if (isBackground) return
      this.#leases.delete(lease)
      this.#reportUse()
    }
    return { instance, release }
  }

  /** Returns the implementation if it is loaded or loading. This does not count as a use. */
  find(entry: Entry, implementation: Implementation): ModelInstance | undefined {
    return this.#instances.get(keyOf(entry, implementation))
  }

  /** `true` if another implementation can be loaded without an eviction. */
  get hasCapacity(): boolean {
    return this.#instances.size < MAX_LOADED
  }

  /** Returns the loaded and loading implementations of the tag. */
  ofTag(tag: Tag): ModelInstance[] {
    return [...this.#instances.values()].filter((instance) => instance.entry.tag === tag)
  }

  /** Returns the number of requests and loads that hold the tag, without background work. */
  countUsers(tag: Tag): number {
    const countOwn = (instance: ModelInstance): number =>
      [...this.#leases].filter((lease) => lease.instance === instance).length
    return this.ofTag(tag).reduce((sum, one) => sum + countOwn(one) + one.directRequests, 0)
  }

  unload(tag: Tag): void {
    for (const instance of this.ofTag(tag)) instance.close()
  }

  /** Ends the loads of the tag. Loaded implementations stay in memory. */
  pause(tag: Tag): void {
    for (const instance of this.ofTag(tag)) if (!instance.ready) instance.close('paused')
  }

  /** Yields every progress of every load until the signal aborts. */
  progress(signal: AbortSignal): AsyncGenerator<LoadProgress> {
    const loading = [...this.#instances.values()].filter(
      (one) => !one.ready && !this.#background.has(one),
    )
    // The current loads come first, so that a late subscriber sees them.
    const latest = loading.map((instance) => instance.progress.latest)
    return this.#options.progress.read(latest, signal)
  }

  /** Starts the implementation. Idle ones are evicted first. */
  #start(
    key: string,
    resolved: ResolvedImplementation,
    verdict: GpuVerdict | undefined,
  ): ModelInstance {
    for (const idle of Array.from(this.#instances.values())) {
      if (this.hasCapacity) break
      if (idle.referenceCount === 0) idle.close('replaced')
    }
    const { progress } = this.#options
    const instance: ModelInstance = new ModelInstance({
      ...this.#options,
      ...resolved,
      verdict,
      onDirectUse: () => {
        if (this.#instances.get(key) === instance) this.#moveToEnd(key, instance)
        this.#reportUse()
      },
      onClose: (closed) => {
        if (this.#instances.get(key) === closed) this.#instances.delete(key)
        const error = toTracedError(closed.ended.reason)
        this.#trace(closed, { status: 'ended', error })
        this.#reportUse()
      },
      onProgress: (step) => {
        if (this.#background.has(instance)) return
        progress.report(step)
        if (step.phase === 'ready') this.#trace(instance, { status: 'ready' })
      },
    })
    return instance
  }

  #moveToEnd(key: string, instance: ModelInstance): void {
    this.#instances.delete(key)
    this.#instances.set(key, instance)
  }

  /** Reports the number of requests that use models, those over direct ports included. */
  #reportUse(): void {
    const direct = Array.from(this.#instances.values(), ({ directRequests }) => directRequests)
    this.#options.idle.update(direct.reduce((sum, requests) => sum + requests, this.#leases.size))
  }

  #trace(
    instance: ModelInstance,
    status: { status: 'started' | 'ready' } | { status: 'ended'; error: TracedError },
  ): void {
    if (this.#background.has(instance)) return
    const { entry, implementation } = instance
    const { id, device } = implementation
    this.#options.trace({ type: 'load', tag: entry.tag, implementation: id, device, ...status })
  }
}

/**
 * Returns the key of an implementation. Its digests prevent the use of a model of an old catalog.
 */
function keyOf(entry: Entry, implementation: Implementation): string {
  return [entry.tag, ...listKeyParts(implementation)].join(' ')
}

/** Time in milliseconds without any request after which the host is idle. */
export const IDLE_DELAY_MS = 1_000

/** Notices when requests use models and when none does, for work that must disturb no request. */
export class IdleMonitor {
  #listeners: { listener: () => void; delayMs: number }[] = []
  #requests = 0
  #nextRequest = new AbortController()
  #timers: ReturnType<typeof setTimeout>[] = []

  /** `true` while a request uses a model. */
  get isBusy(): boolean {
    return this.#requests > 0
  }

  /** Records how many requests use models now. */
  update(requests: number): void {
    const hasBegun = requests > this.#requests
    this.#requests = requests
    for (const timer of this.#timers) clearTimeout(timer)
    const listeners = requests === 0 ? this.#listeners : []
    this.#timers = listeners.map(({ listener, delayMs }) => setTimeout(listener, delayMs))
    if (!hasBegun) return
    this.#nextRequest.abort()
    this.#nextRequest = new AbortController()
  }

  /** Calls the listener each time that no request has used a model for `delayMs`. */
  onIdle(listener: () => void, delayMs = IDLE_DELAY_MS): void {
    this.#listeners.push({ listener, delayMs })
  }

  /** Returns a signal that aborts when the next request begins to use a model. */
  untilRequest(): AbortSignal {
    return this.#nextRequest.signal
  }
}

/**
 * Creates the method that opens ports from pages directly to the workers of predictors. `resolve`
 * finds the implementation of a tag and configuration.
 */
export function createDirectPortOpener(
  models: Models,
  resolve: (
    ...args: [tag: Tag, configuration: string | undefined, signal: AbortSignal]
  ) => Promise<ResolvedImplementation>,
): HostService['openDirectPort'] {
  return async (tag, configuration, { signal, onEvent }) => {
    const { entry, implementation } = await resolve(tag, configuration, signal)
    const instance = models.find(entry, implementation)
    if (entry.type !== 'predictor' || !instance?.ready || signal.aborted) return
    onEvent?.(instance.openDirectPort())
    await waitForEnd(instance, signal)
  }
}

function waitForEnd({ ended }: ModelInstance, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (ended.aborted) return reject(ended.reason)
    if (signal.aborted) return resolve()
    ended.addEventListener('abort', () => reject(ended.reason), { signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
