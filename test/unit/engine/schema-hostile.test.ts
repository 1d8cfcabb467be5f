import { describe, expect, test } from 'vitest'
import { buildGrammar } from '../../../src/engine/constraint/build.ts'
import { toEbnf } from '../../../src/engine/constraint/ebnf.ts'
import { assertSchemaSupported } from '../../../src/engine/schema.ts'
import { createStepBudget, MAX_SCHEMA_STEPS } from '../../../src/engine/schema/step-budget.ts'
import { InoriginError } from '../../../src/error.ts'
import type { JsonSchema } from '../../../src/types/index.ts'

const PATH = 'tools[0].function.parameters'

type Schema = Record<string, unknown>

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))
const byName = <T>(count: number, make: (index: number) => T): Record<string, T> =>
  Object.fromEntries(times(count, (index) => [`d${index}`, make(index)]))
const ref = (index: number): Schema => ({ $ref: `#/$defs/d${index}` })

const refused = (check: () => void): InoriginError => {
  try {
    check()
  } catch (error) {
    if (error instanceof InoriginError) return error
    throw error
  }
  throw new Error('Not refused.')
}

/** Writes the grammar of a schema in every way in which it may be compiled. */
const write = (schema: Schema): void => {
  const steps = createStepBudget()
  const grammar = buildGrammar({ type: 'json', schema: schema as JsonSchema }, steps)
  for (const exact of [false, true]) {
    for (const chained of [64, 8]) toEbnf(grammar, { exact, maxChainLength: chained }, steps)
  }
}

const anyOf = (index: number): Schema => ({ anyOf: [{ minimum: index }, { maxLength: index + 1 }] })

/** Recursive alternatives that a property tells apart, at the end of each. */
const kinds = (count: number): Schema => ({
  ...ref(0),
  $defs: {
    d0: {
      oneOf: [
        { type: 'null' },
        ...times(count, (index) => ({
          type: 'object',
          properties: { left: ref(0), right: ref(0), kind: { const: index } },
          required: ['left', 'right', 'kind'],
        })),
      ],
    },
  },
})

describe('A schema that takes too long is refused, and its place is named', () => {
  const cases: [string, Schema, string][] = [
    [
      'anyOf in allOf, with false behind them',
      { allOf: [...times(60, anyOf), { anyOf: [false] }] },
      'allOf',
    ],
    [
      'anyOf in allOf, in a property',
      { properties: { x: { allOf: [...times(60, anyOf), false] } } },
      'properties.x',
    ],
    [
      'a long chain of references',
      { ...ref(0), $defs: { ...byName(9_900, (index) => ref(index + 1)), d9900: {} } },
      '',
    ],
    [
      'a long text beside nested repetitions',
      {
        pattern: '^((a|b|ab)*c?)*$',
        enum: ['ab'.repeat(20_000)],
      },
      'pattern',
    ],
    [
      'repetitions of repetitions',
      {
        pattern: '^(((((a?b?){1000}){1000}){1000}){1000}c){1000}$',
        enum: times(200, (index) => 'ab'.repeat(index)),
      },
      '',
    ],
    [
      'many bounds with many digits',
      {
        properties: byName(300, (index) => ({
          type: 'number',
          minimum: index + 0.5,
          maximum: 1.7e308 - index,
        })),
      },
      'properties',
    ],
    ['a long tuple', { prefixItems: times(501, () => true) }, 'prefixItems'],
    [
      'counted optional and required properties',
      {
        type: 'object',
        properties: byName(500, () => true),
        required: times(430, (index) => `d${index + 70}`),
        maxProperties: 500,
      },
      'properties',
    ],
    [
      'long names beside others',
      {
        properties: Object.fromEntries(times(400, (index) => [`${index}${'y'.repeat(990)}`, true])),
        additionalProperties: true,
      },
      'additionalProperties',
    ],
  ]
  test.each(cases)('%s', (_what, schema, place) => {
    const { code, param, message } = refused(() =>
      assertSchemaSupported(schema as JsonSchema, PATH),
    )
    expect(code).toBe('unsupported_schema')
    expect(param?.startsWith(place ? `${PATH}.${place}` : PATH)).toBe(true)
    expect(message.startsWith(String(param))).toBe(true)
  })

  test.each<[string, Schema]>([
    [
      'many patterns',
      {
        properties: byName(400, (index) => ({
          type: 'string',
          pattern: `^(a${index}|b${index}?c*){1,50}(x|y[a-z]{0,40}){2,30}$`,
        })),
      },
    ],
    [
      'alternatives within counted alternatives',
      {
        type: 'string',
        pattern: `^${'('.repeat(60)}a${'|a?){0,40}'.repeat(60)}$`,
      },
    ],
    ['many places where a text may begin', { type: 'string', pattern: '.*a'.repeat(2000) }],
    [
      'counted optional properties',
      {
        type: 'object',
        properties: byName(70, () => true),
        minProperties: 35,
        maxProperties: 40,
      },
    ],
  ])('The grammar of %s', (_what, schema) => {
    expect(refused(() => write(schema)).code).toBe('unsupported_schema')
  })

  test('A tuple of as many items as one may have is compiled', () => {
    expect(() =>
      assertSchemaSupported({ prefixItems: times(500, () => true) } as JsonSchema, PATH),
    ).not.toThrow()
  })

  test('All schemas of a request share the steps', () => {
    const schema = kinds(40) as JsonSchema
    const steps = createStepBudget()
    const { code, param } = refused(() => {
      for (let index = 0; index < 1000; index++)
        assertSchemaSupported(schema, `tools[${index}].parameters`, steps)
    })
    expect(code).toBe('unsupported_schema')
    expect(param).toMatch(/^tools\[[1-9]\d*\]\.parameters/)
    expect(() => assertSchemaSupported(schema, PATH)).not.toThrow()
  })
})

describe('A schema that demands more text than anybody waits for is refused', () => {
  test.each<[string, Schema]>([
    ['minItems', { type: 'array', items: { type: 'null' }, minItems: 2 ** 52 }],
    ['minLength', { type: 'string', minLength: 2 ** 50 }],
    ['a pattern', { type: 'string', pattern: '^((ab){1000}){1000}$' }],
    [
      'items of items',
      {
        type: 'array',
        minItems: 1000,
        items: { type: 'array', minItems: 1000, items: { type: 'null' } },
      },
    ],
  ])('%s', (_what, schema) => {
    const { code, param, message } = refused(() =>
      assertSchemaSupported(schema as JsonSchema, PATH),
    )
    expect({ code, param }).toEqual({ code: 'unsupported_schema', param: PATH })
    expect(message).toContain('100000 characters')
  })

  test('So is a pattern, and a grammar', () => {
    const pattern = '(a{1000}){1000}'
    expect(refused(() => buildGrammar({ type: 'pattern', pattern })).code).toBe(
      'unsupported_constraint',
    )
    const grammar = 'root ::= a{1000}\na ::= "a"{1000}'
    expect(refused(() => buildGrammar({ type: 'grammar', grammar })).code).toBe(
      'unsupported_constraint',
    )
  })
})

describe('What is large and not hostile is served, in a tenth of the steps', () => {
  test.each<[string, Schema]>([
    ['recursive alternatives that a property tells apart', kinds(8)],
    [
      '40 objects that a property tells apart',
      {
        oneOf: times(40, (index) => ({
          type: 'object',
          properties: { kind: { const: `k${index}` }, value: { type: 'string' } },
          required: ['kind'],
        })),
      },
    ],
    [
      'references that fan out to the same',
      {
        ...ref(0),
        $defs: {
          ...byName(20, (index) => ({ allOf: times(10, () => ref(index + 1)) })),
          d20: { type: 'null' },
        },
      },
    ],
    [
      'a pattern that repeats what may be empty',
      { pattern: '^((a?){100000}){100000}$', enum: ['aaaaaaaaaaaaaaaa'] },
    ],
    [
      'a class of many characters',
      {
        type: 'string',
        pattern: `^[^${times(5000, (index) => String.fromCodePoint(0x10000 + 2 * index)).join('')}]*$`,
      },
    ],
    ['a long enum', { enum: times(3000, (index) => `value ${index}`) }],
  ])('%s', (_what, schema) => {
    expect(() =>
      assertSchemaSupported(schema as JsonSchema, PATH, createStepBudget(MAX_SCHEMA_STEPS / 10)),
    ).not.toThrow()
  })
})

describe('Long names, paths, patterns and values are refused with a short message', () => {
  const long = 'x'.repeat(3_000_000)
  const nested = (levels: number, inner: Schema): Schema =>
    levels === 0 ? inner : { properties: { ['x'.repeat(1000)]: nested(levels - 1, inner) } }

  test.each<[string, Schema, string]>([
    [
      'a long name with many parts',
      { properties: { [long]: { allOf: times(1000, () => ({})) } } },
      'properties has a name of more than 1000 characters.',
    ],
    ['a long required name', { required: [long] }, 'required has a name of more than 1000'],
    [
      'long names in each other',
      nested(12, { allOf: times(1000, () => ({})) }),
      'has a part whose path is longer than 10000 characters.',
    ],
    ['a type that every object has', { type: 'constructor' }, 'type must be one of null'],
    ['a format that cannot be a string', { format: { toString: 1 } }, 'format must be a string.'],
    ['a format with a long text', { format: { a: long } }, 'format must be a string.'],
    ['a long format', { format: long }, 'format must be a supported format, got "xxx'],
    ['a long reference', { $ref: `#/${long}` }, '$ref refers to #/xxx'],
    [
      'a long pattern',
      { type: 'string', pattern: `^${'(xy)'.repeat(500_000)}$` },
      'pattern is not supported: it has more than 50000 characters.',
    ],
    [
      'a long set',
      { type: 'string', pattern: `^[${String.raw`\W`.repeat(1_000_000)}]$` },
      'pattern is not supported: it has more than 50000 characters.',
    ],
  ])(
    '%s',
    (_what, schema, text) => {
      const { code, message } = refused(() => assertSchemaSupported(schema as JsonSchema, PATH))
      expect(code).toBe('unsupported_schema')
      expect(message).toContain(text)
      expect(message.length).toBeLessThan(1300)
    },
    5_000,
  )

  test('Names that cannot be strings are ignored among those that are listed', () => {
    const schema = { type: 'object', propertyNames: { enum: ['a', 1, { toString: 1 }] } }
    expect(() => assertSchemaSupported(schema as JsonSchema, PATH)).not.toThrow()
  })

  test('Many parts with long paths cost more steps than with short ones', () => {
    const parts = { allOf: times(1000, () => ({})) }
    const check = (schema: Schema) => () => assertSchemaSupported(schema as JsonSchema, PATH)
    expect(check(parts)).not.toThrow()
    expect(refused(check(nested(9, parts))).message).toContain('takes too long to compile')
  })

  test('Names, paths and patterns as long as they may be are compiled', () => {
    const schema = nested(9, { type: 'string', pattern: `^${'x'.repeat(49_998)}$` })
    expect(() => assertSchemaSupported(schema as JsonSchema, PATH)).not.toThrow()
  })
})
