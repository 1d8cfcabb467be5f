/** Random schemas over the keywords that are kept, and values that they allow. */
import type { Chance } from './random.ts'

export type Schema = Record<string, unknown>

/** A schema, and a maker of values of which nearly all are allowed by it. */
export interface Sample {
  schema: Schema
  value: (chance: Chance) => unknown
}

const WORDS = [
  'the "cat"',
  'tab\there',
  'x y',
  '',
  ...'a be Zürich 日本 😀! back\\slash 0 null'.split(' '),
]
const NAMES = [
  'line\nbreak',
  ...'name age städt a"b tags is_ok x xy back\\slash 日付 kind'.split(' '),
]

const PATTERNS: readonly (readonly [string, readonly string[]])[] = [
  ['^[a-z]+$', ['a', 'hello']],
  ['^[A-Z]{2}-\\d{3,5}$', ['AB-123', 'ZZ-99999']],
  ['^(red|green|blue)$', ['red', 'blue']],
  ['^\\S+@\\S+$', ['me@home', 'é@"']],
  ['colou?r', ['color', 'my colour!', '"color"']],
  ['^[^\\s"]{1,12}$', ['abc', '日本語', '\\']],
  ['^.{2,20}$', ['ab', 'a "b" c']],
  ['^(?:[01]\\d|2[0-3]):[0-5]\\d$', ['12:34', '23:59']],
  ['\\d$', ['1', 'abc9']],
  ['^[\\u4e00-\\u9fff]{1,3}$', ['日本', '世']],
  ['^#[0-9a-fA-F]{6}$', ['#00ffAA']],
]

const FORMATS: readonly (readonly [string, readonly string[]])[] = [
  ['date', ['2024-02-29', '1999-12-31']],
  ['time', ['12:00:00Z', '23:59:59.123+02:00']],
  ['date-time', ['2024-02-29T12:00:00Z', '2001-01-01T00:00:00.5-05:30']],
  ['duration', ['P3Y6M4DT12H30M5S', 'PT5M', 'P4W']],
  ['email', ['someone@example.org', 'a.b+c@d-e.co.uk']],
  ['hostname', ['example.org', 'localhost']],
  ['ipv4', ['127.0.0.1', '255.255.255.255']],
  ['ipv6', ['::1', '2001:db8::8a2e:370:7334', '1:2:3:4:5:6:7:8']],
  ['uuid', ['123e4567-e89b-12d3-a456-426614174000']],
  ['uri', ['https://example.org/a/b?c=d#e', 'ftp://x']],
]

export function randomSchema(chance: Chance): Sample {
  const { schema, value } = anySchema(chance, 3)
  if (!chance.often(0.15)) return { schema, value }
  return tree(chance)
}

/** Parameters of a tool: an object. */
export const randomParameters = (chance: Chance): Sample => objects(chance, 2)

function anySchema(chance: Chance, depth: number): Sample {
  const leaves = [
    strings,
    strings,
    integers,
    numbers,
    listed,
    constants,
    booleans,
    nulls,
    typeLists,
  ]
  const nests = [objects, objects, arrays, tuples, anyOf, oneOf, allOf, maps]
  const make = depth > 0 && chance.often(0.6) ? chance.pick(nests) : chance.pick(leaves)
  const sample = make(chance, depth)
  if (chance.often(0.3)) sample.schema['description'] = 'What it is: "x".'
  if (chance.often(0.1)) sample.schema['title'] = 'T'
  if (chance.often(0.1)) sample.schema['default'] = null
  return sample
}

function strings(chance: Chance): Sample {
  const kind = chance.below(5)
  if (kind === 0) {
    const [pattern, texts] = chance.pick(PATTERNS)
    return { schema: { type: 'string', pattern }, value: (each) => each.pick(texts) }
  }
  if (kind === 1) {
    const [format, texts] = chance.pick(FORMATS)
    return { schema: { type: 'string', format }, value: (each) => each.pick(texts) }
  }
  const schema: Schema = { type: 'string' }
  const min = chance.below(4) + (chance.often(0.1) ? 20 : 0)
  if (chance.often(0.3)) schema['minLength'] = min
  if (chance.often(0.4)) schema['maxLength'] = min + chance.pick([0, 1, 5, 12, 40, 300])
  const long = (each: Chance): string =>
    Array.from({ length: min + each.below(3) }, () =>
      each.pick(['a', 'é', '😀', '"', '\n', '日']),
    ).join('')
  return { schema, value: (each) => (each.often(0.5) ? long(each) : each.pick(WORDS)) }
}

function bounds(chance: Chance, values: readonly number[]): Schema {
  const [a, b] = [chance.pick(values), chance.pick(values)]
  const [low, high] = [Math.min(a, b), Math.max(a, b)]
  const schema: Schema = {}
  if (chance.often(0.5))
    schema[chance.often(0.3) && low < high ? 'exclusiveMinimum' : 'minimum'] = low
  if (chance.often(0.5))
    schema[chance.often(0.3) && low + 1 < high ? 'exclusiveMaximum' : 'maximum'] = high
  return schema
}

const INTEGERS = [-1000, -7, -1, 0, 1, 5, 12, 99, 100, 255, 4096, 1000000, 9007199254740991]
const DECIMALS = [-12.5, -1, -0.25, 0, 0.001, 0.5, 1, 1.5, 3.25, 10, 99.99, 100, 1e6, 123456.789]

const integers = (chance: Chance): Sample => ({
  schema: { type: 'integer', ...bounds(chance, INTEGERS) },
  value: (each) => each.pick(INTEGERS) + each.below(3),
})

const numbers = (chance: Chance): Sample => ({
  schema: { type: 'number', ...bounds(chance, DECIMALS) },
  value: (each) => each.pick([...DECIMALS, ...INTEGERS]) + each.pick([0, 0, 0.5, 1]),
})

const VALUES: readonly unknown[] = JSON.parse(
  String.raw`[1, -2.5, "one", "two \"2\"", null, true, false, [1, "x"], {"a": 1, "b": []}, "日本", 1e21, {}]`,
)

function listed(chance: Chance): Sample {
  const values = VALUES.filter(() => chance.often(0.4))
  if (values.length === 0) values.push('only')
  return { schema: { enum: values }, value: (each) => each.pick(values) }
}

function constants(chance: Chance): Sample {
  const value = chance.pick(VALUES)
  return { schema: { const: value }, value: () => value }
}

const booleans = (): Sample => ({ schema: { type: 'boolean' }, value: (each) => each.often(0.5) })
const nulls = (): Sample => ({ schema: { type: 'null' }, value: () => null })

function typeLists(chance: Chance): Sample {
  const types = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'].filter(() =>
    chance.often(0.4),
  )
  if (types.length === 0) types.push('null')
  const schema: Schema = { type: types }
  if (chance.often(0.3)) schema['maxLength'] = 5
  if (chance.often(0.3)) schema['minimum'] = 3
  return { schema, value: (each) => each.pick([...VALUES, 7, 3.5]) }
}

function arrays(chance: Chance, depth: number): Sample {
  const items = anySchema(chance, depth - 1)
  const min = chance.below(3)
  const schema: Schema = { type: 'array', items: items.schema }
  if (chance.often(0.4)) schema['minItems'] = min
  if (chance.often(0.4)) schema['maxItems'] = min + chance.below(4)
  return {
    schema,
    value: (each) => Array.from({ length: min + each.below(3) }, () => items.value(each)),
  }
}

function tuples(chance: Chance, depth: number): Sample {
  const parts = Array.from({ length: 1 + chance.below(3) }, () => anySchema(chance, depth - 1))
  const schema: Schema = { type: 'array', prefixItems: parts.map((part) => part.schema) }
  if (chance.often(0.7)) schema['items'] = false
  if (chance.often(0.7)) schema['minItems'] = parts.length
  return { schema, value: (each) => parts.map((part) => part.value(each)) }
}

function objects(chance: Chance, depth: number): Sample {
  const names = NAMES.filter(() => chance.often(0.3))
  const parts = names.map((name) => [name, anySchema(chance, depth - 1)] as const)
  const required = names.filter(() => chance.often(0.5))
  const schema: Schema = {
    type: 'object',
    properties: Object.fromEntries(parts.map(([name, part]) => [name, part.schema])),
  }
  if (required.length > 0 || chance.often(0.2)) schema['required'] = required
  const others = chance.below(4)
  const extra = anySchema(chance, 0)
  if (others === 0) schema['additionalProperties'] = false
  if (others === 1) schema['additionalProperties'] = extra.schema
  if (others === 2 && chance.often(0.3)) schema['additionalProperties'] = true
  if (chance.often(0.15)) schema['minProperties'] = Math.min(names.length, 1 + chance.below(3))
  if (chance.often(0.15)) schema['maxProperties'] = required.length + chance.below(3)
  return {
    schema,
    value: (each) =>
      Object.fromEntries([
        ...parts
          .filter(([name]) => required.includes(name) || each.often(0.6))
          .map(([name, part]) => [name, part.value(each)]),
        ...(others === 1 && each.often(0.4) ? [['other', extra.value(each)]] : []),
      ]),
  }
}

function maps(chance: Chance, depth: number): Sample {
  const part = anySchema(chance, depth - 1)
  const value = (names: readonly string[]) => (each: Chance) =>
    Object.fromEntries(names.filter(() => each.often(0.6)).map((name) => [name, part.value(each)]))
  const kind = chance.below(3)
  if (kind === 0) {
    const schema = {
      type: 'object',
      patternProperties: { '^x-': part.schema },
      additionalProperties: false,
    }
    return { schema, value: value(['x-a', 'x-b c', 'x-']) }
  }
  if (kind === 1) {
    const schema = {
      type: 'object',
      propertyNames: { pattern: '^[a-z]{1,8}$' },
      additionalProperties: part.schema,
    }
    return { schema, value: value(['a', 'abc']) }
  }
  const schema = {
    type: 'object',
    propertyNames: { enum: ['one', 'two'] },
    additionalProperties: part.schema,
  }
  return { schema, value: value(['one', 'two']) }
}

function anyOf(chance: Chance, depth: number): Sample {
  const parts = Array.from({ length: 1 + chance.below(3) }, () => anySchema(chance, depth - 1))
  const schema: Schema = { anyOf: parts.map((part) => part.schema) }
  return { schema, value: (each) => each.pick(parts).value(each) }
}

function oneOf(chance: Chance, depth: number): Sample {
  const parts = ['circle', 'square', 'none'].map((kind) => ({
    kind,
    part: anySchema(chance, depth - 1),
  }))
  const schema = {
    oneOf: parts.map(({ kind, part }) => ({
      type: 'object',
      properties: { kind: { const: kind }, of: part.schema },
      required: ['kind', 'of'],
      additionalProperties: false,
    })),
  }
  const value = (each: Chance): unknown => {
    const { kind, part } = each.pick(parts)
    return { kind, of: part.value(each) }
  }
  return { schema, value }
}

function allOf(chance: Chance, depth: number): Sample {
  const [one, other] = [anySchema(chance, depth - 1), anySchema(chance, depth - 1)]
  const object = (name: string, part: Sample): Schema => ({
    type: 'object',
    properties: { [name]: part.schema },
    required: [name],
  })
  return {
    schema: { allOf: [object('first', one), object('second', other)] },
    value: (each) => ({ first: one.value(each), second: other.value(each) }),
  }
}

/** A schema that holds itself. */
function tree(chance: Chance): Sample {
  const leaf = anySchema(chance, 0)
  const schema: Schema = {
    $defs: {
      node: {
        type: 'object',
        properties: {
          leaf: leaf.schema,
          of: { type: 'array', items: { $ref: '#/$defs/node' }, maxItems: 2 },
        },
        required: ['leaf'],
        additionalProperties: false,
      },
    },
    $ref: '#/$defs/node',
  }
  const value = (each: Chance): unknown => ({
    leaf: leaf.value(each),
    ...(each.often(0.4) ? { of: Array.from({ length: each.below(3) }, () => value(each)) } : {}),
  })
  return { schema, value }
}
