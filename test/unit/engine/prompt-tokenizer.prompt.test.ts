import { Tokenizer } from '@huggingface/tokenizers'
import { describe, expect, test } from 'vitest'
import type { Conversation, Prompt } from '../../../src/engine/engine.ts'
import type { ModelConfig } from '../../../src/engine/text/config.ts'
import { createPromptBuilder, type PromptBuilder } from '../../../src/engine/text/prompt-builder.ts'
import type { TokenizerFile } from '../../../src/engine/text/tokenizer-file.ts'
import type { ChatMessage, Tool } from '../../../src/types/index.ts'
import { BRACKETS, JOINED, KINDS, PLAIN, PYTHONIC, TAGGED } from '../../support/templates.ts'
import { TOKENIZERS } from '../../support/tokenizers.ts'

const NAMES = { bos_token: '<s>', eos_token: '</s>' }

const idOf = (file: TokenizerFile, text: string): number =>
  file.added_tokens.find(({ content }) => content === text)?.id ?? -1

function open(source: string, name = 'bytes', tools: string | null = null): PromptBuilder {
  const tokenizer = TOKENIZERS[name]?.() as TokenizerFile
  const config: ModelConfig = {
    tokenizer,
    tokenizerConfig: NAMES,
    tokenNames: NAMES,
    templates: { plain: source, tools },
    endTokens: new Set(['<|im_end|>', '</s>'].map((text) => idOf(tokenizer, text))),
    contextWindow: 100_000,
    firstPosition: 0,
    sampling: { temperature: 0, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1, suppress: [] },
  }
  return createPromptBuilder(config, 100_000)
}

const textOf = (ids: readonly number[], name = 'bytes'): string =>
  ids.length === 0
    ? ''
    : new Tokenizer(TOKENIZERS[name]?.() as object, NAMES).decode([...ids], {
        skip_special_tokens: false,
        clean_up_tokenization_spaces: false,
      })

/** The text up to each boundary that was not part of the one before. */
function parts({ tokens, boundaries }: Prompt): string[] {
  const all = [0, ...boundaries, tokens.length]
  return all.slice(1).map((end, index) => {
    const before = textOf(tokens.slice(0, all[index]))
    return textOf(tokens.slice(0, end)).slice(before.length)
  })
}

const tool: Tool = { name: 'f', description: 'd', parameters: { type: 'object', properties: {} } }
const talk: ChatMessage[] = [
  { role: 'system', content: 'be kind' },
  { role: 'user', content: 'the cat ' },
  { role: 'assistant', content: '', toolCalls: [{ id: 'c', name: 'f', arguments: '{"a": 1}' }] },
  { role: 'tool', toolCallId: 'c', name: 'f', content: 'sat' },
  { role: 'assistant', content: 'on a mat' },
  { role: 'user', content: 'the cat ' },
]

test('knows where messages end, the tools among them', () => {
  const prompt = open(`${TAGGED}{# <tool_call> #}`).prepare({ messages: talk, tools: [tool] })
  const found = parts(prompt)
  expect(found).toHaveLength(7)
  expect(found[0]).toMatch(/^<\|im_start\|>system\nbe kind\n\n<tools>[^]*<\|im_end\|>$/)
  expect(found.slice(1)).toEqual([
    '\n<|im_start|>user\nthe cat <|im_end|>',
    '\n<|im_start|>assistant\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>',
    '\n<|im_start|>user\n<tool_response>\nsat\n</tool_response><|im_end|>',
    '\n<|im_start|>assistant\non a mat<|im_end|>',
    '\n<|im_start|>user\nthe cat <|im_end|>',
    '\n<|im_start|>assistant\n',
  ])
  expect(prompt.opening).toBe('<|im_start|>assistant\n')
})

test('ends a message where the next token of structure begins when it has no end of its own', () => {
  const source =
    "{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' + m.content }}{% endfor %}"
  const { prepare } = open(`${source}{% if add_generation_prompt %}<|im_start|>so{% endif %}`)
  const prompt = prepare({ messages: [talk[0] as ChatMessage, talk[1] as ChatMessage] })
  expect(parts(prompt)).toEqual([
    '<s><|im_start|>be kind',
    '<|im_start|>the cat ',
    '<|im_start|>so',
  ])
  expect(prompt.opening).toBe('<|im_start|>so')
})

describe.each(Object.keys(KINDS))('%s', (kind) => {
  const { prepare } = open(
    KINDS[kind] ?? '',
    kind === 'BRACKETS' ? 'merges, byte fallback' : 'bytes',
  )
  const called = kind !== 'PLAIN'
  const messages = called ? talk : talk.filter(({ content }) => content !== '' && content !== 'sat')
  const make = (count: number, last: string, tools?: Tool[]): Conversation => ({
    messages: [...messages.slice(0, count), { role: 'user', content: last }],
    ...(tools && { tools }),
  })

  test('shares all that is before a boundary with conversations that part behind it', () => {
    const count = messages.findLastIndex(({ role }) => role === 'user')
    const one = prepare(make(count, 'the mat sat'))
    const other = prepare(make(count, 'hello'))
    const shared = one.tokens.findIndex((token, at) => token !== other.tokens[at])
    const last = one.boundaries.filter((at) => at <= shared).at(-1) ?? 0
    expect(last).toBeGreaterThan(0)
    // What stands between two messages at most.
    expect(shared - last).toBeLessThan(30)
    expect(one.boundaries).toEqual([...one.boundaries].sort((a, b) => a - b))
    expect(new Set(one.boundaries).size).toBe(one.boundaries.length)
  })

  test('opens the answer with the end of the prompt', () => {
    const prompt = prepare(make(2, 'hello'))
    expect(textOf(prompt.tokens).endsWith(prompt.opening)).toBe(true)
    expect(prompt.opening.startsWith(kind === 'BRACKETS' ? '' : '<|im_start|>assistant')).toBe(true)
    expect(prompt.opening).not.toContain('hello')
  })
})

test('opens with thoughts that are to be, or are over', () => {
  const { prepare } = open(TAGGED)
  const messages: ChatMessage[] = [{ role: 'user', content: 'hello' }]
  expect(prepare({ messages }).opening).toBe('<|im_start|>assistant\n')
  expect(prepare({ messages, thinking: true }).opening).toBe('<|im_start|>assistant\n')
  expect(prepare({ messages, thinking: false }).opening).toBe(
    '<|im_start|>assistant\n<think>\n\n</think>\n\n',
  )
  expect(open(JOINED).prepare({ messages }).opening).toBe('<|im_start|>assistant<think>\n')
  expect(open(BRACKETS).prepare({ messages }).opening).toBe('')
})

test('opens with the token that differs from what stands there without an answer', () => {
  const source =
    '{{ messages[0].content }}<|im_end|>' +
    "{{ '<|im_start|>assistant' if add_generation_prompt else '<|im_end|>' }}"
  const prompt = open(source).prepare({ messages: [{ role: 'user', content: 'hello' }] })
  expect(prompt.opening).toBe('<|im_start|>assistant')
})

test('finds the opening where a template looks at how messages begin or end', () => {
  const source =
    "{% for m in messages %}{{ '!' if m.content.endswith('?') else '.' }}{{ m.content }}<|im_end|>" +
    '{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}'
  const prompt = open(source).prepare({ messages: [{ role: 'user', content: 'hello?' }] })
  expect(textOf(prompt.tokens)).toBe('!hello?<|im_end|><|im_start|>')
  expect(prompt.opening).toBe('<|im_start|>')
  expect(prompt.boundaries.every((at) => at <= prompt.tokens.length)).toBe(true)
})

test('uses the template for tools where there are tools, calls or results', () => {
  const { prepare } = open(
    'plain',
    'bytes',
    '{% for t in tools %}{{ t.function.name }}{% endfor %}+',
  )
  const say = (conversation: Conversation): string => textOf(prepare(conversation).tokens, 'bytes')
  expect(say({ messages: talk.slice(0, 2) })).toBe('plain')
  expect(say({ messages: talk.slice(0, 2), tools: [] })).toBe('plain')
  expect(say({ messages: talk.slice(0, 2), tools: [tool] })).toBe('f+')
  expect(say({ messages: talk.slice(0, 3) })).toBe('+')
})

test('counts tools, names and arguments before it writes a word', () => {
  const long = 'hello '.repeat(200_000)
  const { prepare } = open(PYTHONIC)
  const cases: Conversation[] = [
    { messages: talk.slice(0, 2), tools: [{ ...tool, description: long.repeat(10) }] },
    {
      messages: [
        ...talk.slice(0, 2),
        {
          role: 'assistant',
          content: '',
          toolCalls: [{ id: 'c', name: 'f', arguments: JSON.stringify({ a: long.repeat(10) }) }],
        },
      ],
    },
  ]
  for (const conversation of cases) {
    expect(() => prepare(conversation)).toThrow(
      expect.objectContaining({ code: 'context_length_exceeded' }),
    )
  }
})

test('reads structure in what the engine itself writes', () => {
  const { encodeTrusted } = open(PLAIN, 'bytes')
  const file = TOKENIZERS['bytes']?.() as TokenizerFile
  const end = idOf(file, '</think>')
  expect(encodeTrusted('</think>\n\n')[0]).toBe(end)
  expect(encodeTrusted('a<|im_end|>')).toContain(idOf(file, '<|im_end|>'))
  expect(textOf(encodeTrusted('so: </think>\n\n'), 'bytes')).toBe('so: </think>\n\n')
  expect(encodeTrusted('')).toEqual([])
})

test('puts no space before what it continues with', () => {
  const { encodeTrusted } = open(PLAIN, 'unigram, space first')
  const letters = textOf(
    [...encodeTrusted('hello'), ...encodeTrusted('world')],
    'unigram, space first',
  )
  expect(letters).toBe('helloworld')
})

test('knows no end of messages that leave no trace', () => {
  const prompt = open(PLAIN).prepare({ messages: [{ role: 'user', content: ' ' }] })
  expect(prompt.boundaries).toEqual([])
  expect(
    open('{{ messages[0].content }}').prepare({ messages: talk.slice(1, 2) }).boundaries,
  ).toEqual([])
})
