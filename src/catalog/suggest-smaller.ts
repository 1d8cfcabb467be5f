/** Suggests a smaller model when a device runs out of memory. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { sumResourceBytes, hasResources, getMemoryBytes } from './memory-bytes.ts'
import type { Entry, Implementation } from './schema.ts'

type TagImplementations = Pick<Entry, 'type' | 'tag' | 'implementations'>

/** Returns `true` if a device could run the implementation, as far as is known. */
type Fits = (implementation: Implementation) => boolean

/** Choice of another implementation: of the same tag if it has an id, else of another tag. */
interface Suggestion {
  smaller: { tag: Tag; implementation?: string; bytes: number | null }
  candidate: Implementation
}

/**
 * Returns the next smaller choice: another implementation of the tag, or else another tag of the
 * same type. Among those that `fits` accepts and that need less memory, it takes the largest.
 */
function findSuggestion(
  entries: readonly TagImplementations[],
  tag: Tag,
  failed: Implementation,
  fits: Fits,
): Suggestion | undefined {
  const limit = getMemoryBytes(failed)
  const entry = entries.find((one) => one.tag === tag)
  const toSuggestion = (candidate: Implementation, of: { tag: Tag; implementation?: string }) => ({
    smaller: { ...of, bytes: hasResources(candidate) ? sumResourceBytes(candidate) : null },
    candidate,
  })
  const own = (entry?.implementations ?? [])
    .filter(fits)
    .map((candidate) => toSuggestion(candidate, { tag, implementation: candidate.id }))
  const others = entries
    .filter((one) => one.tag !== tag && one.type === entry?.type)
    .flatMap((one) => {
      const [least] = one.implementations
        .filter(fits)
        .toSorted((a, b) => getMemoryBytes(a) - getMemoryBytes(b))
      return least ? [toSuggestion(least, { tag: one.tag })] : []
    })
  return findLargestBelow(limit, own) ?? findLargestBelow(limit, others)
}

/** Adds the next smaller choice to an `out_of_memory` error. Returns other errors unchanged. */
export function suggestSmaller(
  error: InoriginError,
  entries: readonly TagImplementations[],
  tag: Tag,
  failed: Implementation,
  fits: Fits = () => true,
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

function describeSuggestion({ smaller: { tag, implementation, bytes }, candidate }: Suggestion) {
  const size =
    bytes === null
      ? `needs ${formatBytes(getMemoryBytes(candidate))} of memory`
      : formatBytes(bytes)
  return implementation === undefined
    ? `${tag} (${size})`
    : `its implementation ${implementation} (${size})`
}

/** Returns the largest choice below the limit. Choices of unknown size are skipped. */
function findLargestBelow(limit: number, choices: readonly Suggestion[]): Suggestion | undefined {
  const memoryOf = ({ candidate }: Suggestion) => getMemoryBytes(candidate)
  const fitting = choices.filter((one) => memoryOf(one) > 0 && memoryOf(one) < limit)
  return fitting.toSorted((one, other) => memoryOf(other) - memoryOf(one))[0]
}

function formatBytes(bytes: number): string {
  const [amount, unit] = bytes >= 1e9 ? [bytes / 1e9, 'GB'] : [bytes / 1e6, 'MB']
  return `${amount.toFixed(amount < 10 ? 1 : 0).replace(/\.0$/, '')} ${unit}`
}
