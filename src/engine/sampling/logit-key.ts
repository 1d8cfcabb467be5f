/**
 * Maps the 32 bits of a logit to an integer key with the same order. Both zeros have one key. NaN
 * has the highest key.
 */

const NAN_KEY = 0xffffffff
const ZERO_KEY = 0x80000000

/** Returns the key of a logit from its bits. */
export function logitToKey(bits: number): number {
  const magnitude = bits & 0x7fffffff
  if (magnitude > 0x7f800000) return NAN_KEY
  if (magnitude === 0) return ZERO_KEY
  return bits >>> 31 ? ~bits >>> 0 : (bits | ZERO_KEY) >>> 0
}

/** Returns the bits of a logit from its key. */
export const keyToBits = (key: number): number => (key >= ZERO_KEY ? key & 0x7fffffff : ~key) >>> 0
