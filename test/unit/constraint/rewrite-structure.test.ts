import { describe, test } from 'vitest'
import type { JsonSchema } from '../../../src/constraint/constraint.ts'
import { type Expected, expectTexts } from './rewriting.ts'

type Row = readonly [title: string, schema: JsonSchema, expected: Expected]

describe('objects', () => {
  const properties = { a: { type: 'integer' }, b: { type: 'integer' }, c: { type: 'integer' } }
  const closed = { type: 'object', properties, additionalProperties: false }
  test.each<Row>([
    [
      'with listed properties are open',
      { properties },
      { right: ['{"a": 1, "x": []}'], wrong: ['{"a": "b"}'] },
    ],
    [
      'with at least two properties',
      { ...closed, minProperties: 2 },
      { right: ['{"a": 1, "c": 1}', '{"a": 1, "b": 1, "c": 1}'], wrong: ['{}', '{"b": 1}'] },
    ],
    [
      'with at most one property',
      { ...closed, maxProperties: 1 },
      { right: ['{}', '{"b": 1}'], wrong: ['{"a": 1, "b": 1}'] },
    ],
    [
      'with exactly one more',
      { ...closed, required: ['a'], minProperties: 2, maxProperties: 2 },
      { right: ['{"a": 1, "c": 1}'], wrong: ['{"a": 1}', '{"a": 1, "b": 1, "c": 1}'] },
    ],
    [
      'with one listed or other property',
      { type: 'object', properties: { a: true }, minProperties: 1 },
      { right: ['{"a": 1}', '{"x": 1}', '{"a": 1, "x": 1}'], wrong: ['{}'] },
    ],
    [
      'with at most two, listed or not',
      { type: 'object', properties: { a: true }, maxProperties: 2 },
      {
        right: ['{}', '{"a": 1, "x": 1}', '{"x": 1, "y": 1}'],
        wrong: ['{"a": 1, "x": 1, "y": 1}'],
      },
    ],
    [
      'with at least two other properties, of which one may come twice',
      { type: 'object', minProperties: 2 },
      { right: ['{"x": 1, "y": 1}'], wrong: ['{"x": 1}'], loosened: ['minProperties'] },
    ],
    [
      'with listed names',
      {
        type: 'object',
        additionalProperties: { type: 'integer' },
        propertyNames: { enum: ['a', 'b'] },
      },
      { right: ['{"a": 1, "b": 2}'], wrong: ['{"c": 1}', '{"a": "b"}'] },
    ],
    [
      'with names of a pattern',
      { type: 'object', properties: { b: true }, propertyNames: { pattern: '^a' } },
      { right: ['{"a": 1, "ab": 1}'], wrong: ['{"b": 1}', '{"c": 1}'] },
    ],
    [
      'with short names of a pattern',
      { type: 'object', propertyNames: { pattern: '^a', maxLength: 2 } },
      { right: ['{"ab": 1}'], wrong: ['{"abc": 1}', '{"b": 1}'] },
    ],
    [
      'with no names',
      { type: 'object', propertyNames: false },
      { right: ['{}'], wrong: ['{"a": 1}'] },
    ],
    [
      'with patterns that overlap',
      {
        type: 'object',
        patternProperties: { '^a': { type: 'integer' }, b$: { minimum: 2 } },
        additionalProperties: false,
      },
      {
        right: ['{"a": 1}', '{"ab": 2}', '{"b": "c"}'],
        wrong: ['{"ab": 1}', '{"a": "c"}', '{"b": 1}', '{"c": 1}'],
      },
    ],
    [
      'with patterns that say the same',
      { type: 'object', patternProperties: { '^a': { type: 'integer' }, b$: { type: 'integer' } } },
      { right: ['{"ab": 1, "c": "d"}'], wrong: ['{"ab": "c"}', '{"b": "c"}'] },
    ],
    [
      'with a name that also matches a pattern',
      {
        type: 'object',
        properties: { ab: { minimum: 2 } },
        patternProperties: { '^a': { type: 'integer' } },
      },
      { right: ['{"ab": 2}'], wrong: ['{"ab": 1}', '{"ab": "c"}'] },
    ],
    [
      'with the name __proto__',
      {
        type: 'object',
        properties: JSON.parse('{"__proto__": {"type": "null"}}'),
        additionalProperties: false,
      },
      { right: ['{"__proto__": null}'], wrong: ['{"__proto__": 1}', '{"a": 1}'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('arrays', () => {
  test.each<Row>([
    [
      'of different listed values',
      { type: 'array', items: { enum: ['a', 'b', 1] }, uniqueItems: true, minItems: 1 },
      { right: ['["a"]', '[1, "b", "a"]'], wrong: ['[]', '["a", "a"]'] },
    ],
    [
      'of different booleans',
      { type: 'array', items: { type: 'boolean' }, uniqueItems: true },
      { right: ['[]', '[true, false]'], wrong: ['[true, true]'] },
    ],
    [
      'of different first items',
      {
        type: 'array',
        prefixItems: [{ type: 'boolean' }, { type: 'boolean' }],
        items: false,
        uniqueItems: true,
      },
      { right: ['[true]', '[true, false]'], wrong: ['[true, true]'] },
    ],
    [
      'of items that cannot be equal',
      {
        type: 'array',
        prefixItems: [{ type: 'string' }, { type: 'integer' }],
        items: false,
        uniqueItems: true,
      },
      { right: ['["a", 1]'], wrong: ['[1, "a"]'] },
    ],
    [
      'of one item are always unique',
      { type: 'array', maxItems: 1, uniqueItems: true },
      { right: ['[[]]'], wrong: ['[1, 1]'] },
    ],
    [
      'of any items are loosened',
      { type: 'array', items: { type: 'string' }, uniqueItems: true },
      { right: ['["a", "b"]', '["a", "a"]'], loosened: ['uniqueItems'] },
    ],
    [
      'of many listed values have at most as many items',
      { type: 'array', items: { enum: [1, 2, 3, 4, 5, 6] }, uniqueItems: true },
      { right: ['[1, 2]'], wrong: ['[1, 2, 3, 4, 5, 6, 1]'], loosened: ['uniqueItems'] },
    ],
    [
      'that contain a value, of bounded length',
      { type: 'array', items: { enum: [1, 2] }, contains: { const: 1 }, maxItems: 3 },
      { right: ['[1]', '[2, 1]', '[1, 1, 2]'], wrong: ['[]', '[2]', '[2, 2, 2]'] },
    ],
    [
      'that contain a number of values',
      { type: 'array', contains: { type: 'null' }, minContains: 2, maxContains: 2, maxItems: 3 },
      { right: ['[null, null]', '[null, 1, null]'], wrong: ['[null]', '[null, null, null]'] },
    ],
    [
      'that contain none',
      { type: 'array', contains: { type: 'string' }, minContains: 0, maxContains: 0 },
      { right: ['[]', '[1, null]'], wrong: ['[1, "a"]'] },
    ],
    [
      'whose items are all contained',
      { type: 'array', items: { const: 1 }, contains: { type: 'number' }, minContains: 2 },
      { right: ['[1, 1]'], wrong: ['[1]'] },
    ],
    [
      'that contain a value, of any length, are loosened',
      { type: 'array', contains: { const: 1 } },
      { right: ['[1]', '[2]'], wrong: ['[]'], loosened: ['contains'] },
    ],
    [
      'of items that no value satisfies are empty',
      {
        type: 'array',
        items: { $ref: '#/$defs/a' },
        $defs: { a: { type: 'string', minLength: 2, maxLength: 1 } },
      },
      { right: ['[]'], wrong: ['["a"]'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('values', () => {
  test.each<Row>([
    [
      'that are listed',
      { enum: ['a', 0, [], {}, null, 'é', 'a'] },
      { right: ['"a"', '0', '[]', '{}', 'null', '"é"'], wrong: ['1', '[0]', '"e"'] },
    ],
    [
      'that are listed, of one type',
      { type: 'string', enum: ['a', 1] },
      { right: ['"a"'], wrong: ['1'] },
    ],
    [
      'that are multiples',
      { type: 'number', multipleOf: 0.25, maximum: 1 },
      { right: ['0.5', '0.75'], wrong: ['0.3', '1.25'] },
    ],
    [
      'that are multiples of what the engine cannot divide by',
      { type: 'integer', multipleOf: 123456 },
      { right: ['123456', '1'], loosened: ['multipleOf'] },
    ],
    [
      'up to the largest safe integer',
      { type: 'integer', minimum: 9007199254740990, exclusiveMaximum: 9007199254740992 },
      { right: ['9007199254740991'], wrong: ['9007199254740992'] },
    ],
    [
      'with a pattern, a format and lengths',
      { type: 'string', pattern: '^a', format: 'email', maxLength: 9 },
      { right: ['"a@bc.de"'], wrong: ['"b@bc.de"', '"abc@bcd.de"', '"abc"'] },
    ],
    [
      'with a look-ahead',
      { type: 'string', pattern: '^(?=.*[A-Z])(?!x).{2,3}$' },
      { right: ['"aB"'], wrong: ['"ab"', '"xB"', '"B"'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})
