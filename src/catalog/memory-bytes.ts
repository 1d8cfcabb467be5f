/** Estimates the memory of implementations, and suggests smaller ones. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import type { Entry, Implementation } from './schema.ts'

/** Ratio of the memory of a running model to the size of its weights. */
const MEMORY_PER_WEIGHT_BYTE = 1.25

/**
 * Ratio of the memory of a compiled vocabulary, which constrained answers need, to the size of
 * `tokenizer.json`. Qwen3's has 151,669 tokens in 11.4 MB and takes 91 MB.
 */
const VOCABULARY_PER_TOKENIZER_BYTE = 8

type Sized = Pick<Implementation, 'requires' | 'resources'>

export const sumBytes = (files: readonly { bytes: number }[]): number =>
  files.reduce((sum, { bytes }) => sum + bytes, 0)

/** Returns the bytes of memory that files of weights need to run. */
export const estimateMemoryBytes = (weights: readonly { bytes: number }[]): number =>
  Math.ceil(sumBytes(weights) * MEMORY_PER_WEIGHT_BYTE)

export const sumResourceBytes = ({ resources }: Sized): number => sumBytes(resources)

/** Returns `true` if the files are known. Those of MLC models are looked up at the first load. */
export const hasResources = ({ resources }: Sized): boolean => resources.length > 0

/** Returns the bytes of memory needed, from the catalog or estimated from the files. */
export const getMemoryBytes = ({ requires, resources }: Sized): number =>
  requires?.memory ?? estimateMemoryBytes(resources)

/** Returns the bytes of memory that constrained answers need beside the weights. */
export const estimateVocabularyBytes = ({ resources }: Sized): number =>
  sumBytes(resources.filter(({ name }) => name === 'tokenizer.json')) *
  VOCABULARY_PER_TOKENIZER_BYTE

// Suggests a smaller model when a device runs out of memory.

type TagImplementations = Pick<Entry, 'type' | 'tag' | 'implementations'>

/** Choice of another implementation: of the same tag if it has an id, else of another tag. */
interface Suggestion {
  smaller: { tag: Tag; implementation?: string; bytes: number | null }
  memory: number
}

/**
 * Returns the next smaller choice: another implementation of the tag, or else another tag of the
 * same type. Among those that `fits` accepts and that need less memory, it takes the largest.
 */
function findSuggestion(
  entries: readonly TagImplementations[],
  tag: Tag,
  failed: Implementation,
  fits: (implementation: Implementation) => boolean,
): Suggestion | undefined {
  const limit = getMemoryBytes(failed)
  const entry = entries.find((one) => one.tag === tag)
  const toSuggestions = (of: TagImplementations): Suggestion[] =>
    of.implementations.filter(fits).map((one) => {
      const bytes = hasResources(one) ? sumResourceBytes(one) : null
      const own = of === entry && { implementation: one.id }
      return { smaller: { tag: of.tag, ...own, bytes }, memory: getMemoryBytes(one) }
    })
  // Choices of unknown size are skipped.
  const findLargest = (all: readonly Suggestion[]) =>
    all
      .filter(({ memory }) => memory > 0 && memory < limit)
      .toSorted((one, other) => other.memory - one.memory)[0]
  const others = entries.filter((one) => one.tag !== tag && one.type === entry?.type)
  const smallest = others.flatMap((one) =>
    toSuggestions(one)
      .toSorted((a, b) => a.memory - b.memory)
      .slice(0, 1),
  )
  return findLargest(entry ? toSuggestions(entry) : []) ?? findLargest(smallest)
}

/** Adds the next smaller choice to an `out_of_memory` error. Returns other errors unchanged. */
export function suggestSmaller(
  error: InoriginError,
  entries: readonly TagImplementations[],
  tag: Tag,
  failed: Implementation,
  fits: (implementation: Implementation) => boolean = () => true,
): InoriginError {
  if (error.code !== 'out_of_memory') return error
  const found = findSuggestion(entries, tag, failed, fits)
  const what = `Not enough memory on this device for ${tag} (${formatBytes(sumResourceBytes(failed))}).`
  const close = 'unload other models or close other tabs'
  const todo = found
    ? `Use ${describeSuggestion(found)}, or ${close}.`
    : `The catalog has nothing smaller: ${close}.`
  return new InoriginError(error.kind, `${what} ${todo}`, {
    code: error.code,
    details: { ...error.details, tag, smaller: found?.smaller ?? null },
    cause: error,
  })
}

function describeSuggestion({ smaller: { tag, implementation, bytes }, memory }: Suggestion) {
  const size = bytes === null ? `needs ${formatBytes(memory)} of memory` : formatBytes(bytes)
  const what = implementation === undefined ? tag : `its implementation ${implementation}`
  return `${what} (${size})`
}

function formatBytes(bytes: number): string {
  const [amount, unit] = bytes >= 1e9 ? [bytes / 1e9, 'GB'] : [bytes / 1e6, 'MB']
  return `${amount.toFixed(amount < 10 ? 1 : 0).replace(/\.0$/, '')} ${unit}`
}
