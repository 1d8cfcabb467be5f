/** Queues the work on one device: two runs of a runtime at once hang its thread. */
import type { InoriginError } from '../../error.ts'
import { deviceFailure } from '../failure.ts'
import type { GpuWatch } from './watch.ts'

export interface DeviceQueue {
  /** Runs one task at a time. Rejects with the device's failure if there is one before or after. */
  run<T>(task: () => Promise<T>, explain: (thrown: unknown) => InoriginError): Promise<T>
  /** Runs one task at a time, whatever the state of the device. */
  exclusive<T>(task: () => Promise<T>): Promise<T>
}

/** Creates the queue of the work on one device. `watch` is `null` if that is no GPU. */
export function createDeviceQueue(watch: GpuWatch | null): DeviceQueue {
  const exclusive = createLock()
  let crash: InoriginError | null = null

  const throwFailure = (): void => {
    const failure = watch?.failure() ?? crash
    if (failure) throw failure
  }

  return {
    run: (task, explain) =>
      exclusive(async () => {
        throwFailure()
        let result
        try {
          result = await task()
        } catch (thrown) {
          // A failed run rejects before the browser reports the GPU error that caused it.
          await watch?.settle()
          const error = watch?.failure() ?? deviceFailure(thrown) ?? explain(thrown)
          if (error.code === 'runtime_crashed') crash = error
          throw error
        }
        throwFailure()
        return result
      }),
    exclusive,
  }
}

/** Creates a lock that runs tasks one after the other; a failed task does not stop the next. */
function createLock(): <T>(task: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const result = last.then(task, task)
    last = result.catch(() => undefined)
    return result
  }
}
