import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { assertSchemaSupported } from '../../../src/engine/schema.ts'
import type { JsonSchema } from '../../../src/types/index.ts'

const PATH = 'tools[0].function.parameters'

const refused = (schema: unknown): InoriginError => {
  try {
    assertSchemaSupported(schema as JsonSchema, PATH)
  } catch (error) {
    if (error instanceof InoriginError) return error
    throw error
  }
  throw new Error(`Not refused: ${JSON.stringify(schema)}`)
}

const inProperty = (schema: unknown): JsonSchema => ({ type: 'object', properties: { x: schema } })

describe('What cannot be kept is refused, and named', () => {
  const keywords: [string, unknown][] = [
    ['multipleOf', 3],
    ['uniqueItems', true],
    ['not', { type: 'string' }],
    ['if', true],
    ['then', true],
    ['else', true],
    ['dependentRequired', { a: ['b'] }],
    ['dependentSchemas', { a: true }],
    ['dependencies', {}],
    ['contains', true],
    ['minContains', 1],
    ['maxContains', 2],
    ['unevaluatedProperties', false],
    ['unevaluatedItems', false],
    ['contentEncoding', 'base64'],
    ['contentMediaType', 'application/json'],
    ['$anchor', 'a'],
    ['$dynamicRef', '#a'],
    ['$dynamicAnchor', 'a'],
    ['$recursiveRef', '#'],
    ['$vocabulary', {}],
    ['$id', 'https://example.org/inner'],
    ['id', 'x'],
    ['divisibleBy', 2],
    ['extends', {}],
    ['whatever', 1],
    ['__proto__x', 1],
    ['constructor', 1],
    ['toString', 'x'],
  ]
  test.each(keywords)('%s', (keyword, value) => {
    const { kind, param, code } = refused(inProperty({ [keyword]: value }))
    expect({ kind, code, param }).toEqual({
      kind: 'invalid_request',
      code: 'unsupported_schema',
      param: `${PATH}.properties.x.${keyword}`,
    })
  })

  test.each([
    ['type', 'text'],
    ['type', ['string', 'any']],
    ['type', 3],
    ['format', 'regex'],
    ['format', 7],
    ['pattern', '(?=a)b'],
    ['pattern', '(?<!a)b'],
    ['pattern', '(a)\\1'],
    ['pattern', '\\bword\\b'],
    ['pattern', '\\p{L}+'],
    ['pattern', '(a'],
    ['pattern', 'a)'],
    ['pattern', '[z-a]'],
    ['pattern', 'a{3,1}'],
    ['pattern', '*'],
    ['pattern', '(^a|b$)'],
    ['pattern', 3],
    ['minLength', -1],
    ['minLength', 1.5],
    ['maxItems', '3'],
    ['minimum', '3'],
    ['minimum', Number.POSITIVE_INFINITY],
    ['exclusiveMinimum', true],
    ['exclusiveMaximum', 2 ** 53],
    ['exclusiveMaximum', 5e-324],
    ['required', true],
    ['required', [1]],
    ['enum', 'a'],
    ['properties', []],
    ['items', 3],
    ['anyOf', []],
    ['anyOf', {}],
    ['allOf', [3]],
    ['$ref', 3],
    ['$ref', 'https://example.org/schema'],
    ['$ref', '#/nowhere'],
    ['$ref', '#anchor'],
    ['nullable', 1],
    ['minProperties', 2],
  ])('%s: %j', (keyword, value) => {
    const { param } = refused(inProperty({ [keyword]: value }))
    expect(param?.startsWith(`${PATH}.properties.x.${keyword}`)).toBe(true)
  })

  test('The path leads through references, lists and names of any kind', () => {
    expect(refused({ $ref: '#/$defs/a', $defs: { a: { items: { not: {} } } } }).param).toBe(
      `${PATH}.$defs.a.items.not`,
    )
    expect(refused({ anyOf: [true, { multipleOf: 2 }] }).param).toBe(`${PATH}.anyOf[1].multipleOf`)
    expect(refused({ properties: { 'a b': { multipleOf: 2 } } }).param).toBe(
      `${PATH}.properties."a b".multipleOf`,
    )
    expect(refused({ prefixItems: [{ multipleOf: 2 }] }).param).toBe(
      `${PATH}.prefixItems[0].multipleOf`,
    )
  })

  test.each([
    ['oneOf that overlaps', { oneOf: [{ type: 'number' }, { type: 'integer' }] }],
    ['oneOf of open objects', { oneOf: [{ properties: { a: {} } }, { properties: { b: {} } }] }],
    ['two patterns of one string', { allOf: [{ pattern: 'a' }, { pattern: 'b' }] }],
    [
      'a pattern and a length that is not its own',
      { type: 'string', pattern: '^(ab)*$', maxLength: 3 },
    ],
    ['patternProperties beside free ones', { patternProperties: { '^a': {} } }],
    [
      'a pattern that names a property',
      {
        properties: { ab: {} },
        patternProperties: { '^a': {} },
        additionalProperties: false,
      },
    ],
    [
      'many alternatives of many',
      {
        allOf: Array.from({ length: 9 }, () => ({ anyOf: [{ minimum: 1 }, { maxLength: 3 }] })),
      },
    ],
  ])('%s', (_what, schema) => {
    expect(refused(schema).kind).toBe('invalid_request')
  })

  test.each([
    ['false', false],
    ['types that exclude each other', { allOf: [{ type: 'string' }, { type: 'null' }] }],
    ['an empty range', { type: 'integer', minimum: 3, maximum: 2 }],
    ['no integer between', { type: 'integer', exclusiveMinimum: 1, exclusiveMaximum: 2 }],
    ['an enum of nothing', { enum: [] }],
    ['an enum of another type', { enum: ['a'], type: 'number' }],
    [
      'a required property that is false',
      { type: 'object', properties: { a: false }, required: ['a'] },
    ],
    ['an endless value', { properties: { a: { $ref: '#' } }, required: ['a'], type: 'object' }],
    [
      'more properties than there are',
      {
        type: 'object',
        properties: { a: {} },
        additionalProperties: false,
        minProperties: 2,
      },
    ],
  ])('No value: %s', (_what, schema) => {
    expect(refused(schema).message).toContain('allows no value')
  })

  test.each([[null], [3], ['object'], [[]]])('No schema: %j', (schema) => {
    expect(refused(schema).param).toBe(PATH)
  })
})

describe('What is kept is let through', () => {
  test.each<[string, JsonSchema]>([
    ['true', true],
    ['nothing at all', {}],
    [
      'annotations',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        $id: 'https://example.org/s',
        $comment: 'c',
        title: 't',
        description: 'd',
        default: 1,
        examples: [1],
        deprecated: true,
        readOnly: true,
      },
    ],
    ['unused definitions', { definitions: { a: { not: {} } }, type: 'string' }],
    ['uniqueItems: false', { uniqueItems: false }],
    ['a recursion that ends', { type: 'object', properties: { a: { $ref: '#' } } }],
    [
      'a oneOf that a property tells apart',
      {
        oneOf: [
          { type: 'object', properties: { kind: { const: 'a' } }, required: ['kind'] },
          { type: 'object', properties: { kind: { const: 'b' } }, required: ['kind'] },
        ],
      },
    ],
    [
      'a oneOf of bounds',
      {
        oneOf: [
          { type: 'number', maximum: 1 },
          { type: 'number', exclusiveMinimum: 1 },
        ],
      },
    ],
    [
      'a recursive oneOf',
      {
        oneOf: [
          { type: 'null' },
          { type: 'object', properties: { of: { $ref: '#' } }, required: ['of'] },
        ],
      },
    ],
    [
      'references with escapes',
      {
        $ref: '#/$defs/a~1b~0%20c',
        $defs: { 'a/b~ c': { type: 'string' } },
      },
    ],
    ['nullable', { type: 'string', nullable: true }],
    ['keywords without a value', { type: 'string', pattern: undefined }],
  ])('%s', (_what, schema) => {
    expect(() => assertSchemaSupported(schema, '')).not.toThrow()
  })
})

// A matcher that goes back would try 2^60 ways here, and this test would not end.
test('A pattern that others try for ever is tried at once', () => {
  expect(() =>
    assertSchemaSupported({ pattern: '^(a+)+$', enum: [`${'a'.repeat(60)}b`, 'a'] }, ''),
  ).not.toThrow()
})

describe('What would take too long is refused, and named', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)
  const listed = (count: number) =>
    inProperty({
      type: 'object',
      properties: Object.fromEntries(names(count).map((name) => [name, true])),
    })

  test('more than 500 properties or required names', () => {
    expect(() => assertSchemaSupported(listed(500), PATH)).not.toThrow()
    expect(refused(listed(501)).param).toBe(`${PATH}.properties.x.properties`)
    expect(refused({ required: names(100_000) }).param).toBe(`${PATH}.required`)
  })

  test('more than 20,000 parts', () => {
    expect(() => assertSchemaSupported({ enum: names(19_000) }, PATH)).not.toThrow()
    expect(refused({ enum: names(20_001) })).toMatchObject({
      param: PATH,
      code: 'unsupported_schema',
    })
  })
})
