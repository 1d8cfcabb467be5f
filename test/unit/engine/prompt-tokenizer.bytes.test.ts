import { Tokenizer } from '@huggingface/tokenizers'
import { describe, expect, test } from 'vitest'
import { createRandom } from '../../../src/engine/sampling/random.ts'
import { createDetokenizerFactory } from '../../../src/engine/text/detokenizer.ts'
import type { TokenizerFile } from '../../../src/engine/text/tokenizer-file.ts'
import { listTokenBytes } from '../../../src/engine/text/vocabulary.ts'
import { TEXTS, TOKENIZERS } from '../../support/tokenizers.ts'

const CONFIG = { bos_token: '<s>', eos_token: '</s>' }
const fileOf = (name: string): TokenizerFile => TOKENIZERS[name]?.() as TokenizerFile
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
const ascii = (bytes: Uint8Array | null | undefined): string | null =>
  bytes ? utf8.decode(bytes) : null

/** Without a character that is not whole at the end. */
const joined = (bytes: readonly (Uint8Array | null)[], ids: readonly number[]): string =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(
    Uint8Array.from(ids.flatMap((id) => [...(bytes[id] ?? [])])),
    { stream: true },
  )

describe.each(Object.keys(TOKENIZERS))('%s', (name) => {
  const bytes = listTokenBytes(fileOf(name), CONFIG)
  const open = createDetokenizerFactory(fileOf(name), CONFIG)
  const whole = (ids: readonly number[]): string => {
    const text = open()
    return ids.map((id) => text.push(id)).join('')
  }

  /** Mid-text, so that what a tokenizer does to the beginning does not show. */
  const prefix = new Tokenizer(fileOf(name), CONFIG).encode('x', { add_special_tokens: false }).ids

  test('are what the detokenizer writes, for all tokens in any order', () => {
    const random = createRandom(3)
    for (let round = 0; round < 300; round += 1) {
      const ids = Array.from({ length: 20 }, () => Math.floor(random() * bytes.length))
      const text = whole([...prefix, ...ids])
      expect(joined(bytes, ids)).toBe(text.slice(whole(prefix).length))
    }
  })

  // What unigrams do not know is lost.
  const known = TEXTS.filter((text) => !name.startsWith('unigram') || /^[a-zA-Z ]*$/.test(text))

  test.each(known)('spell %j', (text) => {
    const { ids } = new Tokenizer(fileOf(name), CONFIG).encode(text, { add_special_tokens: false })
    // A space may have been put before the text, and Sentencepiece writes its mark for a space.
    const spaced = name.startsWith('bytes') ? text : text.replaceAll('▁', ' ')
    expect([spaced, ` ${spaced}`]).toContain(joined(bytes, ids))
  })

  test('are none for special tokens, but for those that are told', () => {
    const { added_tokens: tokens } = fileOf(name)
    const told = listTokenBytes(fileOf(name), CONFIG, ['<|im_end|>'])
    for (const { id, content, special } of tokens) {
      expect(ascii(bytes[id])).toBe(special === true ? null : content)
      expect(ascii(told[id])).toBe(special === true && content !== '<|im_end|>' ? null : content)
    }
  })
})

test('are single bytes of characters where the vocabulary has no more', () => {
  const level = fileOf('bytes')
  const { ids } = new Tokenizer(level, CONFIG).encode('👍', { add_special_tokens: false })
  const bytes = listTokenBytes(level, CONFIG)
  expect(ids.map((id) => [...(bytes[id] ?? [])])).toEqual([[0xf0], [0x9f], [0x91], [0x8d]])

  const fallback = fileOf('merges, byte fallback')
  const piece = (text: string): number =>
    (fallback.model.vocab as Record<string, number>)[text] ?? -1
  const spelled = listTokenBytes(fallback, CONFIG)
  expect([...(spelled[piece('<0xF0>')] ?? [])]).toEqual([0xf0])
  expect(ascii(spelled[piece('▁hello')])).toBe(' hello')
})

test('take special tokens from the configuration too', () => {
  const file = fileOf('bytes')
  const think = file.added_tokens.find(({ content }) => content === '<think>')?.id ?? -1
  expect(ascii(listTokenBytes(file, CONFIG)[think])).toBe('<think>')
  for (const listed of ['<think>', { content: '<think>' }]) {
    expect(listTokenBytes(file, { additional_special_tokens: [listed] })[think]).toBeNull()
  }
})
