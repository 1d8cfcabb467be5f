/** Creates the sampler, detokenizer and logprobs of an answer. */
import type { TokenLogprob, TokenProbability } from '../../types/index.ts'
import type { GenerateOptions, Prompt } from '../engine.ts'
import { computeLogprobs } from '../sampling/logprobs.ts'
import { createSampler, type Sampler } from '../sampling/sampler.ts'
import type { ModelConfig } from '../text/config.ts'
import { createDetokenizerFactory, type Detokenizer } from '../text/detokenizer.ts'
import { listTokenBytes } from '../text/vocabulary.ts'

/** The output stages of one answer. */
export interface Output {
  sampler: Sampler
  text: Detokenizer
  /**
   * Returns the logprobs of a token from a row of logits, or `null` if the token has no text.
   * Absent if logprobs were not requested.
   */
  logprob?: (row: Float32Array, token: number) => TokenLogprob | null
}

/** Creates the output stages for a prompt and the options of its run. */
export type Outputs = (
  prompt: Prompt,
  options: Pick<GenerateOptions, 'sampling' | 'visible' | 'logprobs'>,
) => Output

/** Returns a factory of output stages for a model. */
export function createOutputs({
  tokenizer,
  tokenizerConfig,
  sampling: defaults,
}: ModelConfig): Outputs {
  const openText = createDetokenizerFactory(tokenizer, tokenizerConfig)
  const bytesOf = remember((visible: readonly string[]) =>
    listTokenBytes(tokenizer, tokenizerConfig, visible),
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
 * Returns a function for the logprobs of a token and of the `count` most probable tokens. `opens`
 * returns the text of a token at the start of the answer.
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
    // Some tokenizers put a space before the first word. It is not part of the text.
    if (first && bytes[0] === SPACE && !opens(id).startsWith(' ')) bytes.shift()
    return { text: decoder.decode(Uint8Array.from(bytes)), bytes, logprob }
  }
  return (row, token) => {
    if (!spelling[token]) return null
    const { logprob, top } = computeLogprobs(row, token, count)
    const told = {
      ...probability(token, logprob),
      top: top.map((each) => probability(each.id, each.logprob)),
    }
    first = false
    return told
  }
}

/** Caches results by list. There are few different lists. */
function remember<T>(compute: (list: readonly string[]) => T): (list: readonly string[]) => T {
  const known = new Map<string, T>()
  return (list) => {
    const key = JSON.stringify(list)
    const result = known.get(key) ?? compute(list)
    known.set(key, result)
    return result
  }
}
