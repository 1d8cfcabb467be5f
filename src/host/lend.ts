/** Ways for pages straight to the workers of predictors: each further prediction saves a thread. */
import type { Tag } from '../types/index.ts'
import type { Hosted } from './hosted.ts'
import type { Given } from './kept.ts'
import type { Models } from './models.ts'

/**
 * Lends what is in memory and brings nothing there: `tell` is given a port, for ports of `predict`. Resolves
 * when there is nothing to lend or the signal aborts; rejects with what the predictor's worker ended with.
 */
export type Lend = (
  tag: Tag,
  configuration: string | undefined,
  signal: AbortSignal,
  tell: (port: MessagePort) => void,
) => Promise<void>

/** `given` finds what that tag and configuration stand for until the predictor is replaced. */
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

function ended({ link: { gone } }: Hosted, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (gone?.aborted) return reject(gone.reason)
    if (signal.aborted) return resolve()
    gone?.addEventListener('abort', () => reject(gone.reason), { signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
