/** Text and bytes of tokens, piece by piece. */
import { Tokenizer } from '@huggingface/tokenizers'
import { describe, expect, test } from 'vitest'
import { createOutputFactory } from '../../../src/engine/run/decode-loop.ts'
import { createRandom } from '../../../src/engine/sampling/sampler.ts'
import type { ModelConfig } from '../../../src/engine/text/config.ts'
import {
  createDetokenizerFactory,
  listTokenBytes,
  type TokenizerFile,
} from '../../../src/engine/text/vocabulary.ts'
import { runs } from '../../support/runs.ts'
import {
  encodePlain,
  fileOf,
  idOf,
  SPECIAL_NAMES,
  TEXTS,
  TOKENIZER_NAMES,
} from '../../support/tokenizers.ts'

const CONFIG = { ...SPECIAL_NAMES, clean_up_tokenization_spaces: false }

/** Returns a function that makes the pieces of text of tokens. */
function openPieces(file: TokenizerFile, visible?: readonly string[]) {
  const open = createDetokenizerFactory(file, CONFIG)
  return (ids: readonly number[]): string[] => {
    const text = open(visible)
    return ids.map((id) => text.push(id))
  }
}

/** Decodes bytes that may end within a character. */
const decode = (bytes: readonly number[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes), { stream: true })

const ascii = (bytes: Uint8Array | null | undefined): string | null =>
  bytes ? decode([...bytes]) : null

describe.each(TOKENIZER_NAMES)('%s', (name) => {
  const plain = new Tokenizer(fileOf(name), CONFIG)
  const { size } = plain.get_vocab()
  const pieces = openPieces(fileOf(name))
  const whole = (ids: number[]): string => plain.decode(ids, { skip_special_tokens: true })
  const random = createRandom(5)
  const draw = (count: number): number[] =>
    Array.from({ length: count }, () => Math.floor(random() * size))

  const tokenBytes = listTokenBytes(fileOf(name), CONFIG)
  const joined = (ids: readonly number[]): string =>
    decode(ids.flatMap((id) => [...(tokenBytes[id] ?? [])]))

  const outputs = createOutputFactory({
    tokenizer: fileOf(name),
    tokenizerConfig: CONFIG,
    sampling: { suppress: [] },
  } as unknown as ModelConfig)
  const row = Float32Array.from({ length: size }, random)
  const prompt = { tokens: [1], boundaries: [], opening: '' }

  /** Returns the text of an answer, and the logprobs of its tokens. */
  function write(ids: readonly number[]) {
    const { detokenizer, toLogprob } = outputs(prompt, { sampling: {}, logprobs: 3 })
    const logprobs = ids.map((id) => toLogprob?.(row, id) ?? null)
    return {
      text: ids.map((id) => detokenizer.push(id)).join(''),
      bytes: logprobs.flatMap((each) => each?.bytes ?? []),
      first: logprobs[0],
    }
  }

  test.each(TEXTS)('pieces and bytes are the text: %j', (text) => {
    const ids = encodePlain(name, text)
    // The library loses a byte order mark of byte tokens, which the original keeps.
    const kept = (all: string): string =>
      name === 'merges, byte fallback' ? all.replaceAll('\uFEFF', '') : all
    expect(kept(pieces(ids).join(''))).toBe(kept(whole(ids)))
    const made = write(ids)
    expect(decode(made.bytes)).toBe(made.text)
    // Unigrams lose characters that they do not know.
    if (name.startsWith('unigram') && !/^[a-zA-Z ]*$/.test(text)) return
    // A space may stand before the text, and Sentencepiece writes its mark for a space.
    const spaced = name.startsWith('bytes') ? text : text.replaceAll('▁', ' ')
    expect([spaced, ` ${spaced}`]).toContain(joined(ids))
  })

  test('pieces and bytes are the text of any tokens, in any order', () => {
    // In the middle of a text, so that what a tokenizer does to its beginning does not show.
    const prefix = plain.encode('x', { add_special_tokens: false }).ids
    const { length } = pieces(prefix).join('')
    for (let round = 0; round < runs(60, 300); round += 1) {
      const ids = draw(1 + Math.floor(random() * 30))
      const all = whole(ids)
      // But for an incomplete character at the end.
      expect([all, all.replace(/\uFFFD$/, '')]).toContain(pieces(ids).join(''))
      expect(joined(ids)).toBe(
        pieces([...prefix, ...ids])
          .join('')
          .slice(length),
      )
      const { text, bytes } = write(ids)
      expect(decode(bytes)).toBe(text)
    }
  })

  test('the bytes of a first token are the same among the most probable ones', () => {
    const { first } = write([row.indexOf(Math.max(...row)), 5])
    const { text, bytes, logprob } = first ?? {}
    expect(first?.top[0]).toEqual({ text, bytes, logprob })
  })

  test('every token has a logprob, a special one with its name and no bytes', () => {
    const { toLogprob } = outputs(prompt, { sampling: {}, logprobs: 0 })
    for (const { id, content, special } of fileOf(name).added_tokens) {
      const { text, bytes } = toLogprob?.(row, id) ?? {}
      if (special) expect([text, bytes]).toEqual([content, []])
      else expect(bytes?.length).toBeGreaterThan(0)
    }
    expect(toLogprob?.(row, size + 5)).toMatchObject({ text: '', bytes: [] })
  })

  test('special tokens have no bytes, but for visible ones', () => {
    const visible = listTokenBytes(fileOf(name), CONFIG, ['<|im_end|>'])
    for (const { id, content, special } of fileOf(name).added_tokens) {
      expect(ascii(tokenBytes[id])).toBe(special ? null : content)
      expect(ascii(visible[id])).toBe(special && content !== '<|im_end|>' ? null : content)
    }
  })
})

test('tokens have single bytes of characters that are not in the vocabulary', () => {
  const bytes = listTokenBytes(fileOf('bytes'), CONFIG)
  const bytesOf = encodePlain('bytes', '👍').map((id) => [...(bytes[id] ?? [])])
  expect(bytesOf).toEqual([[0xf0], [0x9f], [0x91], [0x8d]])

  const fallback = fileOf('merges, byte fallback')
  const vocabulary = fallback.model.vocab as Record<string, number>
  const spelled = listTokenBytes(fallback, CONFIG)
  expect([...(spelled[vocabulary['<0xF0>'] ?? -1] ?? [])]).toEqual([0xf0])
  expect(ascii(spelled[vocabulary['▁hello'] ?? -1])).toBe(' hello')
})

test('the configuration may list special tokens, too', () => {
  const think = idOf('<think>')
  expect(ascii(listTokenBytes(fileOf('bytes'), CONFIG)[think])).toBe('<think>')
  for (const listed of ['<think>', { content: '<think>' }]) {
    const config = { additional_special_tokens: [listed] }
    expect(listTokenBytes(fileOf('bytes'), config)[think]).toBeNull()
  }
})

test('a character is held back until it is complete', () => {
  const ids = encodePlain('bytes', 'a👍b')
  expect(openPieces(fileOf('bytes'))(ids)).toEqual(['a', '', '', '', '👍', 'b'])
})

const BYTE_TOKENIZERS = ['bytes', 'merges, byte fallback']

test.each(BYTE_TOKENIZERS)('an incomplete character is dropped before another text: %s', (name) => {
  const text = createDetokenizerFactory(fileOf(name), CONFIG)()
  const cut = encodePlain(name, 'a👍').slice(0, -1)
  expect(cut.map((id) => text.push(id)).join('')).toBe('a')
  text.drop()
  const rest = encodePlain(name, '👍').map((id) => text.push(id))
  expect(rest.join('').trim()).toBe('👍')
})

test.each(BYTE_TOKENIZERS)('a byte order mark stays: %s', (name) => {
  const pieces = openPieces(fileOf(name))
  expect(pieces(encodePlain(name, 'a\uFEFFb')).join('')).toBe('a\uFEFFb')
})

test('bytes that are no character become a replacement character', () => {
  const ids = encodePlain('bytes', '👍b').slice(1)
  expect(openPieces(fileOf('bytes'))(ids).join('')).toMatch(/^\uFFFD+b$/)
})

test.each<[visible: string[] | undefined, text: string]>([
  [['<|im_start|>'], '<|im_start|><think>'],
  [['<|im_start|>', '<|im_end|>'], '<|im_start|><think><|im_end|>'],
  [[], '<think>'],
  [undefined, '<think>'],
])('special tokens are hidden, but for visible ones: %j', (visible, text) => {
  const ids = ['<|im_start|>', '<think>', '<|im_end|>'].map((content) => idOf(content))
  expect(openPieces(fileOf('bytes'), visible)(ids).join('')).toBe(text)
})

test.each(['bytes', 'bytes, stripping', 'merges, byte fallback'])(
  'no piece has half a character: %s',
  (name) => {
    const emoji = '👍 👩‍👩‍👧‍👦 🇪🇺 👍🏽 ❤️‍🔥 e\u0301 世界 नमस्ते \u{1F9D1}\u200D\u{1F680} ﷺ a'.split(' ')
    const random = createRandom(9)
    const pieces = openPieces(fileOf(name))
    const plain = new Tokenizer(fileOf(name), CONFIG)
    for (let round = 0; round < runs(20, 100); round += 1) {
      const parts = Array.from({ length: 12 }, () => emoji[Math.floor(random() * emoji.length)])
      const whole = `x${parts.join(random() < 0.5 ? '' : ' ')}`
      let text = ''
      for (const piece of pieces(plain.encode(whole, { add_special_tokens: false }).ids)) {
        expect(piece).not.toContain('\uFFFD')
        text += piece
        expect(whole.startsWith(text)).toBe(true)
        // Half of a surrogate pair would become a replacement character when it is sent.
        expect(() => encodeURIComponent(text)).not.toThrow()
      }
      expect(text).toBe(whole)
    }
  },
)

test('spaces before punctuation stay', () => {
  const ids = encodePlain('bytes', 'a . b ?')
  expect(openPieces(fileOf('bytes'))(ids).join('')).toBe('a . b ?')
})

test('the end of a text is stripped if the tokenizer says so', () => {
  const name = 'merges, byte fallback'
  const file = fileOf(name) as TokenizerFile & { decoder: { decoders: object[] } }
  file.decoder.decoders[3] = { type: 'Strip', content: ' ', start: 1, stop: 1 }
  const plain = new Tokenizer(structuredClone(file), CONFIG)
  const pieces = openPieces(file)
  for (const text of ['a cat ', 'a  cat  ', 'a']) {
    const ids = encodePlain(name, text)
    expect(pieces(ids).join('')).toBe(text.slice(0, text.endsWith(' ') ? -1 : undefined))
    expect(plain.decode(ids)).toBe(pieces(ids).join(''))
  }
})

test.each([{ type: 'CTC' }, null, { type: 'Replace', pattern: { Regex: '▁' }, content: ' ' }])(
  'a decoder that needs the whole text is rejected: %j',
  (decoder) => {
    const file = { ...fileOf('bytes'), decoder }
    expect(() => createDetokenizerFactory(file, CONFIG)).toThrow(/tokenizer/)
  },
)
