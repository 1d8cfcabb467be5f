/** Writes the tokens of a text one by one. */
import type { TokenRules } from '../../catalog/decoder-schema.ts'
import type { RawTensor } from '../tensor.ts'
import type { AttentionHead, DecoderSession, DecoderStep } from './decoder-session.ts'
import { applyRules, findBest } from './token-rules.ts'

interface WriteOptions {
  /** Tokens from which the text is written. */
  start: readonly number[]
  /** Tokens that end a text. */
  end: readonly number[]
  rules: TokenRules
  /** Changes the scores of the token after those of the text, after the rules. */
  adjust?: (scores: Float32Array, own: readonly number[]) => void
  /** Returns the next token. Default: the best one. */
  choose?: ((scores: Float32Array) => number) | undefined
  /** Heads whose attention is wanted. Default: none. */
  heads?: readonly AttentionHead[] | undefined
  /** Called before each token. It rejects to end the writing. */
  pause: () => Promise<void>
}

/** A token of a text. */
export interface WrittenToken {
  token: number
  /** Scores that it was chosen from. */
  scores: Float32Array
  /** Step that made the scores. */
  step: DecoderStep
}

/** Number of tokens of a text that nothing else limits, as that of the pipelines of transformers. */
const DEFAULT_MAX_TOKENS = 256

/** Yields the new tokens for what the encoder returned, with the one that ends them. */
export async function* writeTokens(
  session: DecoderSession,
  encoded: RawTensor,
  { start, end, rules, adjust, choose = findBest, heads, pause }: WriteOptions,
): AsyncGenerator<WrittenToken> {
  const own: number[] = []
  session.begin(encoded, heads)
  let fed = start
  while (own.length < (rules.maxTokens ?? DEFAULT_MAX_TOKENS)) {
    await pause()
    const step = await session.step(fed)
    const scores = new Float32Array(step.rows.at(-1) ?? [])
    applyRules(scores, { start, own }, rules, end)
    adjust?.(scores, own)
    const token = choose(scores)
    own.push(token)
    yield { token, scores, step }
    if (end.includes(token)) return
    fed = [token]
  }
}
