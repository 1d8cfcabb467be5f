/** Computes logprobs from a model's own logits. */
import { logSumExp, topLogits } from './rank.ts'

/** Logprobs at one position. */
interface Logprobs {
  /** Natural logarithm of the token's probability, at least -9999. */
  logprob: number
  /** Most probable tokens in descending order. The token itself may be among them. */
  top: readonly { id: number; logprob: number }[]
}

/** Lower limit of logprobs, because JSON has no infinity. */
const MIN_LOGPROB = -9999

/**
 * Returns the logprobs of `token` and of the `count` most probable tokens. They are computed before
 * any adjustment and at temperature 1.
 */
export function computeLogprobs(row: Float32Array, token: number, count: number): Logprobs {
  const { ids, scores } = topLogits(row, Math.max(count, 1))
  const sum = logSumExp(row, scores[0] as number, 1)
  const logprob = (score: number): number => Math.max(score - sum, MIN_LOGPROB)
  return {
    logprob: logprob(row[token] ?? Number.NEGATIVE_INFINITY),
    top: Array.from(ids.subarray(0, count), (id) => ({ id, logprob: logprob(row[id] as number) })),
  }
}
