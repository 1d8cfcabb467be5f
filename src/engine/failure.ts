/** Turns what the runtime, the wasm heap or the GPU throws into errors that say what to do. */
import { InoriginError } from '../error.ts'

/** Any of these phrases, in any case. */
export const oneOf = (...phrases: string[]): RegExp => new RegExp(phrases.join('|'), 'i')

/** What wasm, the browsers' buffers and GPUs say when something has no room. */
const OUT_OF_MEMORY = oneOf(
  'out of memory',
  'bad_alloc',
  'failed to allocate',
  'could not allocate',
  'cannot allocate',
  'allocation failed',
  'invalid (typed )?array length',
  // A size that 32 bits cannot even count.
  'integer overflow',
  'storage size overflowed',
  'maximum memory size exceeded',
  // A buffer or a binding that is beyond the limits of the device.
  'createbuffer failed',
  'too large for the implementation',
  'exceeds the max(imum)? buffer size',
  'larger than the maximum (storage |uniform )?buffer binding size',
)
const DEVICE_LOST = oneOf(
  'device (is |was )?lost',
  'lost device',
  'device is destroyed',
  'external instance reference',
)

export function outOfMemory(cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    'The device ran out of memory. Unload other models, close other tabs, or choose a smaller ' +
      'model.',
    { code: 'out_of_memory', cause },
  )
}

export function deviceLost(cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    'The GPU was lost (driver reset, sleep, or too much load). Load the model again, or use the ' +
      'wasm device.',
    { code: 'device_lost', retryAfter: 1, cause },
  )
}

export const loadingCancelled = (): InoriginError =>
  new InoriginError('aborted', 'Loading was cancelled.')

/** Nothing that its thread computes from here on can be trusted. */
function runtimeCrashed(cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    'The runtime crashed, most likely for want of memory. Try again, or choose a smaller model.',
    { code: 'runtime_crashed', retryAfter: 1, cause },
  )
}

/** The model file itself cannot be used. */
export function modelUnusable(why: string, cause?: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    `The model cannot be used: ${why} Remove it and load it again; if that does not help, the ` +
      'files of its catalog entry are wrong.',
    { code: 'model_unusable', cause },
  )
}

/**
 * Whether a failure is the device's rather than the model's; `null` when it is neither by its
 * words.
 */
export function deviceFailure(thrown: unknown): InoriginError | null {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  if (OUT_OF_MEMORY.test(message)) return outOfMemory(thrown)
  if (DEVICE_LOST.test(message)) return deviceLost(thrown)
  return isCrash(thrown) ? runtimeCrashed(thrown) : null
}

/** What GPUs report beside the call that caused it. */
export function gpuFailure(error: GPUError): InoriginError {
  if (error instanceof GPUOutOfMemoryError || OUT_OF_MEMORY.test(error.message)) {
    return outOfMemory(error)
  }
  return gpuRefused(error.message, error)
}

/** It cannot do what it was asked for, however often. */
export function gpuRefused(why: string, cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    `The GPU refused the work (${why.slice(0, 200)}). Use the wasm device, or another browser.`,
    { code: 'gpu_error', cause },
  )
}

/**
 * Traps, C++ exceptions that nobody caught, and glue code that finds nonsense in the heap. The
 * runtime writes inputs that it found no room for over the beginning of its own memory.
 */
function isCrash(thrown: unknown): boolean {
  if (thrown instanceof WebAssembly.RuntimeError || typeof thrown === 'number') return true
  return thrown instanceof TypeError && /is not a function/.test(thrown.message)
}
