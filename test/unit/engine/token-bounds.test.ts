import { Tokenizer } from '@huggingface/tokenizers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { modelUnusable } from '../../../src/engine/failure.ts'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import type { TokenizerFile } from '../../../src/engine/text/tokenizer-file.ts'
import { createPromptTokenizer } from '../../../src/engine/text/prompt-tokenizer.ts'
import type { ChatMessage } from '../../../src/types/index.ts'
import { TEMPLATE, TEXTS, TOKENIZERS } from '../../support/tokenizers.ts'

const CONFIG = { bos_token: '<s>', eos_token: '</s>' }
const NAMES = Object.keys(TOKENIZERS)
const { render } = parseTemplate(TEMPLATE, CONFIG)
const fileOf = (name: string): TokenizerFile => TOKENIZERS[name]?.() as TokenizerFile
type Render = typeof render
const open = (
  file: TokenizerFile,
): { encode: (messages: ChatMessage[], with_: Render, most: number) => readonly number[] } => {
  const { encode } = createPromptTokenizer(file, CONFIG, TEMPLATE)
  return { encode: (messages, with_, most) => encode({ messages }, with_, most).tokens }
}
const user = (content: string): ChatMessage[] => [{ role: 'user', content }]
const refused = (tokens: number, most: number): object =>
  expect.objectContaining({
    kind: 'invalid_request',
    code: 'context_length_exceeded',
    param: 'messages',
    message: expect.stringMatching(
      `^prompt is too long: ${tokens} tokens > ${most} maximum\\. .*exceeds the context window`,
    ),
  })

afterEach(() => vi.restoreAllMocks())

describe.each(NAMES)('%s', (name) => {
  const { encode } = open(fileOf(name))

  // Few tokens for much text: long words, runs that are one token, unknown characters that join.
  const dense = [' assistant'.repeat(300), '    '.repeat(300), '漢'.repeat(60), '👍'.repeat(30)]

  test.each([...TEXTS, ...dense])('takes what just fits, refuses what just does not', (content) => {
    const messages = user(content)
    const tokens = encode(messages, render, Number.POSITIVE_INFINITY)
    expect(encode(messages, render, tokens.length)).toEqual(tokens)
    expect(() => encode(messages, render, tokens.length - 1)).toThrow(
      expect.objectContaining({ code: 'context_length_exceeded' }),
    )
  })

  test('tokenises nothing where the text is far too long', () => {
    const tokenise = vi.spyOn(Tokenizer.prototype, 'encode')
    const most = 100
    expect(() => encode(user('é '.repeat(50_000)), render, most)).toThrow(
      expect.objectContaining({ message: expect.stringContaining('at least that many tokens') }),
    )
    expect(tokenise).not.toHaveBeenCalled()
  })
})

test('gives the count where it knows it', () => {
  const { encode } = open(fileOf('bytes'))
  const { length } = encode(user('a'), render, 1000)
  expect(() => encode(user('a'), render, length - 1)).toThrow(refused(length, length - 1))
})

test('does not even use the template where a conversation is beyond all measure', () => {
  const { encode } = open(fileOf('bytes'))
  const draw = vi.fn<typeof render>(render)
  const many = Array.from({ length: 400_000 }, () => ({ role: 'user', content: 'a' }) as const)
  for (const messages of [user('x'.repeat(9_000_000)), many]) {
    expect(() => encode(messages, draw, 2047)).toThrow(
      expect.objectContaining({ code: 'context_length_exceeded' }),
    )
  }
  expect(draw).not.toHaveBeenCalled()
})

test('takes long texts of which the template uses little', () => {
  const { encode } = open(fileOf('bytes'))
  const last = parseTemplate('{{ messages[-1].content }}<|im_end|>', {}).render
  const messages = [...user('x'.repeat(1000)), ...user('a')]
  expect(encode(messages, last, 20)).toHaveLength(2)
})

test('measures text as it is normalised', () => {
  const file = fileOf('bytes')
  const { encode } = open({ ...file, normalizer: { type: 'NFC' } })
  const messages = user('e\u0301'.repeat(100))
  const tokens = encode(messages, render, 1000)
  expect(encode(messages, render, tokens.length)).toEqual(tokens)
})

test('blames the conversation for a failing template only where it could not fit', () => {
  const { encode } = open(fileOf('bytes'))
  const fail = (): never => {
    throw modelUnusable('its chat template failed.')
  }
  expect(() => encode(user('x'.repeat(1000)), fail, 50)).toThrow(refused(112, 50))
  expect(() => encode(user('x'.repeat(100)), fail, 50)).toThrow(
    expect.objectContaining({ code: 'model_unusable' }),
  )
})
