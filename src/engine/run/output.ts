/** What an answer is written with: how its tokens are chosen, and what is told of them. */
import type { TokenLogprob, TokenProbability } from '../../types/index.ts'
import type { GenerateOptions, Prompt } from '../engine.ts'
import { logprobsOf } from '../sampling/logprobs.ts'
import { createSampler, type Sampler } from '../sampling/sampler.ts'
import type { ModelConfig } from '../text/config.ts'
import { createDecoding, type Detokenizer } from '../text/detokenizer.ts'
import { tokenBytes } from '../text/vocabulary.ts'

/** For one answer. */
export interface Output {
  sampler: Sampler
  text: Detokenizer
  /** Of a token out of a row of scores, `null` where it is not text; absent: none is to be told. */
  logprob?: (row: Float32Array, token: number) => TokenLogprob | null
}

export type Outputs = (
  prompt: Prompt,
  options: Pick<GenerateOptions, 'sampling' | 'visible' | 'logprobs'>,
) => Output

export function createOutputs({
  tokenizer,
  tokenizerConfig,
  sampling: defaults,
}: ModelConfig): Outputs {
  const openText = createDecoding(tokenizer, tokenizerConfig)
  const bytesOf = remember((visible: readonly string[]) =>
    tokenBytes(tokenizer, tokenizerConfig, visible),
  )

  return (prompt, { sampling, visible = [], logprobs }) => ({
    sampler: createSampler(sampling, defaults, prompt.tokens),
    text: openText(visible, prompt.begun),
    ...(logprobs !== undefined && {
      logprob: describe(
        bytesOf(visible),
        (token) => openText(visible, prompt.begun).push(token),
        logprobs,
      ),
    }),
  })
}

const SPACE = 0x20

/**
 * Says how probable a token was, and the `count` most probable ones. `opens` is the text of a token
 * that is the first.
 */
function describe(
  spelling: readonly (Uint8Array | null)[],
  opens: (token: number) => string,
  count: number,
): NonNullable<Output['logprob']> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let first = true

  const probability = (id: number, logprob: number): TokenProbability => {
    const bytes = [...(spelling[id] ?? [])]
    // Some tokenizers put a space before the first word, which is no part of the text.
    if (first && bytes[0] === SPACE && !opens(id).startsWith(' ')) bytes.shift()
    return { text: decoder.decode(Uint8Array.from(bytes)), bytes, logprob }
  }
  return (row, token) => {
    if (!spelling[token]) return null
    const { logprob, top } = logprobsOf(row, token, count)
    const told = {
      ...probability(token, logprob),
      top: top.map((each) => probability(each.id, each.logprob)),
    }
    first = false
    return told
  }
}

/** The same result for equal lists, of which there are few. */
function remember<T>(compute: (list: readonly string[]) => T): (list: readonly string[]) => T {
  const known = new Map<string, T>()
  return (list) => {
    const key = JSON.stringify(list)
    const result = known.get(key) ?? compute(list)
    known.set(key, result)
    return result
  }
}
