/** How probable tokens were by a model's own scores. */
import { highest, logSumExp } from './rank.ts'

export interface Logprobs {
  /** Of the token, as a natural logarithm; no less than -9999. */
  logprob: number
  /** The most probable ones, by falling probability; the token may be among them. */
  top: readonly { id: number; logprob: number }[]
}

/** JSON has no infinity. */
const LEAST = -9999

/**
 * The probabilities that a row of scores gives, before any adjustment and at temperature 1: of
 * `token`, and of the `count` most probable ones.
 */
export function logprobsOf(row: Float32Array, token: number, count: number): Logprobs {
  const { ids, scores } = highest(row, Math.max(count, 1))
  const sum = logSumExp(row, scores[0] as number, 1)
  const logprob = (score: number): number => Math.max(score - sum, LEAST)
  return {
    logprob: logprob(row[token] ?? Number.NEGATIVE_INFINITY),
    top: Array.from(ids.subarray(0, count), (id) => ({ id, logprob: logprob(row[id] as number) })),
  }
}
