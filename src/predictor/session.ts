/** Carries the state of a predictor from one call to the next, in the page. */
import { InoriginError } from '../error.ts'
import type { PredictionResult, SessionPrediction } from '../types/index.ts'
import { unlessAborted } from '../values/promises.ts'

/** Function that runs a prediction from a state, which is `null` at first. */
type RunNext = (state: unknown) => Promise<SessionPrediction>

export interface StateChain {
  /** Runs a prediction after those before it, with the state that they left. */
  next(run: RunNext, signal: AbortSignal | undefined): Promise<PredictionResult>
  /** Forgets the state after the predictions before it. */
  reset(): void
  /** Forgets the state, and rejects predictions that have not started. */
  close(): void
}

/** Creates a chain of predictions. A prediction that fails or is canceled leaves the state. */
export function createStateChain(): StateChain {
  let state: unknown = null
  let isClosed = false
  let last: Promise<unknown> = Promise.resolve()
  return {
    next(run, signal) {
      const toError = () =>
        new InoriginError('aborted', 'The prediction was canceled.', { cause: signal?.reason })
      const running = last.then(async () => {
        if (isClosed)
          throw new InoriginError('aborted', 'The session was closed. Open another one.')
        if (signal?.aborted) throw toError()
        const { state: following, ...result } = await run(state)
        state = isClosed ? null : following
        return result
      })
      last = running.catch(() => undefined)
      return signal ? unlessAborted(running, signal, toError) : running
    },
    reset() {
      last = last.then(() => (state = null))
    },
    close() {
      isClosed = true
      state = null
    },
  }
}
