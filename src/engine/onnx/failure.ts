/** Turns what the runtime, the wasm heap or the GPU throws into errors that say what to do. */
import { InoriginError } from '../../error.ts'

const OUT_OF_MEMORY =
  /out of memory|bad_alloc|failed to allocate|could not allocate|array buffer allocation/i
const DEVICE_LOST =
  /device (is |was )?lost|lost device|device is destroyed|external instance reference/i
/** What browsers and the runtime say when one of its files is not there. */
const RUNTIME_MISSING = new RegExp(
  [
    'no available backend',
    'both async and sync fetching of the wasm failed',
    'failed to fetch dynamically imported module',
    'error loading dynamically imported module',
    'importing a module script failed',
  ].join('|'),
  'i',
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

export function runtimeMissing(folder: string, cause: unknown): InoriginError {
  return new InoriginError(
    'unavailable',
    `The runtime could not be loaded from ${folder}. Run \`npx inorigin init\` for the folder ` +
      'the app serves, and check that its content security policy allows wasm.',
    { code: 'runtime_missing', cause },
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
  return null
}

export function isRuntimeMissing(thrown: unknown): boolean {
  return RUNTIME_MISSING.test(thrown instanceof Error ? thrown.message : String(thrown))
}
