/** What to use instead of a model that a device has no memory for. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { bytesOf, isListed, memoryFor } from './memory.ts'
import type { Entry, Implementation } from './schema.ts'

interface Smaller {
  tag: Tag
  /** Another one of the same tag; absent: another tag, whatever suits the device. */
  implementation?: string
  /** Of all its resources; `null` where they have not been looked up. */
  bytes: number | null
}

type Sized = Pick<Entry, 'type' | 'tag' | 'implementations'>

/** Whether a device could run it, for all that is known before. */
type Fits = (implementation: Implementation) => boolean

/** A choice, and the implementation that makes it small. */
interface Found {
  smaller: Smaller
  by: Implementation
}

/**
 * The next smaller choice: another implementation of that tag, else a model of the catalog, of the
 * same type; of those that `fits` lets pass and that need less memory, the one that needs the most.
 * `null` when there is none.
 */
function smallerChoice(
  entries: readonly Sized[],
  tag: Tag,
  failed: Implementation,
  fits: Fits,
): Found | null {
  const limit = memoryFor(failed)
  const entry = entries.find((one) => one.tag === tag)
  const found = (by: Implementation, of: Pick<Smaller, 'tag' | 'implementation'>): Found => ({
    smaller: { ...of, bytes: isListed(by) ? bytesOf(by) : null },
    by,
  })
  const own = entry?.implementations
    .filter(fits)
    .map((by) => found(by, { tag, implementation: by.id }))
  const others = entries
    .filter((one) => one.tag !== tag && one.type === entry?.type)
    .flatMap((one) => {
      const [least] = one.implementations
        .filter(fits)
        .toSorted((a, b) => memoryFor(a) - memoryFor(b))
      return least ? [found(least, { tag: one.tag })] : []
    })
  return largestBelow(limit, own ?? []) ?? largestBelow(limit, others)
}

/** The error of a device that ran out of memory, with the next smaller choice; any other as it is. */
export function nameSmaller(
  error: InoriginError,
  entries: readonly Sized[],
  tag: Tag,
  failed: Implementation,
  fits: Fits = () => true,
): InoriginError {
  if (error.code !== 'out_of_memory') return error
  const found = smallerChoice(entries, tag, failed, fits)
  const what = `The device has no memory for ${tag} (${sizeOf(bytesOf(failed))}).`
  const close = 'unload other models or close other tabs'
  const todo = found
    ? `Use ${wordsFor(found)}, or ${close}.`
    : `The catalog has nothing smaller: ${close}.`
  return new InoriginError(error.kind, `${what} ${todo}`, {
    code: error.code,
    details: { ...error.details, tag, smaller: found?.smaller ?? null },
    cause: error,
  })
}

function wordsFor({ smaller: { tag, implementation, bytes }, by }: Found): string {
  const size = bytes === null ? `needs ${sizeOf(memoryFor(by))} of memory` : sizeOf(bytes)
  return implementation === undefined
    ? `${tag} (${size})`
    : `its implementation ${implementation} (${size})`
}

/** Without a size there is nothing to compare. */
function largestBelow(limit: number, choices: readonly Found[]): Found | null {
  const needs = ({ by }: Found) => memoryFor(by)
  const fitting = choices.filter((one) => needs(one) > 0 && needs(one) < limit)
  return fitting.toSorted((one, other) => needs(other) - needs(one))[0] ?? null
}

function sizeOf(bytes: number): string {
  const [amount, unit] = bytes >= 1e9 ? [bytes / 1e9, 'GB'] : [bytes / 1e6, 'MB']
  return `${amount.toFixed(amount < 10 ? 1 : 0).replace(/\.0$/, '')} ${unit}`
}
