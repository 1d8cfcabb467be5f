/** Computes the cosines and sines of rotary position embeddings. */

/** A rope: frequencies, and the positions for which cosines and sines are computed. */
export interface Rope {
  /** Number of values that are rotated, in pairs. */
  size: number
  /** Base of the frequencies. */
  base: number
  /** Divisors of the frequencies, one for each pair or one for all. */
  divisors: Float32Array | number
  /** Factor of cosines and sines. */
  scale: number
  /** Number of positions. */
  tokens: number
}

/**
 * Returns the table of one function. The frequencies and angles are rounded to 32 bits, as in the
 * usual implementations: at long distances, angles depend on it.
 */
export function computeTable(rope: Rope, angle: (radians: number) => number) {
  const { tokens, size, scale } = rope
  const frequencies = frequenciesOf(rope)
  const half = size / 2
  const table = new Float32Array(tokens * half)
  for (let position = 0; position < tokens; position += 1) {
    for (let pair = 0; pair < half; pair += 1) {
      const radians = Math.fround(position * (frequencies[pair] as number))
      table[position * half + pair] = Math.fround(angle(radians)) * scale
    }
  }
  return table
}

function frequenciesOf({ size, base, divisors }: Rope): Float32Array {
  return Float32Array.from({ length: size / 2 }, (_, pair) => {
    const power = Math.fround(base ** Math.fround((2 * pair) / size))
    const divisor = typeof divisors === 'number' ? divisors : (divisors[pair] as number)
    return 1 / Math.fround(power * divisor)
  })
}
