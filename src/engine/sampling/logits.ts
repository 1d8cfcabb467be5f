/** Scores in plain memory: the reference for those on a GPU. */
import type { Ask, Candidates, Logits } from '../decoder.ts'
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
