/** Applies the rules of the next token to its scores, as transformers does in `generate()`. */
import type { TokenRules } from '../../catalog/decoder-schema.ts'

/** Tokens of a text so far. */
export interface WrittenTokens {
  /** Tokens from which the text is written. */
  start: readonly number[]
  /** New tokens. */
  own: readonly number[]
}

/** Sets the scores of tokens that the rules exclude to `-Infinity`, and scales those of repetitions. */
export function applyRules(
  scores: Float32Array,
  written: WrittenTokens,
  rules: TokenRules,
  end: readonly number[],
): void {
  const { start, own } = written
  const all = [...start, ...own]
  const forced = findForced(own.length, rules)
  if (rules.repetitionPenalty !== undefined) penalize(scores, all, rules.repetitionPenalty)
  const excluded = [
    ...(rules.noRepeat === undefined ? [] : listRepeating(all, rules.noRepeat)),
    ...listEnding(all, rules.exclude ?? [], end),
    ...(own.length < (rules.minTokens ?? 0) ? end : []),
  ]
  for (const token of excluded) scores[token] = -Infinity
  if (forced !== undefined) {
    scores.fill(-Infinity)
    scores[forced] = 0
  }
  const first = rules.firstToken === undefined ? 0 : 1
  const suppressed = own.length === first ? (rules.suppressFirst ?? []) : []
  for (const token of [...(rules.suppress ?? []), ...suppressed]) scores[token] = -Infinity
}

/** Returns the token with the highest score, the first of equals. */
export function findBest(scores: Float32Array): number {
  let best = 0
  for (let token = 1; token < scores.length; token++)
    if ((scores[token] ?? 0) > (scores[best] ?? 0)) best = token
  return best
}

/** Returns the only token that may come next; `undefined` if there are several. */
function findForced(count: number, { firstToken, lastToken, maxTokens }: TokenRules) {
  if (count + 1 === maxTokens && lastToken !== undefined) return lastToken
  return count === 0 ? firstToken : undefined
}

function penalize(scores: Float32Array, tokens: readonly number[], penalty: number): void {
  for (const token of new Set(tokens)) {
    const score = scores[token] ?? 0
    scores[token] = score < 0 ? score * penalty : score / penalty
  }
}

/** Returns the tokens with which the last ones would be a sequence of that length that is there before. */
function listRepeating(tokens: readonly number[], length: number): number[] {
  const before = tokens.slice(tokens.length - length + 1)
  if (tokens.length + 1 < length) return []
  return tokens.flatMap((token, at) =>
    at >= length - 1 && before.every((one, index) => tokens[at - length + 1 + index] === one)
      ? [token]
      : [],
  )
}

/** Returns the tokens that would complete one of the sequences. A single token that ends a text may. */
const listEnding = (
  tokens: readonly number[],
  sequences: readonly (readonly number[])[],
  end: readonly number[],
): number[] =>
  sequences.flatMap((sequence) => {
    const last = sequence.at(-1)
    const before = sequence.slice(0, -1)
    const from = tokens.length - before.length
    const isNext = from >= 0 && before.every((one, index) => tokens[from + index] === one)
    const isEnd = before.length === 0 && last !== undefined && end.includes(last)
    return isNext && !isEnd && last !== undefined ? [last] : []
  })
