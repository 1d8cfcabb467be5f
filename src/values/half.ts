/** float16 by hand, for browsers without `Float16Array`: a half is 16 bits in a `Uint16Array`. */

const word = new DataView(new ArrayBuffer(4))

/** The bits of the nearest half, ties to even; beyond 65504 it is infinite. */
export function toHalf(value: number): number {
  word.setFloat32(0, value)
  const bits = word.getUint32(0)
  const sign = (bits >>> 16) & 0x8000
  const rest = bits & 0x7fffffff
  if (rest > 0x7f800000) return sign | 0x7e00
  if (rest >= 0x47800000) return sign | 0x7c00
  if (rest >= 0x38800000) return sign | roundOff(rest - 0x38000000, 13)
  const shift = 126 - (rest >>> 23)
  if (shift > 24) return sign
  return sign | roundOff((rest & 0x7fffff) | 0x800000, shift)
}

/** Drops the lowest bits, to the nearest even; a carry runs into the exponent, where it belongs. */
function roundOff(bits: number, dropped: number): number {
  const kept = bits >>> dropped
  const lost = bits & ((1 << dropped) - 1)
  const half = 1 << (dropped - 1)
  return lost > half || (lost === half && kept & 1) ? kept + 1 : kept
}

/** The number that 16 bits stand for. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >>> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

/** Half floats, given by their bits, as 32-bit floats. */
export function widen(halves: Uint16Array): Float32Array {
  const bits = new Uint32Array(halves.length)
  const floats = new Float32Array(bits.buffer)
  for (let index = 0; index < halves.length; index += 1) {
    const half = halves[index] as number
    const magnitude = half & 0x7fff
    const sign = (half & 0x8000) << 16
    // Below 2^-14 there is no exponent, from 2^16 on nothing but infinity and what is no number.
    if (magnitude < 0x400) floats[index] = (sign ? -1 : 1) * magnitude * 2 ** -24
    else if (magnitude < 0x7c00) bits[index] = sign | ((magnitude << 13) + 0x38000000)
    else bits[index] = sign | 0x7f800000 | (magnitude << 13)
  }
  return floats
}
