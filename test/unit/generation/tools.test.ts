import { describe, expect, test } from 'vitest'
import { createRandom } from '../../../src/engine/sampling/random.ts'
import { TOOL_FORMATS } from '../../../src/catalog/schema.ts'
import { detectFormat, FORMATS, type ToolFormat } from '../../../src/generation/tools/index.ts'
import { findParameters } from '../../../src/generation/tools/arguments.ts'
import { createToolParser, type ParsedPart } from '../../../src/generation/tools/parser.ts'
import { GOLDEN } from './golden.ts'
import { SET, TIME, WEATHER } from './scripted.ts'

const TOOLS = [WEATHER, TIME, SET]

const formatOf = (name: string): ToolFormat => {
  const format = FORMATS.find((one) => one.name === name)
  if (!format) throw new Error(name)
  return format
}

/** What a text in pieces means, with texts and arguments that follow each other put together. */
function read(name: string, pieces: readonly string[], cut = false): ParsedPart[] {
  const parser = createToolParser({ format: formatOf(name), tools: TOOLS })
  const all = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end(cut)]
  const joined: ParsedPart[] = []
  for (const part of all) {
    const last = joined.at(-1)
    if (
      last?.type === 'text' &&
      part.type === 'text' &&
      last.from + last.text.length === part.from
    ) {
      last.text += part.text
    } else if (last?.type === 'arguments' && part.type === 'arguments') last.text += part.text
    else joined.push({ ...part })
  }
  return joined
}

function meaning(parts: readonly ParsedPart[]): { text: string; calls: [string, unknown][] } {
  let text = ''
  const calls: [string, string][] = []
  for (const part of parts) {
    if (part.type === 'text') text += part.text
    if (part.type === 'call') calls.push([part.name, ''])
    const last = calls.at(-1)
    if (part.type === 'arguments' && last) last[1] += part.text
  }
  return { text, calls: calls.map(([name, json]) => [name, JSON.parse(json) as unknown]) }
}

const cases = Object.entries(GOLDEN).flatMap(([name, texts]) =>
  texts.map(([written, text, calls]) => ({ name, written, text, calls })),
)

test('catalogs may name every format', () => {
  expect(FORMATS.map(({ name }) => name).toSorted()).toEqual(TOOL_FORMATS.toSorted())
})

test('every format has texts here', () => {
  expect(Object.keys(GOLDEN).toSorted()).toEqual(FORMATS.map(({ name }) => name).toSorted())
})

describe.each(cases)('$name: $written', ({ name, written, text, calls }) => {
  const whole = read(name, [written])

  test('is understood', () => {
    expect(meaning(whole)).toEqual({ text, calls })
    const told = whole.filter(({ type }) => type === 'called')
    expect(told).toHaveLength(calls.length)
  })

  test('is understood the same however it is split', () => {
    expect(read(name, written.split(''))).toEqual(whole)
    for (let at = 0; at <= written.length; at += 1) {
      expect(read(name, [written.slice(0, at), written.slice(at)])).toEqual(whole)
    }
  })

  test('cut anywhere, tells what is certain and never more', () => {
    const { text: all } = meaning(whole)
    for (let at = 0; at < written.length; at += 1) {
      const parts = read(name, [written.slice(0, at)], true)
      const names = parts.flatMap((part) => (part.type === 'call' ? [part.name] : []))
      expect(calls.map(([called]) => called).slice(0, names.length)).toEqual(names)
      const said = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
      // The beginning of a mark is text if nothing follows it; a mark is not.
      expect(all.startsWith(said) || written.startsWith(said)).toBe(true)
      if (calls.length > 0) {
        expect(formatOf(name).triggers.some((trigger) => said.includes(trigger))).toBe(false)
      }
    }
  })
})

describe('what is no call is text', () => {
  const garbage: [string, string][] = [
    ['hermes', '<tool_call>\nget_weather(Paris)\n</tool_call>'],
    ['hermes', '<tool_call>\n{"name": "delete_all", "arguments": {}}\n</tool_call>'],
    ['hermes', '<tool_call>\n{"name": "get_weather", "arguments": "Paris"}\n</tool_call>'],
    ['hermes', 'The tags <tool_call> and <tool'],
    ['hermes', '<tool_call> <tool_call>'],
    ['xml', '<tool_call>\n<function=nothing>\n</function>\n</tool_call>'],
    ['lfm', '<|tool_call_start|>[print("x")]<|tool_call_end|>'],
    ['mistral', '[TOOL_CALLS][1, 2]'],
    ['mistral-args', '[TOOL_CALLS]nothing[ARGS]{}'],
    ['granite', '<|tool_call|>{}'],
    ['llama', '<|python_tag|>print(1)'],
    ['llama', '{"name": "get_weather", "parameters": [1]}'],
  ]
  test.each(garbage)('%s: %s', (name, written) => {
    for (const pieces of [[written], written.split('')]) {
      expect(read(name, pieces)).toEqual([{ type: 'text', text: written, from: 0 }])
    }
  })

  test('a call within garbage is still found', () => {
    const written =
      '<tool_call> or <tool_call>{"name": "get_time", "arguments": {}}</tool_call> done'
    expect(read('hermes', [written])).toEqual([
      { type: 'text', text: '<tool_call> or', from: 0 },
      { type: 'call', name: 'get_time' },
      { type: 'arguments', text: '{}' },
      { type: 'called' },
      { type: 'text', text: 'done', from: written.length - 4 },
    ])
  })
})

describe('arguments that break off', () => {
  const broken: [string, string, unknown][] = [
    [
      'hermes',
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": Paris}}\n</tool_call>',
      { city: null },
    ],
    ['hermes', '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa', { city: 'Pa' }],
    [
      'hermes',
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa", "d',
      { city: 'Pa', d: null },
    ],
    ['hermes', '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa", ', { city: 'Pa' }],
    [
      'hermes',
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": [{"a"',
      { city: [{ a: null }] },
    ],
    ['hermes', '<tool_call>\n{"name": "get_weather", "arguments": {"city": [1, ', { city: [1] }],
    ['hermes', '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa\\', { city: 'Pa' }],
    [
      'xml',
      '<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n1',
      { city: 'Paris' },
    ],
    ['lfm', '<|tool_call_start|>[get_weather(city="Paris", days=', { city: 'Paris', days: null }],
    ['lfm', '<|tool_call_start|>[get_weather("Paris")]<|tool_call_end|>', {}],
    ['mistral-args', '[TOOL_CALLS]get_weather[ARGS]{"city": ', { city: null }],
  ]
  test.each(broken)('%s: %s: made whole where the model ended', (name, written, value) => {
    for (const pieces of [[written], written.split('')]) {
      const parts = read(name, pieces)
      expect(meaning(parts).calls).toEqual([['get_weather', value]])
      expect(parts.filter(({ type }) => type === 'called')).toHaveLength(1)
    }
  })

  test('stay as they are where a limit did', () => {
    const written = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa'
    expect(read('hermes', [written], true)).toEqual([
      { type: 'call', name: 'get_weather' },
      { type: 'arguments', text: '{"city": "Pa' },
    ])
    expect(read('hermes', ['So.\n<tool_call>\n{"name": "get_w'], true)).toEqual([
      { type: 'text', text: 'So.', from: 0 },
    ])
  })
})

test('arguments are told while they are written', () => {
  const parser = createToolParser({ format: formatOf('hermes'), tools: TOOLS })
  expect(parser.push('<tool_call>\n{"name": "get_weather", "arguments": {"ci')).toEqual([
    { type: 'call', name: 'get_weather' },
    { type: 'arguments', text: '{' },
    { type: 'arguments', text: '"' },
    { type: 'arguments', text: 'ci' },
  ])
  expect(parser.push('ty": "Par')).toEqual(
    ['ty', '"', ':', ' "', 'Par'].map((text) => ({ type: 'arguments', text })),
  )
})

test('text is told at once unless it may begin a call', () => {
  const parser = createToolParser({ format: formatOf('hermes'), tools: TOOLS })
  expect(parser.push('Hello')).toEqual([{ type: 'text', text: 'Hello', from: 0 }])
  expect(parser.push(' you <too')).toEqual([{ type: 'text', text: ' you', from: 5 }])
  expect(parser.push('n>')).toEqual([{ type: 'text', text: ' <toon>', from: 9 }])
})

test('whatever is written, nothing is lost, nothing throws, and the pieces do not matter', () => {
  const random = createRandom(11)
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  const bits = [
    '<tool_call>',
    '</tool_call>',
    '<|tool_call_start|>',
    '<|tool_call_end|>',
    '[TOOL_CALLS]',
    '[ARGS]',
    '<|tool_call|>',
    '<|python_tag|>',
    '{"name": "get_time", "arguments": ',
    '{"name": "get_weather", "parameters": ',
    '<function=get_time>',
    '</function>',
    '<parameter=a>',
    '</parameter>',
    'get_time(',
    'a=',
    ')',
    '{',
    '}',
    '[',
    ']',
    '{}',
    '"',
    "'",
    '\\',
    ',',
    ':',
    ' ',
    '\n',
    'word',
    '12',
    'true',
    '🙂',
    ';',
    '"a": "b"',
    'get_time',
  ]
  for (let round = 0; round < 4_000; round += 1) {
    const { name } = pick(FORMATS)
    const written = Array.from({ length: 1 + Math.floor(random() * 12) }, () => pick(bits)).join('')
    const pieces: string[] = []
    for (let from = 0; from < written.length;) {
      const to = from + 1 + Math.floor(random() * 5)
      pieces.push(written.slice(from, to))
      from = to
    }
    for (const cut of [false, true]) {
      const whole = read(name, [written], cut)
      expect(read(name, pieces, cut), `${name}: ${written}`).toEqual(whole)
      for (const part of whole) {
        if (part.type !== 'text') continue
        expect(written.slice(part.from, part.from + part.text.length)).toBe(part.text)
      }
      if (cut) continue
      for (const [, value] of meaning(whole).calls) expect(value).toBeTypeOf('object')
      const calls = whole.filter(({ type }) => type === 'call')
      if (calls.length === 0) expect(meaning(whole).text).toBe(written)
    }
  }
})

test.each([
  [
    'hermes',
    '{{ \'<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\' }}',
  ],
  ['hermes', "{{ '<tool_call>' + name + '\", \"arguments\": ' }}"],
  [undefined, "{{ '<tool_call>' + name + '<arg_key>' + call.arguments }}"],
  ['xml', "{{ '<tool_call>\\n<function=' }}<parameter="],
  ['mistral', '[TOOL_CALLS] ['],
  ['mistral-args', "'[TOOL_CALLS]' + name + '[ARGS]'"],
  ['lfm', 'List of tools: <|tool_list_start|>['],
  ['granite', 'respond with <|tool_call|> followed by a JSON list'],
  [
    'llama',
    '<|start_header_id|> Respond in the format {"name": function name, "parameters": dictionary',
  ],
  [undefined, '{{ messages[0].content }}'],
])('%s is told from a chat template', (name, template) => {
  expect(detectFormat(template)?.name).toBe(name)
})

test.each(FORMATS.map((format) => [format.name, format] as const))(
  '%s: calls written by us are read as they were',
  (name, format) => {
    const calls = [
      { id: 'a', name: 'get_weather', arguments: '{"city": "A \\"b\\"\\n\'c\'", "days": 2}' },
      { id: 'b', name: 'set', arguments: '{"on": true, "level": 0.5, "extra": {"x": null}}' },
      { id: 'c', name: 'get_time', arguments: '{}' },
    ]
    const { text, calls: found } = meaning(read(name, [format.write(calls)]))
    expect(text).toBe('')
    expect(found).toEqual(calls.map((call) => [call.name, JSON.parse(call.arguments)]))
  },
)

test('a word that every object has as a member is no literal', () => {
  const written = '<tool_call>\n{"name": "set", "arguments": {"on": constructor}}\n</tool_call>'
  expect(JSON.stringify(read('hermes', [written]))).not.toContain('native code')
})

test('a required name that cannot be a string does not fit any format', () => {
  const parameters = { type: 'object', properties: { a: {} }, required: [{ toString: 1 }] }
  expect(findParameters({ ...SET, parameters }, () => true)).toBeNull()
})
