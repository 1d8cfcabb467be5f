/** Schemas, patterns and grammars that are rejected, and the limits of their size. */
import { describe, expect, test } from 'vitest'
import { buildGrammar } from '../../../src/engine/constraint/build.ts'
import { toEbnf } from '../../../src/engine/constraint/ebnf.ts'
import { MAX_GRAMMAR_CHARACTERS } from '../../../src/engine/constraint/grammar.ts'
import { assertSchemaSupported } from '../../../src/engine/schema.ts'
import { type Expression, isNothing } from '../../../src/engine/schema/expression.ts'
import { lengths, matches as matchesWithin } from '../../../src/engine/schema/match.ts'
import { integers, numbers } from '../../../src/engine/schema/numbers.ts'
import { parsePattern } from '../../../src/engine/schema/pattern.ts'
import { createStepBudget, MAX_SCHEMA_STEPS } from '../../../src/engine/schema/step-budget.ts'
import { InoriginError } from '../../../src/error.ts'
import type { JsonSchema } from '../../../src/types/index.ts'
import { type Chance, createChance } from '../../support/random.ts'
import { runs } from '../../support/runs.ts'

const PATH = 'tools[0].function.parameters'

type Schema = Record<string, unknown>

function errorOf(check: () => void): InoriginError {
  try {
    check()
  } catch (error) {
    if (error instanceof InoriginError) return error
    throw error
  }
  throw new Error('Not rejected.')
}

/** A share of the steps of a request in `npm test`, all of them in `npm run test:all`. */
const manySteps = () => createStepBudget(MAX_SCHEMA_STEPS / runs(10, 1))

const check = (schema: unknown, steps = createStepBudget()) =>
  assertSchemaSupported(schema as JsonSchema, PATH, steps)
const rejected = (schema: unknown, steps?: ReturnType<typeof manySteps>): InoriginError =>
  errorOf(() => check(schema, steps))

const inProperty = (schema: unknown) => ({ type: 'object', properties: { x: schema } })
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index))
const byName = <T>(count: number, make: (index: number) => T): Record<string, T> =>
  Object.fromEntries(times(count, (index) => [`d${index}`, make(index)]))
const ref = (index: number): Schema => ({ $ref: `#/$defs/d${index}` })

/** Returns the keyword and the value of each entry: a word, and JSON up to the next ` ; `. */
const entriesOf = (table: string): [keyword: string, value: unknown][] =>
  table.split(/\s+;\s+/).map((entry) => {
    const [, keyword = '', value = ''] = /^\s*(\S+) ([^]*)$/.exec(entry) ?? []
    return [keyword, JSON.parse(value)]
  })

test.each(
  entriesOf(`multipleOf 3 ; uniqueItems true ; not {"type": "string"} ; if true ; then true ;
    else true ; dependentRequired {"a": ["b"]} ; dependentSchemas {"a": true} ; dependencies {} ;
    contains true ; minContains 1 ; maxContains 2 ; unevaluatedProperties false ;
    unevaluatedItems false ; contentEncoding "base64" ; contentMediaType "application/json" ;
    $anchor "a" ; $dynamicRef "#a" ; $dynamicAnchor "a" ; $recursiveRef "#" ; $vocabulary {} ;
    $id "https://example.org/inner" ; id "x" ; divisibleBy 2 ; extends {} ; whatever 1 ;
    __proto__x 1 ; constructor 1 ; toString "x"`),
)('an unsupported keyword is rejected with its path: %s', (keyword, value) => {
  expect(rejected(inProperty({ [keyword]: value }))).toMatchObject({
    kind: 'invalid_request',
    code: 'unsupported_schema',
    param: `${PATH}.properties.x.${keyword}`,
  })
})

test.each([
  ...entriesOf(String.raw`type "text" ; type ["string", "any"] ; type 3 ; format "regex" ;
    format 7 ; pattern "(?=a)b" ; pattern "(?<!a)b" ; pattern "(a)\\1" ; pattern "\\bword\\b" ;
    pattern "\\p{L}+" ; pattern "(a" ; pattern "a)" ; pattern "[z-a]" ; pattern "a{3,1}" ;
    pattern "*" ; pattern "(^a|b$)" ; pattern 3 ; minLength -1 ; minLength 1.5 ; maxItems "3" ;
    minimum "3" ; exclusiveMinimum true ; required true ; required [1] ; enum "a" ; properties [] ;
    items 3 ; anyOf [] ; anyOf {} ; allOf [3] ; $ref 3 ; $ref "https://example.org/schema" ;
    $ref "#/nowhere" ; $ref "#anchor" ; nullable 1 ; minProperties 2`),
  ['minimum', Infinity],
  ['exclusiveMaximum', 2 ** 53],
  ['exclusiveMaximum', 5e-324],
])('an unsupported value of %s is rejected with its path: %j', (keyword, value) => {
  const { param } = rejected(inProperty({ [keyword]: value }))
  expect(param?.startsWith(`${PATH}.properties.x.${keyword}`)).toBe(true)
})

test.each([
  [{ $ref: '#/$defs/a', $defs: { a: { items: { not: {} } } } }, '.$defs.a.items.not'],
  [{ anyOf: [true, { multipleOf: 2 }] }, '.anyOf[1].multipleOf'],
  [{ properties: { 'a b': { multipleOf: 2 } } }, '.properties."a b".multipleOf'],
  [{ prefixItems: [{ multipleOf: 2 }] }, '.prefixItems[0].multipleOf'],
  [null, ''],
  [3, ''],
  ['object', ''],
  [[], ''],
])('the path of an error leads to its place: %j', (schema, path) => {
  expect(rejected(schema).param).toBe(PATH + path)
})

const kind = (name: string) => ({
  type: 'object',
  properties: { kind: { const: name } },
  required: ['kind'],
})
const closed = { additionalProperties: false }

test.each([
  // Alternatives that overlap.
  { oneOf: [{ type: 'number' }, { type: 'integer' }] },
  { oneOf: [{ properties: { a: {} } }, { properties: { b: {} } }] },
  { allOf: [{ pattern: 'a' }, { pattern: 'b' }] },
  { type: 'string', pattern: '^(ab)*$', maxLength: 3 },
  { patternProperties: { '^a': {} } },
  { properties: { ab: {} }, patternProperties: { '^a': {} }, ...closed },
  { allOf: times(9, () => ({ anyOf: [{ minimum: 1 }, { maxLength: 3 }] })) },
])('a combination of keywords is rejected: %j', (schema) => {
  expect(rejected(schema).kind).toBe('invalid_request')
})

test.each([
  false,
  { allOf: [{ type: 'string' }, { type: 'null' }] },
  { type: 'integer', minimum: 3, maximum: 2 },
  { type: 'integer', exclusiveMinimum: 1, exclusiveMaximum: 2 },
  { enum: [] },
  { enum: ['a'], type: 'number' },
  { type: 'object', properties: { a: false }, required: ['a'] },
  { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] },
  { type: 'object', properties: { a: {} }, ...closed, minProperties: 2 },
])('a schema that allows no value is rejected: %j', (schema) => {
  expect(rejected(schema).message).toContain('allows no value')
})

test.each([
  true,
  {},
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
  { definitions: { a: { not: {} } }, type: 'string' },
  { type: 'object', properties: { a: { $ref: '#' } } },
  { oneOf: [kind('a'), kind('b')] },
  {
    oneOf: [
      { type: 'number', maximum: 1 },
      { type: 'number', exclusiveMinimum: 1 },
    ],
  },
  { oneOf: [{ type: 'null' }, { ...inProperty({ $ref: '#' }), required: ['x'] }] },
  { $ref: '#/$defs/a~1b~0%20c', $defs: { 'a/b~ c': { type: 'string' } } },
  { type: 'string', pattern: undefined },
  // Names that cannot be strings are ignored.
  { type: 'object', propertyNames: { enum: ['a', 1, { toString: 1 }] } },
  // A matcher that goes back would try 2^60 ways here, and this test would not end.
  { pattern: '^(a+)+$', enum: [`${'a'.repeat(60)}b`, 'a'] },
])('a schema is supported: %j', (schema) => {
  expect(() => check(schema)).not.toThrow()
})

const matches = (expression: Expression, text: string): boolean =>
  matchesWithin(expression, text, createStepBudget())

describe('numbers between bounds', () => {
  const BOUNDS = [
    0, 1, -1, 0.5, -0.5, 1.5, 2.25, 10, 99, 100, 0.1, 0.30000000000000004, 1e-7, 123456.789,
    9007199254740991, 1e18, -10, -99.5, -1e-3, 3, 7,
  ]
  const TEXTS =
    `0 0.0 1 1.0 -1 0.5 -0.5 0.50 1.5 1.49 1.51 2.25 2.249 2.2500 2.26 10 9.99 10.01 99 100
    101 100.5 0.1 0.10 0.09 0.11 3 7 6.999 7.001 123456.789 123456.79 123456.7889 -10 -9.9 -99.5
    -99.51 -99.49 -0.001 -0.0011 0.3 0.31 0.300000001 0.0000001 0.00000011 9007199254740991
    9007199254740992 1000000000000000 1000000000000000000 01 - .5 1. +1`.split(/\s+/)

  test('are exactly those that are accepted', () => {
    const wrong: string[] = []
    for (const min of [-Infinity, ...BOUNDS]) {
      for (const max of [...BOUNDS, Infinity].filter((each) => each >= min)) {
        if (min === -Infinity && max === Infinity) continue
        for (const open of [false, true]) {
          const bounds = { min, max, above: open && min > -Infinity, below: open && max < Infinity }
          const [decimal, whole] = [numbers(bounds), integers(bounds)]
          for (const text of TEXTS) {
            const value = Number(text)
            const inside = open ? value > min && value < max : value >= min && value <= max
            const right = inside && /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)
            const what = `${text} in ${JSON.stringify(bounds)}`
            if (matches(decimal, text) !== right) wrong.push(what)
            if (matches(whole, text) !== (right && !text.includes('.')))
              wrong.push(`integer ${what}`)
          }
        }
      }
    }
    expect(wrong).toEqual([])
  })

  test('exclude texts that a parser rounds to an excluded bound', () => {
    const below = (max: number) => numbers({ min: -Infinity, max, above: false, below: true })
    expect(matches(below(3), '2.9999')).toBe(true)
    for (const [max, text] of [
      [3, `2.${'9'.repeat(20)}`],
      [2 ** 53 - 1, '9007199254740990.9'],
    ] as const) {
      expect(Number(text)).toBe(max)
      expect(matches(below(max), text)).toBe(false)
    }
    const above = numbers({ min: -3, max: Infinity, above: true, below: false })
    expect(matches(above, '-2.9999')).toBe(true)
    expect(matches(above, `-2.${'9'.repeat(20)}`)).toBe(false)
  })

  test('are finite, and integers have no sign of a zero, if there are no bounds', () => {
    const anything = { min: -Infinity, max: Infinity, above: false, below: false }
    const accepted = (expression: Expression, texts: string[]) =>
      texts.map((text) => matches(expression, text))
    const right = ['0', '-0', '-1.5e-10', '1E+99', '12345678901234567890', '0.1']
    expect(accepted(numbers(anything), right)).not.toContain(false)
    const wrong = ['1e999', '01', '1.', '.1', 'NaN', '1e', '9'.repeat(400)]
    expect(accepted(numbers(anything), wrong)).not.toContain(true)
    const whole = ['-0', '1.0', '-9007199254740993']
    expect(accepted(integers(anything), whole)).toEqual([false, false, true])
  })

  /** Returns a text that the expression matches. */
  function draw(expression: Expression, chance: Chance): string {
    const { below } = chance
    switch (expression.type) {
      case 'text':
        return expression.text
      case 'set': {
        const [first, last] = expression.set[below(expression.set.length)] as [number, number]
        return String.fromCodePoint(first + below(last - first + 1))
      }
      case 'sequence':
        return expression.parts.map((part) => draw(part, chance)).join('')
      case 'choice':
        return draw(chance.pick(expression.parts), chance)
      case 'repeat': {
        const { part, min, max } = expression
        return times(min + below(max - min + 1), () => draw(part, chance)).join('')
      }
      default:
        throw new Error(expression.type)
    }
  }

  test('exist, and all are between them, however small or large the bounds', () => {
    const chance = createChance(8)
    const size = (): number => {
      const exponent = chance.below(632) - 323
      const near = chance.often(0.5) ? chance.below(5) - 2 : 0
      return Number(`${1 + chance.below(chance.often(0.5) ? 9 : 999_999)}e${exponent - near}`)
    }
    const bound = (): number => (chance.often(0.5) ? size() : -size())
    for (let round = 0; round < runs(200, 800); round += 1) {
      const one = bound()
      const near = [one * 10, one * 1.5, one * (1 + 2 ** -50), 0, one, Infinity, -Infinity]
      const other = chance.pick([bound(), ...near])
      const [min, max] = [Math.min(one, other), Math.max(one, other)]
      if (!Number.isFinite(one) || Number.isNaN(other)) continue
      // Others are rejected earlier.
      const sharp = [min, max].every(
        (each) => each === 0 || (Math.abs(each) > 1e-307 && Math.abs(each) <= 2 ** 53),
      )
      const open = sharp && min < max && chance.often(0.5)
      const bounds = { min, max, above: open && min > -Infinity, below: open && max < Infinity }
      const what = JSON.stringify([String(min), String(max), open])
      const decimals = numbers(bounds)
      if (!open || max - min > Math.abs(max) * 1e-13) expect(isNothing(decimals), what).toBe(false)
      const whole = integers(bounds)
      if (max >= 2 ** 60 && min < max / 2) expect(isNothing(whole), what).toBe(false)
      for (const made of [decimals, whole]) {
        for (let each = 0; each < 5 && !isNothing(made); each += 1) {
          const text = draw(made, chance)
          const value = Number(text)
          const inside = open ? value > min && value < max : value >= min && value <= max
          expect(inside && Number.isFinite(value), `${text} in ${what}`).toBe(true)
          if (made === whole) expect(text).toMatch(/^-?\d+$/)
        }
      }
    }
  })
})

describe('patterns', () => {
  const TEXTS = [
    ...String.raw`a b ab abc aab abab xaby A1 a-b 1 12 123 é 日本 😀 😀😀 _ ^ $ ] \ - . {2} a.c color
      colour Z9z /`.split(/\s+/),
    '',
    ' ',
    '\n',
    'a\nb',
    '\t',
    '\u2028',
    '\u0000',
  ]
  const PATTERNS = String.raw`a ^a b$ ^ab$ ^(ab)+$ ^(?:a|b)*$ ^a?b{1,2}$ ^a{2,} ^[abc]+$ ^[^abc]+$
    ^[a-c1-3]$ ^\d+$ ^\D+$ ^\w+$ ^\W$ ^\s$ ^\S+$ . ^.$ ^.{2}$ ^[\d-]+$ ^[\w.-]+$ ^[\]\\^-]$ ^\u00e9$
    ^\xe9$ ^\u{1F600}$ ^\uD83D\uDE00$ ^[\u4e00-\u9fff]+$ ^[😀]$ colou?r ^(?<year>\d) ^a|b$
    ^(a|ab)(c|bcd)?$ ^a*?b$ ^\.$ ^\/$ ^\^\$$ ^$ | ^(|a)$ ^\t$ ^[\b]$ ^\0$ ^\cJ$ [^] ^[]$`

  test.each(['', ...PATTERNS.split(/\s+/)])('match exactly as in JavaScript: %s', (pattern) => {
    const expression = parsePattern(pattern)
    const wanted = new RegExp(pattern, 'u')
    expect(TEXTS.filter((text) => matches(expression, text))).toEqual(
      TEXTS.filter((text) => wanted.test(text)),
    )
  })

  test('have lengths in characters', () => {
    expect(lengths(parsePattern('^[a😀]{2,5}b?$'))).toEqual([2, 6])
    expect(lengths(parsePattern('^(ab|c)*$'))).toEqual([0, Infinity])
    expect(lengths(parsePattern('x'))).toEqual([1, Infinity])
  })
})

const anyOf = (index: number): Schema => ({ anyOf: [{ minimum: index }, { maxLength: index + 1 }] })

/** Returns recursive alternatives that differ only in their last property. */
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

describe('a schema with too many steps', () => {
  test.each<[string, Schema, string]>([
    ['anyOf in allOf before false', { allOf: [...times(60, anyOf), { anyOf: [false] }] }, 'allOf'],
    [
      'anyOf in allOf of a property',
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
      { pattern: '^((a|b|ab)*c?)*$', enum: ['ab'.repeat(20_000)] },
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
  ])('is rejected with its path: %s', (_what, schema, place) => {
    const { code, param, message } = rejected(schema, manySteps())
    expect(code).toBe('unsupported_schema')
    expect(param?.startsWith(place ? `${PATH}.${place}` : PATH)).toBe(true)
    expect(message.startsWith(String(param))).toBe(true)
  })

  /** Writes the grammar of a schema in every way in which it may be compiled. */
  const write = (schema: Schema): void => {
    const steps = manySteps()
    const grammar = buildGrammar({ type: 'json', schema: schema as JsonSchema }, steps)
    for (const exact of [false, true]) {
      for (const maxChainLength of [64, 8]) toEbnf(grammar, { exact, maxChainLength }, steps)
    }
  }

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
      { type: 'string', pattern: `^${'('.repeat(60)}a${'|a?){0,40}'.repeat(60)}$` },
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
  ])('is rejected while its grammar is written: %s', (_what, schema) => {
    expect(errorOf(() => write(schema)).code).toBe('unsupported_schema')
  })

  test('may be one of many in a request', () => {
    const schema = kinds(runs(8, 40)) as JsonSchema
    const steps = manySteps()
    const { code, param } = errorOf(() => {
      for (let index = 0; index < 1000; index += 1)
        assertSchemaSupported(schema, `tools[${index}].parameters`, steps)
    })
    expect(code).toBe('unsupported_schema')
    expect(param).toMatch(/^tools\[[1-9]\d*\]\.parameters/)
  })
})

test.each<[string, Schema]>([
  ['recursive alternatives that differ in a property', kinds(8)],
  ['40 objects that differ in a property', { oneOf: times(40, (index) => kind(`k${index}`)) }],
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
])('a large schema needs less than a tenth of the steps: %s', (_what, schema) => {
  expect(() => check(schema, createStepBudget(MAX_SCHEMA_STEPS / 10))).not.toThrow()
})

describe('the size of a schema', () => {
  const listed = (count: number) =>
    inProperty({ type: 'object', properties: byName(count, () => true) })

  test('is limited to 500 properties, required names or items of a tuple', () => {
    expect(() => check(listed(500))).not.toThrow()
    expect(rejected(listed(501)).param).toBe(`${PATH}.properties.x.properties`)
    expect(rejected({ required: times(100_000, String) }).param).toBe(`${PATH}.required`)
    expect(() => check({ prefixItems: times(500, () => true) })).not.toThrow()
  })

  test('is limited to 20,000 parts', () => {
    expect(() => check({ enum: times(19_000, String) })).not.toThrow()
    expect(rejected({ enum: times(20_001, String) })).toMatchObject({
      param: PATH,
      code: 'unsupported_schema',
    })
  })

  const item = { type: 'null' }
  test.each<Schema>([
    { type: 'array', items: item, minItems: 2 ** 52 },
    { type: 'string', minLength: 2 ** 50 },
    { type: 'string', pattern: '^((ab){1000}){1000}$' },
    { type: 'array', minItems: 1000, items: { type: 'array', minItems: 1000, items: item } },
  ])('is limited by its shortest value: %j', (schema) => {
    const { code, param, message } = rejected(schema)
    expect({ code, param }).toEqual({ code: 'unsupported_schema', param: PATH })
    expect(message).toContain('100000 characters')
  })

  test.each([
    { type: 'pattern', pattern: '(a{1000}){1000}' },
    { type: 'grammar', grammar: 'root ::= a{1000}\na ::= "a"{1000}' },
  ] as const)('of a pattern and a grammar is limited by their shortest text: %j', (constraint) => {
    expect(errorOf(() => buildGrammar(constraint)).code).toBe('unsupported_constraint')
  })

  const long = 'x'.repeat(3_000_000)
  const manyParts = { allOf: times(1000, () => ({})) }
  const nested = (levels: number, inner: Schema): Schema =>
    levels === 0 ? inner : { properties: { ['x'.repeat(1000)]: nested(levels - 1, inner) } }
  const LONG_PATTERN = 'pattern is not supported: it has more than 50000 characters.'

  test.each<[message: string, Schema]>([
    ['properties has a name of more than 1000 characters.', { properties: { [long]: manyParts } }],
    ['required has a name of more than 1000', { required: [long] }],
    ['has a part whose path is longer than 10000 characters.', nested(12, manyParts)],
    ['type must be one of null', { type: 'constructor' }],
    ['format must be a string.', { format: { toString: 1 } }],
    ['format must be a string.', { format: { a: long } }],
    ['format must be a supported format, got "xxx', { format: long }],
    ['$ref refers to #/xxx', { $ref: `#/${long}` }],
    [LONG_PATTERN, { type: 'string', pattern: `^${'(xy)'.repeat(500_000)}$` }],
    [LONG_PATTERN, { type: 'string', pattern: `^[${'\\W'.repeat(1_000_000)}]$` }],
  ])('is limited, with a short message: %s', { timeout: 5_000 }, (text, schema) => {
    const { code, message } = rejected(schema)
    expect(code).toBe('unsupported_schema')
    expect(message).toContain(text)
    expect(message.length).toBeLessThan(1300)
  })

  test('counts long paths of many parts', () => {
    expect(() => check(manyParts)).not.toThrow()
    expect(rejected(nested(9, manyParts)).message).toContain('takes too long to compile')
  })

  test('may be that of the longest name, path and pattern', () => {
    const schema = nested(9, { type: 'string', pattern: `^${'x'.repeat(49_998)}$` })
    expect(() => check(schema)).not.toThrow()
  })
})

const build = (grammar: string) => buildGrammar({ type: 'grammar', grammar })

describe('a hostile grammar', () => {
  const LONG = 'a'.repeat(100)
  const BLANKS = ' '.repeat(MAX_GRAMMAR_CHARACTERS - 20)

  test.each<[message: string, grammar: string]>([
    ['a { without a count in line 1.', `root ::= "a"{1 ,${BLANKS}x`],
    ['a { without a count in line 1.', `root ::= "a"{${'1'.repeat(100_000)}}`],
    ['more than 200000 characters.', `root ::= "${'a'.repeat(10_000_000)}"`],
    ['more than 200000 characters.', `root ::= "a"${' '.repeat(10_000_000)}`],
    ['more than 20000 elements', `root ::= ${'"a"|'.repeat(40_000)}"a"`],
    ['more than 20000 elements', `root ::= ${'"a"+'.repeat(40_000)}`],
    [`no rule ${LONG}... in line 1.`, `root ::= ${'a'.repeat(150_000)}`],
    [
      `a second rule ${LONG}... in line 3.`,
      `root ::= "a"\n${`${'a'.repeat(90_000)} ::= "b"\n`.repeat(2)}`,
    ],
  ])('is rejected with a short message: %s', { timeout: 60_000 }, (text, grammar) => {
    const { kind: what, code, message } = errorOf(() => build(grammar))
    expect([what, code]).toEqual(['invalid_request', 'invalid_grammar'])
    expect(message).toContain(text)
    expect(message.length).toBeLessThan(300)
  })

  test('may be one of many in a request', () => {
    const grammar = `root ::= "a"\n#${'x'.repeat(MAX_GRAMMAR_CHARACTERS - 20)}`
    const parts = times(100, () => ({ type: 'grammar', grammar }) as const)
    expect(() => buildGrammar({ type: 'sequence', parts })).toThrow('takes too long')
  })
})

test.each([
  ['many alternatives', `root ::= ${'"a" | '.repeat(19_990)}"a"`],
  ['many elements', `root ::= ${'"a"+ '.repeat(19_990)}`],
  ['blanks and comments', `root ::= "a"${' '.repeat(90_000)}${'#\n'.repeat(50_000)}`],
  ['blanks in counts', 'root ::= "a"{ 1 } "a"{1,} "a"{ 1 , } "a"{ 1 , 2 } "a"{1,2}'],
])('a large grammar is accepted: %s', (_what, grammar) => {
  expect(() => build(grammar)).not.toThrow()
})
