/**
 * Converts float16 for browsers without `Float16Array`. A float16 number is 16 bits in a
 * `Uint16Array`.
 */

const scratch = new DataView(new ArrayBuffer(4))

/** Returns the bits of the nearest float16, ties to even; numbers too large become infinite. */
export function toHalf(value: number): number {
  scratch.setFloat32(0, value)
  const bits = scratch.getUint32(0)
  const sign = (bits >>> 16) & 0x8000
  const rest = bits & 0x7fffffff
  if (rest > 0x7f800000) return sign | 0x7e00
  if (rest >= 0x47800000) return sign | 0x7c00
  if (rest >= 0x38800000) return sign | roundOff(rest - 0x38000000, 13)
  const shift = 126 - (rest >>> 23)
  if (shift > 24) return sign
  return sign | roundOff((rest & 0x7fffff) | 0x800000, shift)
}

/** Drops the lowest bits and rounds to nearest even; a carry correctly increments the exponent. */
function roundOff(bits: number, dropped: number): number {
  const kept = bits >>> dropped
  const lost = bits & ((1 << dropped) - 1)
  const half = 1 << (dropped - 1)
  return lost > half || (lost === half && kept & 1) ? kept + 1 : kept
}

/** Returns the number that the bits of a float16 encode. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >>> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

/** Converts the bits of float16 numbers to 32-bit floats. */
export function halfToFloat32(halves: Uint16Array): Float32Array {
  const bits = new Uint32Array(halves.length)
  const floats = new Float32Array(bits.buffer)
  for (let index = 0; index < halves.length; index += 1) {
    const half = halves[index] as number
    const magnitude = half & 0x7fff
    const sign = (half & 0x8000) << 16
    // A magnitude below 2^-14 is subnormal; one from 2^16 on is Infinity or NaN.
    if (magnitude < 0x400) floats[index] = (sign ? -1 : 1) * magnitude * 2 ** -24
    else if (magnitude < 0x7c00) bits[index] = sign | ((magnitude << 13) + 0x38000000)
    else bits[index] = sign | 0x7f800000 | (magnitude << 13)
  }
  return floats
}
