/** Loads of the test server: they download nothing, and end when the test allows it. */
import { createSingleFlight } from '../../host/library/single-flight.ts'
import { createEventHub } from '../../host/models/event-hub.ts'
import { loadPaused } from '../../host/models/load-paused.ts'
import { toTracedError } from '../../host/models/load-trace.ts'
import type { Trace } from '../../host/requests/trace.ts'
import { InoriginError } from '../../error.ts'
import type { LoadPhase, LoadProgress, ModelState, Tag } from '../../types/index.ts'

/** A model or predictor of the test, which can be loaded. */
export interface Loadable {
  tag: Tag
  name: string
  type: 'model' | 'predictor'
  bytes: number
  /** Runs in the middle of the download. */
  load: (signal: AbortSignal) => Promise<void> | void
}

export type Loads = ReturnType<typeof createLoads>

export function createLoads(all: readonly Loadable[], trace: Trace) {
  const progress = createEventHub<LoadProgress>()
  const singleFlight = createSingleFlight()
  const loaded = new Set<Tag>()
  const stored = new Set<Tag>()
  const loading = new Map<Tag, AbortController>()

  const report = (...step: Parameters<typeof toProgress>) => progress.report(toProgress(...step))

  async function start(item: Loadable, signal: AbortSignal): Promise<void> {
    const { tag, bytes } = item
    const load = toTraced(tag)
    const pausing = new AbortController()
    loading.set(tag, pausing)
    trace.report({ ...load, status: 'started' })
    try {
      const either = AbortSignal.any([signal, pausing.signal])
      if (!stored.has(tag)) report(item, 'download', Math.floor(bytes / 2))
      await Promise.race([item.load(either), rejectOnAbort(either)])
      stored.add(tag)
      for (const phase of ['download', 'compile', 'warm'] as const) report(item, phase)
      loaded.add(tag)
      loading.delete(tag)
      report(item, 'ready')
      trace.report({ ...load, status: 'ready' })
    } catch (thrown) {
      loading.delete(tag)
      trace.report({ ...load, status: 'ended', error: toTracedError(thrown) })
      throw thrown
    }
  }

  function statusOf(tag: Tag): ModelState['status'] {
    if (loaded.has(tag)) return 'loaded'
    return loading.has(tag) ? 'loading' : stored.has(tag) ? 'stored' : 'remote'
  }

  return {
    states: () => all.map((item) => toState(item, statusOf(item.tag))),
    progress: (signal: AbortSignal) => progress.read([], signal),
    /** Resolves when the tag is loaded. All who wait for it share one load. */
    async load(item: Loadable, signal: AbortSignal, onProgress?: (step: LoadProgress) => void) {
      const unsubscribe = progress.subscribe((step) => step.tag === item.tag && onProgress?.(step))
      const work = (shared: AbortSignal) => start(item, shared)
      try {
        if (!loaded.has(item.tag)) await singleFlight(item.tag, work, signal)
      } finally {
        unsubscribe()
      }
    },
    pause: (tag: Tag) => loading.get(tag)?.abort(loadPaused(tag)),
    unload(tag: Tag): void {
      const error = new InoriginError('unavailable', `${tag} was unloaded.`, { code: 'unloaded' })
      loading.get(tag)?.abort(error)
      if (!loaded.delete(tag)) return
      trace.report({ ...toTraced(tag), status: 'ended', error: toTracedError(error) })
    },
    remove: (tag: Tag) => stored.delete(tag),
  }
}

const toTraced = (tag: Tag) =>
  ({ type: 'load', tag, implementation: 'test', device: 'wasm' }) as const

function toState({ tag, type, name, bytes }: Loadable, status: ModelState['status']): ModelState {
  const users = status === 'loading' ? 1 : 0
  const about = { tag, type, name, status, bytes, memory: bytes, users }
  return { ...about, device: 'wasm', servedBy: 'local' }
}

function toProgress({ tag, bytes }: Loadable, phase: LoadPhase, loadedBytes = bytes): LoadProgress {
  return { tag, phase, loadedBytes, totalBytes: bytes, bytesPerSecond: 0, remainingSeconds: null }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(InoriginError.from(signal.reason)))
  })
}
