/** Logits in CPU memory: the reference implementation for logits on a GPU. */
import type { CandidateRequest, Candidates, Logits } from '../decoder.ts'
import { adjust } from './adjust.ts'
import { logSumExp, topLogits } from './rank.ts'

/**
 * Creates logits from rows that are each as long as the vocabulary. The rows are never changed, and
 * `release` drops them.
 */
export function createCpuLogits(rows: readonly Float32Array[]): Logits {
  let currentRows = rows
  return {
    rows: rows.length,
    vocabulary: rows[0]?.length ?? 0,
    top: async (asks) =>
      currentRows.map((row, index) => selectCandidates(row, asks[index] as CandidateRequest)),
    row: async (index) => currentRows[index] as Float32Array,
    release: () => {
      currentRows = []
    },
  }
}

/** Returns the candidates of one row. On the CPU their number has no limit. */
export function selectCandidates(
  row: Float32Array,
  { count, temperature, adjustments }: CandidateRequest,
): Candidates {
  const scores = adjust(row, adjustments)
  const ranked = topLogits(scores, count)
  const max = ranked.scores[0] as number
  const sum = temperature > 0 ? logSumExp(scores, max, temperature) : Number.NaN
  return { ...ranked, logSumExp: sum }
}
