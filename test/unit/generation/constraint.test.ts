import { describe, expect, test } from 'vitest'
import type { Constraint, TaggedConstraint } from '../../../src/constraint/index.ts'
import { completionConstraint } from '../../../src/generation/plan.ts'
import { FORMATS, type ToolFormat, toolConstraint } from '../../../src/generation/tools/index.ts'
import type { Tool, ToolUse } from '../../../src/types/index.ts'
import { TIME, use, WEATHER } from './scripted.ts'

const formatOf = (name: string): ToolFormat => {
  const format = FORMATS.find((one) => one.name === name)
  if (!format) throw new Error(name)
  return format
}

const constant = (text: string): Constraint => ({ type: 'constant', text })
const nothing: Constraint = { type: 'constant', text: '' }
const choice = (...parts: Constraint[]): Constraint => ({ type: 'choice', parts })
const optional = (part: Constraint): Constraint => choice(part, nothing)
const sequence = (...parts: Constraint[]): Constraint => ({ type: 'sequence', parts })
const json = (schema: unknown): Constraint => ({
  type: 'json',
  schema: schema as Tool['parameters'],
})
const tagged = (begin: string, content: Constraint, end: string): TaggedConstraint => ({
  type: 'tagged',
  begin,
  content,
  end,
})
const call = ({ name, parameters }: Tool, key = 'arguments'): TaggedConstraint =>
  tagged(`{"name": "${name}", "${key}": `, json(parameters), '}')
const separated = (separator: string, single: boolean, tags: TaggedConstraint[]): Constraint => ({
  type: 'separated',
  tags,
  separator,
  required: true,
  single,
})
const triggered = (trigger: string, single: boolean, tags: TaggedConstraint[]): Constraint => ({
  type: 'triggered',
  triggers: [trigger],
  tags,
  required: false,
  single,
})

/** Returns the constraint without the places of its schemas in the request. */
/** Returns the part without what all schemas of tools have. */
const withoutPaths = <Part>(part: Part): Part =>
  JSON.parse(JSON.stringify(part), (key, value: unknown) =>
    key === 'path' || key === 'isOptional' ? undefined : value,
  ) as Part

const two = use({ tools: [WEATHER, TIME] })
const both = use({ tools: [WEATHER, TIME], choice: 'required' })
const one = use({ tools: [WEATHER], choice: 'required' })
const forced = use({ choice: 'required', only: ['get_time'], parallel: false })

const between = '\n</tool_call>\n<tool_call>\n'
const int = { type: 'integer' }
const hermes = (single: boolean, ...tools: Tool[]): TaggedConstraint => {
  const calls = separated(
    between,
    single,
    tools.map((tool) => call(tool)),
  )
  return tagged('<tool_call>', sequence(constant('\n'), calls), '\n</tool_call>')
}
const llama = (single: boolean, ...tools: Tool[]): Constraint => {
  const calls = tools.map((tool) => call(tool, 'parameters'))
  return separated('; ', single, calls)
}
const args = (before: string, { name, parameters }: Tool): TaggedConstraint =>
  tagged(`${before}${name}[ARGS]`, json(parameters), '')
const list = (single: boolean, ...tags: TaggedConstraint[]): Constraint =>
  sequence(constant('['), separated(', ', single, tags))

const lfmWeather = sequence(
  tagged('city=', json({ type: 'string' }), ''),
  optional(sequence(constant(', '), tagged('days=', json(int), ''))),
)
const xmlWeather = sequence(
  tagged('\n<parameter=city>\n', { type: 'text' }, '</parameter>'),
  optional(tagged('\n<parameter=days>\n', json(int), '\n</parameter>')),
)

test.each<[string, ToolUse, Constraint]>([
  ['hermes', two, triggered('<tool_call>', true, [hermes(false, WEATHER, TIME)])],
  ['hermes', forced, hermes(true, TIME)],
  [
    'llama',
    two,
    choice(
      llama(false, WEATHER, TIME),
      sequence({ type: 'pattern', pattern: '[^{\\[<\\n ]|<[^|]' }, { type: 'text' }),
    ),
  ],
  ['llama', forced, llama(true, TIME)],
  [
    'mistral',
    forced,
    tagged(
      '[TOOL_CALLS]',
      sequence({ type: 'pattern', pattern: ' ?\\[' }, separated(', ', true, [call(TIME)])),
      ']',
    ),
  ],
  [
    'mistral-args',
    two,
    triggered('[TOOL_CALLS]', false, [args('[TOOL_CALLS]', WEATHER), args('[TOOL_CALLS]', TIME)]),
  ],
  ['mistral-args', forced, separated('', true, [args('[TOOL_CALLS]', TIME)])],
  ['granite', forced, tagged('<|tool_call|>', list(true, call(TIME)), ']')],
  [
    'lfm',
    both,
    tagged(
      '<|tool_call_start|>',
      list(false, tagged('get_weather(', lfmWeather, ')'), tagged('get_time(', nothing, ')')),
      ']<|tool_call_end|>',
    ),
  ],
  [
    'xml',
    one,
    tagged(
      '<tool_call>',
      sequence(
        constant('\n'),
        separated(between, false, [tagged('<function=get_weather>', xmlWeather, '\n</function>')]),
      ),
      '\n</tool_call>',
    ),
  ],
])('Calls have the constraint of the family %s: %#', (name, asked, expected) => {
  expect(withoutPaths(toolConstraint(formatOf(name), asked))).toEqual(expected)
})

/** Returns the only tag of a forced call. */
function tagOf(name: string, tool: Tool): TaggedConstraint | undefined {
  const asked = use({ choice: 'required', tools: [tool] })
  const whole = withoutPaths(toolConstraint(formatOf(name), asked))
  const content = whole.type === 'tagged' ? whole.content : whole
  const inner = content.type === 'sequence' ? content.parts.at(-1) : content
  return inner?.type === 'separated' ? inner.tags[0] : undefined
}

const DEFS = { size: { enum: [1, 2] } }
const comma = constant(', ')
const argument = (name: string, content = json(int)) => tagged(`${name}=`, content, '')

test.each<[string, object, readonly string[], Constraint, object?]>([
  [
    'separators around optional ones',
    { a: int, b: int, c: int },
    ['b'],
    sequence(
      optional(sequence(argument('a'), comma)),
      argument('b'),
      optional(sequence(comma, argument('c'))),
    ),
  ],
  [
    'separators between optional ones',
    { a: int, b: int },
    [],
    optional(
      choice(sequence(argument('a'), optional(sequence(comma, argument('b')))), argument('b')),
    ),
  ],
  [
    'booleans of Python',
    { a: { type: 'boolean', description: 'On?' } },
    ['a'],
    argument('a', choice(constant('True'), constant('False'))),
  ],
  ['None', { a: { type: 'null' } }, ['a'], argument('a', constant('None'))],
  [
    'the definitions of references',
    { a: { $ref: '#/$defs/size' } },
    ['a'],
    argument('a', json({ $ref: '#/$defs/size', $defs: DEFS })),
    { $defs: DEFS },
  ],
])('Arguments in Python have %s', (_, properties, required, content, rest = {}) => {
  const parameters = { type: 'object', properties, required, ...rest }
  expect(tagOf('lfm', { name: 'f', parameters })?.content).toEqual(content)
})

const object = { type: 'object', properties: { a: { type: 'string' } } }
const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`p${n}`, {}]))
test.each([
  ['more constraints than its parameters', { ...object, minProperties: 1 }],
  ['a reference to itself', { ...object, properties: { a: { $ref: '#' } } }],
  ['an undescribed required parameter', { ...object, required: ['b'] }],
  ['a name that the format cannot write', { ...object, properties: { 'a b>': {} } }],
  ['very many parameters', { ...object, properties: many }],
])('A tool with %s is called by a JSON object', (_name, parameters) => {
  const tool = { name: 'f', parameters }
  expect(tagOf('lfm', tool)).toEqual(call(tool))
  expect(tagOf('xml', tool)).toEqual(call(tool))
})

test.each([
  [true, { type: 'object' }],
  [{}, { type: 'object' }],
  [
    { minProperties: 1, type: ['object', 'null'] },
    { minProperties: 1, type: 'object' },
  ],
])('Arguments by the schema %j are an object', (parameters, schema) => {
  const tool = { name: 'f', parameters }
  expect(tagOf('hermes', tool)).toEqual(call({ name: 'f', parameters: schema }))
})

test.each<[string, object, Constraint]>([
  ['without quotes if they are words', { enum: ['x', 'y'] }, choice(constant('x'), constant('y'))],
  [
    'as JSON if they would be misread',
    { enum: ['</parameter>'] },
    json({ type: 'string', enum: ['</parameter>'] }),
  ],
  ['as JSON if they have limits', { minLength: 2 }, json({ type: 'string', minLength: 2 })],
])('Texts in tags are written %s', (_name, limits, content) => {
  const properties = { a: { type: 'string', ...limits } }
  const parameters = { type: 'object', properties, required: ['a'] }
  const written = tagged('\n<parameter=a>\n', content, '\n</parameter>')
  expect(tagOf('xml', { name: 'f', parameters })?.content).toEqual(written)
})

describe('An answer may be', () => {
  const format = formatOf('hermes')
  const schema = { type: 'array' }
  const inSchema = { type: 'json_schema', schema } as const
  const asked = use({ tools: [TIME] })
  const required = { ...asked, choice: 'required' } as const
  const grammar = { type: 'grammar', grammar: 'root ::= "a"' } as const

  type Given = Parameters<typeof completionConstraint>
  test.each<[string, Given, Constraint | null]>([
    ['anything', [null, undefined], null],
    ['anything without callable tools', [{ format, use: use({ only: [] }) }, undefined], null],
    ['a JSON object', [null, { type: 'json_object' }], json({ type: 'object' })],
    ['JSON by a schema', [null, inSchema], json(schema)],
    ['text by a grammar', [null, grammar], grammar],
    [
      'calls or JSON',
      [{ format, use: asked }, inSchema],
      choice(hermes(false, TIME), json(schema)),
    ],
    [
      'calls without an end of their own or JSON',
      [{ format: formatOf('llama'), use: asked }, inSchema],
      choice(llama(false, TIME), separated('\n', true, [tagged('', json(schema), '')])),
    ],
    [
      'only calls if one is required',
      [{ format, use: required }, { type: 'json_object' }],
      hermes(false, TIME),
    ],
  ])('%s', (_, given, expected) => {
    expect(withoutPaths(completionConstraint(...given))).toEqual(expected)
  })
})

test('A schema has its place in the request, and is kept exactly if that is wanted', () => {
  const parameters = { type: 'object', properties: { a: int }, required: ['a'] }
  const strict = { name: 'f', parameters, strict: true }
  const tools = use({ tools: [TIME, strict], only: ['f'], choice: 'required' })
  const hermesCall = JSON.stringify(toolConstraint(formatOf('hermes'), tools))
  expect(hermesCall).toContain('"strict":true,"path":"tools[1].parameters"')
  const xmlCall = JSON.stringify(toolConstraint(formatOf('xml'), tools))
  expect(xmlCall).toContain('"strict":true,"path":"tools[1].parameters.properties.a"')
  const format = { type: 'json_schema', schema: int, strict: true } as const
  const kept = { type: 'json', schema: int, strict: true, path: 'format.schema' }
  expect(completionConstraint(null, format)).toEqual(kept)
})
