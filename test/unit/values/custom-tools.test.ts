/** Custom tools: their schemas, and their text in the events of an answer. */
import { describe, expect, test } from 'vitest'
import type { GenerationEvent, Tool } from '../../../src/types/index.ts'
import { createCallMarker, parametersOf } from '../../../src/values/custom-tools.ts'

const custom = (input: Tool['input']): Tool => ({ name: 'run', parameters: true, input })
const now: Tool = { name: 'now', parameters: { type: 'object' } }
const TOOLS = [custom({ type: 'text' }), now]

describe('the schema of the arguments', () => {
  const schemaOf = (keywords: object) => ({
    type: 'object',
    properties: { input: { type: 'string', ...keywords } },
    required: ['input'],
    additionalProperties: false,
  })
  const grammar = (syntax: 'lark' | 'regex', definition: string): Tool =>
    custom({ type: 'grammar', syntax, definition })

  test.each<[string, Tool, unknown]>([
    ['a function', now, { type: 'object' }],
    ['any text', custom({ type: 'text' }), schemaOf({})],
    ['a regular expression', grammar('regex', 'a|b'), schemaOf({ pattern: '^(?:a|b)$' })],
    // With parentheses around it, this would be a pattern.
    ['a stray parenthesis', grammar('regex', 'a)|(b'), schemaOf({ pattern: 'a)|(b' })],
    ['no pattern at all', grammar('regex', '('), schemaOf({ pattern: '^(?:()$' })],
    [
      'a grammar',
      grammar('lark', 'start: "a"'),
      schemaOf({ description: 'A text of this Lark grammar:\nstart: "a"' }),
    ],
    ['a long grammar', grammar('lark', ' '.repeat(2_001)), schemaOf({})],
  ])('of %s', (_name, tool, schema) => {
    expect(parametersOf(tool)).toEqual(schema)
  })
})

describe('the text of a call', () => {
  const TEXT = 'say "hi"\n\\\n \u00e9\ud83d\ude00 {"input": "x"}'
  const JSON_TEXT = ` { "input" : ${JSON.stringify(TEXT).replace('é', '\\u00e9')} } `

  /** Returns the events of a call with this JSON, in these pieces. */
  function mark(pieces: readonly string[], name = 'run') {
    const marker = createCallMarker(TOOLS)
    const call: GenerationEvent = { type: 'tool_call', index: 0, id: 'call_1', name }
    const [marked, ...texts] = [
      marker(call),
      ...pieces.map((text) => marker({ type: 'tool_arguments', index: 0, text })),
    ]
    const joined = texts.map((event) => ('text' in event ? event.text : '')).join('')
    return { marked, text: joined, after: marker({ ...call, name: 'now' }) }
  }

  test.each([1, 2, 3, 7, 1000])('is read from pieces of %i characters', (length) => {
    const pieces = JSON_TEXT.match(new RegExp(`[^]{1,${length}}`, 'g')) ?? []
    const { marked, text, after } = mark(pieces)
    expect(marked).toMatchObject({ name: 'run', isCustom: true })
    expect(text).toBe(TEXT)
    expect(after).not.toHaveProperty('isCustom')
  })

  test.each([
    ['{"inp', ''],
    ['{"input": "', ''],
    ['{"input": "Oslo', 'Oslo'],
    ['{"input": "Oslo\\', 'Oslo'],
    ['{"input": "Oslo\\u00e', 'Oslo'],
    // Another server may write these.
    ['{}', ''],
    ['"Oslo"', ''],
    ['{"input": "a\nb\\x"}', 'a\nb\\x'],
    ['{"input": "a", "more": "b"}', 'a'],
  ])('is what is there of it: %s', (json, text) => {
    expect(mark([json]).text).toBe(text)
  })

  test('is no matter of functions', () => {
    const { marked, text } = mark(['{"input": "a"}'], 'now')
    expect(marked).not.toHaveProperty('isCustom')
    expect(text).toBe('{"input": "a"}')
  })
})
