/** Chooses how many draft tokens a forward pass verifies, from measured times on this device. */

/** Number of draft tokens, adapted to measured times. */
export interface DraftSizer {
  /**
   * Returns the number of draft tokens, at most `maxTokens`. Returns 0 if drafts do not pay
   * off. `acceptanceRate` is a number from 0 to 1.
   */
  draftLength(acceptanceRate: number, maxTokens: number): number
  /** Records the time of a forward pass of one token and `draftTokens` draft tokens. */
  record(draftTokens: number, milliseconds: number): void
}

/**
 * Possible numbers of draft tokens. There are few because a device compiles shaders for some of
 * them.
 */
const DRAFT_LENGTHS = [3, 7]

/**
 * Number of recorded times for each size. The shortest one counts, since others may include delays.
 */
const MAX_SAMPLES = 6

/** Number of recorded times after which they are used. The first may include compilation. */
const MIN_SAMPLES = 3

/** Assumed cost until then, relative to a forward pass of a single token. */
const ASSUMED_COST = 1.3

/** Creates the state without measurements. */
export function createDraftSizer(): DraftSizer {
  const times = new Map<number, number[]>()

  const shortestTime = (draftTokens: number): number | null => {
    const samples = times.get(draftTokens) ?? []
    return samples.length < MIN_SAMPLES ? null : Math.min(...samples)
  }

  const cost = (draftTokens: number): number => {
    const [one, more] = [shortestTime(0), shortestTime(draftTokens)]
    return one === null || more === null ? ASSUMED_COST : more / one
  }

  return {
    draftLength: (acceptanceRate, maxTokens) => {
      let best = { draftTokens: 0, gain: 1 }
      for (const draftTokens of DRAFT_LENGTHS) {
        const gain = expectedTokens(acceptanceRate, draftTokens) / cost(draftTokens)
        if (draftTokens <= maxTokens && gain > best.gain) best = { draftTokens, gain }
      }
      return best.draftTokens
    },
    record: (draftTokens, milliseconds) => {
      times.set(draftTokens, [...(times.get(draftTokens) ?? []), milliseconds].slice(-MAX_SAMPLES))
    },
  }
}

/**
 * Returns the expected number of tokens from one forward pass: the accepted drafts and one sampled
 * token.
 */
function expectedTokens(acceptanceRate: number, draftTokens: number): number {
  let sum = 1
  for (let count = 1; count <= draftTokens; count += 1) sum += acceptanceRate ** count
  return sum
}
