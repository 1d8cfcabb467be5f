/** Scores in plain memory: the reference for those on a GPU. */
import type { Tensor } from 'onnxruntime-web'
import type { Ask, Candidates, Logits } from '../decoder/contract.ts'
import { adjust } from './adjust.ts'
import { widen } from '../half.ts'
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

/**
 * Row `index` of a tensor in plain memory whose last dimension is the vocabulary, as 32-bit floats.
 */
export function rowOf(tensor: Tensor, index: number): Float32Array {
  const size = tensor.dims.at(-1) ?? 0
  const { data } = tensor
  if (data instanceof Float32Array) return data.subarray(index * size, (index + 1) * size)
  if (data instanceof Uint16Array) return widen(data.subarray(index * size, (index + 1) * size))
  // Browsers that have Float16Array get one.
  const halves = data as unknown as Float32Array
  return new Float32Array(halves.subarray(index * size, (index + 1) * size))
}
