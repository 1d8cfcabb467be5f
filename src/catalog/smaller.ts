/** What to use instead of a model that a device has no memory for. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { bytesOf } from './memory.ts'
import type { Entry, Implementation } from './schema.ts'

export interface Smaller {
  tag: Tag
  /** Another one of the same tag; absent: another tag, whatever suits the device. */
  implementation?: string
  /** Of all its resources. */
  bytes: number
}

type Sized = Pick<Entry, 'type' | 'tag' | 'implementations'>

/**
 * The next smaller choice: another implementation of that tag, else a model of the catalog, of the
 * same type; the largest of those that are smaller. `null` when there is none.
 */
export function smallerChoice(
  entries: readonly Sized[],
  tag: Tag,
  failed: Implementation,
): Smaller | null {
  const limit = bytesOf(failed)
  const entry = entries.find((one) => one.tag === tag)
  const own = entry?.implementations.map((each): Smaller => ({
    tag, implementation: each.id, bytes: bytesOf(each),
  }))
  const others = entries
    .filter((one) => one.tag !== tag && one.type === entry?.type && one.implementations.length > 0)
    .map((one): Smaller => ({
      tag: one.tag, bytes: Math.min(...one.implementations.map(bytesOf)),
    }))
  return largestBelow(limit, own ?? []) ?? largestBelow(limit, others)
}

/** The error of a device that ran out of memory, with the next smaller choice; any other as it is. */
export function nameSmaller(
  error: InoriginError,
  entries: readonly Sized[],
  tag: Tag,
  failed: Implementation,
): InoriginError {
  if (error.code !== 'out_of_memory') return error
  const smaller = smallerChoice(entries, tag, failed)
  const what = `The device has no memory for ${tag} (${sizeOf(bytesOf(failed))}).`
  const close = 'unload other models or close other tabs'
  const todo = smaller
    ? `Use ${wordsFor(smaller)}, or ${close}.`
    : `The catalog has nothing smaller: ${close}.`
  return new InoriginError(error.kind, `${what} ${todo}`, {
    code: error.code,
    details: { ...error.details, tag, smaller },
    cause: error,
  })
}

function wordsFor({ tag, implementation, bytes }: Smaller): string {
  const size = sizeOf(bytes)
  return implementation === undefined
    ? `${tag} (${size})`
    : `its implementation ${implementation} (${size})`
}

/** Without a size there is nothing to compare. */
function largestBelow(limit: number, choices: readonly Smaller[]): Smaller | null {
  const fitting = choices.filter(({ bytes }) => bytes > 0 && bytes < limit)
  return fitting.toSorted((one, other) => other.bytes - one.bytes)[0] ?? null
}

function sizeOf(bytes: number): string {
  const [amount, unit] = bytes >= 1e9 ? [bytes / 1e9, 'GB'] : [bytes / 1e6, 'MB']
  return `${amount.toFixed(amount < 10 ? 1 : 0).replace(/\.0$/, '')} ${unit}`
}
