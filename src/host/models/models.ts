/** The models and predictors in memory. Idle ones are evicted when another one needs the memory. */
import type { Entry, Implementation } from '../../catalog/schema.ts'
import type { GpuVerdict } from '../../device/gpu-verdict.ts'
import type { LoadProgress, Tag } from '../../types/index.ts'
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
  unload(tag: Tag): void
  /** Reports progress of the work before a load, such as a look-up. */
  reportProgress(progress: LoadProgress): void
  /** Calls the subscriber for every progress of every load. Returns a function that ends this. */
  subscribe(subscriber: (progress: LoadProgress) => void): () => void
  /** Yields every progress of every load until the signal aborts. */
  progress(signal: AbortSignal): AsyncGenerator<LoadProgress>
}

export function createModels(
  options: Pick<ModelInstanceOptions, 'assets' | 'ensure' | 'onVerdict' | 'explain'>,
): Models {
  /** Loaded and loading implementations by key, the least recently used first. */
  const all = new Map<string, ModelInstance>()
  /** Implementations whose progress is not reported. */
  const background = new WeakSet<ModelInstance>()
  const subscribers = new Set<(progress: LoadProgress) => void>()
  const onProgress = (progress: LoadProgress) => {
    for (const subscriber of subscribers) subscriber(progress)
  }

  function evictIdle(): void {
    for (const instance of Array.from(all.values())) {
      if (all.size < MAX_LOADED) return
      if (instance.referenceCount === 0) instance.close('replaced')
    }
  }

  return {
    acquire(entry, implementation, verdict, isBackground = false) {
      const key = keyOf(entry, implementation)
      const existing = all.get(key)
      all.delete(key)
      if (!existing) evictIdle()
      const onClose = (closed: ModelInstance) => {
        if (all.get(key) === closed) all.delete(key)
      }
      const onDirectUse = () => {
        if (all.get(key) !== instance) return
        all.delete(key)
        all.set(key, instance)
      }
      const instance: ModelInstance =
        existing ??
        createModelInstance({
          ...options,
          entry,
          implementation,
          verdict,
          onDirectUse,
          onClose,
          onProgress: (progress) => {
            if (!background.has(instance)) onProgress(progress)
          },
        })
      if (!isBackground) background.delete(instance)
      else if (!existing) background.add(instance)
      all.set(key, instance)
      return { instance, release: instance.retain() }
    },
    find: (entry, implementation) => all.get(keyOf(entry, implementation)),
    get hasCapacity() {
      return all.size < MAX_LOADED
    },
    ofTag: (tag) => [...all.values()].filter((instance) => instance.entry.tag === tag),
    unload(tag) {
      for (const instance of this.ofTag(tag)) instance.close()
    },
    reportProgress: onProgress,
    subscribe(subscriber) {
      subscribers.add(subscriber)
      return () => subscribers.delete(subscriber)
    },
    async *progress(signal) {
      // The current loads come first, so that a late subscriber sees them.
      const loading = [...all.values()].filter(
        (instance) => !instance.ready && !background.has(instance),
      )
      const pending: LoadProgress[] = loading.map((instance) => instance.progress.latest)
      let wake = () => {}
      const onAbort = () => wake()
      const unsubscribe = this.subscribe((progress) => {
        pending.push(progress)
        wake()
      })
      signal.addEventListener('abort', onAbort)
      try {
        while (!signal.aborted) {
          const next = pending.shift()
          if (next) yield next
          else await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        unsubscribe()
        signal.removeEventListener('abort', onAbort)
      }
    },
  }
}

/**
 * Returns the key of an implementation. Its digests prevent the use of a model of an old catalog.
 */
function keyOf(entry: Entry, implementation: Implementation): string {
  const hashes = implementation.resources.map((resource) => resource.sha256)
  return [entry.tag, implementation.id, ...hashes].join(' ')
}
