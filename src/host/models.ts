/** The models and predictors in memory, and which of them goes when room is needed. */
import type { Entry, Implementation } from '../catalog/schema.ts'
import type { GpuVerdict } from '../device/verdict.ts'
import type { LoadProgress, Tag } from '../types/index.ts'
import { createHosted, type Hosted, type HostedOptions } from './hosted.ts'

/** How many stay in memory at once; one that is idle makes room for the next. */
const MAX_LOADED = 4

/** The use of one of them; it stays in memory until `leave`. */
export interface Lease {
  hosted: Hosted
  leave(): void
}

export interface Models {
  /**
   * That implementation, in memory or on its way there; `verdict` is what is known of the GPU. The way
   * of one that nobody asked for is not told.
   */
  acquire(
    entry: Entry,
    implementation: Implementation,
    verdict?: GpuVerdict,
    isUnasked?: boolean,
  ): Lease
  /** That implementation, where it is in memory or on its way there; its place in line stays. */
  find(entry: Entry, implementation: Implementation): Hosted | undefined
  /** Another one can be brought into memory without one that must go for it. */
  readonly hasRoom: boolean
  /** All of that tag. */
  of(tag: Tag): Hosted[]
  unload(tag: Tag): void
  /** A step of what comes before a load. */
  tell(progress: LoadProgress): void
  /** Hears every step of every load until the function that it returns is called. */
  watch(watcher: (progress: LoadProgress) => void): () => void
  /** Every step of every load, until the signal aborts. */
  progress(signal: AbortSignal): AsyncGenerator<LoadProgress>
}

export function createModels(
  options: Pick<HostedOptions, 'assets' | 'ensure' | 'onVerdict' | 'explain'>,
): Models {
  /** By tag and implementation, the least recently used first. */
  const all = new Map<string, Hosted>()
  /** Those whose way is not told. */
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
      // What is on its way already, then every step.
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

/** Hashes in the key, so that a changed catalog never gets an old model. */
function keyOf(entry: Entry, implementation: Implementation): string {
  const hashes = implementation.resources.map((resource) => resource.sha256)
  return [entry.tag, implementation.id, ...hashes].join(' ')
}
