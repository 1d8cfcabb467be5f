/** Converts errors of the runtime, the wasm heap and the GPU into errors that say what to do. */
import { InoriginError, messageOf } from '../error.ts'
import { sleep, withTimeout } from '../values/promises.ts'

/** Returns an expression that matches any of these patterns, ignoring case. */
export const oneOf = (...phrases: string[]): RegExp => new RegExp(phrases.join('|'), 'i')

/** Messages of wasm, browser buffers and GPUs for a failed allocation. */
const OUT_OF_MEMORY = oneOf(
  'out of memory',
  'bad_alloc',
  'failed to allocate',
  'could not allocate',
  'cannot allocate',
  'allocation failed',
  'invalid (typed )?array length',
  // The size does not fit into 32 bits.
  'integer overflow',
  'storage size overflowed',
  'maximum memory size exceeded',
  // The buffer or binding exceeds a limit of the device.
  'createbuffer failed',
  'too large for the implementation',
  'exceeds the max(imum)? buffer size',
  'larger than the maximum (storage |uniform )?buffer binding size',
)
/** Messages of ONNX Runtime for an operator that its device has no code for. */
const UNSUPPORTED = oneOf(
  // NOT_IMPLEMENTED
  'ERROR_CODE: 9,',
  'could not find an implementation for',
  'implemented only on',
  'only (implemented|supported) on',
)
const DEVICE_LOST = oneOf(
  'device (is |was )?lost',
  'lost device',
  'device is destroyed',
  'external instance reference',
)

/** Returns the error for a device that ran out of memory. */
export function outOfMemory(cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    'The device ran out of memory. Unload other models, close other tabs, or choose a smaller ' +
      'model.',
    { code: 'out_of_memory', cause },
  )
}

/** Returns the error for a lost GPU. */
export function deviceLost(cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    'The GPU was lost (driver reset, sleep, or too much load). Load the model again, or use the ' +
      'wasm device.',
    { code: 'device_lost', retryAfter: 1, cause },
  )
}

/** Returns the error of a canceled load. */
export const loadingCancelled = (): InoriginError =>
  new InoriginError('aborted', 'Loading was canceled.')

/** Returns the error for a crash of the runtime. No later result of its thread can be trusted. */
function runtimeCrashed(cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    'The runtime crashed, probably because memory ran out. Try again, or choose a smaller model.',
    { code: 'runtime_crashed', retryAfter: 1, cause },
  )
}

/** Returns the error for a model with a part that the runtime has no code for on this device. */
function operatorUnsupported(message: string, cause: unknown): InoriginError {
  const why = message
    .replace(/^.*(ERROR_MESSAGE|Status Message): /s, '')
    .trim()
    .replace(/\.$/, '')
    .slice(0, 300)
  return new InoriginError(
    'unavailable',
    `The runtime cannot compute a part of the model on this device: ${why}. Use another precision ` +
      'of the model, another device, or another model.',
    { code: 'operator_unsupported', cause, details: { why } },
  )
}

/** Returns what the runtime cannot compute, if that is the error; `null` for any other error. */
export function unsupportedFromError(error: unknown): string | null {
  const why =
    error instanceof InoriginError && error.code === 'operator_unsupported'
      ? error.details?.['why']
      : null
  return typeof why === 'string' ? why : null
}

const UNUSABLE = 'The model cannot be used: '
const UNUSABLE_TODO =
  ' Remove it and load it again. If that does not help, the files of its catalog entry are wrong.'

/** Returns the runtime's message without its error code, as a sentence. */
export function runtimeMessage(thrown: unknown): string {
  const text = messageOf(thrown)
    .replace(/^.*ERROR_MESSAGE: /s, '')
    .trim()
    .slice(0, 300)
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/**
 * Returns the failure of a model to load or run, with a message that names the model. A raw error of
 * the runtime gets a code and a remedy. Errors about a request stay as they are.
 */
export function nameFailure(error: InoriginError, tag: string): InoriginError {
  const { kind, code, message } = error
  if (kind !== 'internal' && kind !== 'unavailable') return error
  if (code !== undefined && message.includes(tag)) return error
  const todo =
    'Try again. If it fails again, unload the model, use another device with serve({ device }), ' +
    'or choose another model.'
  const what = code === undefined ? `${runtimeMessage(error)} ${todo}` : message
  return new InoriginError(kind, `${tag} failed. ${what}`, {
    ...error.toRecord(),
    code: code ?? 'model_failed',
    cause: error,
  })
}

/** Returns the error for a model whose files cannot be used. */
export function modelUnusable(why: string, cause?: unknown): InoriginError {
  const message = `${UNUSABLE}${why}${UNUSABLE_TODO}`
  return new InoriginError('unavailable', message, { code: 'model_unusable', cause })
}

/**
 * Returns the reason of an error of {@link modelUnusable}, for files that are in no catalog yet;
 * `null` for any other error.
 */
export function whyUnusable(thrown: unknown): string | null {
  const { code, message } = InoriginError.from(thrown)
  if (code !== 'model_unusable') return null
  return message.replace(UNUSABLE, '').replace(UNUSABLE_TODO, '')
}

/** Returns the error for a model without a file that it needs. */
export const resourceMissing = (name: string): InoriginError =>
  modelUnusable(`its catalog entry has no resource named ${name}.`)

/** Returns the error for a failure of device or runtime by its message; `null` if unknown. */
export function deviceFailure(thrown: unknown): InoriginError | null {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  if (OUT_OF_MEMORY.test(message)) return outOfMemory(thrown)
  if (DEVICE_LOST.test(message)) return deviceLost(thrown)
  if (UNSUPPORTED.test(message)) return operatorUnsupported(message, thrown)
  return isCrash(thrown) ? runtimeCrashed(thrown) : null
}

/** Returns the error for a GPU error that was reported separately from the call that caused it. */
export function gpuFailure(error: GPUError): InoriginError {
  if (error instanceof GPUOutOfMemoryError || OUT_OF_MEMORY.test(error.message)) {
    return outOfMemory(error)
  }
  return gpuRejected(error.message, error)
}

/** Returns the error for a GPU that rejects the work, also on a retry. */
export function gpuRejected(why: string, cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    `The GPU rejected the work (${why.slice(0, 200)}). Use the wasm device, or another browser.`,
    { code: 'gpu_error', cause },
  )
}

/**
 * Returns `true` for traps, uncaught C++ exceptions, and glue code that reads garbage from the
 * heap. The runtime overwrites the start of its own memory with inputs that it could not allocate.
 */
function isCrash(thrown: unknown): boolean {
  if (thrown instanceof WebAssembly.RuntimeError || typeof thrown === 'number') return true
  return thrown instanceof TypeError && /is not a function/.test(thrown.message)
}

// Timeouts and retries for a GPU that was lost.

/** Timeout in milliseconds for freeing a runtime, which may never settle on a lost device. */
const RELEASE_TIMEOUT_MS = 5_000

/** Resolves when `work` has settled or timed out. Never rejects. */
export function settleWithTimeout(work: unknown): Promise<unknown> {
  // A failure to free something means that it is gone already.
  const settled = Promise.resolve(work).catch(() => undefined)
  return withTimeout(RELEASE_TIMEOUT_MS, settled, undefined)
}

/** Delays in milliseconds between retries, until a lost GPU is available again. */
const RETRY_DELAYS_MS = [300, 1_000, 3_000]

/**
 * Runs `work`, with retries while no GPU is available (`no_webgpu` or `device_lost`). Rejects with
 * the error of `work` if it has another cause, the retries are used up, or `signal` aborts.
 */
export async function retryOnLostGpu<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (const delay of RETRY_DELAYS_MS) {
    try {
      return await work()
    } catch (thrown) {
      const { code } = InoriginError.from(thrown)
      if (signal.aborted || (code !== 'no_webgpu' && code !== 'device_lost')) throw thrown
      await sleep(delay, signal)
    }
  }
  return work()
}
