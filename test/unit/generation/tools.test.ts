/** Tool calls in the formats of the model families: how they are detected, parsed and written. */
import { describe, expect, test } from 'vitest'
import { TOOL_FORMATS } from '../../../src/catalog/schema.ts'
import { writeCalls } from '../../../src/engine/text/template-variables.ts'
import { findParameters } from '../../../src/generation/tools/format.ts'
import { detectFormat, FORMATS, type ToolFormat } from '../../../src/generation/tools/index.ts'
import { ToolParser } from '../../../src/generation/tools/parser.ts'
import type { ParsedPart } from '../../../src/generation/tools/reader.ts'
import { createChance } from '../../support/random.ts'
import { runs } from '../../support/runs.ts'
import { SET, TIME, WEATHER } from './scripted.ts'

const TOOLS = [WEATHER, TIME, SET]

const formatOf = (name: string): ToolFormat => {
  const format = FORMATS.find((one) => one.name === name)
  if (!format) throw new Error(name)
  return format
}

type Calls = Readonly<Record<string, unknown>>

const PARIS = { get_weather: { city: 'Paris' } }
const OSLO = { get_weather: { city: 'Oslo' } }
const NOW = { get_time: {} }
const TO_PARIS = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
const TO_NOW = '{"name": "get_time", "arguments": {}}'
const LLAMA_PARIS = '{"name": "get_weather", "parameters": {"city": "Paris"}}'

/** By format: texts as the families' documents show them and models write them, and their calls. */
const GOLDEN: Readonly<Record<string, readonly [written: string, calls: Calls, text?: string][]>> =
  {
    hermes: [
      [`<tool_call>\n${TO_PARIS}\n</tool_call>`, PARIS],
      [
        `Let me look.\n<tool_call>\n${TO_PARIS.replace('Paris"', 'Zürich 🏔", "days": 2')}\n</tool_call>\n<tool_call>\n${TO_NOW}\n</tool_call>\n`,
        { get_weather: { city: 'Zürich 🏔', days: 2 }, ...NOW },
        'Let me look.',
      ],
      // In another order, on one line, with the arguments as a string, or with none.
      ['<tool_call>{"arguments": {"city": "Oslo"}, "name": "get_weather"}</tool_call>', OSLO],
      [
        '<tool_call>{"name":"get_weather","arguments":"{\\"city\\": \\"Oslo\\"}"}</tool_call>',
        OSLO,
      ],
      ['<tool_call>\n{"name": "get_time"}\n</tool_call>', NOW],
      [`<tool_call>\n{"id": 7, ${TO_NOW.slice(1, -1)}, "why": [1, {"a": "}"}]}\n</tool_call>`, NOW],
      // A brace too few.
      [`<tool_call>\n${TO_PARIS.slice(0, -1)}\n</tool_call>`, PARIS],
      // Marks and quotes within arguments are arguments.
      [
        `<tool_call>\n${TO_PARIS.replace('Paris', '</tool_call> \\"}{\\u00e9\\n')}\n</tool_call>`,
        { get_weather: { city: '</tool_call> "}{é\n' } },
      ],
    ],
    xml: [
      [
        'I see.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nNew "York"\nCity\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>',
        { get_weather: { city: 'New "York"\nCity', days: 3 } },
        'I see.',
      ],
      [
        '<tool_call>\n<function=set>\n<parameter=on>\nTrue\n</parameter>\n<parameter=names>\n["a", "b"]\n</parameter>\n<parameter=extra>\n{"x": null}\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=get_time>\n</function>\n</tool_call>',
        { set: { on: true, names: ['a', 'b'], extra: { x: null } }, ...NOW },
      ],
      [
        '<tool_call>\n<function=get_weather>\n<parameter=city>\n12\n</parameter>\n</function>\n</tool_call>',
        { get_weather: { city: '12' } },
      ],
      [
        '<tool_call>\n<function=set>\n<parameter=level>\n-1.5E+400\n</parameter>\n</function>\n</tool_call>',
        { set: { level: -Infinity } },
      ],
      [`<tool_call>\n${TO_NOW}\n</tool_call>`, NOW],
    ],
    llama: [
      ["[get_weather(city='Paris'), get_time()]", { ...PARIS, ...NOW }],
      [LLAMA_PARIS, PARIS],
      [`<|python_tag|>${LLAMA_PARIS}`, PARIS],
      [`${LLAMA_PARIS}; {"name": "get_time", "parameters": {}}`, { ...PARIS, ...NOW }],
      ['\n{"type": "function", "name": "get_time", "parameters": {}}', NOW],
      ...['Use {"name": "get_time", "parameters": {}} there.', '{"name": "Ada", "age": 36}'].map(
        (text): [string, Calls, string] => [text, {}, text],
      ),
      ['{"city": "Paris"}', {}, '{"city": "Paris"}'],
    ],
    mistral: [
      [`[TOOL_CALLS][${TO_PARIS}]`, PARIS],
      [
        `[TOOL_CALLS] [${TO_PARIS.slice(0, -1)}, "id": "abcdefghi"}, ${TO_NOW}]`,
        { ...PARIS, ...NOW },
      ],
    ],
    'mistral-args': [
      ['[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}', PARIS],
      [
        'One moment. [TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_time[ARGS]{}',
        { ...PARIS, ...NOW },
        'One moment.',
      ],
      ['[TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{"city": "Paris"}', PARIS],
      ['[TOOL_CALLS]get_time{}', NOW],
    ],
    lfm: [
      ['<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>', PARIS],
      [
        "Checking.<|tool_call_start|>[get_weather(city='It\\'s \"here\"', days=2), get_time()]<|tool_call_end|>",
        { get_weather: { city: 'It\'s "here"', days: 2 }, ...NOW },
        'Checking.',
      ],
      [
        '<|tool_call_start|>[set(on=True, level=-1.5e3, names=["a", \'b\'], extra={"x": None, "y": [False]})]<|tool_call_end|>',
        { set: { on: true, level: -1500, names: ['a', 'b'], extra: { x: null, y: [false] } } },
      ],
      [`<|tool_call_start|>[${TO_PARIS}]<|tool_call_end|>`, PARIS],
    ],
    granite: [
      [`<|tool_call|>[${TO_PARIS}]`, PARIS],
      [
        `<|tool_call|>[{"arguments": {"city": "Paris"}, "name": "get_weather"}, ${TO_NOW}]`,
        { ...PARIS, ...NOW },
      ],
    ],
    deepseek: [
      [
        'Let me look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        { ...PARIS, ...NOW },
        'Let me look.',
      ],
    ],
    'deepseek-v3.1': [
      [
        `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜> ${LLAMA_PARIS} <｜tool▁call▁end｜> <｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n\`\`\`json\n{}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
        { ...PARIS, ...NOW },
      ],
      [
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        { ...PARIS, ...NOW },
      ],
      [
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>nothing<｜tool▁sep｜>{}',
        {},
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>nothing<｜tool▁sep｜>{}',
      ],
    ],
    kimi: [
      [
        'Looking.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_call_begin|>functions.get_time:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>',
        { ...PARIS, ...NOW },
        'Looking.',
      ],
    ],
    minimax: [
      [
        '<minimax:tool_call>\n<invoke name="set">\n<parameter name="on">true</parameter>\n<parameter name="names">["a", "b"]</parameter>\n</invoke>\n<invoke name="get_time">\n</invoke>\n</minimax:tool_call>',
        { set: { on: true, names: ['a', 'b'] }, ...NOW },
      ],
      [
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Two lines:\n"a" < b</parameter>\n</invoke>\n</minimax:tool_call>',
        { get_weather: { city: 'Two lines:\n"a" < b' } },
      ],
    ],
    seed: [
      [
        '<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=get_time>\n</function>\n</seed:tool_call>',
        { get_weather: { city: 'Paris', days: 2 }, ...NOW },
      ],
    ],
    glm: [
      [
        'Looking.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Two lines:\n"a" < b</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>get_time\n</tool_call>',
        { get_weather: { city: 'Two lines:\n"a" < b', days: 2 }, ...NOW },
        'Looking.',
      ],
    ],
    'glm-compact': [
      [
        '<tool_call>get_weather<arg_key>city</arg_key><arg_value>12</arg_value></tool_call><tool_call>get_time</tool_call>',
        { get_weather: { city: '12' }, ...NOW },
      ],
      // As earlier models of the family write it.
      [
        '<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>',
        OSLO,
      ],
    ],
    functionary: [
      [
        '<function=get_weather>{"city": "Paris"}</function>\n<function=get_time>{}</function>',
        { ...PARIS, ...NOW },
      ],
    ],
    'gpt-oss': [
      [
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}',
        PARIS,
      ],
      // The recipient in other places, calls in the analysis, and the mark after a call.
      [' to=functions.get_time<|channel|>commentary json<|message|>{}<|call|>', NOW],
      ['<|channel|>analysis to=functions.get_time code<|message|>{}', NOW],
      ['Write to=functions.nothing here.', {}, 'Write to=functions.nothing here.'],
    ],
    gemma: [
      [
        'Looking.<|tool_call>call:set{on:false,names:[<|"|>a "b"\n<|"|>,<|"|>c<|"|>],extra:{x:{},y:null}}<tool_call|>',
        { set: { on: false, names: ['a "b"\n', 'c'], extra: { x: {}, y: null } } },
        'Looking.',
      ],
      [
        '<|tool_call>call:get_weather{city:<|"|>Zürich \\ {1}<|"|>,days:2}<tool_call|><|tool_call>call:get_time{}<tool_call|>',
        { get_weather: { city: 'Zürich \\ {1}', days: 2 }, ...NOW },
      ],
      ['<|tool_call>call:get_weather{"city": "Oslo"}<tool_call|>', OSLO],
      ['<|tool_call>call:get_weather{{"city": "Oslo"}}<tool_call|>', OSLO],
    ],
    'minimax-m3': [
      [
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="set">]<]minimax[>[<names>]<]minimax[>[<item>a < "b"]<]minimax[>[</item>]<]minimax[>[<item>12]<]minimax[>[</item>]<]minimax[>[</names>]<]minimax[>[<extra>]<]minimax[>[<x>]<]minimax[>[<item>1]<]minimax[>[</item>]<]minimax[>[</x>]<]minimax[>[<y>z]<]minimax[>[</y>]<]minimax[>[</extra>]<]minimax[>[<on>true]<]minimax[>[</on>]<]minimax[>[</invoke>\n]<]minimax[>[<invoke name="get_time">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>',
        { set: { names: ['a < "b"', '12'], extra: { x: [1], y: 'z' }, on: true }, ...NOW },
      ],
    ],
    'deepseek-v3.2': [
      [
        'Looking.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Two\n"lines"</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="get_time">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        { get_weather: { city: 'Two\n"lines"', days: 2 }, ...NOW },
        'Looking.',
      ],
    ],
    'deepseek-v4': [
      [
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="set">\n<｜DSML｜parameter name="extra" string="false">{"x": 1}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        { set: { extra: { x: 1 } } },
      ],
    ],
    solar: [
      [
        '<|tool_calls|><|tool_call:begin|>call-1<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Paris"}<|tool_call:end|><|tool_call:begin|>2<|tool_call:name|>get_time<|tool_call:args|>{}<|tool_call:end|>',
        { ...PARIS, ...NOW },
      ],
    ],
    hunyuan: [
      [
        '<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Paris</arg_value:opensource>\n</tool_call:opensource>\n<tool_call:opensource>get_time<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>',
        { ...PARIS, ...NOW },
      ],
    ],
    'functionary-v3.2': [
      [
        'Looking.>>>get_weather\n{"city": "Paris"}>>>get_time\n{}',
        { ...PARIS, ...NOW },
        'Looking.',
      ],
      ['2 >>> 1', {}, '2 >>> 1'],
    ],
    minicpm: [
      [
        'Looking.\n<function name="get_weather"><param name="city"><![CDATA[a < "b"\n]]></param><param name="days">2</param></function>\n<function name="get_time"></function>',
        { get_weather: { city: 'a < "b"\n', days: 2 }, ...NOW },
        'Looking.',
      ],
      ['<function name="get_weather"><param name="city">Oslo</param></function>', OSLO],
      ['<function name="get_weather">{"city": "Paris"}</function>', PARIS],
      [
        '<function name="get_weather"><param name="city"><![CDATA[</param> ]] >]]></param></function>',
        { get_weather: { city: '</param> ]] >' } },
      ],
    ],
    command: [
      [
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}},\n    {"tool_call_id": "1", "tool_name": "get_time", "parameters": {}}\n]<|END_ACTION|>',
        { ...PARIS, ...NOW },
      ],
    ],
    'command-plus': [
      [
        'Action:\n```json\n[\n    {\n        "tool_name": "get_weather",\n        "parameters": {\n            "city": "Paris"\n        }\n    }\n]```',
        PARIS,
      ],
      ['Action: wait.', {}, 'Action: wait.'],
    ],
    apertus: [
      [
        '<|tools_prefix|>[{"get_weather": {"city": "Paris"}}, {"get_time": {}}]<|tools_suffix|>',
        { ...PARIS, ...NOW },
      ],
    ],
    nemotron: [
      [`Looking.\n<TOOLCALL>[${TO_PARIS}, ${TO_NOW}]</TOOLCALL>`, { ...PARIS, ...NOW }, 'Looking.'],
    ],
    phi: [[`<|tool_call|>[${TO_PARIS}, ${TO_NOW}]<|/tool_call|>`, { ...PARIS, ...NOW }]],
    'tool-calls': [
      [`<tool_calls>[\n    ${TO_PARIS},\n    ${TO_NOW}\n]</tool_calls>`, { ...PARIS, ...NOW }],
      // Objects on lines of their own.
      [`<tool_calls>\n${TO_PARIS}\n${TO_NOW}\n</tool_calls>`, { ...PARIS, ...NOW }],
    ],
    pythonic: [
      [
        "[get_weather(city='It\\'s', days=2), get_time()]",
        { get_weather: { city: "It's", days: 2 }, ...NOW },
      ],
      ['<|python_start|>[get_time()]<|python_end|>', NOW],
      [LLAMA_PARIS, PARIS],
      ['[1] and [get_time()]', {}, '[1] and [get_time()]'],
    ],
  }

/** Parses a text in pieces, and joins texts and arguments that follow each other. */
function read(name: string, pieces: readonly string[], cut = false): ParsedPart[] {
  const parser = new ToolParser({ format: formatOf(name), tools: TOOLS })
  const all = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end(cut)]
  const joined: ParsedPart[] = []
  for (const part of all) {
    const last = joined.at(-1)
    const isNext =
      last?.type !== 'text' || last.from + last.text.length === ('from' in part && part.from)
    if (last && 'text' in last && 'text' in part && last.type === part.type && isNext)
      last.text += part.text
    else joined.push({ ...part })
  }
  return joined
}

function meaning(parts: readonly ParsedPart[]): { text: string; calls: [string, unknown][] } {
  const calls: [string, string][] = []
  for (const part of parts) {
    if (part.type === 'call') calls.push([part.name, ''])
    const last = calls.at(-1)
    if (part.type === 'arguments' && last) last[1] += part.text
  }
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return { text, calls: calls.map(([name, json]) => [name, JSON.parse(json) as unknown]) }
}

const cases = Object.entries(GOLDEN).flatMap(([name, texts]) =>
  texts.map(([written, calls, text = '']) => ({ name, written, text, calls })),
)

test('Catalogs may name every format, and every format has golden texts', () => {
  const names = FORMATS.map(({ name }) => name).toSorted()
  expect(names).toEqual(TOOL_FORMATS.toSorted())
  expect(Object.keys(GOLDEN).toSorted()).toEqual(names)
})

describe.each(cases)('$name: $written', ({ name, written, text, calls }) => {
  const whole = read(name, [written])
  const names = Object.keys(calls)

  test('is parsed, however it is split', () => {
    expect(meaning(whole)).toEqual({ text, calls: Object.entries(calls) })
    expect(whole.filter(({ type }) => type === 'called')).toHaveLength(names.length)
    expect(read(name, written.split(''))).toEqual(whole)
    for (let at = 0; at <= written.length; at += 1) {
      expect(read(name, [written.slice(0, at), written.slice(at)])).toEqual(whole)
    }
  })

  test('yields only what is certain when it is cut', () => {
    for (let at = 0; at < written.length; at += 1) {
      const parts = read(name, [written.slice(0, at)], true)
      const begun = parts.flatMap((part) => (part.type === 'call' ? [part.name] : []))
      expect(names.slice(0, begun.length)).toEqual(begun)
      const shown = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
      // The beginning of a mark is text if nothing follows it; a mark is not.
      expect(text.startsWith(shown) || written.startsWith(shown)).toBe(true)
      if (names.length === 0) continue
      expect(formatOf(name).triggers.filter((trigger) => shown.includes(trigger))).toEqual([])
    }
  })
})

describe('Text that is no call stays text', () => {
  test.each([
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
  ])('%s: %s', (name, written) => {
    for (const pieces of [[written], written.split('')]) {
      expect(read(name, pieces)).toEqual([{ type: 'text', text: written, from: 0 }])
    }
  })

  test('but a call within it is found', () => {
    const written = `<tool_call> or <tool_call>${TO_NOW}</tool_call> done`
    expect(read('hermes', [written])).toEqual([
      { type: 'text', text: '<tool_call> or', from: 0 },
      { type: 'call', name: 'get_time' },
      { type: 'arguments', text: '{}' },
      { type: 'called' },
      { type: 'text', text: 'done', from: written.length - 4 },
    ])
  })
})

describe('Incomplete arguments', () => {
  const hermes = (written: string) => `<tool_call>\n{"name": "get_weather", "arguments": ${written}`
  test.each<[string, string, unknown]>([
    ['hermes', hermes('{"city": Paris}}\n</tool_call>'), { city: null }],
    ['hermes', hermes('{"city": "Pa'), { city: 'Pa' }],
    ['hermes', hermes('{"city": "Pa", "d'), { city: 'Pa', d: null }],
    ['hermes', hermes('{"city": "Pa", '), { city: 'Pa' }],
    ['hermes', hermes('{"city": [{"a"'), { city: [{ a: null }] }],
    ['hermes', hermes('{"city": [1, '), { city: [1] }],
    ['hermes', hermes('{"city": "Pa\\'), { city: 'Pa' }],
    [
      'xml',
      '<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n1',
      { city: 'Paris' },
    ],
    ['lfm', '<|tool_call_start|>[get_weather(city="Paris", days=', { city: 'Paris', days: null }],
    ['lfm', '<|tool_call_start|>[get_weather("Paris")]<|tool_call_end|>', {}],
    ['mistral-args', '[TOOL_CALLS]get_weather[ARGS]{"city": ', { city: null }],
  ])('are completed when the model ended: %s, %s', (name, written, value) => {
    for (const pieces of [[written], written.split('')]) {
      const parts = read(name, pieces)
      expect(meaning(parts).calls).toEqual([['get_weather', value]])
      expect(parts.filter(({ type }) => type === 'called')).toHaveLength(1)
    }
  })

  test('stay as they are when a limit ended them', () => {
    expect(read('hermes', [hermes('{"city": "Pa')], true)).toEqual([
      { type: 'call', name: 'get_weather' },
      { type: 'arguments', text: '{"city": "Pa' },
    ])
    expect(read('hermes', ['So.\n<tool_call>\n{"name": "get_w'], true)).toEqual([
      { type: 'text', text: 'So.', from: 0 },
    ])
  })
})

test('Arguments are streamed, and text is unless it may begin a call', () => {
  const parser = new ToolParser({ format: formatOf('hermes'), tools: TOOLS })
  expect(parser.push('Hello')).toEqual([{ type: 'text', text: 'Hello', from: 0 }])
  expect(parser.push(' you <too')).toEqual([{ type: 'text', text: ' you', from: 5 }])
  expect(parser.push('n>')).toEqual([{ type: 'text', text: ' <toon>', from: 9 }])
  const texts = (...all: string[]) => all.map((text) => ({ type: 'arguments', text }))
  expect(parser.push('<tool_call>\n{"name": "get_weather", "arguments": {"ci')).toEqual([
    { type: 'call', name: 'get_weather' },
    ...texts('{', '"', 'ci'),
  ])
  expect(parser.push('ty": "Par')).toEqual(texts('ty', '"', ':', ' "', 'Par'))
})

test('Random text is parsed whole, without an error, and the same in any pieces', () => {
  const chance = createChance(11)
  const marks =
    '<tool_call> </tool_call> <|tool_call_start|> <|tool_call_end|> [TOOL_CALLS] [ARGS] <|tool_call|> ' +
    '<|python_tag|> <function=get_time> </function> <parameter=a> </parameter> get_time( a= get_time ' +
    '{} word 12 true 🙂 { } [ ] ) " \' \\ , : ;'
  const bits = [
    ...marks.split(' '),
    '{"name": "get_time", "arguments": ',
    '{"name": "get_weather", "parameters": ',
    '"a": "b"',
    ' ',
    '\n',
  ]
  for (let round = 0; round < runs(600, 4_000); round += 1) {
    const { name } = chance.pick(FORMATS)
    const written = Array.from({ length: 1 + chance.below(12) }, () => chance.pick(bits)).join('')
    const pieces: string[] = []
    for (let from = 0; from < written.length;) {
      const to = from + 1 + chance.below(5)
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
      const { text, calls } = meaning(whole)
      for (const [, value] of calls) expect(value).toBeTypeOf('object')
      if (calls.length === 0) expect(text).toBe(written)
    }
  }
})

test.each([
  ['hermes', '{{ \'<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args>}\' }}'],
  ['hermes', "{{ '<tool_call>' + name + '\", \"arguments\": ' }}"],
  [undefined, "{{ '<tool_call>' + name + '<arg_key>' + call.arguments }}"],
  ['xml', "{{ '<tool_call>\\n<function=' }}<parameter="],
  ['mistral', '[TOOL_CALLS] ['],
  ['gpt-oss', "'<|channel|>commentary<|message|>' ## functions"],
  ['gemma', "'<|tool_call>call:' }<tool_call|>"],
  ['phi', "'<|tool|>' + tools + '<|/tool|>'"],
  ['pythonic', '<|header_start|>user<|header_end|>'],
  ['deepseek', '<｜tool▁call▁begin｜>{{ call }}<｜tool▁call▁end｜>'],
  ['deepseek-v3.1', '<｜tool▁call▁begin｜>{{ name }}<｜tool▁sep｜>'],
  ['mistral-args', "'[TOOL_CALLS]' + name + '[ARGS]'"],
  ['lfm', 'List of tools: <|tool_list_start|>['],
  ['granite', 'respond with <|tool_call|> followed by a JSON list'],
  [
    'llama',
    '<|start_header_id|> Respond in the format {"name": function, "parameters": dictionary',
  ],
  [undefined, '{{ messages[0].content }}'],
])('The format %s is detected in a chat template', (name, template) => {
  expect(detectFormat(template)?.name).toBe(name)
})

test.each(FORMATS.map((format) => [format.name, format] as const))(
  '%s: calls that inorigin writes are parsed again',
  (name, format) => {
    const calls = [
      { id: 'a', name: 'get_weather', arguments: '{"city": "A \\"b\\"\\n\'c\'", "days": 2}' },
      { id: 'b', name: 'set', arguments: '{"on": true, "level": 0.5, "extra": {"x": null}}' },
      { id: 'c', name: 'get_time', arguments: '{}' },
    ]
    const parsed = calls.map((call) => [call.name, JSON.parse(call.arguments)])
    expect(meaning(read(name, [format.write(calls)]))).toEqual({ text: '', calls: parsed })
  },
)

test.each(FORMATS.map((format) => [format.name, format] as const))(
  '%s: a call that a limit has cut is written as it is, between whole ones',
  (name, { write }) => {
    const call = (id: string, text: string) => ({ id, name: 'get_weather', arguments: text })
    for (const cut of ['{"city": "Pa', '["Paris"]', 'true', '', '$1']) {
      const written = writeCalls(write, [call('a', '{"city": "Oslo"}'), call('b', cut)])
      expect(written).toContain('get_weather')
      expect(written).toContain('Oslo')
      expect(written.split('Oslo')[1]).toContain(cut)
      expect(written, name).not.toMatch(/cut[0-9a-f]{32}/)
    }
  },
)

test('The name of a member of every object is no literal', () => {
  const written = '<tool_call>\n{"name": "set", "arguments": {"on": constructor}}\n</tool_call>'
  expect(JSON.stringify(read('hermes', [written]))).not.toContain('native code')
})

test('A required name that is not a string fits no format', () => {
  const parameters = { type: 'object', properties: { a: {} }, required: [{ toString: 1 }] }
  expect(findParameters({ ...SET, parameters, path: '' }, () => true)).toBeNull()
})
