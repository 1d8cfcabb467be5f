/** Reports loads to pages and to the trace, except those of background work. */
import type { LoadProgress } from '../../types/index.ts'
import type { EventHub } from './event-hub.ts'
import type { LoadTrace } from './load-trace.ts'
import type { ModelInstance } from './model-instance.ts'

export interface LoadReports {
  /** Notes a use of the instance. The load is reported once a request uses the instance. */
  used(instance: ModelInstance, use: { isFirst: boolean; isBackground: boolean }): void
  step(instance: ModelInstance, progress: LoadProgress): void
  ended(instance: ModelInstance): void
  /** Yields the current loads of these instances, then all progress until the signal aborts. */
  read(instances: readonly ModelInstance[], signal: AbortSignal): AsyncGenerator<LoadProgress>
}

export function createLoadReports(progress: EventHub<LoadProgress>, trace: LoadTrace): LoadReports {
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
