/** Decides how many guessed tokens to have a forward check, from what forwards cost on this device. */

export interface Speculation {
  /** Tokens to guess, `most` at most, 0 where it does not pay; `luck` is how often a guess is right. */
  count(luck: number, most: number): number
  /** A forward of one token and so many guessed ones took that long. */
  took(guessed: number, milliseconds: number): void
}

/** Few sizes, because a device compiles for some of them. */
const COUNTS = [3, 7]

/** Forwards that are remembered of a size; the quickest counts, because others were disturbed. */
const REMEMBERED = 6

/** Forwards of a size until they are believed; the first may have had something to compile. */
const BELIEVED = 3

/** What a forward is taken to cost until then, over one of a single token. */
const HOPED = 1.3

export function createSpeculation(): Speculation {
  const times = new Map<number, number[]>()

  const quickest = (guessed: number): number | null => {
    const known = times.get(guessed) ?? []
    return known.length < BELIEVED ? null : Math.min(...known)
  }

  const cost = (guessed: number): number => {
    const [one, more] = [quickest(0), quickest(guessed)]
    return one === null || more === null ? HOPED : more / one
  }

  return {
    count: (luck, most) => {
      let best = { guessed: 0, gain: 1 }
      for (const guessed of COUNTS) {
        const gain = expected(luck, guessed) / cost(guessed)
        if (guessed <= most && gain > best.gain) best = { guessed, gain }
      }
      return best.guessed
    },
    took: (guessed, milliseconds) => {
      times.set(guessed, [...(times.get(guessed) ?? []), milliseconds].slice(-REMEMBERED))
    },
  }
}

/** Tokens that a forward is worth: guesses count up to the first wrong one, and one choice more. */
function expected(luck: number, guessed: number): number {
  let sum = 1
  for (let count = 1; count <= guessed; count += 1) sum += luck ** count
  return sum
}
