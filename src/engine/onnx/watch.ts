/** Watches a GPUDevice for failures that WebGPU reports beside the call that caused them. */
import { InoriginError } from '../../error.ts'
import { deviceLost, outOfMemory } from './failure.ts'

export interface GpuWatch {
  /** The failure that makes everything computed since then worthless; `null` while all is well. */
  failure(): InoriginError | null
  stop(): void
}

export function watchGpu(gpu: GPUDevice): GpuWatch {
  let failure: InoriginError | null = null
  let watching = true
  void gpu.lost.then((info) => {
    if (watching) failure = deviceLost(info.message)
  })
  const onError = (event: Event): void => {
    const { error } = event as GPUUncapturedErrorEvent
    failure ??= error instanceof GPUOutOfMemoryError ? outOfMemory(error) : invalid(error)
  }
  gpu.addEventListener('uncapturederror', onError)
  return {
    failure: () => failure,
    stop: () => {
      watching = false
      gpu.removeEventListener('uncapturederror', onError)
    },
  }
}

function invalid(error: GPUError): InoriginError {
  return new InoriginError(
    'unavailable',
    `The GPU refused the work (${error.message.slice(0, 200)}). Use the wasm device, or another ` +
      'browser.',
    { code: 'gpu_error', cause: error },
  )
}
