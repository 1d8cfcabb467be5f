/** Logits in CPU memory: the reference implementation for logits on a GPU. */
import type { Adjustments, CandidateRequest, Candidates, Logits } from '../decoder.ts'
import { logSumExp, topLogits } from './rank.ts'

/** Creates logits from rows as long as the vocabulary, which are dropped but never changed. */
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

// Applies penalties, logit bias and the token mask on the CPU, bit for bit like the GPU.

/** Returns the row after its adjustments: a copy, or the row itself if there are no adjustments. */
export function adjust(row: Float32Array, adjustments: Adjustments = {}): Float32Array {
  const { repetition, bias, mask } = adjustments
  if (!repetition && !bias && !mask) return row
  const scores = row.slice()
  if (repetition) penalize(scores, repetition)
  if (bias) {
    bias.ids.forEach((id, index) => {
      if (id >= scores.length) return
      scores[id] = (scores[id] as number) + Math.fround(bias.amounts[index] ?? 0)
    })
  }
  if (mask) applyTokenMask(scores, mask)
  return scores
}

/** Returns the factors for positive and negative logits. Division is not exact on GPUs. */
export function repetitionFactors(factor: number): { positive: number; negative: number } {
  return { positive: Math.fround(1 / factor), negative: Math.fround(factor) }
}

/** Applies the repetition penalty in place. */
function penalize(
  scores: Float32Array,
  { ids, factor }: NonNullable<Adjustments['repetition']>,
): void {
  const { positive, negative } = repetitionFactors(factor)
  for (const id of ids) {
    if (id >= scores.length) continue
    const score = scores[id] as number
    scores[id] = score * (score > 0 ? positive : negative)
  }
}

/** Masks logits in place. NaN stays: it shows a broken model, which a mask must not hide. */
function applyTokenMask(scores: Float32Array, mask: Int32Array): void {
  for (let first = 0; first < scores.length; first += 32) {
    const word = mask[first >>> 5] ?? 0
    if (word === -1) continue
    const end = Math.min(first + 32, scores.length)
    for (let id = first; id < end; id += 1) {
      if ((word >>> (id & 31)) & 1 || Number.isNaN(scores[id])) continue
      scores[id] = Number.NEGATIVE_INFINITY
    }
  }
}
