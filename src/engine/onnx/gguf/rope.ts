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

/** The method YaRN, by which a model works in longer contexts than it was trained for. */
export interface Yarn {
  /** Divisor of low frequencies. */
  factor: number
  /** Number of tokens that the model was trained for. */
  originalTokens: number
  /** Number of turns within these tokens, from which a frequency stays as it is. */
  fastTurns: number
  /** Number of turns, up to which a frequency is divided by the factor. */
  slowTurns: number
}

/** Returns the divisors of the frequencies: from 1 for high ones to the factor for low ones. */
export function yarnDivisors(size: number, base: number, yarn: Yarn): Float32Array {
  const { factor, originalTokens, fastTurns, slowTurns } = yarn
  /** Place of the frequency that makes so many turns. */
  const placeOf = (turns: number): number =>
    (size * Math.log(originalTokens / (turns * 2 * Math.PI))) / (2 * Math.log(base))
  const low = Math.max(Math.floor(placeOf(fastTurns)), 0)
  const high = Math.min(Math.ceil(placeOf(slowTurns)), size - 1)
  return Float32Array.from({ length: size / 2 }, (_, pair) => {
    const share = Math.min(Math.max((pair - low) / Math.max(high - low, 0.001), 0), 1)
    return 1 / (share / factor + 1 - share)
  })
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
