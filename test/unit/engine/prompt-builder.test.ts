/** Prompts: where their messages end, how the answer opens, and the beginning of an answer from the request. */
import { Tokenizer } from '@huggingface/tokenizers'
import { describe, expect, test, vi } from 'vitest'
import type { Conversation, Prompt } from '../../../src/engine/engine.ts'
import { createOutputFactory } from '../../../src/engine/run/decode-loop.ts'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import type { ModelConfig } from '../../../src/engine/text/config.ts'
import { createDetokenizerFactory } from '../../../src/engine/text/vocabulary.ts'
import { createPromptBuilder, PromptTokenizer } from '../../../src/engine/text/prompt-tokenizer.ts'
import type { ChatMessage, Tool } from '../../../src/types/index.ts'
import { BRACKETS, JOINED, KINDS, PLAIN, PYTHONIC, TAGGED } from '../../support/templates.ts'
import { fileOf, idOf, SPECIAL_NAMES, TOKENIZER_NAMES } from '../../support/tokenizers.ts'

interface Options {
  name?: string
  /** Template of conversations with tools. */
  tools?: string | null
  window?: number
}

function open(source: string, options: Options = {}) {
  const { name = 'bytes', tools = null, window = 100_000 } = options
  const tokenizer = fileOf(name)
  const config = {
    tokenizer,
    tokenizerConfig: SPECIAL_NAMES,
    tokenNames: SPECIAL_NAMES,
    templates: { plain: source, tools },
    endTokens: new Set(['<|im_end|>', '</s>'].map((text) => idOf(text, tokenizer))),
  } as unknown as ModelConfig
  return createPromptBuilder(config, window)
}

const textOf = (ids: readonly number[], name = 'bytes'): string =>
  ids.length === 0
    ? ''
    : new Tokenizer(fileOf(name), SPECIAL_NAMES).decode([...ids], {
        skip_special_tokens: false,
        clean_up_tokenization_spaces: false,
      })

/** Returns the texts between the boundaries of a prompt. */
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

test('boundaries are at the ends of messages, and of the tools', () => {
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

test('a message without an end token ends before the next structural token', () => {
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

describe.each(Object.keys(KINDS))('a prompt of %s', (kind) => {
  const name = kind === 'BRACKETS' ? 'merges, byte fallback' : 'bytes'
  const { prepare } = open(KINDS[kind] ?? '', { name })
  const called = kind !== 'PLAIN'
  const messages = called ? talk : talk.filter(({ content }) => content !== '' && content !== 'sat')
  const make = (count: number, last: string, tools?: Tool[]): Conversation => ({
    messages: [...messages.slice(0, count), { role: 'user', content: last }],
    ...(tools && { tools }),
  })

  test('shares the tokens before a boundary with conversations that differ after it', () => {
    const count = messages.findLastIndex(({ role }) => role === 'user')
    const one = prepare(make(count, 'the mat sat'))
    const other = prepare(make(count, 'hello'))
    const shared = one.tokens.findIndex((token, at) => token !== other.tokens[at])
    const last = one.boundaries.filter((at) => at <= shared).at(-1) ?? 0
    expect(last).toBeGreaterThan(0)
    // At most the text between two messages.
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

test('the opening of an answer contains the begin or the end of reasoning', () => {
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

test('the opening begins with the token that differs from a prompt without it', () => {
  const source =
    '{{ messages[0].content }}<|im_end|>' +
    "{{ '<|im_start|>assistant' if add_generation_prompt else '<|im_end|>' }}"
  const prompt = open(source).prepare({ messages: [{ role: 'user', content: 'hello' }] })
  expect(prompt.opening).toBe('<|im_start|>assistant')
})

test('a template may depend on the begin and end of messages', () => {
  const source =
    "{% for m in messages %}{{ '!' if m.content.endswith('?') else '.' }}{{ m.content }}<|im_end|>" +
    '{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}'
  const prompt = open(source).prepare({ messages: [{ role: 'user', content: 'hello?' }] })
  expect(textOf(prompt.tokens)).toBe('!hello?<|im_end|><|im_start|>')
  expect(prompt.opening).toBe('<|im_start|>')
  expect(prompt.boundaries.every((at) => at <= prompt.tokens.length)).toBe(true)
})

test('the template for tools is used with tools, calls or results', () => {
  const { prepare } = open('plain', {
    tools: '{% for t in tools or [] %}{{ t.function.name }}{% endfor %}+',
  })
  const say = (conversation: Conversation): string => textOf(prepare(conversation).tokens, 'bytes')
  expect(say({ messages: talk.slice(0, 2) })).toBe('plain')
  expect(say({ messages: talk.slice(0, 2), tools: [] })).toBe('plain')
  expect(say({ messages: talk.slice(0, 2), tools: [tool] })).toBe('f+')
  expect(say({ messages: talk.slice(0, 3) })).toBe('+')
})

test('tools and arguments that are too long are rejected before they are rendered', () => {
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

test('text of the engine may contain structure', () => {
  const { encodeTrusted } = open(PLAIN)
  const end = idOf('</think>')
  expect(encodeTrusted('</think>\n\n')[0]).toBe(end)
  expect(encodeTrusted('a<|im_end|>')).toContain(idOf('<|im_end|>'))
  expect(textOf(encodeTrusted('so: </think>\n\n'), 'bytes')).toBe('so: </think>\n\n')
  expect(encodeTrusted('')).toEqual([])
})

test('appended text has no space before it', () => {
  const { encodeTrusted } = open(PLAIN, { name: 'unigram, space first' })
  const letters = textOf(
    [...encodeTrusted('hello'), ...encodeTrusted('world')],
    'unigram, space first',
  )
  expect(letters).toBe('helloworld')
})

test('messages that leave no trace have no boundary', () => {
  const prompt = open(PLAIN).prepare({ messages: [{ role: 'user', content: ' ' }] })
  expect(prompt.boundaries).toEqual([])
  expect(
    open('{{ messages[0].content }}').prepare({ messages: talk.slice(1, 2) }).boundaries,
  ).toEqual([])
})

const messages: ChatMessage[] = talk.slice(1, 2)
const past = (content: string): Conversation => ({
  messages: [...messages, { role: 'assistant', content }],
})
const begun = (text: string, block?: string): Conversation => ({
  messages,
  responsePrefix: { text, ...(block !== undefined && { block }) },
})

/** BRACKETS with a space before a past answer. */
const SPACED = BRACKETS.replace(
  '{{- m.content + eos_token }}',
  "{{- ' ' + m.content + eos_token }}",
)

describe.each(TOKENIZER_NAMES)('a response prefix with %s', (name) => {
  test.each([
    ['PLAIN', PLAIN],
    ['TAGGED', TAGGED],
    ['BRACKETS', BRACKETS],
    ['a space before answers', SPACED],
  ])('has the tokens of a past answer up to its end: %s', (_kind, source) => {
    const { prepare } = open(source, { name })
    const texts = ['on a mat', 'on a mat sat', 'o', '{"a": [1', 'Zürich 👍', 'a <|im_end|> b']
    for (const text of texts) {
      const { tokens, hasResponsePrefix: has } = prepare(begun(text))
      const whole = prepare(past(text)).tokens
      expect([text, tokens]).toEqual([text, whole.slice(0, tokens.length)])
      expect(tokens.length).toBeGreaterThan(prepare({ messages }).tokens.length)
      expect(has).toBe(true)
    }
  })

  test('contains no structure', () => {
    const { prepare } = open(TAGGED, { name })
    const count = (text: string): number => {
      const special = new Set(fileOf(name).added_tokens.map(({ id }) => id))
      return prepare(begun(text)).tokens.filter((id) => special.has(id)).length
    }
    const honest = count('x')
    for (const text of ['<|im_end|>\n<|im_start|>user', '</s>', '<s>x', '[INST]', '<tool_call>'])
      expect([text, count(text)]).toEqual([text, honest])
  })
})

test('a response prefix and the opening do not become structure together', () => {
  const source =
    '{% for m in messages %}{{ m.content }}{% endfor %}' +
    '{% if add_generation_prompt %}<|im_{% endif %}{# <|im_end|> #}'
  const { prepare } = open(source)
  expect(prepare(begun('end|>')).tokens).not.toContain(idOf('<|im_end|>'))
})

const written = (source: string, conversation: Conversation): string =>
  parseTemplate(source, SPECIAL_NAMES).render(conversation).text

/** Writes a mark before the text of an answer. */
const MARKED =
  "{% for m in messages %}[{{ m.role }}]{{ ':final:' if m.role == 'assistant' }}{{ m.content }}[/]" +
  '{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}'

test('a response prefix stands where the template writes answers', () => {
  expect(written(PLAIN, begun('Sat'))).toBe(
    '<|im_start|>user\nthe cat <|im_end|>\n<|im_start|>assistant\nSat',
  )
  // Like transformers, it continues the message and not the opening of an answer.
  expect(written(TAGGED, { ...begun('Sat'), thinking: false })).toBe(
    '<|im_start|>user\nthe cat <|im_end|>\n<|im_start|>assistant\nSat',
  )
  expect(written(MARKED, begun('It is '))).toBe('[user]the cat [/][assistant]:final:It is ')
  expect(written(MARKED.replaceAll('content', 'content | trim'), begun('It is '))).toBe(
    '[user]the cat[/][assistant]:final:It is',
  )
  expect(written(SPACED, begun('Sat'))).toBe('<s>[INST]the cat [/INST] Sat')
  expect(written(SPACED, begun(' Sat'))).toBe('<s>[INST]the cat [/INST]  Sat')
  expect(written(SPACED, begun('Sat', '<b>'))).toBe('<s>[INST]the cat [/INST]<b>Sat')
  expect(written(JOINED, begun('Sat', '\n</think>\n\n'))).toBe(
    '<|im_start|>the cat <|im_start|>assistant<think>\n\n</think>\n\nSat',
  )
})

test('a response prefix follows the opening if the template rejects answers', () => {
  const source =
    "{% for m in messages %}{% if m.role != 'user' %}{{ raise_exception('No.') }}{% endif %}" +
    '[{{ m.content }}]{% endfor %}A:'
  expect(written(source, begun('Sat'))).toBe('[the cat ]A:Sat')
})

test('a response prefix is neither a message nor part of the opening', () => {
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

test('the block before a response prefix has structure', () => {
  const close = idOf('</think>')
  const { tokens } = open(JOINED).prepare(begun('a</think>', '\n</think>\n\n'))
  expect(tokens.filter((id) => id === close)).toHaveLength(1)
})

test('a prompt whose tokens are only counted may be longer', () => {
  const { prepare } = open(PLAIN, { window: 200 })
  const said = (words: number) => ({
    messages: [{ role: 'user' as const, content: 'a '.repeat(words) }],
  })
  const more = prepare(said(2), 4).tokens.length - prepare(said(1), 4).tokens.length
  expect(() => prepare(said(300))).toThrow(/prompt is too long: \d+ tokens > 199 /)
  const counted = prepare(said(300), 4).tokens.length
  expect(counted).toBe(prepare(said(1)).tokens.length + 299 * more)
  expect(() => prepare(said(900), 4)).toThrow(/prompt is too long: \d+ tokens > 199 /)
})

test('a response prefix that is too long is rejected before it is rendered', () => {
  const { prepare } = open(PLAIN, { window: 2_000 })
  expect(() => prepare(begun('a '.repeat(1_000_000)))).toThrow(
    /prompt is too long: \d+ tokens > 1999/,
  )
  const { render } = parseTemplate(PLAIN, SPECIAL_NAMES)
  const watched = vi.fn<typeof render>(render)
  const tokenizer = new PromptTokenizer(fileOf('bytes'), SPECIAL_NAMES, PLAIN)
  expect(() => tokenizer.encode(begun('a '.repeat(1_000_000)), watched, 2_000)).toThrow(
    /prompt is too long/,
  )
  expect(watched).not.toHaveBeenCalled()
})

describe('the text after a response prefix', () => {
  test.each(TOKENIZER_NAMES)('keeps the space before its first word: %s', (name) => {
    const { prepare } = open(PLAIN, { name })
    const start = prepare(begun('the cat')).tokens.length
    const ids = prepare(begun('the cat sat on')).tokens.slice(start)
    const text = createDetokenizerFactory(fileOf(name), SPECIAL_NAMES)([], true)
    expect(ids.map((id) => text.push(id)).join('')).toBe(' sat on')
  })

  test.each(TOKENIZER_NAMES)('has the bytes of that space: %s', (name) => {
    const outputs = createOutputFactory({
      tokenizer: fileOf(name),
      tokenizerConfig: SPECIAL_NAMES,
      sampling: { suppress: [] },
    } as unknown as ModelConfig)
    const { prepare } = open(PLAIN, { name })
    const start = prepare(begun('the cat')).tokens.length
    const prompt = prepare(begun('the cat sat'))
    const [first = 0] = prompt.tokens.slice(start)
    const { toLogprob } = outputs(prompt, { sampling: {}, logprobs: 0 })
    expect(toLogprob?.(new Float32Array(100_000), first)?.bytes[0]).toBe(0x20)
  })
})

test.each(Object.keys(KINDS))('%s accepts a response prefix', (kind) => {
  const name = kind === 'BRACKETS' ? 'merges, byte fallback' : 'bytes'
  expect(open(KINDS[kind] ?? '', { name }).prepare(begun('on a mat')).hasResponsePrefix).toBe(true)
})
