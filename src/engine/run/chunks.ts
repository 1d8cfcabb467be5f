/**
 * Chooses the length of prefill chunks, so that decoding continues meanwhile and a cancel takes
 * effect.
 */

/** Lengths of prefill chunks, adapted to measured times. */
export interface Chunks {
  /**
   * Returns the length of the next chunk in tokens, predicted from the times of earlier chunks. It
   * is longer if the prompt is `alone`, so that no other answer waits.
   */
  length(alone: boolean): number
  /**
   * Records a chunk of `tokens` that was submitted at `start`, in milliseconds. `done` resolves
   * when the device has computed it. The result resolves after the time is recorded.
   */
  took(tokens: number, start: number, done: Promise<void>): Promise<void>
}

/** Longest time of a chunk in milliseconds while other answers wait. */
const PATIENCE = 200

/**
 * Longest time of a chunk in milliseconds while no other answer waits. With two chunks queued on
 * the device, a new or canceled request waits for both.
 */
const PATIENCE_ALONE = 500

/** A chunk may take as long as this many single tokens, even if that exceeds the limits above. */
const TOKENS = 3

/** Shortest chunk in tokens. */
const SHORTEST = 16

/** Longest chunk in tokens before the first measurement. */
const FIRST = 64

/**
 * Largest growth factor between chunks. Predictions far from all measured lengths are unreliable.
 */
const GROWTH = 4

/** Length of a chunk in tokens and its time in milliseconds. */
interface Measured {
  tokens: number
  time: number
}

/**
 * Creates chunk lengths that double from 16 tokens up to `most`. There are few of them because a
 * device may compile a shader for each.
 */
export function createChunks(most: number): Chunks {
  const lengths = [most]
  for (let length = SHORTEST; length < most; length *= 2) lengths.splice(-1, 0, length)
  let last: Measured | null = null
  /** Latest measurement of a clearly different length. */
  let other: Measured | null = null
  let free = 0

  /**
   * Returns the milliseconds that one more token costs. It is less than the average, because every
   * chunk has a fixed cost.
   */
  const slope = ({ tokens, time }: Measured): number => {
    const each = time / tokens
    if (!other) return each / 2
    const measured = (time - other.time) / (tokens - other.tokens)
    return Math.min(each, Math.max(each / 8, measured))
  }

  const predict = (measured: Measured, length: number): number =>
    measured.time + slope(measured) * (length - measured.tokens)

  const length: Chunks['length'] = (alone) => {
    const known = last
    const patience = alone ? PATIENCE_ALONE : PATIENCE
    const limit = known && other ? Math.max(patience, TOKENS * predict(known, 1)) : patience
    const fits = (each: number): boolean =>
      known ? predict(known, each) <= limit && each <= GROWTH * known.tokens : each <= FIRST
    return lengths.findLast(fits) ?? (lengths[0] as number)
  }

  const took: Chunks['took'] = async (tokens, start, done) => {
    await done
    const now = performance.now()
    // The device may have started this chunk only after it finished the earlier ones.
    const time = now - Math.max(start, free)
    free = now
    if (tokens < Math.min(SHORTEST, most)) return
    if (last && Math.max(tokens / last.tokens, last.tokens / tokens) >= 2) other = last
    last = { tokens, time }
  }
  return { length, took }
}
