/** Order of the operations of a session, and their end with it. */
import { unlessAborted } from '../../values/unless-aborted.ts'
import { toException } from './errors.ts'

/** Operation whose signal ends with the session, or with the signal of the caller. */
type Operation<T> = (signal: AbortSignal) => Promise<T>

export interface Operations {
  /** Runs an operation at once. */
  run<T>(signal: AbortSignal | undefined, operation: Operation<T>): Promise<T>
  /** Runs an operation after those before it. */
  runNext<T>(signal: AbortSignal | undefined, operation: Operation<T>): Promise<T>
}

/** Creates the order of a session that `ended` ends. */
export function createOperations(ended: AbortSignal): Operations {
  let last: Promise<unknown> = Promise.resolve()

  function run<T>(signal: AbortSignal | undefined, operation: Operation<T>): Promise<T> {
    const either = signal ? AbortSignal.any([ended, signal]) : ended
    if (either.aborted) return Promise.reject(either.reason as Error)
    const work = operation(either).catch((thrown: unknown) => {
      throw either.aborted ? either.reason : toException(thrown, 'UnknownError')
    })
    return unlessAborted(work, either)
  }

  return {
    run,
    runNext: (signal, operation) =>
      run(signal, (either) => {
        const turn = last.then(() => {
          either.throwIfAborted()
          return operation(either)
        })
        // The next operation does not wait for a server that is slow to notice the end.
        last = unlessAborted(turn, either).catch(() => undefined)
        return turn
      }),
  }
}
