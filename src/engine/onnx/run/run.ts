/** The loop that turns a prompt into text, one token after the other. */
import { InoriginError } from '../../../error.ts'
import type { Ending, GenerateOptions, Piece, Prompt } from '../../engine.ts'
import type { Decoder, Sequence } from '../decoder/contract.ts'
import type { Detokenizer } from '../text/detokenizer.ts'
import { topOf } from '../sampling/logits.ts'
import { createSampler, type SamplingDefaults } from '../sampling/sampler.ts'
import { createTurns } from './turns.ts'

export interface Run {
  decoder: Decoder
  text: Detokenizer
  endTokens: ReadonlySet<number>
  contextWindow: number
  sampling: SamplingDefaults
}

/**
 * Yields text as it becomes certain. Throws `aborted` within one token, or one chunk of the prompt.
 */
export async function* decode(
  { decoder, text, endTokens, contextWindow, sampling }: Run,
  prompt: Prompt,
  { maxTokens, sampling: wanted, signal, onStart }: GenerateOptions,
): AsyncGenerator<Piece, Ending> {
  const sampler = createSampler(wanted, sampling, prompt.tokens)
  const limit = Math.min(maxTokens, contextWindow - prompt.tokens.length)
  const turns = createTurns()
  const sequence = decoder.open()
  let completionTokens = 0
  let untold = 0

  const breathe = async (): Promise<void> => {
    await turns.next()
    if (signal.aborted) throw new InoriginError('aborted', 'The request was cancelled.')
  }
  const end = (reason: Ending['reason']): Ending => ({ reason, completionTokens })

  try {
    onStart?.({ cachedTokens: 0 })
    let logits = await prefill(sequence, prompt.tokens, decoder.chunk, breathe)
    while (completionTokens < limit) {
      const row = logits
      const ask = sampler.ask(null)
      const token = await sampler.choose(ask, topOf(row, ask), async () => row)
      sampler.accept(token)
      completionTokens += 1
      untold += 1
      const ended = endTokens.has(token)
      const piece =
        ended || completionTokens === limit
          ? lastText(text, ended ? null : token)
          : text.push(token)
      if (piece !== '') {
        yield { text: piece, tokens: untold }
        untold = 0
      }
      if (ended) return end('stop')
      if (completionTokens === limit) break
      await breathe()
      logits = await (await sequence.predict([token])).row(0)
    }
    return end('length')
  } finally {
    sequence.close()
    turns.close()
  }
}

const lastText = (text: Detokenizer, token: number | null): string =>
  (token === null ? '' : text.push(token)) + text.flush()

/** Takes the prompt in chunks; gives the scores of the first token of the answer. */
async function prefill(
  sequence: Sequence,
  tokens: readonly number[],
  chunk: number,
  breathe: () => Promise<void>,
): Promise<Float32Array> {
  await breathe()
  let from = 0
  for (; tokens.length - from > chunk; from += chunk) {
    await sequence.extend(tokens.slice(from, from + chunk))
    await breathe()
  }
  return (await sequence.predict(tokens.slice(from))).row(0)
}
