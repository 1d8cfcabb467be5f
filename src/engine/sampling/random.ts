/** A small pseudorandom number generator whose sequence is determined by its seed: xoshiro128**. */

/**
 * Creates a generator of numbers in [0, 1) with 53 bits each. Without a seed, every generator
 * differs.
 */
export function createRandom(seed?: number): () => number {
  const state = seed === undefined ? crypto.getRandomValues(new Uint32Array(4)) : expand(seed)
  let [a = 0, b = 0, c = 0, d = 1] = state

  const next = (): number => {
    const product = Math.imul(b, 5)
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 11) | (d >>> 21)
    return result
  }
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53
}

/** Expands an integer to four words that are never all zero (splitmix64). */
function expand(seed: number): Uint32Array {
  let state = BigInt.asUintN(64, BigInt(Math.trunc(seed)))
  const words = new Uint32Array(4)
  for (let index = 0; index < 4; index += 2) {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n)
    let mixed = state
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n)
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn)
    mixed ^= mixed >> 31n
    words[index] = Number(mixed & 0xffffffffn)
    words[index + 1] = Number(mixed >> 32n)
  }
  return words
}
