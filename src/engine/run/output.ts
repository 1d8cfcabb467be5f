/** Creates the sampler, detokenizer and logprobs of an answer. */
import type { TokenLogprob, TokenProbability } from '../../types/index.ts'
import type { GenerateOptions, Prompt } from '../engine.ts'
import { withoutImageRows } from '../images.ts'
import { memoize } from '../../values/memoize.ts'
import { computeLogprobs } from '../sampling/logprobs.ts'
import { createSampler, type Sampler } from '../sampling/sampler.ts'
import type { ModelConfig } from '../text/config.ts'
import { createDetokenizerFactory, type Detokenizer } from '../text/detokenizer.ts'
import { listTokenBytes } from '../text/vocabulary.ts'

/** The output stages of one answer. */
export interface Output {
  sampler: Sampler
  detokenizer: Detokenizer
  /**
   * Returns the logprobs of a token from a row of logits, or `null` if the token has no text.
   * Absent if logprobs were not requested.
   */
  toLogprob?: (row: Float32Array, token: number) => TokenLogprob | null
}

/** Creates the output stages for a prompt and the options of its run. */
type OutputFactory = (
  prompt: Prompt,
  options: Pick<GenerateOptions, 'sampling' | 'visible' | 'logprobs'>,
) => Output

/** Returns a factory of output stages for a model. */
export function createOutputFactory({
  tokenizer,
  tokenizerConfig,
  sampling: defaults,
}: ModelConfig): OutputFactory {
  const openDetokenizer = createDetokenizerFactory(tokenizer, tokenizerConfig)
  /** Returns the bytes of all tokens, by the visible special tokens as JSON. */
  const tokenBytesOf = memoize((visible: string) =>
    listTokenBytes(tokenizer, tokenizerConfig, JSON.parse(visible) as string[]),
  )

  return (prompt, { sampling, visible = [], logprobs }) => ({
    sampler: createSampler(sampling, defaults, withoutImageRows(prompt.tokens)),
    detokenizer: openDetokenizer(visible, prompt.hasResponsePrefix),
    ...(logprobs !== undefined && {
      toLogprob: createToLogprob(
        tokenBytesOf(JSON.stringify(visible)),
        (token) => openDetokenizer(visible, prompt.hasResponsePrefix).push(token),
        logprobs,
      ),
    }),
  })
}

const SPACE = 0x20

/**
 * Returns a function for the logprobs of a token and of the `count` most probable tokens.
 * `textAtStart` returns the text of a token at the start of the answer.
 */
function createToLogprob(
  bytesOfToken: readonly (Uint8Array | null)[],
  textAtStart: (token: number) => string,
  count: number,
): NonNullable<Output['toLogprob']> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let isFirst = true

  const probability = (id: number, logprob: number): TokenProbability => {
    const bytes = [...(bytesOfToken[id] ?? [])]
    // Some tokenizers put a space before the first word. It is not part of the text.
    if (isFirst && bytes[0] === SPACE && !textAtStart(id).startsWith(' ')) bytes.shift()
    return { text: decoder.decode(Uint8Array.from(bytes)), bytes, logprob }
  }
  return (row, token) => {
    if (!bytesOfToken[token]) return null
    const { logprob, top } = computeLogprobs(row, token, count)
    const result = {
      ...probability(token, logprob),
      top: top.map((each) => probability(each.id, each.logprob)),
    }
    isFirst = false
    return result
  }
}
