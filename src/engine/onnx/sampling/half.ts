/** Half floats, which not every browser has a type for. */

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
