/** Prompts that end with the beginning of the answer, and what is written behind it. */
import { describe, expect, test } from 'vitest'
import type { Conversation } from '../../../src/engine/engine.ts'
import { createOutputFactory } from '../../../src/engine/run/output.ts'
import type { ModelConfig } from '../../../src/engine/text/config.ts'
import { createDetokenizerFactory } from '../../../src/engine/text/detokenizer.ts'
import type { TokenizerFile } from '../../../src/engine/text/tokenizer-file.ts'
import { createPromptBuilder, type PromptBuilder } from '../../../src/engine/text/prompt-builder.ts'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import { createPromptTokenizer } from '../../../src/engine/text/prompt-tokenizer.ts'
import type { ChatMessage } from '../../../src/types/index.ts'
import { BRACKETS, JOINED, KINDS, PLAIN, TAGGED } from '../../support/templates.ts'
import { TOKENIZERS } from '../../support/tokenizers.ts'

const NAMES = { bos_token: '<s>', eos_token: '</s>' }

const fileOf = (name: string): TokenizerFile => TOKENIZERS[name]?.() as TokenizerFile

const idOf = (text: string): number =>
  fileOf('bytes').added_tokens.find(({ content }) => content === text)?.id ?? -1

function open(source: string, name = 'bytes', window = 100_000): PromptBuilder {
  const tokenizer = fileOf(name)
  const ends = tokenizer.added_tokens.filter(({ content }) =>
    ['<|im_end|>', '</s>'].includes(content),
  )
  const config = {
    tokenizer,
    tokenizerConfig: NAMES,
    tokenNames: NAMES,
    templates: { plain: source, tools: null },
    endTokens: new Set(ends.map(({ id }) => id)),
  } as unknown as ModelConfig
  return createPromptBuilder(config, window)
}

const messages: ChatMessage[] = [{ role: 'user', content: 'the cat ' }]
const past = (content: string): Conversation => ({
  messages: [...messages, { role: 'assistant', content }],
})
const begun = (text: string, block?: string): Conversation => ({
  messages,
  responsePrefix: { text, ...(block !== undefined && { block }) },
})

/** As templates of this kind write a past answer, but for the space that others put before it. */
const SPACED = BRACKETS.replace(
  '{{- m.content + eos_token }}',
  "{{- ' ' + m.content + eos_token }}",
)

describe.each(Object.keys(TOKENIZERS))('%s', (name) => {
  test.each([
    ['PLAIN', PLAIN],
    ['TAGGED', TAGGED],
    ['BRACKETS', BRACKETS],
    ['a space before answers', SPACED],
  ])('the tokens are those of the whole, up to where the text ends: %s', (_kind, source) => {
    const { prepare } = open(source, name)
    for (const text of [
      'on a mat',
      'on a mat sat',
      'o',
      '{"a": [1',
      'Zürich 👍',
      'a <|im_end|> b',
    ]) {
      const { tokens, hasResponsePrefix: has } = prepare(begun(text))
      const whole = prepare(past(text)).tokens
      expect([text, tokens]).toEqual([text, whole.slice(0, tokens.length)])
      expect(tokens.length).toBeGreaterThan(prepare({ messages }).tokens.length)
      expect(has).toBe(true)
    }
  })

  test('nothing in it is structure', () => {
    const { prepare } = open(TAGGED, name)
    const count = (text: string): number => {
      const special = new Set(fileOf(name).added_tokens.map(({ id }) => id))
      return prepare(begun(text)).tokens.filter((id) => special.has(id)).length
    }
    const honest = count('x')
    for (const text of [
      '<|im_end|>',
      '<|im_end|>\n<|im_start|>user',
      '</s>',
      '<s>x',
      '[INST]',
      '<tool_call>',
    ]) {
      expect([text, count(text)]).toEqual([text, honest])
    }
  })
})

test('does not become structure together with what opens the answer', () => {
  const source =
    '{% for m in messages %}{{ m.content }}{% endfor %}' +
    '{% if add_generation_prompt %}<|im_{% endif %}{# <|im_end|> #}'
  const { prepare } = open(source)
  expect(prepare(begun('end|>')).tokens).not.toContain(idOf('<|im_end|>'))
})

const written = (source: string, conversation: Conversation): string =>
  parseTemplate(source, NAMES).render(conversation).text

test('stands where the template would have it', () => {
  expect(written(PLAIN, begun('Sat'))).toBe(
    '<|im_start|>user\nthe cat <|im_end|>\n<|im_start|>assistant\nSat',
  )
  expect(written(TAGGED, { ...begun('Sat'), thinking: false })).toBe(
    '<|im_start|>user\nthe cat <|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nSat',
  )
  expect(written(SPACED, begun('Sat'))).toBe('<s>[INST]the cat [/INST] Sat')
  expect(written(SPACED, begun(' Sat'))).toBe('<s>[INST]the cat [/INST] Sat')
  expect(written(SPACED, begun('Sat', '<b>'))).toBe('<s>[INST]the cat [/INST]<b>Sat')
  expect(written(JOINED, begun('Sat', '\n</think>\n\n'))).toBe(
    '<|im_start|>the cat <|im_start|>assistant<think>\n\n</think>\n\nSat',
  )
})

test('stands alone behind what opens it where the template takes no answer', () => {
  const source =
    "{% for m in messages %}{% if m.role != 'user' %}{{ raise_exception('No.') }}{% endif %}" +
    '[{{ m.content }}]{% endfor %}A:'
  expect(written(source, begun('Sat'))).toBe('[the cat ]A:Sat')
})

test('is neither a message nor what opens the answer', () => {
  const { prepare } = open(TAGGED)
  const bare = prepare({ messages })
  const prompt = prepare(begun('<think>so'))
  expect(prompt.boundaries).toEqual(bare.boundaries)
  expect(prompt.opening).toBe('<|im_start|>assistant\n')
  expect(prompt.tokens.slice(0, bare.tokens.length - 1)).toEqual(bare.tokens.slice(0, -1))
  expect([bare.hasResponsePrefix, prepare(begun('')).hasResponsePrefix]).toEqual([
    undefined,
    undefined,
  ])
})

test('has tokens of structure in the block before it', () => {
  const close = idOf('</think>')
  const { tokens } = open(JOINED).prepare(begun('a</think>', '\n</think>\n\n'))
  expect(tokens.filter((id) => id === close)).toHaveLength(1)
})

test('is made of more than fits where it is only to be counted', () => {
  const { prepare } = open(PLAIN, 'bytes', 200)
  const said = (words: number) => ({
    messages: [{ role: 'user' as const, content: 'a '.repeat(words) }],
  })
  const more = prepare(said(2), 4).tokens.length - prepare(said(1), 4).tokens.length
  expect(() => prepare(said(300))).toThrow(/prompt is too long: \d+ tokens > 199 /)
  const counted = prepare(said(300), 4).tokens.length
  expect(counted).toBe(prepare(said(1)).tokens.length + 299 * more)
  expect(() => prepare(said(900), 4)).toThrow(/prompt is too long: \d+ tokens > 199 /)
})

test('counts for what fits, which is told before anything is rendered', () => {
  const { prepare } = open(PLAIN, 'bytes', 2_000)
  expect(() => prepare(begun('a '.repeat(1_000_000)))).toThrow(
    /prompt is too long: \d+ tokens > 1999/,
  )
  const { render } = parseTemplate(PLAIN, NAMES)
  const seen: unknown[] = []
  const { encode } = createPromptTokenizer(fileOf('bytes'), NAMES, PLAIN)
  const watched: typeof render = (...given) => {
    seen.push(given)
    return render(...given)
  }
  expect(() => encode(begun('a '.repeat(1_000_000)), watched, 2_000)).toThrow(/prompt is too long/)
  expect(seen).toEqual([])
})

describe('what follows it', () => {
  test.each(Object.keys(TOKENIZERS))('keeps the space before its first word: %s', (name) => {
    const file = fileOf(name)
    const { prepare } = open(PLAIN, name)
    const start = prepare(begun('the cat')).tokens.length
    const ids = prepare(begun('the cat sat on')).tokens.slice(start)
    const text = createDetokenizerFactory(file, NAMES)([], true)
    expect(ids.map((id) => text.push(id)).join('')).toBe(' sat on')
  })

  test.each(Object.keys(TOKENIZERS))('is told with the bytes of that space: %s', (name) => {
    const tokenizer = fileOf(name)
    const outputs = createOutputFactory({
      tokenizer,
      tokenizerConfig: NAMES,
      sampling: { suppress: [] },
    } as unknown as ModelConfig)
    const { prepare } = open(PLAIN, name)
    const start = prepare(begun('the cat')).tokens.length
    const prompt = prepare(begun('the cat sat'))
    const [first = 0] = prompt.tokens.slice(start)
    const { toLogprob } = outputs(prompt, { sampling: {}, logprobs: 0 })
    expect(toLogprob?.(new Float32Array(100_000), first)?.bytes[0]).toBe(0x20)
  })
})

test.each(Object.keys(KINDS))('%s takes one', (kind) => {
  const name = kind === 'BRACKETS' ? 'merges, byte fallback' : 'bytes'
  expect(open(KINDS[kind] ?? '', name).prepare(begun('on a mat')).hasResponsePrefix).toBe(true)
})
