/** Lends pages ports straight to the workers of predictors, to bypass the host's worker. */
import type { Tag } from '../types/index.ts'
import type { Hosted } from './hosted.ts'
import type { Given } from './kept.ts'
import type { Models } from './models.ts'

/**
 * Passes `tell` a port to a loaded predictor, which accepts the ports of `predict` calls. It loads
 * nothing. Resolves if the predictor is not loaded, or when the signal aborts. Rejects with the
 * error with which the worker of the predictor ended.
 */
export type Lend = (
  tag: Tag,
  configuration: string | undefined,
  signal: AbortSignal,
  tell: (port: MessagePort) => void,
) => Promise<void>

/** Creates the lender. `given` resolves with the implementation of a tag and configuration. */
export function createLender(
  models: Models,
  given: (tag: Tag, configuration: string | undefined, signal: AbortSignal) => Promise<Given>,
): Lend {
  return async (tag, configuration, signal, tell) => {
    const { entry, implementation } = await given(tag, configuration, signal)
    const hosted = models.find(entry, implementation)
    if (entry.type !== 'predictor' || !hosted?.ready || signal.aborted) return
    tell(hosted.lend())
    await ended(hosted, signal)
  }
}

function ended({ link: { endSignal } }: Hosted, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (endSignal?.aborted) return reject(endSignal.reason)
    if (signal.aborted) return resolve()
    endSignal?.addEventListener('abort', () => reject(endSignal.reason), { signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
