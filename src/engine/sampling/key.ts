/**
 * Scores as whole numbers in the same order, from their 32 bits. Both zeros are one, and what is
 * not a number comes above all others.
 */

const NOT_A_NUMBER = 0xffffffff
const ZERO = 0x80000000

export function keyOf(bits: number): number {
  const magnitude = bits & 0x7fffffff
  if (magnitude > 0x7f800000) return NOT_A_NUMBER
  if (magnitude === 0) return ZERO
  return bits >>> 31 ? ~bits >>> 0 : (bits | ZERO) >>> 0
}

/** The bits of a score from its key. */
export const bitsOf = (key: number): number => (key >= ZERO ? key & 0x7fffffff : ~key) >>> 0
