import { describe, expect, test } from 'vitest'
import type { Conversation } from '../../../src/engine/engine.ts'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import type { ChatMessage, Tool } from '../../../src/types/index.ts'
import { BRACKETS, JOINED, PLAIN, PYTHONIC, TAGGED } from '../../support/templates.ts'

const NAMES = { bos_token: '<s>', eos_token: '</s>' }
const draw = (source: string, conversation: Conversation): string =>
  parseTemplate(source, NAMES).render(conversation).text

const tool: Tool = {
  name: 'warmth',
  description: 'How warm it is.',
  parameters: {
    type: 'object',
    properties: { place: { type: 'string', description: ' Where. ' }, items: { type: 'array' } },
    required: ['place'],
  },
}

const asked: ChatMessage = { role: 'user', content: 'How warm?' }
const call = (args: string, id = 'call_1'): ChatMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id, name: 'warmth', arguments: args }],
})
const result = (id = 'call_1', name = 'warmth'): ChatMessage => ({
  role: 'tool',
  toolCallId: id,
  name,
  content: '{"degrees": 21}',
})
const called = (args: string): Conversation => ({
  messages: [asked, call(args), result()],
  tools: [tool],
})

test('writes tools, calls and results as the template has them', () => {
  expect(draw(TAGGED, called('{"place": "Bern", "n": 1.0}'))).toBe(
    '<|im_start|>system\n<tools>\n{"type": "function", "function": {"name": "warmth", ' +
      '"description": "How warm it is.", "parameters": {"type": "object", "properties": ' +
      '{"place": {"type": "string", "description": " Where. "}, "items": {"type": "array"}}, ' +
      '"required": ["place"]}}}\n</tools>\nAnswer in <tool_call></tool_call>.<|im_end|>\n' +
      '<|im_start|>user\nHow warm?<|im_end|>\n<|im_start|>assistant\n<tool_call>\n' +
      '{"name": "warmth", "arguments": {"place": "Bern", "n": 1.0}}\n</tool_call><|im_end|>\n' +
      '<|im_start|>user\n<tool_response>\n{"degrees": 21}\n</tool_response><|im_end|>\n' +
      '<|im_start|>assistant\n',
  )
})

test('writes arguments as the model does where a program has written them', () => {
  expect(draw(TAGGED, called('{"place":"Bern","n":[1,2]}'))).toContain(
    '"arguments": {"place": "Bern", "n": [1, 2]}}',
  )
})

test('gives arguments as text to a template that puts them together with text', () => {
  expect(draw(JOINED, called('{"place":"Bern"}'))).toBe(
    '<|im_start|>How warm?<tool_call>function:warmth\n{"place":"Bern"}<|im_end|>' +
      '<result>{"degrees": 21}<|im_start|>assistant<think>\n',
  )
})

test('gives arguments as data to a template that takes them apart', () => {
  const text = draw(PYTHONIC, called('{"place":"Bern","n":2,"far":true,"at":{"x":null}}'))
  expect(text).toContain('<tool_call>warmth(place="Bern", n=2, far=true, at={\'x\': None})')
  expect(text).toContain('def warmth(place: string! Where., items: array ) # How warm it is.\n')
})

test('gives short ids to a template that wants them, the same to a call and its result', () => {
  const conversation: Conversation = {
    messages: [
      asked,
      {
        role: 'assistant',
        content: '',
        toolCalls: [
          { id: 'call_1', name: 'warmth', arguments: '{}' },
          { id: 'aB3dE6gH9', name: 'warmth', arguments: '{}' },
        ],
      },
      result('call_1'),
      result('aB3dE6gH9'),
      { role: 'assistant', content: 'Warm.' },
      asked,
    ],
    tools: [tool],
  }
  const text = draw(BRACKETS, conversation)
  const [first, second] = [...text.matchAll(/"id": "(\w+)"/g)].map(([, id]) => id)
  expect(first).toMatch(/^[a-z0-9]{9}$/)
  expect(second).toBe('aB3dE6gH9')
  expect([...text.matchAll(/"call_id": "(\w+)"/g)].map(([, id]) => id)).toEqual([first, second])
  expect(text.indexOf('[TOOLS]')).toBeGreaterThan(text.indexOf('Warm.'))
})

test('finds the name of a tool that gave something by its call', () => {
  const source = '{% for m in messages %}{{ m.name }};{% endfor %}'
  expect(draw(source, { messages: [asked, call('{}'), result('call_1', '')] })).toBe(';;warmth;')
  expect(draw(source, { messages: [asked, result('other', '')] })).toBe(';;')
})

test.each(['{"place": ', '[1]', '"Bern"', 'null', ''])(
  'refuses arguments that are no object: %j',
  (args) => {
    expect(() => draw(TAGGED, called(args))).toThrow(
      expect.objectContaining({ kind: 'invalid_request', param: 'messages' }),
    )
  },
)

test('refuses what is nested too deep for templates to walk', () => {
  const deep = '['.repeat(5_000) + ']'.repeat(5_000)
  expect(() => draw(TAGGED, called(`{"a":${deep}}`))).toThrow(
    expect.objectContaining({ kind: 'invalid_request' }),
  )
})

test('gives every template the fields it counts on, whatever a tool leaves out', () => {
  const bare: Tool[] = [
    { name: 'a', parameters: true },
    { name: 'b', parameters: {} },
  ]
  const text = draw(PYTHONIC, { messages: [asked], tools: bare })
  expect(text).toContain('def a() # \ndef b() # \n')
})

test('has no variable for what is not there', () => {
  const source =
    "{{ tools is defined }} {{ 'tool_calls' in messages[0] }} {{ 'reasoning_content' in messages[0] }} " +
    '{{ documents is defined }} {{ builtin_tools is defined }}'
  expect(draw(source, { messages: [{ role: 'assistant', content: 'a' }], tools: [] })).toBe(
    'false false false false false',
  )
})

test('tells the thoughts of an assistant under each of their names', () => {
  const source = '{% set m = messages[0] %}{{ m.reasoning_content ~ m.reasoning ~ m.thinking }}'
  expect(draw(source, { messages: [{ role: 'assistant', content: 'b', reasoning: 'a' }] })).toBe(
    'aaa',
  )
})

describe('thoughts that a client sends as part of the text', () => {
  const said = (content: string, role: 'assistant' | 'user' = 'assistant'): Conversation => ({
    messages: [asked, { role, content }],
  })

  test('are told apart in an answer, for a template that knows of them', () => {
    const text = '<|im_start|>assistant\n<think>\nhm\n</think>\n\n Yes.<|im_end|>'
    expect(draw(TAGGED, said('<think>\nhm\n</think>\n Yes.'))).toContain(
      text.replace(' Yes', 'Yes'),
    )
    expect(draw(JOINED, said('<think>hm</think>Yes.'))).toContain('How warm?Yes.<|im_end|>')
  })

  test('stay where the template knows nothing of them', () => {
    expect(draw(PLAIN, said('<think>hm</think>Yes.'))).toContain('\n<think>hm</think>Yes.<')
  })

  test('are no thoughts in what others say, nor behind other text', () => {
    for (const [content, role] of [
      ['<think>hm</think>Yes.', 'user'],
      ['So: <think>x', 'assistant'],
    ] as const) {
      expect(draw(TAGGED, said(content, role))).toContain(`${role}\n${content}<|im_end|>`)
    }
  })
})

test('leaves thoughts out where the template refuses them beside a call', () => {
  const source =
    '{% for m in messages %}{% if m.tool_calls and m.thinking %}' +
    "{{ raise_exception('Not both.') }}{% endif %}[{{ m.role }}]{% endfor %}"
  const thought = { ...call('{}'), reasoning: 'hm' } as ChatMessage
  expect(draw(source, { messages: [asked, thought, result()] })).toBe('[user][assistant][tool]')
})

test('keeps calls and results where turns are made one', () => {
  const strict =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('No.') }}{% endif %}" +
    '[{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}!{{ c.function.name }}{% endfor %}]{% endfor %}'
  const system: ChatMessage = { role: 'system', content: 'S' }
  expect(draw(strict, { messages: [system, asked, call('{}'), result(), result()] })).toBe(
    '[user: S\n\nHow warm?][assistant: !warmth][tool: {"degrees": 21}][tool: {"degrees": 21}]',
  )
})
