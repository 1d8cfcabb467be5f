/** Scores in plain memory: the reference for those on a GPU. */
import type { Tensor } from 'onnxruntime-web'
import type { Ask, Candidates, Logits } from '../decoder/contract.ts'
import { adjust } from './adjust.ts'
import { highest, logSumExp } from './rank.ts'

/** `rows` are not kept behind `release` and never changed; each is as long as the vocabulary. */
export function createCpuLogits(rows: readonly Float32Array[]): Logits {
  let held = rows
  return {
    rows: rows.length,
    vocabulary: rows[0]?.length ?? 0,
    top: async (asks) => held.map((row, index) => topOf(row, asks[index] as Ask)),
    row: async (index) => held[index] as Float32Array,
    release: () => {
      held = []
    },
  }
}

/** The candidates of one row; on the CPU their count has no limit. */
export function topOf(row: Float32Array, { count, temperature, adjustments }: Ask): Candidates {
  const scores = adjust(row, adjustments)
  const ranked = highest(scores, count)
  const max = ranked.scores[0] as number
  const sum = temperature > 0 ? logSumExp(scores, max, temperature) : Number.NaN
  return { ...ranked, logSumExp: sum }
}

/** Row `index` of a tensor in plain memory whose last dimension is the vocabulary, as 32-bit floats. */
export function rowOf(tensor: Tensor, index: number): Float32Array {
  const size = tensor.dims.at(-1) ?? 0
  const { data } = tensor
  if (data instanceof Float32Array) return data.subarray(index * size, (index + 1) * size)
  if (data instanceof Uint16Array) return widen(data.subarray(index * size, (index + 1) * size))
  // Browsers that have Float16Array get one.
  const halves = data as unknown as Float32Array
  return new Float32Array(halves.subarray(index * size, (index + 1) * size))
}

/** Half floats, by their bits, as 32-bit floats. */
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
