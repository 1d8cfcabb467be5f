/** The model that comes with the playground, and not with the package. */
import type { ModelState, Tag } from '../src/index.ts'
import type { Settings } from './wire/style.ts'

export const SMOLLM2: Tag = '@huggingfacetb/smollm2-135m'

/** Says where its files come from. */
export const SMOLLM2_ORIGIN = "from this page's own server"

/**
 * System prompt of questions to SmolLM2 that bring none. Its template has one that names the model. After that
 * one, at the temperature of its card, 7 of 20 answers to "What is the capital of France?" began in French, and
 * most of these repeat themselves without end. After this one, all 20 were "The capital of France is Paris."
 */
export const SMOLLM2_SYSTEM = 'You answer questions in plain English.'

/** Returns the settings of a question to a model, with the system prompt that this page gives SmolLM2. */
export const withSystem = (tag: Tag, settings: Settings): Settings =>
  tag === SMOLLM2 && !settings.system ? { ...settings, system: SMOLLM2_SYSTEM } : settings

/** Minimum memory of the device in GiB, and free storage in bytes, to start with the larger model. */
const MIN_MEMORY_GIB = 4
const MIN_FREE_BYTES = 400_000_000

/** Facts about the device that some browsers tell. */
interface DeviceFacts extends Navigator {
  /** GiB of memory, at most 8 or 32. */
  deviceMemory?: number
  connection?: { saveData?: boolean }
}

/**
 * Resolves with `true` if this device holds SmolLM2, so that its files come without a question. A
 * device that has them already needs no storage and no download.
 */
export async function holdsSmolLM2(states: readonly ModelState[]): Promise<boolean> {
  const state = states.find(({ tag }) => tag === SMOLLM2)
  if (!state || state.device === null) return false
  const { deviceMemory = MIN_MEMORY_GIB, connection } = navigator as DeviceFacts
  if (deviceMemory < MIN_MEMORY_GIB) return false
  if (state.status !== 'remote') return true
  return !connection?.saveData && (await readFreeBytes()) >= MIN_FREE_BYTES
}

/** Resolves with the bytes that the origin may still store; unlimited if the browser does not say. */
async function readFreeBytes(): Promise<number> {
  const { quota = Infinity, usage = 0 } = (await navigator.storage?.estimate()) ?? {}
  return quota - usage
}
