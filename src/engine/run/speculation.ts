/** Chooses how many draft tokens a forward pass verifies, from measured times on this device. */

/** Number of draft tokens, adapted to measured times. */
export interface Speculation {
  /**
   * Returns the number of draft tokens, at most `most`. Returns 0 if drafts do not pay off. `luck`
   * is the acceptance rate, from 0 to 1.
   */
  count(luck: number, most: number): number
  /** Records the time of a forward pass of one token and `guessed` draft tokens. */
  took(guessed: number, milliseconds: number): void
}

/**
 * Possible numbers of draft tokens. There are few because a device compiles shaders for some of
 * them.
 */
const COUNTS = [3, 7]

/**
 * Number of recorded times for each size. The shortest one counts, since others may include delays.
 */
const REMEMBERED = 6

/** Number of recorded times after which they are used. The first may include compilation. */
const BELIEVED = 3

/** Assumed cost until then, relative to a forward pass of a single token. */
const HOPED = 1.3

/** Creates the state without measurements. */
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

/**
 * Returns the expected number of tokens from one forward pass: the accepted drafts and one sampled
 * token.
 */
function expected(luck: number, guessed: number): number {
  let sum = 1
  for (let count = 1; count <= guessed; count += 1) sum += luck ** count
  return sum
}
