/** Texts that a model without a mind writes under a constraint. */
import type { TokenTable } from '../../src/engine/constraint/vocabulary.ts'
import type { Matcher } from '../../src/engine/constraint/types.ts'
import type { Chance } from './random.ts'

const CLOSING = new Set(Array.from('"]},: <', (character) => character.charCodeAt(0)))

export interface Walk {
  text: string
  /** It ended by itself; else it was given up. */
  ended: boolean
  /** Steps at which no token was allowed; there must be none. */
  stuck: boolean
}

/** Chooses among the allowed tokens, first freely, then such as bring it to an end. */
export async function walk(
  matcher: Matcher,
  { bytes, endTokens }: TokenTable,
  chance: Chance,
  free = 30,
  most = 1500,
): Promise<Walk> {
  const written: number[] = []

  const text = (): string => new TextDecoder().decode(Uint8Array.from(written))
  for (let step = 0; step < most; step++) {
    const mask = await matcher.mask()
    const allowed = bytes.flatMap((_, id) =>
      !mask || ((mask[id >> 5] ?? 0) >>> (id & 31)) & 1 ? [id] : [],
    )
    if (allowed.length === 0) return { text: text(), ended: false, stuck: true }
    const end = allowed.find((id) => endTokens.includes(id))
    const closing = allowed.filter(
      (id) => bytes[id]?.length === 1 && CLOSING.has(bytes[id][0] ?? 0),
    )
    const hurry = step >= free
    const wanted = hurry && closing.length > 0 && chance.often(0.8) ? closing : allowed
    const token = end !== undefined && (hurry || chance.often(0.2)) ? end : chance.pick(wanted)
    if (!matcher.accept(token)) throw new Error(`Token ${token} was allowed and then refused.`)
    if (token === end) return { text: text(), ended: true, stuck: false }
    written.push(...(bytes[token] ?? []))
  }
  return { text: '', ended: false, stuck: false }
}

/** Resolves with `true` if the matcher takes the text, in its longest tokens, and may end behind it. */
export async function takes(
  matcher: Matcher,
  { bytes, endTokens }: TokenTable,
  text: string,
): Promise<boolean> {
  const left = new TextEncoder().encode(text)
  const byFirst = firsts(bytes)
  for (let at = 0; at < left.length;) {
    const fitting = (byFirst.get(left[at] ?? 0) ?? []).filter((id) =>
      bytes[id]?.every((byte, index) => byte === left[at + index]),
    )
    const token = fitting.sort((a, b) => (bytes[b]?.length ?? 0) - (bytes[a]?.length ?? 0))[0]
    if (token === undefined || !matcher.accept(token)) return false
    at += bytes[token]?.length ?? 1
  }
  const mask = await matcher.mask()
  return endTokens.some((id) => !mask || (((mask[id >> 5] ?? 0) >>> (id & 31)) & 1) === 1)
}

const known = new WeakMap<object, Map<number, number[]>>()

/** Tokens by their first byte. */
function firsts(bytes: TokenTable['bytes']): Map<number, number[]> {
  const made = known.get(bytes) ?? new Map<number, number[]>()
  if (!known.has(bytes)) {
    known.set(bytes, made)
    bytes.forEach((each, id) => {
      const [first] = each ?? []
      if (first === undefined) return
      const ids = made.get(first) ?? []
      ids.push(id)
      made.set(first, ids)
    })
  }
  return made
}
