import { describe, expect, test } from 'vitest'
import type { JsonSchema } from '../../../src/constraint/constraint.ts'
import { rewriteSchema } from '../../../src/constraint/schema/rewrite.ts'
import { type Expected, expectTexts } from './rewriting.ts'

type Row = readonly [title: string, schema: JsonSchema, expected: Expected]

describe('annotations', () => {
  test.each<Row>([
    [
      'unknown keywords are ignored, and listed once',
      { properties: { a: { 'x-unit': 'px', type: 'integer' }, b: { 'x-unit': 'em' } } },
      { right: ['{"a": 1}'], wrong: ['{"a": "1"}'], ignored: ['x-unit'] },
    ],
    [
      'unknown formats are ignored',
      { type: 'string', format: 'color-hex' },
      { right: ['"x"'], ignored: ['format:color-hex'] },
    ],
    [
      'formats of numbers are ignored',
      { type: 'integer', format: 'int32', minimum: 0 },
      { right: ['1'], wrong: ['-1', '"1"'], ignored: ['format:int32'] },
    ],
    [
      'descriptions, ids and encodings are not listed',
      {
        $id: 'https://example.org/a',
        title: 'A',
        description: 'b',
        contentEncoding: 'base16',
        deprecated: true,
        default: { $ref: '#/nowhere' },
        type: 'null',
      },
      { right: ['null'], wrong: ['1'] },
    ],
    [
      'nullable adds null to the types',
      { type: 'string', nullable: true },
      { right: ['null', '"a"'], wrong: ['1'] },
    ],
    [
      'nullable without a type is ignored',
      { nullable: true, allOf: [{ type: 'string' }] },
      { right: ['"a"'], wrong: ['null'], ignored: ['nullable'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('schemas that are none', () => {
  test.each<[title: string, schema: unknown, path: string, message: RegExp]>([
    ['a list', [], 'p', /must be a schema/],
    ['false', false, 'p', /allows no value/],
    ['types that exclude each other', { type: 'null', enum: [1] }, 'p', /allows no value/],
    [
      'a value that contains itself without an end',
      { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] },
      'p',
      /allows no value/,
    ],
  ])('%s is refused', (_, schema, path, message) => {
    expect(() => rewriteSchema(schema as JsonSchema, 'p')).toThrow(
      expect.objectContaining({
        code: 'unsupported_constraint',
        path,
        message: expect.stringMatching(message),
      }),
    )
  })
})

describe('values that no draft gives a keyword', () => {
  test.each<[title: string, schema: unknown, path: string, keyword: string, expected: RegExp]>([
    ['type', { properties: { a: { type: 'text' } } }, 'p.properties.a', 'type', /one of/],
    ['maxLength', { maxLength: -1 }, 'p', 'maxLength', /at least 0/],
    ['minimum', { minimum: null }, 'p', 'minimum', /finite number/],
    ['required', { required: 'a' }, 'p', 'required', /list of names/],
    ['anyOf', { anyOf: [] }, 'p', 'anyOf', /list of schemas that is not empty/],
    ['an option', { anyOf: ['a', { type: 'null' }] }, 'p.anyOf[0]', 'schema', /a schema: an/],
    ['a property', { properties: { a: 1 } }, 'p.properties.a', 'schema', /a schema: an/],
    ['not', { not: null }, 'p', 'not', /a schema: an/],
  ])('%s: they are told', (_, schema, path, keyword, expected) => {
    const { loosened } = rewriteSchema(schema as JsonSchema, 'p')
    expect(loosened).toEqual([{ path, keyword, expected: expect.stringMatching(expected) }])
  })

  test.each<Row>([
    [
      'what stands beside them is kept',
      { properties: { a: { type: 'date', maxLength: 1 }, b: { type: 'null' } }, required: ['a'] },
      {
        right: ['{"a": "b", "b": null}', '{"a": 12}'],
        wrong: ['{"a": "bc"}', '{"a": 1, "b": 2}'],
        loosened: ['type'],
      },
    ],
    [
      'a definition has them, too',
      { $ref: '#/$defs/a', $defs: { a: { type: 'date', enum: ['x'] } } },
      { right: ['"x"'], wrong: ['1'], loosened: ['type'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('drafts', () => {
  test.each<Row>([
    [
      'boolean bounds',
      { type: 'integer', minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
      { right: ['1', '9'], wrong: ['0', '10'] },
    ],
    [
      'lists of items',
      { type: 'array', items: [{ type: 'integer' }], additionalItems: { type: 'string' } },
      { right: ['[1]', '[1, "a"]'], wrong: ['["a"]', '[1, 2]'] },
    ],
    [
      'dependencies of names and schemas',
      { properties: { a: true, b: true }, dependencies: { a: ['b'], b: { maxProperties: 1 } } },
      { right: ['{"b": 1}', '{}'], wrong: ['{"a": 1}', '{"a": 1, "b": 1}'] },
    ],
    [
      'keywords beside a reference mean nothing before draft 2019-09',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        properties: { a: { type: 'string', $ref: '#/definitions/a' } },
        definitions: { a: { type: 'integer' } },
      },
      { right: ['{"a": 1}'], wrong: ['{"a": "b"}'] },
    ],
    [
      '`required: true` of draft 3 is told',
      { properties: { a: { type: 'string', required: true } } },
      { right: ['{}'], wrong: ['{"a": 1}'], loosened: ['required'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('references', () => {
  const right = ['1']
  const wrong = ['"1"']
  const target = { type: 'integer' }
  test.each<Row>([
    ['to definitions', { $ref: '#/definitions/a', definitions: { a: target } }, { right, wrong }],
    [
      'with escaped names',
      { $ref: '#/$defs/a~1b%20c~0', $defs: { 'a/b c~': target } },
      { right, wrong },
    ],
    ['to an anchor', { $ref: '#a', $defs: { b: { $anchor: 'a', ...target } } }, { right, wrong }],
    [
      'to an id',
      { $ref: 'https://example.org/b', $defs: { b: { $id: 'https://example.org/b', ...target } } },
      { right, wrong },
    ],
    [
      'to a relative name',
      {
        $id: 'https://example.org/a.json',
        $ref: 'b.json#/$defs/c',
        $defs: { b: { $id: 'b.json', $defs: { c: target } } },
      },
      { right, wrong },
    ],
    [
      'to an id of draft 4',
      { $ref: '#b', definitions: { a: { id: '#b', ...target } } },
      { right, wrong },
    ],
    [
      'beside other keywords',
      { $ref: '#/$defs/a', maximum: 1, $defs: { a: target } },
      { right, wrong: ['2'] },
    ],
    ['to nothing are told', { $ref: '#/$defs/a' }, { right: ['1', '"1"'], loosened: ['$ref'] }],
    ['that only lead to each other say nothing', { $ref: '#' }, { right: ['1', '"1"'] }],
    [
      'to itself',
      { type: 'object', properties: { a: { $ref: '#' } }, additionalProperties: false },
      { right: ['{"a": {"a": {}}}'], wrong: ['{"a": 1}', '{"b": {}}'] },
    ],
    [
      'to itself, with other keywords',
      {
        $defs: {
          list: {
            type: 'object',
            properties: { next: { $ref: '#/$defs/list', required: ['value'] }, value: target },
            additionalProperties: false,
          },
        },
        $ref: '#/$defs/list',
      },
      {
        right: ['{}', '{"next": {"value": 1}}', '{"next": {"next": {"value": 1}, "value": 2}}'],
        wrong: ['{"next": {}}', '{"next": {"next": {}, "value": 2}}'],
      },
    ],
    [
      'to two schemas that both contain themselves',
      {
        $defs: {
          a: { properties: { a: { $ref: '#/$defs/a' }, b: { type: 'integer' } } },
          b: { properties: { a: { $ref: '#/$defs/b' }, c: { type: 'string' } } },
        },
        allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }],
      },
      {
        right: ['{"a": {"b": 1, "c": "d"}, "b": 1}'],
        wrong: ['{"a": {"b": "d"}}', '{"a": {"a": {"c": 1}}}'],
      },
    ],
    [
      'that are dynamic',
      {
        $id: 'https://example.org/strict',
        $dynamicAnchor: 'node',
        $ref: 'tree',
        required: ['name'],
        $defs: {
          tree: {
            $id: 'tree',
            $dynamicAnchor: 'node',
            type: 'object',
            properties: { child: { $dynamicRef: '#node' }, name: true },
          },
        },
      },
      { right: ['{"child": {"name": 1}, "name": 2}'], wrong: ['{"child": {}, "name": 2}'] },
    ],
  ])('%s', (_, schema, expected) => expectTexts(schema, expected))
})

describe('sizes', () => {
  const nest = (depth: number): JsonSchema => {
    let schema: JsonSchema = { type: 'string' }
    for (let at = 0; at < depth; at++) schema = { type: 'array', items: schema }
    return schema
  }
  const valueOf = (depth: number, inner: string): string =>
    '['.repeat(depth) + inner + ']'.repeat(depth)

  test('schemas are kept to a depth of 150', async () => {
    await expectTexts(nest(150), { right: [valueOf(150, '"a"')], wrong: [valueOf(150, '1')] })
  })

  test('deeper schemas are loosened', async () => {
    await expectTexts(nest(3000), {
      right: [valueOf(300, '1')],
      wrong: [valueOf(100, '1')],
      loosened: ['schema'],
    })
  })

  test('references that double at each step are bounded', () => {
    const steps = Array.from({ length: 30 }, (_, index) => {
      const next = { $ref: `#/$defs/s${index + 1}` }
      return [`s${index}`, { allOf: [next, next] }]
    })
    const last = { properties: { a: { $ref: '#/$defs/s0' } } }
    const { schema } = rewriteSchema(
      { $ref: '#/$defs/s0', $defs: { ...Object.fromEntries(steps), s30: last } },
      '',
    )
    expect(JSON.stringify(schema).length).toBeLessThan(100_000)
  })

  test('options with a discriminator are compared at once', async () => {
    const kinds = Array.from({ length: 300 }, (_, index) => `kind ${index}`)
    const oneOf = kinds.map((kind) => ({
      type: 'object',
      properties: { kind: { const: kind } },
      required: ['kind'],
    }))
    await expectTexts({ oneOf }, { right: ['{"kind": "kind 7"}'], wrong: ['{"kind": "kind"}'] })
  })
})
