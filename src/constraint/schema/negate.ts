/** Returns schemas for the values that are not valid for others. */
import { type Facts, isRefused } from './empty.ts'
import {
  all,
  any,
  isKeywords,
  isObject,
  joinKnown,
  type Plain,
  type PlainKeywords,
  typeOf,
  TYPES,
  type TypeName,
  typesOf,
} from './plain.ts'
import { without } from './objects.ts'
import { combine, otherTexts, rewriteTexts } from './strings.ts'

const MAX_DEPTH = 12
/** Names of an enumeration that are excluded by a pattern. */
const MAX_EXCLUDED_TEXTS = 64
/** Names whose combinations are written out. */
const MAX_LISTED_NAMES = 4

/**
 * Returns a schema for the values of the given types that are not valid for the schema; `undefined`
 * if the engine has no way to say that. It is exact if the schema is, and those of its references are,
 * so that `facts` must not know others.
 */
export function negate(
  schema: Plain,
  facts: Facts,
  types: readonly TypeName[] = TYPES,
  depth = 0,
): Plain | undefined {
  if (typeof schema === 'boolean') return schema ? false : ofTypes(types)
  if (depth > MAX_DEPTH || !facts.steps.spend()) return undefined
  const below = (part: Plain, of?: readonly TypeName[]): Plain | undefined =>
    negate(part, facts, of, depth + 1)

  const own = typesOf(schema)
  const isOwn = (type: TypeName): boolean =>
    own.includes(type) || (type === 'integer' && own.includes('number'))
  const kept = types.filter(isOwn)
  const others = types.filter((type) => !isOwn(type))
  // Numbers that are no integers have no type of their own.
  if (own.includes('integer') && others.includes('number')) return undefined
  // A value is refused if one keyword refuses it.
  const refusals: (Plain | undefined)[] = others.length > 0 ? [ofTypes(others)] : []
  for (const keyword of Object.keys(schema) as (keyof PlainKeywords)[]) {
    const { allOf = [], anyOf = [], $ref = '' } = schema
    if (keyword === 'enum') refusals.push(excludeValues(schema.enum ?? [], kept, below))
    else if (keyword === 'allOf') refusals.push(...allOf.map((part) => below(part, kept)))
    else if (keyword === 'anyOf') {
      const negated = anyOf.map((part) => below(part, kept))
      refusals.push(joinKnown(all, negated))
    } else if (keyword === '$ref') {
      const target = facts.lookUp($ref)
      refusals.push(target === undefined ? undefined : below(target, kept))
    } else if (keyword !== 'type') refusals.push(...negateAssertion(keyword, schema, kept, below))
  }
  return joinKnown(any, refusals)
}

/** Returns the other values of a property that has listed ones beside it, which is the usual form of a condition. */
export function negateListed(
  schema: Plain,
  beside: readonly Plain[],
  facts: Facts,
): Plain | undefined {
  if (!isKeywords(schema) || Object.keys(schema).some((keyword) => keyword !== 'properties'))
    return undefined
  const [[name, wanted] = ['', true], ...others] = Object.entries(schema.properties ?? {})
  if (!isListed(wanted) || others.length > 0) return undefined
  const listed = beside
    .map((part) => isKeywords(part) && part.properties?.[name])
    .find((part) => part !== undefined && isListed(part))
  if (listed === undefined || !isListed(listed)) return undefined
  const left = listed.enum.filter((value) => isRefused(value, wanted, facts))
  return listProperty(name, left)
}

/** Returns the schema of objects with a property that has one of the values. */
export function listProperty(name: string, values: readonly unknown[]): PlainKeywords {
  const properties = Object.fromEntries([[name, values.length > 0 && { enum: values }]])
  return { type: ['object'], properties, required: [name] }
}

/** Returns `true` for a schema that allows listed values only. */
const isListed = (schema: Plain): schema is PlainKeywords & { enum: readonly unknown[] } =>
  isKeywords(schema) &&
  schema.enum !== undefined &&
  Object.keys(schema).every((keyword) => keyword === 'enum' || keyword === 'type')

type Negate = (schema: Plain, types?: readonly TypeName[]) => Plain | undefined

const ofTypes = (types: readonly TypeName[]): Plain =>
  TYPES.every((type) => types.includes(type)) ? true : types.length === 0 ? false : { type: types }

/** Schemas of which one holds where a keyword does not; `undefined` for one that cannot be expressed. */
type Refusals = readonly (Plain | undefined)[]

/** Bounds of the numbers that are out of a bound. */
const OPPOSITES: Partial<Record<keyof PlainKeywords, keyof PlainKeywords>> = {
  minimum: 'exclusiveMaximum',
  maximum: 'exclusiveMinimum',
  exclusiveMinimum: 'maximum',
  exclusiveMaximum: 'minimum',
}

/** Schemas of the values that other keywords refuse, without their type, and this type. */
const REFUSALS: Partial<
  Record<
    keyof PlainKeywords,
    readonly [TypeName, (schema: PlainKeywords, below: Negate) => Refusals]
  >
> = {
  minLength: ['string', ({ minLength = 0 }) => [atMost('maxLength', minLength - 1)]],
  maxLength: ['string', ({ maxLength = 0 }) => [{ minLength: maxLength + 1 }]],
  pattern: ['string', ({ pattern = '' }) => [matching(combine([], [pattern]))]],
  format: ['string', () => [undefined]],
  minItems: ['array', ({ minItems = 0 }) => [atMost('maxItems', minItems - 1)]],
  maxItems: ['array', ({ maxItems = 0 }) => [{ minItems: maxItems + 1 }]],
  prefixItems: [
    'array',
    ({ prefixItems = [] }, below) =>
      prefixItems.map((part, index) => {
        const negated = below(part)
        const before = Array.from({ length: index }, () => true)
        return negated && { prefixItems: [...before, negated], minItems: index + 1 }
      }),
  ],
  items: ['array', negateItems],
  properties: [
    'object',
    ({ properties = {} }, below) =>
      Object.entries(properties).map(([name, part]) => {
        const negated = below(part)
        return negated && { properties: { [name]: negated }, required: [name] }
      }),
  ],
  required: ['object', ({ required = [] }) => required.map((name) => without(name))],
  minProperties: [
    'object',
    ({ minProperties = 0 }) => [atMost('maxProperties', minProperties - 1)],
  ],
  // Other names may come twice, so that two of them are no two properties.
  maxProperties: [
    'object',
    ({ maxProperties }) => [maxProperties === 0 ? { minProperties: 1 } : undefined],
  ],
  additionalProperties: ['object', negateAdditional],
  patternProperties: [
    'object',
    ({ patternProperties = {} }) =>
      Object.values(patternProperties).every((part) => part === true) ? [] : [undefined],
  ],
}

function negateAssertion(
  keyword: keyof PlainKeywords,
  schema: PlainKeywords,
  types: readonly TypeName[],
  below: Negate,
): Refusals {
  const numbers = types.filter((type) => type === 'number' || type === 'integer')
  const opposite = OPPOSITES[keyword]
  if (opposite) return numbers.length > 0 ? [{ type: numbers, [opposite]: schema[keyword] }] : []
  if (keyword === 'multipleOf') return numbers.length > 0 ? [undefined] : []
  const known = REFUSALS[keyword]
  if (!known) return [undefined]
  const [type, refuse] = known
  if (!types.includes(type)) return []
  return refuse(schema, below).map((part) => part && { type: [type], ...Object(part) })
}

const atMost = (keyword: 'maxLength' | 'maxItems' | 'maxProperties', count: number): Plain =>
  count >= 0 && { [keyword]: count }

/** An item behind `prefixItems` can only be refused if its place is known. */
function negateItems({ items = true, prefixItems = [] }: PlainKeywords, below: Negate): Refusals {
  const negated = below(items)
  if (negated === false) return [false]
  // Without a valid item, there is a refused one as soon as there is any.
  return [items === false ? { minItems: prefixItems.length + 1 } : undefined]
}

/** Returns schemas for objects with a name that is not listed. The engine counts those beside listed names. */
function negateAdditional(schema: PlainKeywords, below: Negate): Refusals {
  const { additionalProperties = true, properties = {}, patternProperties = {} } = schema
  if (below(additionalProperties) === false) return [false]
  const names = Object.keys(properties)
  const isFew = names.length <= MAX_LISTED_NAMES && Object.keys(patternProperties).length === 0
  if (!isFew || additionalProperties !== false) return [undefined]
  return subsets(names).map((present) => ({
    properties: Object.fromEntries(names.map((name) => [name, present.includes(name)])),
    required: present,
    minProperties: present.length + 1,
  }))
}

const subsets = (names: readonly string[]): string[][] =>
  names.reduce<string[][]>((found, name) => found.flatMap((each) => [each, [...each, name]]), [[]])

/** Returns a schema for the values of the types that are not listed. */
function excludeValues(
  values: readonly unknown[],
  types: readonly TypeName[],
  below: Negate,
): Plain | undefined {
  const of = (type: TypeName): unknown[] => values.filter((value) => typeOf(value) === type)
  const parts = types.map((type): Plain | undefined => {
    if (type === 'integer' || type === 'number')
      return excludeNumbers(of('number').map(Number), type)
    const listed = of(type)
    if (listed.length === 0) return { type: [type] }
    if (type === 'null') return false
    if (type === 'boolean') {
      const left = [true, false].filter((value) => !listed.includes(value))
      return left.length === 0 ? false : { enum: left }
    }
    if (type === 'string') {
      if (listed.length > MAX_EXCLUDED_TEXTS) return undefined
      const others = matching(otherTexts(listed.map(String)))
      return others && { type: [type], ...Object(others) }
    }
    const others = listed.map((value) => below(toSchema(value), [type]))
    return joinKnown(all, others)
  })
  return joinKnown(any, parts)
}

/** Returns the ranges between the numbers. */
function excludeNumbers(values: readonly number[], type: 'integer' | 'number'): Plain {
  const sorted = [...new Set(values)].sort((a, b) => a - b)
  const [first] = sorted
  if (first === undefined) return { type: [type] }
  const ranges = sorted.map((value, index): Plain => {
    const next = sorted[index + 1]
    if (type === 'integer' && next !== undefined && Math.floor(value) + 1 >= next) return false
    return next === undefined
      ? { type: [type], exclusiveMinimum: value }
      : { type: [type], exclusiveMinimum: value, exclusiveMaximum: next }
  })
  return any({ type: [type], exclusiveMaximum: first }, ...ranges)
}

/** Returns the schema whose only value this is. The order of properties does not matter to it. */
function toSchema(value: unknown): Plain {
  if (Array.isArray(value)) {
    const prefixItems = value.map(toSchema)
    const { length } = value
    return length === 0
      ? { type: ['array'], maxItems: 0 }
      : { type: ['array'], prefixItems, items: false, minItems: length }
  }
  if (!isObject(value)) return { enum: [value] }
  const names = Object.keys(value)
  if (names.length === 0) return { type: ['object'], maxProperties: 0 }
  const properties = Object.fromEntries(names.map((name) => [name, toSchema(value[name])]))
  return { type: ['object'], properties, required: names, additionalProperties: false }
}

/** Returns a schema for the texts of a pattern, if the engine can match exactly those. */
const matching = (pattern: string): Plain | undefined =>
  rewriteTexts({ pattern }).loosened.length === 0 ? { pattern } : undefined
