/**
 * Maps the 32 bits of a logit to an integer key with the same order. Both zeros have one key. NaN
 * has the highest key.
 */

const NOT_A_NUMBER = 0xffffffff
const ZERO = 0x80000000

/** Returns the key of a logit from its bits. */
export function keyOf(bits: number): number {
  const magnitude = bits & 0x7fffffff
  if (magnitude > 0x7f800000) return NOT_A_NUMBER
  if (magnitude === 0) return ZERO
  return bits >>> 31 ? ~bits >>> 0 : (bits | ZERO) >>> 0
}

/** Returns the bits of a logit from its key. */
export const bitsOf = (key: number): number => (key >= ZERO ? key & 0x7fffffff : ~key) >>> 0
