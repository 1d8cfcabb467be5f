/** Joins schemas that all apply into one, so that the engine has nothing left to intersect. */
import { itemSchemas, propertySchemas } from './empty.ts'
import { all, type Plain, type PlainKeywords, toKey, type TypeName } from './plain.ts'

/** Keywords of objects and arrays, whose subschemas are joined name by name and place by place. */
const STRUCTURE = new Set([
  'type',
  'properties',
  'patternProperties',
  'additionalProperties',
  'required',
  'minProperties',
  'maxProperties',
  'prefixItems',
  'items',
  'minItems',
  'maxItems',
])

/**
 * Returns one schema for those of a flat list. Properties come in the order of the parts. It returns
 * `undefined` if parts have patterns of names that others do not have.
 */
export function fuse(flat: readonly PlainKeywords[]): Plain | undefined {
  const patterned = flat.filter((part) => Object.keys(part.patternProperties ?? {}).length > 0)
  const patterns = Object.keys(patterned[0]?.patternProperties ?? {})
  const isAlike = patterned.every((part) => {
    const own = Object.keys(part.patternProperties ?? {})
    return own.length === patterns.length && patterns.every((pattern) => own.includes(pattern))
  })
  if (!isAlike) return undefined
  const types = flat.flatMap(({ type }) => (type ? [type] : []))
  const type = types.length > 0 ? types.reduce(intersect) : undefined
  if (type?.length === 0) return false
  const others = flat.map((part) => pick(part, (keyword) => !STRUCTURE.has(keyword)))
  const structure = { ...(type && { type }), ...fuseObjects(flat, patterns), ...fuseArrays(flat) }
  return all(structure, ...others)
}

function intersect(a: readonly TypeName[], b: readonly TypeName[]): readonly TypeName[] {
  const has = (types: readonly TypeName[], type: TypeName): boolean =>
    types.includes(type) || (type === 'integer' && types.includes('number'))
  return [...new Set([...a, ...b])].filter((type) => has(a, type) && has(b, type))
}

function fuseObjects(flat: readonly PlainKeywords[], patterns: readonly string[]): PlainKeywords {
  const names = [...new Set(flat.flatMap((part) => Object.keys(part.properties ?? {})))]
  const required = [...new Set(flat.flatMap((part) => part.required ?? []))]
  const properties = names.map((name) => [name, allOf(propertySchemas(flat, name))])
  const patternProperties = patterns.map((pattern) => [
    pattern,
    allOf(
      flat.map((part) => part.patternProperties?.[pattern] ?? part.additionalProperties ?? true),
    ),
  ])
  const additionalProperties = allOf(flat.map((part) => part.additionalProperties ?? true))
  const min = Math.max(0, ...flat.map((part) => part.minProperties ?? 0))
  const max = Math.min(Infinity, ...flat.map((part) => part.maxProperties ?? Infinity))
  return {
    ...(names.length > 0 && { properties: Object.fromEntries(properties) }),
    ...(patterns.length > 0 && { patternProperties: Object.fromEntries(patternProperties) }),
    ...(additionalProperties !== true && { additionalProperties }),
    ...(required.length > 0 && { required }),
    ...(min > 0 && { minProperties: min }),
    ...(max < Infinity && { maxProperties: max }),
  }
}

function fuseArrays(flat: readonly PlainKeywords[]): PlainKeywords {
  const places = Math.max(0, ...flat.map(({ prefixItems = [] }) => prefixItems.length))
  const prefixItems = Array.from({ length: places }, (_, index) => allOf(itemSchemas(flat, index)))
  const items = allOf(flat.map((part) => part.items ?? true))
  const min = Math.max(0, ...flat.map((part) => part.minItems ?? 0))
  const max = Math.min(Infinity, ...flat.map((part) => part.maxItems ?? Infinity))
  return {
    ...(places > 0 && { prefixItems }),
    ...(items !== true && { items }),
    ...(min > 0 && { minItems: min }),
    ...(max < Infinity && { maxItems: max }),
  }
}

/** Returns the schema that holds where all parts do, each of which is written once. */
const allOf = (parts: readonly Plain[]): Plain =>
  all(...new Map(parts.map((part) => [toKey(part), part])).values())

const pick = (keywords: PlainKeywords, isWanted: (keyword: string) => boolean): PlainKeywords =>
  Object.fromEntries(Object.entries(keywords).filter(([keyword]) => isWanted(keyword)))
