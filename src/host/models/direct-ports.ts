/** Opens ports from pages directly to the workers of predictors, which bypass the host's worker. */
import type { Tag } from '../../types/index.ts'
import type { ModelInstance } from './model-instance.ts'
import type { Models, ResolvedImplementation } from './models.ts'

/**
 * Passes `sendPort` a port to a loaded predictor, which accepts the ports of `predict` calls. It
 * loads nothing. Resolves if the predictor is not loaded, or when the signal aborts. Rejects with
 * the error with which the worker of the predictor ended.
 */
export type SendDirectPort = (
  tag: Tag,
  configuration: string | undefined,
  signal: AbortSignal,
  sendPort: (port: MessagePort) => void,
) => Promise<void>

/** Creates the sender. `resolve` resolves with the implementation of a tag and configuration. */
export function createDirectPortSender(
  models: Models,
  resolve: (
    tag: Tag,
    configuration: string | undefined,
    signal: AbortSignal,
  ) => Promise<ResolvedImplementation>,
): SendDirectPort {
  return async (tag, configuration, signal, sendPort) => {
    const { entry, implementation } = await resolve(tag, configuration, signal)
    const instance = models.find(entry, implementation)
    if (entry.type !== 'predictor' || !instance?.ready || signal.aborted) return
    sendPort(instance.openDirectPort())
    await waitForEnd(instance, signal)
  }
}

function waitForEnd({ link: { endSignal } }: ModelInstance, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (endSignal?.aborted) return reject(endSignal.reason)
    if (signal.aborted) return resolve()
    endSignal?.addEventListener('abort', () => reject(endSignal.reason), { signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
