/** Errors of loads and downloads in the words of a user, one sentence or two for each. */
import type { ErrorCode } from '../src/index.ts'
import { wordsOf } from './notice.ts'

const WITHOUT_GPU = 'or add ?device=wasm to the address of this page.'

const WORDS: Partial<Record<ErrorCode, (name: string) => string>> = {
  hub_unreachable: (name) => `The hub of ${name} cannot be reached now. Try again later.`,
  hub_not_found: (name) => `The hub has no model under the name of ${name}.`,
  hub_refused: (name) => `The hub does not give ${name} to this page, or has no such model.`,
  hub_unfit: (name) => `The files of ${name} on the hub are not exported for browsers.`,
  resource_unreachable: (name) => `The files of ${name} cannot be reached now. Try again later.`,
  storage_full: (name) => `${name} does not fit into the storage of this browser. Delete models.`,
  out_of_memory: (name) => `${name} needs more memory than this device can give.`,
  load_crashed: (name) => `${name} ended this page twice, so it is not loaded again here.`,
  no_implementation: (name) => `${name} does not run on this device.`,
  load_paused: (name) => `The download of ${name} is paused.`,
  import_lost: (name) => `The imported files of ${name} are gone. Add them again to your models.`,
  runtime_crashed: (name) => `${name} crashed, most likely for lack of memory. Try again.`,
  model_unresponsive: (name) => `${name} did not respond in time. Try again, or use another model.`,
  device_lost: () => `The GPU stopped. Try again, ${WITHOUT_GPU}`,
  gpu_error: (name) => `The GPU cannot run ${name}. Use another model, ${WITHOUT_GPU}`,
  gpu_untrusted: () => `The GPU computes wrong numbers. Use another browser, ${WITHOUT_GPU}`,
}

/** Returns the error code for programs that an error carries, if any. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** Returns a short message about a model that could not be loaded. */
export function troubleWith(name: string, error: unknown): string {
  const words = WORDS[codeOf(error) as ErrorCode]?.(name)
  const text = words ?? `${name} could not be loaded. ${wordsOf(error)}`
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

/** Returns `true` if the error is one for which there is a short message. */
export const isPlain = (error: unknown): boolean => WORDS[codeOf(error) as ErrorCode] !== undefined
