/** Writes the tokens of a text, the best one each time. */
import type { TokenRules } from '../../catalog/decoder-schema.ts'
import type { RawTensor } from '../tensor.ts'
import type { DecoderSession } from './decoder-session.ts'
import { applyRules, findBest } from './token-rules.ts'

interface WriteOptions {
  /** Tokens from which the text is written. */
  start: readonly number[]
  /** Tokens that end a text. */
  end: readonly number[]
  rules: TokenRules
  /** Changes the scores of the token after those of the text, after the rules. */
  adjust?: (scores: Float32Array, own: readonly number[]) => void
  /** Called before each token. It rejects to end the writing. */
  pause: () => Promise<void>
}

/** Number of tokens of a text that nothing else limits, as that of the pipelines of transformers. */
const DEFAULT_MAX_TOKENS = 256

/** Resolves with the new tokens for what the encoder returned, with the one that ends them. */
export async function writeTokens(
  session: DecoderSession,
  encoded: RawTensor,
  { start, end, rules, adjust, pause }: WriteOptions,
): Promise<number[]> {
  const own: number[] = []
  session.begin(encoded)
  let fed = start
  while (own.length < (rules.maxTokens ?? DEFAULT_MAX_TOKENS)) {
    await pause()
    const scores = await session.step(fed)
    applyRules(scores, { start, own }, rules, end)
    adjust?.(scores, own)
    const token = findBest(scores)
    own.push(token)
    if (end.includes(token)) break
    fed = [token]
  }
  return own
}
