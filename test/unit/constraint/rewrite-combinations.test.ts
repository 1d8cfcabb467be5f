import { describe, test } from 'vitest'
import type { JsonSchema } from '../../../src/constraint/constraint.ts'
import { type Expected, expectTexts } from './rewriting.ts'

/** Keywords of a condition. An object that is written with `then` looks like a promise. */
const [IF, THEN, ELSE] = ['if', 'then', 'else']

const condition = (first: JsonSchema, yes: JsonSchema, no: JsonSchema = true): object =>
  Object.fromEntries([
    [IF, first],
    [THEN, yes],
    [ELSE, no],
  ])

type Row = readonly [title: string, schema: JsonSchema, expected: Expected]

describe('oneOf', () => {
  test.each<Row>([
    [
      'of types',
      { oneOf: [{ type: 'string' }, { type: 'null' }] },
      { right: ['"a"', 'null'], wrong: ['1'] },
    ],
    [
      'of values',
      { oneOf: [{ const: 'a' }, { enum: ['b', 1] }] },
      { right: ['"a"', '"b"', '1'], wrong: ['2'] },
    ],
    [
      'of ranges that overlap',
      { type: 'integer', oneOf: [{ maximum: 5 }, { minimum: 4 }] },
      { right: ['3', '6'], wrong: ['4', '5'] },
    ],
    [
      'of a discriminator',
      {
        oneOf: [
          {
            type: 'object',
            properties: { kind: { const: 'a' }, x: { type: 'integer' } },
            required: ['kind'],
          },
          { type: 'object', properties: { kind: { const: 'b' } }, required: ['kind'] },
        ],
      },
      {
        right: ['{"kind": "a", "x": 1}', '{"kind": "b", "x": "c"}'],
        wrong: ['{"kind": "a", "x": "c"}', '{}'],
      },
    ],
    [
      'of required names',
      {
        type: 'object',
        properties: { a: true, b: true },
        oneOf: [{ required: ['a'] }, { required: ['b'] }],
      },
      { right: ['{"a": 1}', '{"b": 1}'], wrong: ['{}', '{"a": 1, "b": 1}'] },
    ],
    [
      'of patterns',
      { type: 'string', oneOf: [{ pattern: '^a' }, { pattern: 'b$' }] },
      { right: ['"ac"', '"cb"'], wrong: ['"ab"', '"c"'] },
    ],
    [
      'behind references',
      {
        oneOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }],
        $defs: { a: { type: 'string' }, b: { type: 'array', items: { $ref: '#' } } },
      },
      { right: ['"a"', '["a", []]'], wrong: ['1', '[1]'] },
    ],
    [
      'of equal options allows what only another one does',
      { oneOf: [{ type: 'string' }, { type: 'string' }, { type: 'integer' }] },
      { right: ['1'], wrong: ['"a"'] },
    ],
    [
      'of options that cannot be told apart is loosened',
      { oneOf: [{ type: 'integer' }, { type: 'number' }] },
      { right: ['1', '1.5'], wrong: ['"a"'], loosened: ['oneOf'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('not', () => {
  test.each<Row>([
    [
      'a type',
      { not: { type: ['string', 'object'] } },
      { right: ['1', '[]', 'null'], wrong: ['"a"', '{}'] },
    ],
    [
      'numbers',
      { type: 'integer', not: { enum: [0, 3] } },
      { right: ['-1', '1', '4'], wrong: ['0', '3'] },
    ],
    [
      'texts',
      { type: 'string', not: { enum: ['a', 'ab', '.'] } },
      { right: ['""', '"b"', '"abc"'], wrong: ['"a"', '"ab"', '"."'] },
    ],
    [
      'a pattern',
      { type: 'string', not: { pattern: '^a' } },
      { right: ['""', '"ba"'], wrong: ['"a"', '"ab"'] },
    ],
    [
      'a constant of any type',
      { not: { const: [1] } },
      { right: ['1', '[]', '[2]', '[1, 1]'], wrong: ['[1]'] },
    ],
    ['a name', { not: { required: ['a'] } }, { right: ['{}'], wrong: ['{"a": 1}', '1'] }],
    [
      'two names together',
      { properties: { a: true, b: true }, not: { required: ['a', 'b'] } },
      { right: ['{"a": 1}', '{"b": 1}'], wrong: ['{"a": 1, "b": 1}'] },
    ],
    [
      'a property',
      { not: { properties: { a: { type: 'number' } } } },
      { right: ['{"a": "b"}'], wrong: ['{}', '{"a": 1}', '1'] },
    ],
    [
      'either of two',
      { not: { anyOf: [{ type: 'string' }, { minimum: 1 }] } },
      { right: ['0'], wrong: ['"a"', '1', '[]'] },
    ],
    [
      'both of two',
      { not: { allOf: [{ type: 'integer', minimum: 1 }, { maximum: 3 }] }, type: 'integer' },
      { right: ['0', '4'], wrong: ['1', '3'] },
    ],
    ['what is not', { not: { not: { type: 'string' } } }, { right: ['"a"'], wrong: ['1'] }],
    [
      'anything, in a property',
      { properties: { a: { not: {} } } },
      { right: ['{}', '{"b": 1}'], wrong: ['{"a": 1}'] },
    ],
    [
      'a multiple is loosened',
      { type: 'integer', not: { multipleOf: 2 } },
      { right: ['1', '2'], wrong: ['"a"'], loosened: ['not'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('conditions', () => {
  const country = { enum: ['FI', 'SE', 'NO'] }
  const of = (name: string, code: JsonSchema): object =>
    condition({ properties: { country: { const: name } } }, { properties: { code } })
  test.each<Row>([
    [
      'with then',
      {
        type: 'object',
        properties: { country, code: true },
        required: ['country'],
        ...of('FI', { type: 'integer' }),
      },
      {
        right: ['{"country": "FI", "code": 1}', '{"country": "SE", "code": "a"}'],
        wrong: ['{"country": "FI", "code": "a"}'],
      },
    ],
    [
      'with then and else',
      { ...condition({ type: 'number' }, { minimum: 1 }, { type: 'string' }) },
      { right: ['1', '"a"'], wrong: ['0', 'null'] },
    ],
    [
      'with else only',
      { if: { type: 'number' }, else: { type: 'string' } },
      { right: ['0', '"a"'], wrong: ['null'] },
    ],
    ['without then and else', { if: { type: 'integer' } }, { right: ['0', '"a"'] }],
    [
      'that exclude each other',
      {
        type: 'object',
        properties: { country, code: true },
        allOf: [
          of('FI', { type: 'integer' }),
          of('SE', { type: 'string' }),
          of('NO', { type: 'null' }),
        ],
      },
      {
        right: [
          '{"country": "FI", "code": 1}',
          '{"country": "SE", "code": "a"}',
          '{"country": "NO"}',
          '{}',
        ],
        wrong: ['{"country": "FI", "code": "a"}', '{"country": "NO", "code": 1}', '{"code": 1}'],
      },
    ],
    [
      'on what cannot be negated are loosened',
      { ...condition({ multipleOf: 2 }, { minimum: 4 }), type: 'integer' },
      { right: ['1', '2', '4'], wrong: ['"a"'], loosened: ['if'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))

  test('thirty of one property stay small', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `country ${index}`)
    const schema = {
      type: 'object',
      properties: { country: { enum: names }, code: true },
      allOf: names.map((name, index) => of(name, { const: index })),
    }
    await expectTexts(schema, {
      right: ['{"country": "country 7", "code": 7}'],
      wrong: ['{"country": "country 7", "code": 8}'],
    })
  })
})

describe('what depends on a property', () => {
  const properties = { a: true, b: true, c: true }
  test.each<Row>([
    [
      'names',
      { properties, dependentRequired: { a: ['b', 'c'] } },
      { right: ['{"b": 1}', '{"a": 1, "b": 1, "c": 1}'], wrong: ['{"a": 1}', '{"a": 1, "b": 1}'] },
    ],
    [
      'a schema',
      { properties, dependentSchemas: { a: { properties: { b: { type: 'null' } } } } },
      { right: ['{"b": 1}', '{"a": 1, "b": null}'], wrong: ['{"a": 1, "b": 1}'] },
    ],
    [
      'nothing',
      { properties, dependentSchemas: { a: false } },
      { right: ['{"b": 1}'], wrong: ['{"a": 1}'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('unevaluated', () => {
  const a = { properties: { a: { type: 'number' } }, required: ['a'] }
  const b = { properties: { b: { type: 'number' } }, required: ['b'] }
  test.each<Row>([
    [
      'properties beside properties',
      { ...a, type: 'object', unevaluatedProperties: false },
      { right: ['{"a": 1}'], wrong: ['{"a": 1, "b": 1}'] },
    ],
    [
      'properties of all',
      { type: 'object', allOf: [a, b], unevaluatedProperties: false },
      { right: ['{"a": 1, "b": 1}'], wrong: ['{"a": 1, "b": 1, "c": 1}'] },
    ],
    [
      'properties of any',
      { type: 'object', anyOf: [a, b], unevaluatedProperties: false },
      {
        right: ['{"a": 1}', '{"b": 1}', '{"a": 1, "b": 1}'],
        wrong: ['{"a": 1, "b": "c"}', '{"a": 1, "c": 1}', '{}'],
      },
    ],
    [
      'properties of one',
      { type: 'object', oneOf: [a, b], unevaluatedProperties: { type: 'null' } },
      {
        right: ['{"a": 1}', '{"b": 1, "c": null}'],
        wrong: ['{"a": 1, "b": 1}', '{"a": 1, "c": 1}'],
      },
    ],
    [
      'properties of a condition',
      {
        type: 'object',
        properties: { k: { enum: [1, 2] } },
        required: ['k'],
        ...condition({ properties: { k: { const: 1 } } }, a, b),
        unevaluatedProperties: false,
      },
      {
        right: ['{"k": 1, "a": 1}', '{"k": 2, "b": 1}'],
        wrong: ['{"k": 1, "a": 1, "b": 1}', '{"k": 2, "a": 1}'],
      },
    ],
    [
      'properties behind a reference',
      { $ref: '#/$defs/a', unevaluatedProperties: false, $defs: { a } },
      { right: ['{"a": 1}'], wrong: ['{"a": 1, "b": 1}'] },
    ],
    [
      'items',
      { type: 'array', allOf: [{ prefixItems: [true] }], unevaluatedItems: { type: 'null' } },
      { right: ['[]', '[1]', '[1, null]'], wrong: ['[1, 1]'] },
    ],
    [
      'items beside those that are contained are loosened',
      { type: 'array', contains: { const: 1 }, unevaluatedItems: false },
      { right: ['[1]', '[1, 2]'], wrong: ['[]'], loosened: ['contains', 'unevaluatedItems'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})
