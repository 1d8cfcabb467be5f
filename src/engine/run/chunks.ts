/** How much of a prompt to take at once, so that others write on meanwhile, and can be cancelled. */

export interface Chunks {
  /** Tokens to take next, by what the last ones took; more where it is `alone`, and nobody waits. */
  length(alone: boolean): number
  /** A device was given so many at `start`, and is `done` with them later; resolves when it is. */
  took(tokens: number, start: number, done: Promise<void>): Promise<void>
}

/** Milliseconds that are not too long for others to wait. */
const PATIENCE = 200

/** Where there are no others. Of two chunks on their way, who comes or cancels waits for both. */
const PATIENCE_ALONE = 500

/** A chunk may take as long as so many single tokens do. */
const TOKENS = 3

const SHORTEST = 16

/** Where nothing is known yet. */
const FIRST = 64

/** From one to the next, since what is far from all that was measured is told badly. */
const GROWTH = 4

interface Measured {
  tokens: number
  time: number
}

/** Of `most` tokens and less: by halves, since a device may have something to compile for each. */
export function createChunks(most: number): Chunks {
  const lengths = [most]
  for (let length = SHORTEST; length < most; length *= 2) lengths.splice(-1, 0, length)
  let last: Measured | null = null
  /** The last one of a length that is another altogether. */
  let other: Measured | null = null
  let free = 0

  /** Milliseconds that one token more costs: less than its share, since any number costs something. */
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
    // It may have begun with them only when it was done with those before.
    const time = now - Math.max(start, free)
    free = now
    if (tokens < Math.min(SHORTEST, most)) return
    if (last && Math.max(tokens / last.tokens, last.tokens / tokens) >= 2) other = last
    last = { tokens, time }
  }
  return { length, took }
}
