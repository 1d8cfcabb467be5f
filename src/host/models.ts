/** The models and predictors in memory. Idle ones are evicted when another one needs the memory. */
import type { Entry, Implementation } from '../catalog/schema.ts'
import type { GpuVerdict } from '../device/gpu-verdict.ts'
import type { LoadProgress, Tag } from '../types/index.ts'
import { createHosted, type Hosted, type HostedOptions } from './hosted.ts'

/** Number of implementations in memory from which a new load first evicts idle ones. */
const MAX_LOADED = 4

/** Lease of one implementation. It stays in memory until `leave`. */
export interface Lease {
  hosted: Hosted
  leave(): void
}

export interface Models {
  /**
   * Returns a lease of the implementation and starts it if it is not in memory. `verdict` is the
   * known verdict on the GPU. With `isUnasked`, the progress of the load is not reported.
   */
  acquire(
    entry: Entry,
    implementation: Implementation,
    verdict?: GpuVerdict,
    isUnasked?: boolean,
  ): Lease
  /** Returns the implementation if it is loaded or loading. This does not count as a use. */
  find(entry: Entry, implementation: Implementation): Hosted | undefined
  /** `true` if another implementation can be loaded without an eviction. */
  readonly hasRoom: boolean
  /** Returns the loaded and loading implementations of the tag. */
  of(tag: Tag): Hosted[]
  unload(tag: Tag): void
  /** Reports progress of the work before a load, such as a look-up. */
  tell(progress: LoadProgress): void
  /** Calls the watcher for every progress of every load. Returns the function that stops this. */
  watch(watcher: (progress: LoadProgress) => void): () => void
  /** Yields every progress of every load until the signal aborts. */
  progress(signal: AbortSignal): AsyncGenerator<LoadProgress>
}

export function createModels(
  options: Pick<HostedOptions, 'assets' | 'ensure' | 'onVerdict' | 'explain'>,
): Models {
  /** Loaded and loading implementations by key, the least recently used first. */
  const all = new Map<string, Hosted>()
  /** Implementations whose progress is not reported. */
  const unasked = new WeakSet<Hosted>()
  const watchers = new Set<(progress: LoadProgress) => void>()
  const onProgress = (progress: LoadProgress) => {
    for (const watcher of watchers) watcher(progress)
  }

  function makeRoom(): void {
    for (const hosted of Array.from(all.values())) {
      if (all.size < MAX_LOADED) return
      if (hosted.users === 0) hosted.close('replaced')
    }
  }

  return {
    acquire(entry, implementation, verdict, isUnasked = false) {
      const key = keyOf(entry, implementation)
      const known = all.get(key)
      all.delete(key)
      if (!known) makeRoom()
      const onClose = (closed: Hosted) => {
        if (all.get(key) === closed) all.delete(key)
      }
      const onUse = () => {
        if (all.get(key) !== hosted) return
        all.delete(key)
        all.set(key, hosted)
      }
      const hosted: Hosted =
        known ??
        createHosted({
          ...options,
          entry,
          implementation,
          verdict,
          onUse,
          onClose,
          onProgress: (progress) => {
            if (!unasked.has(hosted)) onProgress(progress)
          },
        })
      if (!isUnasked) unasked.delete(hosted)
      else if (!known) unasked.add(hosted)
      all.set(key, hosted)
      return { hosted, leave: hosted.join() }
    },
    find: (entry, implementation) => all.get(keyOf(entry, implementation)),
    get hasRoom() {
      return all.size < MAX_LOADED
    },
    of: (tag) => [...all.values()].filter((hosted) => hosted.entry.tag === tag),
    unload(tag) {
      for (const hosted of this.of(tag)) hosted.close()
    },
    tell: onProgress,
    watch(watcher) {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    async *progress(signal) {
      // The current loads come first, so that a late watcher sees them.
      const loading = [...all.values()].filter((hosted) => !hosted.ready && !unasked.has(hosted))
      const seen: LoadProgress[] = loading.map((hosted) => hosted.progress.latest)
      let wake = () => {}
      const stop = () => wake()
      const leave = this.watch((progress) => {
        seen.push(progress)
        wake()
      })
      signal.addEventListener('abort', stop)
      try {
        while (!signal.aborted) {
          const next = seen.shift()
          if (next) yield next
          else await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        leave()
        signal.removeEventListener('abort', stop)
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
