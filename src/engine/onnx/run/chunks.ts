/** How much of a prompt to take at once, so that others write on meanwhile, and can be cancelled. */

export interface Chunks {
  /** Tokens to take next, by what the last ones took. */
  length(): number
  /** A device was given so many at `start`, and is `done` with them later; resolves when it is. */
  took(tokens: number, start: number, done: Promise<void>): Promise<void>
}

/** Milliseconds that are not too long to wait. */
const PATIENCE = 200

const SHORTEST = 16

/** Where nothing is known yet. */
const FIRST = 64

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
    return Math.min(each, Math.max(0, (time - other.time) / (tokens - other.tokens)))
  }

  const predict = (measured: Measured, length: number): number =>
    measured.time + slope(measured) * (length - measured.tokens)

  const length: Chunks['length'] = () => {
    const known = last
    const fits = (each: number): boolean =>
      known ? predict(known, each) <= PATIENCE : each <= FIRST
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
