/** Watches a GPUDevice for failures that WebGPU reports beside the call that caused them. */
import { within } from '../../store/patience.ts'
import type { InoriginError } from '../../error.ts'
import { deviceLost, gpuFailure } from '../failure.ts'
import { openScopes } from './scopes.ts'

export interface GpuWatch {
  /** The failure that makes everything computed since then worthless; `null` while all is well. */
  failure(): InoriginError | null
  /** Waits for the errors of everything that a task asks of the device, then has them too. */
  scope<T>(task: () => Promise<T>): Promise<T>
  /** Waits, a second at most, for errors that are on their way. */
  settle(): Promise<void>
  stop(): void
}

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
    await within(
      1_000,
      gpu.queue.onSubmittedWorkDone().catch(() => undefined),
      undefined,
    )
    // Events are tasks of their own.
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
