/** Single keywords: which values may be written, and which may not. */
import { afterAll, describe, expect, test } from 'vitest'
import { createConstraintCompiler } from '../../../src/engine/constraint/compiler.ts'
import { smallVocabulary } from '../../support/vocabulary.ts'
import { takes } from '../../support/walk.ts'
import { placeXgrammar } from '../../support/xgrammar.ts'

placeXgrammar()

const vocabulary = smallVocabulary(['": ', '", "', 'null', '{"'])
const constraints = createConstraintCompiler(vocabulary)
const signal = new AbortController().signal

afterAll(() => constraints.close())

type Case = [what: string, schema: Record<string, unknown>, right: string[], wrong: string[]]

const object = (properties: object, more: object = {}): Record<string, unknown> => ({
  type: 'object',
  properties,
  ...more,
})
const number = { type: 'number' }

const CASES: Case[] = [
  ['no type: any', { maxLength: 1, minimum: 5 }, ['"a"', '5', 'null', '[1]', '{}'], ['"ab"', '4']],
  ['type list', { type: ['string', 'null'] }, ['"x"', 'null'], ['1', 'true', '{}']],
  [
    'number has integers',
    { type: 'number' },
    ['1', '1.5', '-0.5', '1e10', '1E-5'],
    ['1e999', '01', '+1', 'NaN'],
  ],
  ['nullable', { type: 'integer', nullable: true }, ['1', 'null'], ['"1"']],
  ['nullable and enum', { type: 'string', nullable: true, enum: ['a'] }, ['"a"'], ['null']],
  [
    'enum beside others',
    { enum: [1, 'a', null, 7], type: ['integer', 'null'], minimum: 5 },
    ['7', 'null'],
    ['1', '"a"'],
  ],
  [
    'enum of all kinds',
    { enum: [{ b: [1, 'x'], a: null }, [], '"', -0.5, true] },
    ['{"b": [1, "x"], "a": null}', '[]', '"\\""', '-0.5', 'true'],
    ['{"a": null, "b": [1, "x"]}', '{}', 'false'],
  ],
  [
    'const with other order',
    { allOf: [{ const: { a: 1, b: 2 } }, { enum: [{ b: 2, a: 1 }] }] },
    ['{"a": 1, "b": 2}'],
    ['{}'],
  ],
  ['half a surrogate pair', { const: 'a\ud800' }, ['"a\\ud800"'], ['"a"']],
  [
    'exclusive integers',
    { type: 'integer', exclusiveMinimum: 1, exclusiveMaximum: 4.5 },
    ['2', '3', '4'],
    ['1', '5'],
  ],
  ['int32', { type: 'integer', format: 'int32' }, ['2147483647', '-2147483648'], ['2147483648']],
  [
    'an integer by way of allOf',
    { allOf: [{ type: 'number' }, { type: 'integer', minimum: 0 }] },
    ['3'],
    ['-1', '1.5'],
  ],
  [
    'many digits',
    { type: 'integer', minimum: 2 ** 53 },
    ['9007199254740992', '99999999999999999999'],
    ['9007199254740991'],
  ],
  [
    'tiny numbers',
    { type: 'number', minimum: 1e-20, maximum: 1e-19 },
    ['0.00000000000000000001', '0.000000000000000000042', '0.0000000000000000001'],
    ['0.0000000000000000000099', '0.00000000000000000011', '0', '0.1'],
  ],
  [
    'huge numbers',
    { type: 'number', minimum: 1e300, maximum: Number.MAX_VALUE },
    [`1${'0'.repeat(300)}`],
    ['1', '1e299'],
  ],
  [
    'lists',
    { type: 'array', items: number, minItems: 1, maxItems: 2 },
    ['[1]', '[1, 2]'],
    ['[]', '[1, 2, 3]', '["a"]'],
  ],
  [
    'a long list',
    { type: 'array', items: { const: 1 }, minItems: 70, maxItems: 100 },
    [`[${'1, '.repeat(69)}1]`, `[${'1, '.repeat(99)}1]`],
    [`[${'1, '.repeat(68)}1]`, `[${'1, '.repeat(100)}1]`],
  ],
  [
    'prefixItems',
    { type: 'array', prefixItems: [number, { type: 'null' }], items: false, minItems: 1 },
    ['[1]', '[1, null]'],
    ['[]', '[null]', '[1, null, 1]'],
  ],
  [
    'items as a list',
    { type: 'array', items: [number], additionalItems: { type: 'null' } },
    ['[]', '[1]', '[1, null]'],
    ['[null]', '[1, 1]'],
  ],
  ['an empty list of items', { type: 'array', items: [], additionalItems: false }, ['[]'], ['[1]']],
  ['items: false', { type: 'array', items: false }, ['[]'], ['[null]']],
  [
    'uniqueItems: false',
    { type: 'array', uniqueItems: false, items: { const: 1 } },
    ['[1, 1]'],
    ['[2]'],
  ],
  [
    'names of no type',
    { type: 'object', additionalProperties: true, propertyNames: { type: 'integer' } },
    ['{}'],
    ['{"a": 1}'],
  ],
  [
    'properties in order',
    object({ a: number, b: number, c: number }, { required: ['b'] }),
    ['{"b": 1}', '{"a": 1, "b": 2}', '{"b": 1, "c": 2}', '{"a": 1, "b": 2, "c": 3}'],
    ['{}', '{"a": 1}', '{"b": 1, "a": 2}', '{"b": 1, "d": 1}', '{"a": 1, "a": 1, "b": 1}'],
  ],
  [
    'no properties named: any',
    { type: 'object' },
    ['{}', '{"x": [1]}', '{"x": 1, "y": {}}'],
    ['[]'],
  ],
  ['empty properties: any', object({}), ['{}', '{"x": 1}'], []],
  [
    'additionalProperties: true',
    object({ a: number }, { additionalProperties: true }),
    ['{"a": 1, "b": "x"}', '{"b": null}'],
    ['{"a": "x"}'],
  ],
  [
    'additionalProperties: false',
    object({ a: number }, { additionalProperties: false }),
    ['{}', '{"a": 1}'],
    ['{"b": 1}'],
  ],
  [
    'required without properties',
    { type: 'object', required: ['x', 'y'] },
    ['{"x": 1, "y": [2]}'],
    ['{"x": 1}', '{}', '{"y": 1, "x": 2}'],
  ],
  [
    'required, unlisted, typed by additionalProperties',
    {
      type: 'object',
      required: ['x'],
      additionalProperties: number,
    },
    ['{"x": 1}', '{"x": 1, "z": 2}'],
    ['{"x": "a"}', '{}'],
  ],
  ['a property that is false', object({ a: false, b: number }), ['{}', '{"b": 1}'], ['{"a": 1}']],
  [
    'counted properties',
    object({ a: number, b: number, c: number }, { minProperties: 1, maxProperties: 2 }),
    ['{"a": 1}', '{"a": 1, "c": 1}', '{"b": 1, "c": 1}'],
    ['{}', '{"a": 1, "b": 1, "c": 1}'],
  ],
  [
    'counted free properties',
    { type: 'object', additionalProperties: number, minProperties: 1, maxProperties: 2 },
    ['{"a": 1}', '{"a": 1, "b": 2}'],
    ['{}', '{"a": 1, "b": 2, "c": 3}'],
  ],
  [
    'patternProperties',
    { type: 'object', patternProperties: { '^x-[a-z]+$': number }, additionalProperties: false },
    ['{}', '{"x-a": 1, "x-b": 2}'],
    ['{"x-": 1}', '{"y": 1}', '{"x-a": "b"}'],
  ],
  [
    'propertyNames',
    { type: 'object', propertyNames: { pattern: '^[a-z]+$' }, additionalProperties: number },
    ['{"ab": 1}'],
    ['{"A": 1}', '{"": 1}'],
  ],
  [
    'propertyNames of a type',
    { type: 'object', propertyNames: { type: 'string' }, additionalProperties: number },
    ['{"A b": 1}'],
    ['{"a": "x"}'],
  ],
  [
    'propertyNames as a list',
    {
      type: 'object',
      propertyNames: { enum: ['a', 'b'] },
      additionalProperties: number,
      required: ['b'],
    },
    ['{"b": 1}', '{"b": 1, "a": 2}'],
    ['{"a": 1}', '{"c": 1, "b": 1}', '{}'],
  ],
  [
    'names with escapes',
    object({ 'a"b': number, 'c\nd': number, 'é\\': number }, { required: ['é\\'] }),
    ['{"a\\"b": 1, "c\\nd": 2, "é\\\\": 3}'],
    ['{"a\\"b": 1}'],
  ],
  [
    '__proto__',
    {
      type: 'object',
      properties: JSON.parse('{"__proto__":{"type":"number"}}'),
      required: ['__proto__'],
    },
    ['{"__proto__": 1}'],
    ['{}', '{"__proto__": "a"}'],
  ],
  [
    'anyOf beside others',
    {
      type: 'object',
      anyOf: [
        object({ a: number }, { required: ['a'] }),
        object({ b: number }, { required: ['b'] }),
      ],
    },
    ['{"a": 1}', '{"b": 1}'],
    ['{}'],
  ],
  [
    'oneOf of types',
    { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
    ['"a"', '["a"]'],
    ['1', '[1]'],
  ],
  [
    'allOf of closed and open',
    {
      allOf: [
        object({ a: number }, { additionalProperties: false }),
        object({ a: { minimum: 2 }, b: number }),
      ],
    },
    ['{"a": 2}', '{}'],
    ['{"a": 1}', '{"a": 2, "b": 1}'],
  ],
  [
    'a reference beside others',
    { $ref: '#/$defs/n', minimum: 3, $defs: { n: { type: 'integer', maximum: 5 } } },
    ['3', '5'],
    ['2', '6'],
  ],
  [
    'a recursion',
    {
      $ref: '#/definitions/t',
      definitions: {
        t: { anyOf: [{ type: 'null' }, { type: 'array', items: { $ref: '#/definitions/t' } }] },
      },
    },
    ['null', '[null, [[], null]]'],
    ['1', '[1]'],
  ],
  [
    'a recursion of two',
    {
      $ref: '#/$defs/a',
      $defs: {
        a: object({ b: { $ref: '#/$defs/b' } }, { additionalProperties: false }),
        b: { type: 'array', items: { $ref: '#/$defs/a' } },
      },
    },
    ['{}', '{"b": [{"b": []}, {}]}'],
    ['{"b": {}}', '{"b": [1]}'],
  ],
  [
    'a way that leads nowhere is not begun',
    {
      anyOf: [object({ x: { $ref: '#/anyOf/0' } }, { required: ['x'] }), { type: 'null' }],
    },
    ['null'],
    ['{'],
  ],
  [
    'a pattern with escapes',
    { type: 'string', pattern: '^["\\\\\\n]+$' },
    ['"\\"\\\\\\n"'],
    ['"a"', '""', '"\\r"'],
  ],
  [
    'a pattern anywhere',
    { type: 'string', pattern: 'x[0-9]' },
    ['"x1"', '"ab x7 \\"c"'],
    ['"x"', '"1x"'],
  ],
  [
    'a pattern with a length that fits',
    { type: 'string', pattern: '^[a-z]+$', maxLength: 20, minLength: 2 },
    ['"ab"', `"${'a'.repeat(20)}"`],
    ['"a"', `"${'a'.repeat(21)}"`],
  ],
]

describe('Values that are taken, and values that are not', () => {
  test.each(CASES)('%s', async (_what, schema, right, wrong) => {
    const taken = async (value: string): Promise<boolean> => {
      const matcher = await constraints.open({ type: 'json', schema }, signal)
      const whole = await takes(matcher, vocabulary, value)
      matcher.close()
      return whole
    }
    for (const value of right) expect([value, await taken(value)]).toEqual([value, true])
    for (const value of wrong) expect([value, await taken(value)]).toEqual([value, false])
  })
})
