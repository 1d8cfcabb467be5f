/** Carries the state of a predictor from one call to the next, in the page. */
import { InoriginError } from '../error.ts'
import type { PredictionResult, SessionPrediction } from '../types/index.ts'
import { unlessAborted } from '../values/promises.ts'

/** Predictions that follow each other. One that fails or is canceled leaves the state. */
export class StateChain {
  #state: unknown = null
  #isClosed = false
  #last: Promise<unknown> = Promise.resolve()

  /** Runs a prediction after those before it, from the state that they left; `null` at first. */
  next(
    run: (state: unknown) => Promise<SessionPrediction>,
    signal: AbortSignal | undefined,
  ): Promise<PredictionResult> {
    const toError = () =>
      new InoriginError('aborted', 'The prediction was canceled.', { cause: signal?.reason })
    const running = this.#last.then(async () => {
      if (this.#isClosed)
        throw new InoriginError('aborted', 'The session was closed. Open another one.')
      if (signal?.aborted) throw toError()
      const { state, ...result } = await run(this.#state)
      this.#state = this.#isClosed ? null : state
      return result
    })
    this.#last = running.catch(() => undefined)
    return signal ? unlessAborted(running, signal, toError) : running
  }

  /** Forgets the state after the predictions before it. */
  reset(): void {
    this.#last = this.#last.then(() => (this.#state = null))
  }

  /** Forgets the state, and rejects predictions that have not started. */
  close(): void {
    this.#isClosed = true
    this.#state = null
  }
}
