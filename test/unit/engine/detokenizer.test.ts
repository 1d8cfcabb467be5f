import { Tokenizer } from '@huggingface/tokenizers'
import { describe, expect, test } from 'vitest'
import { createDecoding } from '../../../src/engine/onnx/text/detokenizer.ts'
import { createRandom } from '../../../src/engine/onnx/sampling/random.ts'
import type { TokenizerFile } from '../../../src/engine/onnx/text/tokenizer.ts'
import { TEXTS, TOKENIZERS } from '../../support/tokenizers.ts'

const CONFIG = { bos_token: '<s>', eos_token: '</s>', clean_up_tokenization_spaces: false }

function pieces(file: object, ids: readonly number[]): string[] {
  const text = createDecoding(file as TokenizerFile, CONFIG)()
  return [...ids.map((id) => text.push(id)), text.flush()]
}

describe.each(Object.entries(TOKENIZERS))('%s', (_, make) => {
  const plain = new Tokenizer(make(), CONFIG)
  const whole = (ids: number[]): string => plain.decode(ids, { skip_special_tokens: true })
  const size = plain.get_vocab().size

  test.each(TEXTS.map((text) => [text]))('puts together %j', (text) => {
    const { ids } = plain.encode(text, { add_special_tokens: false })
    const deltas = pieces(make(), ids)
    expect(deltas.join('')).toBe(whole(ids))
  })

  test('equals the whole for any tokens, halves of characters and control tokens too', () => {
    const random = createRandom(5)
    for (let round = 0; round < 300; round += 1) {
      const ids = Array.from({ length: 1 + Math.floor(random() * 30) }, () =>
        Math.floor(random() * size),
      )
      expect(pieces(make(), ids).join('')).toBe(whole(ids))
    }
  })
})

test('holds back the bytes of a character until it is whole', () => {
  const plain = new Tokenizer(TOKENIZERS['bytes']?.() as object, CONFIG)
  const { ids } = plain.encode('a👍b', { add_special_tokens: false })
  expect(pieces(TOKENIZERS['bytes']?.() as object, ids)).toEqual(['a', '', '', '', '👍', 'b', ''])
})

test('shows a replacement character only where the model ended within one', () => {
  const plain = new Tokenizer(TOKENIZERS['bytes']?.() as object, CONFIG)
  const { ids } = plain.encode('a👍', { add_special_tokens: false })
  expect(pieces(TOKENIZERS['bytes']?.() as object, ids.slice(0, -1))).toEqual([
    'a',
    '',
    '',
    '',
    '\uFFFD',
  ])
})

test('shows control tokens that are not special, and hides those that are', () => {
  const file = TOKENIZERS['bytes']?.() as TokenizerFile
  const id = (content: string): number =>
    file.added_tokens.find((token) => token.content === content)?.id ?? -1
  expect(pieces(file, [id('<think>'), id('<|im_end|>'), id('</think>')])).toEqual([
    '<think>',
    '',
    '</think>',
    '',
  ])
})

test('leaves spaces before punctuation as they are', () => {
  const file = TOKENIZERS['bytes']?.() as TokenizerFile
  const { ids } = new Tokenizer(file, CONFIG).encode('a . b ?', { add_special_tokens: false })
  expect(pieces(file, ids).join('')).toBe('a . b ?')
})

test('strips the end of a text that arrives in parts', () => {
  const file = TOKENIZERS['merges, byte fallback']?.() as TokenizerFile & {
    decoder: { decoders: object[] }
  }
  file.decoder.decoders[3] = { type: 'Strip', content: ' ', start: 1, stop: 1 }
  const plain = new Tokenizer(structuredClone(file), CONFIG)
  for (const text of ['a cat ', 'a  cat  ', 'a']) {
    const { ids } = plain.encode(text, { add_special_tokens: false })
    expect(pieces(file, ids).join('')).toBe(text.slice(0, text.endsWith(' ') ? -1 : undefined))
    expect(plain.decode(ids)).toBe(pieces(file, ids).join(''))
  }
})

test.each([{ type: 'CTC' }, null, { type: 'Replace', pattern: { Regex: '▁' }, content: ' ' }])(
  'refuses a decoder it cannot run piece by piece: %j',
  (decoder) => {
    const file = { ...(TOKENIZERS['bytes']?.() as TokenizerFile), decoder }
    expect(() => createDecoding(file, CONFIG)).toThrow(/tokenizer/)
  },
)
