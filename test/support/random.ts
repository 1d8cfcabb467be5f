/** Chance that comes out the same for the same seed. */
export interface Chance {
  /** A whole number below this one. */
  below(limit: number): number
  /** True so often, of 1. */
  often(share: number): boolean
  pick<T>(of: readonly T[]): T
}

export function createChance(seed: number): Chance {
  let state = Math.imul(seed + 1, 0x9e3779b9) | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    below: (limit) => Math.floor(next() * limit),
    often: (share) => next() < share,
    pick: (of) => of[Math.floor(next() * of.length)] as (typeof of)[number],
  }
}
