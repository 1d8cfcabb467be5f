/** The models and predictors in memory. Idle ones are evicted when another one needs the memory. */
import type { Entry, Implementation } from '../../catalog/schema.ts'
import type { GpuVerdict } from '../../device/gpu-verdict.ts'
import type { HostService, LoadProgress, Tag } from '../../types/index.ts'
import type { EventHub } from './event-hub.ts'
import type { IdleMonitor } from './idle.ts'
import type { LoadTrace } from './load-trace.ts'
import {
  createModelInstance,
  type ModelInstance,
  type ModelInstanceOptions,
} from './model-instance.ts'

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

export interface Models {
  /**
   * Returns a lease of the implementation and starts it if it is not in memory. `verdict` is the
   * known verdict on the GPU. With `isBackground`, the progress of the load is not reported.
   */
  acquire(
    entry: Entry,
    implementation: Implementation,
    verdict?: GpuVerdict,
    isBackground?: boolean,
  ): Lease
  /** Returns the implementation if it is loaded or loading. This does not count as a use. */
  find(entry: Entry, implementation: Implementation): ModelInstance | undefined
  /** `true` if another implementation can be loaded without an eviction. */
  readonly hasCapacity: boolean
  /** Returns the loaded and loading implementations of the tag. */
  ofTag(tag: Tag): ModelInstance[]
  /** Returns the number of requests and loads that hold the tag, without background work. */
  countUsers(tag: Tag): number
  unload(tag: Tag): void
  /** Ends the loads of the tag. Loaded implementations stay in memory. */
  pause(tag: Tag): void
  /** Yields every progress of every load until the signal aborts. */
  progress(signal: AbortSignal): AsyncGenerator<LoadProgress>
}

interface ModelsOptions extends Pick<
  ModelInstanceOptions,
  'assets' | 'ensure' | 'threads' | 'crashes' | 'comparisons' | 'onVerdict' | 'explain'
> {
  progress: EventHub<LoadProgress>
  trace: LoadTrace
  /** Is notified of the number of requests that use models. */
  idle: IdleMonitor
}

export function createModels(options: ModelsOptions): Models {
  const loaded = createLoadedModels(options)
  const { instances, uses, reports } = loaded

  return {
    acquire(entry, implementation, verdict, isBackground = false) {
      const key = keyOf(entry, implementation)
      const existing = instances.get(key)
      const instance = existing ?? start(options, loaded, { entry, implementation }, verdict)
      reports.used(instance, { isFirst: !existing, isBackground })
      moveToEnd(instances, key, instance)
      const releaseInstance = instance.retain()
      const releaseLease = isBackground ? () => {} : uses.add(instance)
      const release = () => {
        releaseInstance()
        releaseLease()
      }
      return { instance, release }
    },
    find: (entry, implementation) => instances.get(keyOf(entry, implementation)),
    get hasCapacity() {
      return instances.size < MAX_LOADED
    },
    ofTag: (tag) => [...instances.values()].filter((instance) => instance.entry.tag === tag),
    countUsers(tag) {
      return this.ofTag(tag).reduce((sum, instance) => sum + uses.count(instance), 0)
    },
    unload(tag) {
      for (const instance of this.ofTag(tag)) instance.close()
    },
    pause(tag) {
      for (const instance of this.ofTag(tag)) if (!instance.ready) instance.close('paused')
    },
    progress: (signal) => reports.read([...instances.values()], signal),
  }
}

interface LoadedModels {
  /** Loaded and loading implementations by key, the least recently used first. */
  instances: Map<string, ModelInstance>
  uses: UseCounter
  reports: LoadReports
}

function createLoadedModels({ progress, trace, idle }: ModelsOptions): LoadedModels {
  const instances = new Map<string, ModelInstance>()
  const uses = createUseCounter(idle, instances)
  return { instances, uses, reports: createLoadReports(progress, trace) }
}

/** Starts the implementation. Idle ones are evicted first. */
function start(
  options: ModelsOptions,
  { instances, uses, reports }: LoadedModels,
  { entry, implementation }: ResolvedImplementation,
  verdict: GpuVerdict | undefined,
): ModelInstance {
  const key = keyOf(entry, implementation)
  evictIdle(instances)
  const instance: ModelInstance = createModelInstance({
    ...options,
    entry,
    implementation,
    verdict,
    onDirectUse() {
      if (instances.get(key) === instance) moveToEnd(instances, key, instance)
      uses.report()
    },
    onClose(closed) {
      if (instances.get(key) === closed) instances.delete(key)
      reports.ended(closed)
      uses.report()
    },
    onProgress: (step) => reports.step(instance, step),
  })
  return instance
}

function evictIdle(instances: ReadonlyMap<string, ModelInstance>): void {
  for (const instance of Array.from(instances.values())) {
    if (instances.size < MAX_LOADED) return
    if (instance.referenceCount === 0) instance.close('replaced')
  }
}

function moveToEnd(
  instances: Map<string, ModelInstance>,
  key: string,
  instance: ModelInstance,
): void {
  instances.delete(key)
  instances.set(key, instance)
}

/**
 * Returns the key of an implementation. Its digests prevent the use of a model of an old catalog.
 */
function keyOf(entry: Entry, implementation: Implementation): string {
  const hashes = implementation.resources.map((resource) => resource.sha256)
  return [entry.tag, implementation.id, ...hashes].join(' ')
}

interface UseCounter {
  /** Counts a lease of a request until the returned function is called for the first time. */
  add(instance: ModelInstance): () => void
  /** Returns the number of requests that use the instance. */
  count(instance: ModelInstance): number
  /** Reports the number of requests that use models, those over direct ports included. */
  report(): void
}

function createUseCounter(
  idle: IdleMonitor,
  instances: ReadonlyMap<string, ModelInstance>,
): UseCounter {
  /** Leases of requests, without those of background work. A closed instance may still have some. */
  const leases = new Set<{ instance: ModelInstance }>()
  const report = () => {
    const direct = Array.from(instances.values(), ({ directRequests }) => directRequests)
    idle.update(direct.reduce((sum, requests) => sum + requests, leases.size))
  }
  return {
    add(instance) {
      const lease = { instance }
      leases.add(lease)
      report()
      return () => {
        leases.delete(lease)
        report()
      }
    },
    count(instance) {
      const own = [...leases].filter((lease) => lease.instance === instance)
      return own.length + instance.directRequests
    },
    report,
  }
}

// Reports loads to pages and to the trace, except those of background work.

interface LoadReports {
  /** Notes a use of the instance. The load is reported once a request uses the instance. */
  used(instance: ModelInstance, use: { isFirst: boolean; isBackground: boolean }): void
  step(instance: ModelInstance, progress: LoadProgress): void
  ended(instance: ModelInstance): void
  /** Yields the current loads of these instances, then all progress until the signal aborts. */
  read(instances: readonly ModelInstance[], signal: AbortSignal): AsyncGenerator<LoadProgress>
}

function createLoadReports(progress: EventHub<LoadProgress>, trace: LoadTrace): LoadReports {
  /** Instances that only background work has used. */
  const background = new WeakSet<ModelInstance>()
  return {
    used(instance, { isFirst, isBackground }) {
      if (isBackground) {
        if (isFirst) background.add(instance)
      } else if (background.delete(instance) || isFirst) trace.started(instance)
    },
    step(instance, step) {
      if (background.has(instance)) return
      progress.report(step)
      if (step.phase === 'ready') trace.ready(instance)
    },
    ended(instance) {
      if (!background.has(instance)) trace.ended(instance)
    },
    read(instances, signal) {
      const loading = instances.filter((one) => !one.ready && !background.has(one))
      // The current loads come first, so that a late subscriber sees them.
      return progress.read(
        loading.map((instance) => instance.progress.latest),
        signal,
      )
    },
  }
}

// Opens ports from pages directly to the workers of predictors, which bypass the host's worker.

/**
 * Creates the method that opens direct ports. `resolve` resolves with the implementation of a tag
 * and configuration.
 */
export function createDirectPortOpener(
  models: Models,
  resolve: (
    tag: Tag,
    configuration: string | undefined,
    signal: AbortSignal,
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
