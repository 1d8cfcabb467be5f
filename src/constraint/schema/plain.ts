/** Schemas as the engine takes them: keywords of draft 2020-12, `anyOf`, `allOf` and references to `#/$defs`. */
import { ConstraintError } from '../constraint.ts'

export const TYPES = ['null', 'boolean', 'number', 'string', 'array', 'object'] as const
export type TypeName = (typeof TYPES)[number] | 'integer'

export type Plain = boolean | PlainKeywords
export type PlainMap = Readonly<Record<string, Plain>>

export interface PlainKeywords {
  readonly type?: readonly TypeName[]
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly multipleOf?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
  readonly prefixItems?: readonly Plain[]
  readonly items?: Plain
  readonly minItems?: number
  readonly maxItems?: number
  readonly properties?: PlainMap
  readonly patternProperties?: PlainMap
  readonly additionalProperties?: Plain
  readonly required?: readonly string[]
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly $ref?: string
  readonly allOf?: readonly Plain[]
  readonly anyOf?: readonly Plain[]
}

/** Place of a keyword in the request, for what is loosened or ignored. */
export interface Loosened {
  path: string
  keyword: string
  /** Form that the keyword's value must have, if no draft has the given one. */
  expected?: string
}

/** Result of a rewriting: the schema that remains, and the keywords that it does not keep. */
export interface Kept {
  schema: Plain
  loosened: readonly string[]
}

/** Subschema in the form of the engine. Without loosened keywords, it allows exactly the same values. */
export interface Apart {
  schema: Plain
  loosened: readonly Loosened[]
}

/** Returns the schema that holds where all of these do. */
export function all(...parts: readonly Plain[]): Plain {
  if (parts.includes(false)) return false
  const [first, ...rest] = parts.filter((part) => part !== true && Object.keys(part).length > 0)
  if (first === undefined) return true
  if (rest.length === 0 || typeof first === 'boolean') return first
  // The first part keeps its keywords in place, so that its properties come first.
  const { allOf = [], ...own } = first
  return Object.keys(own).length === 0
    ? { allOf: [...allOf, ...rest] }
    : { ...own, allOf: [...allOf, ...rest] }
}

/** Returns the schema that holds where one of these does. */
export function any(...parts: readonly Plain[]): Plain {
  if (parts.some((part) => part === true || (part !== false && Object.keys(part).length === 0)))
    return true
  const [first, ...rest] = parts.filter((part) => part !== false)
  if (first === undefined) return false
  return rest.length === 0 ? first : { anyOf: [first, ...rest] }
}

/** Joins schemas, unless one of them is `undefined`. */
export const joinKnown = (
  join: typeof all,
  parts: readonly (Plain | undefined)[],
): Plain | undefined => (parts.every((part) => part !== undefined) ? join(...parts) : undefined)

export const defined = (keywords: Readonly<Record<string, unknown>>): PlainKeywords =>
  Object.fromEntries(Object.entries(keywords).filter(([, value]) => value !== undefined))

export const isKeywords = (schema: Plain): schema is PlainKeywords => typeof schema !== 'boolean'

export const typesOf = ({ type }: PlainKeywords): readonly TypeName[] => type ?? TYPES

/** Returns the types of the schema's values but this one. */
export const typesBut = (schema: PlainKeywords, type: TypeName): readonly TypeName[] =>
  typesOf(schema).filter((each) => each !== type)

/** Returns the type of a JSON value. An integer is a number here. */
export function typeOf(value: unknown): (typeof TYPES)[number] {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  const type = typeof value
  return type === 'boolean' || type === 'number' || type === 'string' ? type : 'object'
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns a text that is the same for equal JSON values. */
export function toKey(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toKey).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${toKey(value[name])}`).join()}}`
}

/** Changes subschemas: `below` those of items and properties, and `inPlace` those that apply to the same value. */
export function mapSubschemas(
  schema: PlainKeywords,
  below: (part: Plain) => Plain,
  inPlace: (part: Plain) => Plain,
): PlainKeywords {
  const { prefixItems, items, properties, patternProperties, additionalProperties } = schema
  const mapNamed = (parts: PlainMap): PlainMap => mapValues(parts, (part) => below(part))
  return {
    ...schema,
    ...(prefixItems && { prefixItems: prefixItems.map(below) }),
    ...(items !== undefined && { items: below(items) }),
    ...(properties && { properties: mapNamed(properties) }),
    ...(patternProperties && { patternProperties: mapNamed(patternProperties) }),
    ...(additionalProperties !== undefined && {
      additionalProperties: below(additionalProperties),
    }),
    ...(schema.anyOf && { anyOf: schema.anyOf.map(inPlace) }),
    ...(schema.allOf && { allOf: schema.allOf.map(inPlace) }),
  }
}

/** Returns an object with other values under the same names. */
export const mapValues = <Value, Result>(
  object: Readonly<Record<string, Value>>,
  change: (value: Value, name: string) => Result,
): Record<string, Result> =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value, name)]))

/** Returns the object without some of its keys. */
export const omit = <Value extends object>(value: Value, keys: readonly string[]): Partial<Value> =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key))) as Partial<Value>

export function distinct<Value>(values: readonly Value[]): Value[] {
  return [...new Map(values.map((value) => [toKey(value), value])).values()]
}

/** Joins the keywords of schemas that have different ones into one schema. */
export function merge(parts: readonly Plain[]): Plain {
  if (parts.includes(false)) return false
  const merged: Record<string, unknown> = {}
  const others: Plain[] = []
  for (const part of parts) {
    if (!isKeywords(part)) continue
    const isFree = Object.entries(part).every(
      ([keyword, value]) => !Object.hasOwn(merged, keyword) || merged[keyword] === value,
    )
    if (isFree && part.anyOf === undefined) Object.assign(merged, part)
    else others.push(part)
  }
  return all(merged as PlainKeywords, ...others)
}

/** Returns the path of a keyword, name or index below a path. */
export function under(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`
  const name = /^[\w$-]+$/.test(key) ? key : JSON.stringify(key)
  return path === '' ? name : `${path}.${name}`
}

/** Throws the error of a schema that is none. */
export function rejectSchema(path: string, why: string, keyword?: string): never {
  const message = `${path || 'The schema'} ${why}`
  throw new ConstraintError('unsupported_constraint', message, { path, keyword })
}

/** Limits the work on one schema. */
export class StepBudget {
  #left: number

  constructor(limit: number) {
    this.#left = limit
  }

  /** Counts work. Returns `false` once the limit is exceeded. */
  spend(count = 1): boolean {
    this.#left -= count
    return this.#left >= 0
  }
}
