/** Reports loads to the trace: which implementation started, became ready or ended. */
import { InoriginError } from '../../error.ts'
import type { TracedError, TraceReport } from '../../types/index.ts'
import type { ModelInstance } from './model-instance.ts'

export interface LoadTrace {
  started(instance: ModelInstance): void
  ready(instance: ModelInstance): void
  ended(instance: ModelInstance): void
}

export function createLoadTrace(report: (event: TraceReport) => void): LoadTrace {
  const describe = ({ entry, implementation: { id, device } }: ModelInstance) =>
    ({ type: 'load', tag: entry.tag, implementation: id, device }) as const
  return {
    started: (instance) => report({ ...describe(instance), status: 'started' }),
    ready: (instance) => report({ ...describe(instance), status: 'ready' }),
    ended(instance) {
      const error = toTracedError(instance.ended.reason)
      report({ ...describe(instance), status: 'ended', error })
    },
  }
}

/** Returns kind and code of an error. Its message stays out, because it may quote the request. */
export function toTracedError(thrown: unknown): TracedError {
  const { kind, code = null } = InoriginError.from(thrown)
  return { kind, code }
}
