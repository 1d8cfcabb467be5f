/** Answers of each tool format, with and without reasoning, with the engine. */
import { expect, test } from 'vitest'
import type { Constraint } from '../../../src/constraint/constraint.ts'
import { completionConstraint, withReasoningPrefix } from '../../../src/generation/plan.ts'
import { FORMATS } from '../../../src/generation/tools/index.ts'
import type { AnswerFormat, Tool, ToolUse } from '../../../src/types/index.ts'
import { expectTexts, Texts } from './texts.ts'

const WORDS = [
  '{"',
  '": ',
  '<tool_call>',
  '</tool_call>',
  '</think>\n',
  '"}',
  '}}',
  'get',
  '<',
  '</',
]
/** Names of special tokens of models of each format. */
const SPECIAL = [
  '<|tool_call_start|>',
  '<|tool_call_end|>',
  '<|tool_call|>',
  '<|python_tag|>',
  '[TOOL_CALLS]',
  '[ARGS]',
  '[CALL_ID]',
]
const spelled = await Texts.open(WORDS, [])
const special = await Texts.open(WORDS, [...SPECIAL, '<think>', '</think>'])

const closed = (properties: object, required: readonly string[]): Tool['parameters'] => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const TOOLS: readonly Tool[] = [
  { name: 'get', parameters: closed({ at: { type: 'string' } }, ['at']) },
  {
    name: 'get_all',
    parameters: closed(
      {
        n: { type: 'integer' },
        name: { type: 'string' },
        sort: { type: 'string', enum: ['up', 'upper'] },
        deep: { type: 'boolean' },
      },
      [],
    ),
  },
  { name: 'g', parameters: { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] } },
]

/** Texts of one call of `get` that look like the end of a call, and of calls of the other tools. */
const CALLS: Record<string, readonly string[]> = {
  hermes: [
    '<tool_call>\n{"name": "get", "arguments": {"at": "}\\n</tool_call>{"}}\n</tool_call>',
    '<tool_call>\n{"name": "get_all", "arguments": {"sort": "upper"}}\n</tool_call>',
    '<tool_call>\n{"name": "g", "arguments": {"b": [1]}}\n</tool_call>',
  ],
  xml: [
    '<tool_call>\n<function=get>\n<parameter=at>\n</param <a> </parameter\n</parameter>\n</function>\n</tool_call>',
    '<tool_call>\n<function=get_all>\n</function>\n</tool_call>',
    '<tool_call>\n<function=get_all>\n<parameter=n>\n12\n</parameter>\n<parameter=name>\nx<y\n</parameter>\n<parameter=sort>\nup\n</parameter>\n<parameter=deep>\ntrue\n</parameter>\n</function>\n</tool_call>',
    '<tool_call>\n<function=get_all>\n<parameter=sort>\nupper\n</parameter>\n</function>\n</tool_call>',
    '<tool_call>\n{"name": "g", "arguments": {"b": 1}}\n</tool_call>',
  ],
  llama: [
    '{"name": "get", "parameters": {"at": "}; {"}}',
    '{"name": "get_all", "parameters": {"n": 1, "deep": true}}',
    '{"name": "g", "parameters": {"a": 1}}',
  ],
  mistral: [
    '[TOOL_CALLS][{"name": "get", "arguments": {"at": "]"}}]',
    '[TOOL_CALLS] [{"name": "get_all", "arguments": {}}]',
    '[TOOL_CALLS][{"name": "g", "arguments": {"a": 1}}]',
  ],
  'mistral-args': [
    '[TOOL_CALLS]get[ARGS]{"at": "[TOOL"}',
    '[TOOL_CALLS]get_all[ARGS]{}',
    '[TOOL_CALLS]g[ARGS]{"a": 1}',
  ],
  lfm: [
    '<|tool_call_start|>[get(at=")]")]<|tool_call_end|>',
    '<|tool_call_start|>[get_all()]<|tool_call_end|>',
    '<|tool_call_start|>[get_all(n=1, sort="up", deep=True)]<|tool_call_end|>',
    '<|tool_call_start|>[get_all(name="a", deep=False)]<|tool_call_end|>',
    '<|tool_call_start|>[{"name": "g", "arguments": {"a": 1}}]<|tool_call_end|>',
  ],
  granite: [
    '<|tool_call|>[{"name": "get", "arguments": {"at": "]"}}]',
    '<|tool_call|>[{"name": "g", "arguments": {"a": 1}}]',
  ],
}

/** Texts of two calls in one answer. */
const PAIRS: Record<string, string> = {
  hermes:
    '<tool_call>\n{"name": "get", "arguments": {"at": ""}}\n</tool_call>\n<tool_call>\n{"name": "get_all", "arguments": {}}\n</tool_call>',
  xml: '<tool_call>\n<function=get>\n<parameter=at>\na\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=get_all>\n</function>\n</tool_call>',
  llama: '{"name": "get", "parameters": {"at": ""}}; {"name": "get_all", "parameters": {}}',
  mistral:
    '[TOOL_CALLS][{"name": "get", "arguments": {"at": ""}}, {"name": "get_all", "arguments": {}}]',
  'mistral-args': '[TOOL_CALLS]get[ARGS]{"at": ""}[TOOL_CALLS]get_all[ARGS]{}',
  lfm: '<|tool_call_start|>[get(at=""), get_all()]<|tool_call_end|>',
  granite:
    '<|tool_call|>[{"name": "get", "arguments": {"at": ""}}, {"name": "get_all", "arguments": {}}]',
}

/** Changes to a call after which it is none. */
const FAULTS: readonly [RegExp, string][] = [
  [/"get"|get(?=[[(>])/, '"other"'],
  [/.$/, ''],
  [/"at"|at=|=at/, '"to"'],
  [/(<\/tool_call>|\]|\}|<\|tool_call_end\|>)$/, '$1.'],
]

const formatsOf = (texts: Texts): [string, Texts][] =>
  Object.keys(CALLS).map((name) => [name, texts])

const build = (name: string, use: Partial<ToolUse>, format?: AnswerFormat): Constraint => {
  const found = FORMATS.find((each) => each.name === name)
  if (!found) throw new Error(`There is no format ${name}.`)
  const whole: ToolUse = { tools: TOOLS, choice: 'required', parallel: false, ...use }
  return completionConstraint({ format: found, use: whole }, format) ?? { type: 'text' }
}

test.each([...formatsOf(spelled), ...formatsOf(special)])(
  'a required call of %s is a call of a tool with valid arguments',
  (name, texts) => {
    const calls = CALLS[name] ?? []
    const [first = ''] = calls
    const pair = PAIRS[name] ?? ''
    const faults = FAULTS.map(([part, other]) => first.replace(part, other))
    expect(new Set([first, ...faults]).size).toBe(1 + faults.length)
    expectTexts(texts, build(name, {}), calls, ['', 'x', `x${first}`, pair, ...faults])
    expectTexts(texts, build(name, { parallel: true }), [...calls, pair], ['', `${pair}x`])
  },
)

test.each([...formatsOf(spelled), ...formatsOf(special)])(
  'an answer with tools of %s may be text, and a call in it is valid',
  (name, texts) => {
    const calls = CALLS[name] ?? []
    const [first = ''] = calls
    const isLlama = name === 'llama'
    const isFirstFree = isLlama ? [] : [`Well: ${first}`, '', '{']
    const [, after = ''] = /^(.*?[<[{]).*$/s.exec(first) ?? []
    expectTexts(
      texts,
      build(name, { choice: 'auto' }),
      ['x', 'né\n<b>日</b>', 'a <', ...isFirstFree, ...calls],
      [first.slice(0, -1), isLlama ? `${after}x` : `x${first.slice(0, -1)}`],
    )
  },
)

const JSON_FORMAT: AnswerFormat = {
  type: 'json_schema',
  schema: { type: 'object', properties: { name: { type: 'string' }, no: { type: 'null' } } },
}

test.each([...formatsOf(spelled), ...formatsOf(special)])(
  'an answer of a format may be a call of %s instead',
  (name, texts) => {
    const calls = CALLS[name] ?? []
    expectTexts(
      texts,
      build(name, { choice: 'auto' }, JSON_FORMAT),
      ['{}', '{"no": null}', '{"name": "get"}', '{"name": "x", "no": null}', ...calls],
      ['', 'x', '{"no": 1}', '{"name": 1}', calls[0]?.slice(0, -1) ?? ''],
    )
  },
)

const TAGS = { open: '<think>', close: '</think>' }

test.each([...formatsOf(spelled), ...formatsOf(special)])(
  'reasoning may stand before an answer with tools of %s',
  (name, texts) => {
    const calls = CALLS[name] ?? []
    const [first = ''] = calls
    // Special tokens are no text.
    const thoughts = texts === special ? 'a < b' : `a ${first} </think `
    const free = withReasoningPrefix({ type: 'free', tags: TAGS }, build(name, {}))
    const right = calls.flatMap((call) => [
      call,
      `<think></think>${call}`,
      `<think>${thoughts}</think>\n\n${call}`,
    ])
    expectTexts(texts, free ?? { type: 'text' }, right, [
      '',
      '<think>',
      '<think></think>',
      '<think></think>x',
      `<think></think>\n\n\n${first}`,
    ])
    const open = withReasoningPrefix({ type: 'open', tags: TAGS }, build(name, { choice: 'auto' }))
    expectTexts(
      texts,
      open ?? { type: 'text' },
      [
        ...right.filter((each) => each.startsWith('<')).map((each) => each.replace('<think>', '')),
        '</think>x',
        '</think>\nno <call>',
      ].filter((each) => each.includes('</think>')),
      ['', 'x', first, `${thoughts}</think>${first.slice(0, -1)}`],
    )
    const auto = withReasoningPrefix({ type: 'free', tags: TAGS }, build(name, { choice: 'auto' }))
    expectTexts(
      texts,
      auto ?? { type: 'text' },
      [...right, 'x', '<think>a</think>x', '<think>a</think>\n\nx'],
      [],
    )
  },
)

const GRAMMARS: [string, readonly string[], readonly string[]][] = [
  ['root ::= "<" [a-z]{1,3} ">" | "no"', ['<a>', '<too>', 'no'], ['<tool>', '<']],
  [
    'root ::= tag | [0-9]\ntag ::= "<" [a-t] ">" root "</>"',
    ['<a>1</>', '<t><b>2</></>', '3'],
    ['<a></>', '<t>'],
  ],
]

test.each(GRAMMARS)(
  'an answer may be a call or a text of a grammar: %s',
  (source, right, wrong) => {
    for (const texts of [spelled, special]) {
      const constraint = build('hermes', { choice: 'auto' }, { type: 'grammar', grammar: source })
      const calls = CALLS['hermes'] ?? []
      expectTexts(texts, constraint, [...right, ...calls], wrong)
      const reasoned = withReasoningPrefix({ type: 'free', tags: TAGS }, constraint)
      const all = [...right, ...calls].flatMap((each) => [each, `<think>a<b</think>\n${each}`])
      expectTexts(texts, reasoned ?? constraint, all, wrong)
    }
  },
)

test('an answer of many tools is a call of one of them', () => {
  const properties = (index: number): object => ({
    id: { type: 'string' },
    [`field${index % 20}`]: { type: ['integer', 'null'] },
  })
  const tools = Array.from({ length: 128 }, (_, index): Tool => {
    return { name: `tool_${index}`, parameters: closed(properties(index), ['id']) }
  })
  const call = (name: string, more = ''): string =>
    `<tool_call>\n{"name": "${name}", "arguments": {"id": "a"${more}}}\n</tool_call>`
  for (const name of ['hermes', 'lfm']) {
    const source = spelled.write(build(name, { tools, choice: 'auto' }))
    expect([...source.matchAll(/%json/g)].length).toBeLessThanOrEqual(22)
  }
  expectTexts(
    spelled,
    build('hermes', { tools }),
    [call('tool_1'), call('tool_12', ', "field12": null'), call('tool_127', ', "field7": 1')],
    [call('tool_128'), call('tool_'), call('tool_1', ', "field2": 1')],
  )
})
