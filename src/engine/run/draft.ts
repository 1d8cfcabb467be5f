/**
 * Drafts tokens by prompt lookup: it proposes what followed the same tokens before, as in a
 * quotation.
 */

/** Proposes draft tokens for one answer. */
export interface Drafter {
  /** Returns `count` draft tokens, or none if the last tokens have not occurred before. */
  guess(count: number): number[]
  /** Appends a token of the answer. */
  accept(token: number): void
  /** Moving average of how often the next token matched its draft, from 0 to 1. */
  readonly luck: number
}

/** Number of tokens in a row that must have occurred before. */
const ALIKE = 3

/** Weight of the latest draft in the moving average. */
const WEIGHT = 0.15

/** Creates a drafter that searches the prompt and the answer. */
export function createDrafter(prompt: readonly number[]): Drafter {
  const tokens: number[] = []
  /** Position after the last occurrence of each run of tokens, by the hash of the run. */
  const places = new Map<number, number>()
  /** Position after an earlier occurrence of the last tokens; -1 if there is none. */
  let found = -1
  let luck = 0.5

  const add = (token: number): void => {
    tokens.push(token)
    const end = tokens.length
    let hash = 0
    for (let at = Math.max(0, end - ALIKE); at < end; at += 1)
      hash = Math.imul(hash ^ (tokens[at] as number), 0x01000193) + 1
    const place = places.get(hash) ?? -1
    found = place >= ALIKE && alike(place, end) ? place : -1
    places.set(hash, end)
  }

  const alike = (one: number, other: number): boolean => {
    for (let back = 1; back <= ALIKE; back += 1)
      if (tokens[one - back] !== tokens[other - back]) return false
    return true
  }

  const guess: Drafter['guess'] = (count) => {
    if (found < 0) return []
    const length = tokens.length
    const guessed: number[] = []
    // After the end of the text, the draft repeats itself.
    for (let at = found; guessed.length < count; at += 1)
      guessed.push((at < length ? tokens[at] : guessed[at - length]) as number)
    return guessed
  }

  for (const token of prompt) add(token)
  return {
    guess,
    accept: (token) => {
      if (found >= 0) luck += WEIGHT * (Number(tokens[found] === token) - luck)
      add(token)
    },
    get luck() {
      return luck
    },
  }
}
