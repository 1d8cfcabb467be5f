/** Watches a GPUDevice for failures that WebGPU reports apart from the call that caused them. */
import type { InoriginError } from '../../error.ts'
import { withTimeout } from '../../values/promises.ts'
import { deviceLost, gpuFailure } from '../failure.ts'

export interface GpuWatch {
  /** Returns the failure after which results are invalid; `null` while there is none. */
  failure(): InoriginError | null
  /** Runs a task in error scopes and waits for them; an error becomes the `failure`. */
  scope<T>(task: () => Promise<T>): Promise<T>
  /** Waits, for at most one second, until pending errors are reported. */
  settle(): Promise<void>
  /** Stops watching the device. */
  stop(): void
}

/** Watches the device until `stop`. */
export function watchGpu(gpu: GPUDevice): GpuWatch {
  let failure: InoriginError | null = null
  let watching = true
  void gpu.lost.then((info) => {
    if (watching) failure = deviceLost(info.message)
  })
  const onError = (event: Event): void => {
    failure ??= gpuFailure((event as GPUUncapturedErrorEvent).error)
  }
  gpu.addEventListener('uncapturederror', onError)

  const scope: GpuWatch['scope'] = async (task) => {
    const close = openScopes(gpu)
    try {
      return await task()
    } finally {
      const first = await close()
      if (first) failure ??= gpuFailure(first)
    }
  }
  const settle: GpuWatch['settle'] = async () => {
    await withTimeout(
      1_000,
      gpu.queue.onSubmittedWorkDone().catch(() => undefined),
      undefined,
    )
    // Error events arrive in a later task than the promise above.
    await new Promise((resolve) => setTimeout(resolve))
  }
  return {
    failure: () => failure,
    scope,
    settle,
    stop: () => {
      watching = false
      gpu.removeEventListener('uncapturederror', onError)
    },
  }
}

// Collects errors that WebGPU reports apart from the calls that caused them.

const KINDS = ['validation', 'internal', 'out-of-memory'] as const

/**
 * Opens error scopes on the device. The returned function closes them and resolves with the first
 * error, or `null`. Nested scopes must be closed in reverse order.
 */
export function openScopes(gpu: GPUDevice): () => Promise<GPUError | null> {
  for (const kind of KINDS) gpu.pushErrorScope(kind)
  return async () => {
    // A lost device reports no scope errors.
    const errors = await Promise.all(KINDS.map(() => gpu.popErrorScope().catch(() => null)))
    return errors.find((error) => error !== null) ?? null
  }
}
