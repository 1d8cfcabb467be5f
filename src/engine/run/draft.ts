/** Guesses how a text goes on by what followed the same words before, as where something is quoted. */

export interface Drafter {
  /** What followed before, as many tokens; empty where the last ones are new. */
  guess(count: number): number[]
  /** The text goes on with this one. */
  accept(token: number): void
  /** How often the next token was as guessed of late, where there was a guess. */
  readonly luck: number
}

/** So many tokens in a row must have been there before. */
const ALIKE = 3

/** How much one guess weighs against those before it. */
const WEIGHT = 0.15

export function createDrafter(prompt: readonly number[]): Drafter {
  const tokens: number[] = []
  /** Where tokens follow some, by a hash of those. */
  const places = new Map<number, number>()
  /** Where tokens follow the last ones, if those were there before. */
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
    // Behind the end of the text it repeats what was guessed.
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
