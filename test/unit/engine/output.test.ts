import { Tokenizer } from '@huggingface/tokenizers'
import { describe, expect, test } from 'vitest'
import { createOutputFactory } from '../../../src/engine/run/output.ts'
import { createRandom } from '../../../src/engine/sampling/random.ts'
import type { ModelConfig } from '../../../src/engine/text/config.ts'
import type { TokenizerFile } from '../../../src/engine/text/tokenizer-file.ts'
import { TEXTS, TOKENIZERS } from '../../support/tokenizers.ts'

const CONFIG = { bos_token: '<s>', eos_token: '</s>' }
const PROMPT = { tokens: [1], boundaries: [], opening: '' }

/** Of bytes that may end within a character. */
const read = (bytes: readonly number[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes), { stream: true })

describe.each(Object.keys(TOKENIZERS))('%s', (name) => {
  const tokenizer = TOKENIZERS[name]?.() as TokenizerFile
  const outputs = createOutputFactory({
    tokenizer,
    tokenizerConfig: CONFIG,
    sampling: { suppress: [] },
  } as unknown as ModelConfig)
  const { size } = new Tokenizer(tokenizer, CONFIG).get_vocab()
  const random = createRandom(4)
  const row = Float32Array.from({ length: size }, random)

  /** What is written, and the bytes of the tokens that it was written with. */
  function write(ids: readonly number[]) {
    const { detokenizer, toLogprob } = outputs(PROMPT, { sampling: {}, logprobs: 3 })
    const told = ids.map((id) => toLogprob?.(row, id) ?? null)
    return {
      text: ids.map((id) => detokenizer.push(id)).join(''),
      bytes: told.flatMap((each) => each?.bytes ?? []),
      told,
    }
  }

  test('the bytes of all tokens are the text, from its first on', () => {
    for (let round = 0; round < 200; round += 1) {
      const ids = Array.from({ length: 12 }, () => Math.floor(random() * size))
      const { text, bytes } = write(ids)
      expect(read(bytes)).toBe(text)
    }
  })

  test.each(TEXTS)('the bytes of %j', (text) => {
    const { ids } = new Tokenizer(tokenizer, CONFIG).encode(text, { add_special_tokens: false })
    const made = write(ids)
    expect(read(made.bytes)).toBe(made.text)
  })

  test('those of a first token are the same among the most probable ones', () => {
    const { told } = write([row.indexOf(Math.max(...row)), 5])
    expect(told[0]?.top[0]).toEqual({
      text: told[0]?.text,
      bytes: told[0]?.bytes,
      logprob: told[0]?.logprob,
    })
  })
})
