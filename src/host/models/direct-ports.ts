/** Opens ports from pages directly to the workers of predictors, which bypass the host's worker. */
import type { HostService, Tag } from '../../types/index.ts'
import type { ModelInstance } from './model-instance.ts'
import type { Models, ResolvedImplementation } from './models.ts'

/**
 * Creates the method that opens direct ports. `resolve` resolves with the implementation of a tag
 * and configuration.
 */
export function createDirectPortOpener(
  models: Models,
  resolve: (
    tag: Tag,
    configuration: string | undefined,
    signal: AbortSignal,
  ) => Promise<ResolvedImplementation>,
): HostService['openDirectPort'] {
  return async (tag, configuration, { signal, onEvent }) => {
    const { entry, implementation } = await resolve(tag, configuration, signal)
    const instance = models.find(entry, implementation)
    if (entry.type !== 'predictor' || !instance?.ready || signal.aborted) return
    onEvent?.(instance.openDirectPort())
    await waitForEnd(instance, signal)
  }
}

function waitForEnd({ ended }: ModelInstance, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (ended.aborted) return reject(ended.reason)
    if (signal.aborted) return resolve()
    ended.addEventListener('abort', () => reject(ended.reason), { signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
