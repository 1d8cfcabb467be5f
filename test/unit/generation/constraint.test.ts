import { describe, expect, test } from 'vitest'
import type { Constraint, TaggedConstraint } from '../../../src/engine/constraint.ts'
import { completionConstraint } from '../../../src/generation/constraint.ts'
import { FORMATS, type ToolFormat, toolConstraint } from '../../../src/generation/tools/index.ts'
import type { Tool } from '../../../src/types/index.ts'
import { SET, TIME, use, WEATHER } from './scripted.ts'

const formatOf = (name: string): ToolFormat => {
  const format = FORMATS.find((one) => one.name === name)
  if (!format) throw new Error(name)
  return format
}

const constant = (text: string): Constraint => ({ type: 'constant', text })
const nothing: Constraint = { type: 'grammar', grammar: 'root ::= ""' }
const optional = (part: Constraint): Constraint => ({ type: 'choice', parts: [part, nothing] })
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

const two = use({ tools: [WEATHER, TIME] })
const forced = use({
  tools: [WEATHER, TIME, SET],
  choice: 'required',
  only: ['get_time'],
  parallel: false,
})

describe('calls of the family of', () => {
  test('hermes', () => {
    const between = '\n</tool_call>\n<tool_call>\n'
    expect(toolConstraint(formatOf('hermes'), two)).toEqual(
      triggered('<tool_call>', true, [
        tagged(
          '<tool_call>',
          sequence(constant('\n'), separated(between, false, [call(WEATHER), call(TIME)])),
          '\n</tool_call>',
        ),
      ]),
    )
    expect(toolConstraint(formatOf('hermes'), forced)).toEqual(
      tagged(
        '<tool_call>',
        sequence(constant('\n'), separated(between, true, [call(TIME)])),
        '\n</tool_call>',
      ),
    )
  })

  test('llama', () => {
    const calls = (single: boolean, ...tools: Tool[]): Constraint =>
      separated(
        '; ',
        single,
        tools.map((tool) => call(tool, 'parameters')),
      )
    expect(toolConstraint(formatOf('llama'), two)).toEqual({
      type: 'choice',
      parts: [
        calls(false, WEATHER, TIME),
        sequence({ type: 'grammar', grammar: 'root ::= [^{<\\n ] | "<" [^|]' }, { type: 'text' }),
      ],
    })
    expect(toolConstraint(formatOf('llama'), forced)).toEqual(calls(true, TIME))
  })

  test('mistral', () => {
    expect(toolConstraint(formatOf('mistral'), forced)).toEqual(
      tagged(
        '[TOOL_CALLS]',
        sequence({ type: 'pattern', pattern: ' ?\\[' }, separated(', ', true, [call(TIME)])),
        ']',
      ),
    )
  })

  test('mistral with names', () => {
    const tag = (before: string, { name, parameters }: Tool): TaggedConstraint =>
      tagged(`${before}${name}[ARGS]`, json(parameters), '')
    expect(toolConstraint(formatOf('mistral-args'), two)).toEqual(
      triggered('[TOOL_CALLS]', false, [tag('[TOOL_CALLS]', WEATHER), tag('[TOOL_CALLS]', TIME)]),
    )
    expect(toolConstraint(formatOf('mistral-args'), forced)).toEqual(
      sequence(constant('[TOOL_CALLS]'), separated('[TOOL_CALLS]', true, [tag('', TIME)])),
    )
  })

  test('granite', () => {
    expect(toolConstraint(formatOf('granite'), forced)).toEqual(
      tagged('<|tool_call|>', sequence(constant('['), separated(', ', true, [call(TIME)])), ']'),
    )
  })

  test('lfm, argument by argument', () => {
    const weather = tagged(
      'get_weather(',
      sequence(
        tagged('city=', json({ type: 'string' }), ''),
        optional(sequence(constant(', '), tagged('days=', json({ type: 'integer' }), ''))),
      ),
      ')',
    )
    expect(
      toolConstraint(formatOf('lfm'), use({ choice: 'required', tools: [WEATHER, TIME] })),
    ).toEqual(
      tagged(
        '<|tool_call_start|>',
        sequence(
          constant('['),
          separated(', ', false, [weather, tagged('get_time(', nothing, ')')]),
        ),
        ']<|tool_call_end|>',
      ),
    )
  })

  test('xml, parameter by parameter', () => {
    const weather = tagged(
      '<function=get_weather>',
      sequence(
        tagged('\n<parameter=city>\n', { type: 'text' }, '</parameter>'),
        optional(tagged('\n<parameter=days>\n', json({ type: 'integer' }), '\n</parameter>')),
      ),
      '\n</function>',
    )
    expect(toolConstraint(formatOf('xml'), use({ choice: 'required', tools: [WEATHER] }))).toEqual(
      tagged(
        '<tool_call>',
        sequence(constant('\n'), separated('\n</tool_call>\n<tool_call>\n', false, [weather])),
        '\n</tool_call>',
      ),
    )
  })
})

/** The only tag of a call that is forced. */
function tagOf(name: string, tool: Tool): TaggedConstraint | undefined {
  const whole = toolConstraint(formatOf(name), use({ choice: 'required', tools: [tool] }))
  const content = whole.type === 'tagged' ? whole.content : whole
  const inner = content.type === 'sequence' ? content.parts.at(-1) : content
  return inner?.type === 'separated' ? inner.tags[0] : undefined
}

describe('arguments in Python', () => {
  const write = (
    properties: object,
    required: readonly string[] = [],
    rest: object = {},
  ): unknown =>
    tagOf('lfm', { name: 'f', parameters: { type: 'object', properties, required, ...rest } })
      ?.content

  test('some of which may be left out have separators where they belong', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) =>
      tagged(`${name}=`, json({ type: 'integer' }), ''),
    )
    const int = { type: 'integer' }
    const comma = constant(', ')
    if (!a || !b || !c) throw new Error('three')
    expect(write({ a: int, b: int, c: int }, ['b'])).toEqual(
      sequence(optional(sequence(a, comma)), b, optional(sequence(comma, c))),
    )
    expect(write({ a: int, b: int })).toEqual(
      optional({ type: 'choice', parts: [sequence(a, optional(sequence(comma, b))), b] }),
    )
  })

  test('say truth and nothing as Python does', () => {
    const truth: Constraint = { type: 'choice', parts: [constant('True'), constant('False')] }
    expect(write({ on: { type: 'boolean', description: 'On?' } }, ['on'])).toEqual(
      tagged('on=', truth, ''),
    )
    expect(write({ on: { type: 'null' } }, ['on'])).toEqual(tagged('on=', constant('None'), ''))
  })

  test('take along what they refer to', () => {
    const $defs = { size: { enum: [1, 2] } }
    expect(write({ a: { $ref: '#/$defs/size' } }, ['a'], { $defs })).toEqual(
      tagged('a=', json({ $ref: '#/$defs/size', $defs }), ''),
    )
  })
})

describe('a tool is called by a JSON object', () => {
  const object = { type: 'object', properties: { a: { type: 'string' } } }
  test.each([
    ['that says more than its parameters', { ...object, minProperties: 1 }],
    ['that refers to itself', { ...object, properties: { a: { $ref: '#' } } }],
    ['that asks for what it does not describe', { ...object, required: ['b'] }],
    ['with a name that is none there', { ...object, properties: { 'a b>': {} } }],
    [
      'with very many parameters',
      {
        ...object,
        properties: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`p${n}`, {}])),
      },
    ],
  ])('%s', (_name, parameters) => {
    const tool = { name: 'f', parameters }
    expect(tagOf('lfm', tool)).toEqual(call(tool))
    expect(tagOf('xml', tool)).toEqual(call(tool))
  })
})

test.each([
  [true, { type: 'object' }],
  [{}, { type: 'object' }],
  [
    { minProperties: 1, type: ['object', 'null'] },
    { minProperties: 1, type: 'object' },
  ],
])('arguments by the schema %j are an object all the same', (parameters, schema) => {
  const tool = { name: 'f', parameters }
  expect(tagOf('hermes', tool)).toEqual(call({ name: 'f', parameters: schema }))
})

test.each<[string, object, Constraint]>([
  [
    'without quotes where they are words',
    { type: 'string', enum: ['x', 'y'] },
    { type: 'choice', parts: [constant('x'), constant('y')] },
  ],
  [
    'as JSON where they would be misread',
    { type: 'string', enum: ['</parameter>'] },
    json({ type: 'string', enum: ['</parameter>'] }),
  ],
  [
    'as JSON where more is said of them',
    { type: 'string', minLength: 2 },
    json({ type: 'string', minLength: 2 }),
  ],
])('texts in tags are written %s', (_name, schema, content) => {
  const tool = {
    name: 'f',
    parameters: { type: 'object', properties: { a: schema }, required: ['a'] },
  }
  expect(tagOf('xml', tool)?.content).toEqual(
    tagged('\n<parameter=a>\n', content, '\n</parameter>'),
  )
})

describe('an answer may be', () => {
  const format = formatOf('hermes')
  const schema = { type: 'array' }

  test('anything', () => {
    expect(completionConstraint(null, undefined)).toBeNull()
    expect(completionConstraint({ format, use: use({ only: [] }) }, undefined)).toBeNull()
  })

  test('JSON, or of a grammar', () => {
    expect(completionConstraint(null, { type: 'json_object' })).toEqual(json({ type: 'object' }))
    expect(completionConstraint(null, { type: 'json_schema', schema })).toEqual(json(schema))
    const grammar = { type: 'grammar', grammar: 'root ::= "a"' } as const
    expect(completionConstraint(null, grammar)).toEqual(grammar)
  })

  test('calls, or in a format', () => {
    const asked = use({ tools: [TIME] })
    expect(completionConstraint({ format, use: asked }, { type: 'json_schema', schema })).toEqual({
      type: 'choice',
      parts: [toolConstraint(format, { ...asked, choice: 'required' }), json(schema)],
    })
  })

  test('calls that have no end of their own, or in a format', () => {
    const asked = use({ tools: [TIME] })
    const llama = formatOf('llama')
    expect(
      completionConstraint({ format: llama, use: asked }, { type: 'json_schema', schema }),
    ).toEqual({
      type: 'choice',
      parts: [
        toolConstraint(llama, { ...asked, choice: 'required' }),
        separated('\n', true, [tagged('', json(schema), '')]),
      ],
    })
  })

  test('calls alone where one is required', () => {
    const asked = use({ tools: [TIME], choice: 'required' })
    expect(completionConstraint({ format, use: asked }, { type: 'json_object' })).toEqual(
      toolConstraint(format, asked),
    )
  })
})
