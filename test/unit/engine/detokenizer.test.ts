import { Tokenizer } from '@huggingface/tokenizers'
import { describe, expect, test } from 'vitest'
import { createDetokenizerFactory } from '../../../src/engine/text/detokenizer.ts'
import { createRandom } from '../../../src/engine/sampling/random.ts'
import type { TokenizerFile } from '../../../src/engine/text/tokenizer-file.ts'
import { TEXTS, TOKENIZERS } from '../../support/tokenizers.ts'

const CONFIG = { bos_token: '<s>', eos_token: '</s>', clean_up_tokenization_spaces: false }

function pieces(file: object, ids: readonly number[]): string[] {
  const text = createDetokenizerFactory(file as TokenizerFile, CONFIG)()
  return ids.map((id) => text.push(id))
}

describe.each(Object.entries(TOKENIZERS))('%s', (name, make) => {
  const byteTokens = name === 'merges, byte fallback'
  const plain = new Tokenizer(make(), CONFIG)
  const whole = (ids: number[]): string => plain.decode(ids, { skip_special_tokens: true })
  const size = plain.get_vocab().size

  test.each(TEXTS.map((text) => [text]))('puts together %j', (text) => {
    const { ids } = plain.encode(text, { add_special_tokens: false })
    const deltas = pieces(make(), ids)
    // The library loses a byte order mark of byte tokens, which the original keeps.
    const kept = (all: string): string => (byteTokens ? all.replaceAll('\uFEFF', '') : all)
    expect(kept(deltas.join(''))).toBe(kept(whole(ids)))
  })

  test('equals the whole for any tokens, halves of characters and control tokens too', () => {
    const random = createRandom(5)
    for (let round = 0; round < 300; round += 1) {
      const ids = Array.from({ length: 1 + Math.floor(random() * 30) }, () =>
        Math.floor(random() * size),
      )
      const said = pieces(make(), ids).join('')
      const all = whole(ids)
      // But for a character that is not whole at the end.
      expect([all, all.replace(/\uFFFD$/, '')]).toContain(said)
    }
  })
})

test('holds back the bytes of a character until it is whole', () => {
  const plain = new Tokenizer(TOKENIZERS['bytes']?.() as object, CONFIG)
  const { ids } = plain.encode('a👍b', { add_special_tokens: false })
  expect(pieces(TOKENIZERS['bytes']?.() as object, ids)).toEqual(['a', '', '', '', '👍', 'b'])
})

test.each(['bytes', 'merges, byte fallback'])(
  'forgets a character that is not whole where another text follows: %s',
  (name) => {
    const plain = new Tokenizer(TOKENIZERS[name]?.() as object, CONFIG)
    const { ids } = plain.encode('a👍', { add_special_tokens: false })
    const text = createDetokenizerFactory(TOKENIZERS[name]?.() as TokenizerFile, CONFIG)()
    const cut = ids.slice(0, -1).map((id) => text.push(id))
    expect(cut.join('')).toBe('a')
    text.drop()
    const rest = plain.encode('👍', { add_special_tokens: false }).ids.map((id) => text.push(id))
    expect(rest.join('').trim()).toBe('👍')
  },
)

test.each(['bytes', 'merges, byte fallback'])('keeps a byte order mark: %s', (name) => {
  const file = TOKENIZERS[name]?.() as object
  const { ids } = new Tokenizer(file, CONFIG).encode('a\uFEFFb', { add_special_tokens: false })
  expect(pieces(file, ids).join('')).toBe('a\uFEFFb')
})

test('shows a replacement character where the model wrote what is none', () => {
  const plain = new Tokenizer(TOKENIZERS['bytes']?.() as object, CONFIG)
  const { ids } = plain.encode('👍b', { add_special_tokens: false })
  expect(pieces(TOKENIZERS['bytes']?.() as object, ids.slice(1)).join('')).toMatch(/^\uFFFD+b$/)
})

test('shows control tokens that are not special, and hides those that are', () => {
  const file = TOKENIZERS['bytes']?.() as TokenizerFile
  const id = (content: string): number =>
    file.added_tokens.find((token) => token.content === content)?.id ?? -1
  expect(pieces(file, [id('<think>'), id('<|im_end|>'), id('</think>')])).toEqual([
    '<think>',
    '',
    '</think>',
  ])
})

test('tells special tokens that are asked for, and only those', () => {
  const file = TOKENIZERS['bytes']?.() as TokenizerFile
  const id = (content: string): number =>
    file.added_tokens.find((token) => token.content === content)?.id ?? -1
  const open = createDetokenizerFactory(file, CONFIG)
  const tokens = ['<|im_start|>', '<think>', '<|im_end|>'].map(id)
  const told = (visible?: readonly string[]): string => {
    const text = open(visible)
    return tokens.map((token) => text.push(token)).join('')
  }
  expect(told(['<|im_start|>'])).toBe('<|im_start|><think>')
  expect(told(['<|im_start|>', '<|im_end|>'])).toBe('<|im_start|><think><|im_end|>')
  expect(told([])).toBe('<think>')
  expect(told()).toBe('<think>')
})

const EMOJI = [
  '👍',
  '👩‍👩‍👧‍👦',
  '🇪🇺',
  '👍🏽',
  '❤️‍🔥',
  'e\u0301',
  '世界',
  'नमस्ते',
  '\u{1F9D1}\u200D\u{1F680}',
  'ﷺ',
  'a',
]

test.each(['bytes', 'bytes, stripping', 'merges, byte fallback'])(
  'never shows a replacement character, wherever characters are cut: %s',
  (name) => {
    const random = createRandom(9)
    const plain = new Tokenizer(TOKENIZERS[name]?.() as object, CONFIG)
    const open = createDetokenizerFactory(TOKENIZERS[name]?.() as TokenizerFile, CONFIG)
    for (let round = 0; round < 100; round += 1) {
      const parts = Array.from({ length: 12 }, () => EMOJI[Math.floor(random() * EMOJI.length)])
      const whole = `x${parts.join(random() < 0.5 ? '' : ' ')}`
      const text = open()
      let said = ''
      for (const id of plain.encode(whole, { add_special_tokens: false }).ids) {
        const delta = text.push(id)
        expect(delta).not.toContain('\uFFFD')
        said += delta
        // Half of a pair would be shown as one too, once it is sent.
        expect(whole.startsWith(said)).toBe(true)
        expect(() => encodeURIComponent(said)).not.toThrow()
      }
      expect(said).toBe(whole)
    }
  },
)

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
    expect(() => createDetokenizerFactory(file, CONFIG)).toThrow(/tokenizer/)
  },
)
