/** Puts a schema and its definitions together, so that the engine can resolve every reference. */
import type { JsonSchema } from '../constraint.ts'
import { memoize } from '../expression.ts'
import { expand, type Facts, isEmpty, itemSchemas, least, most, propertySchemas } from './empty.ts'
import {
  all,
  any,
  distinct,
  isKeywords,
  joinKnown,
  mapSubschemas,
  omit,
  type Plain,
  type PlainKeywords,
  type PlainMap,
  toKey,
  type TypeName,
  typesOf,
} from './plain.ts'
import { NO_TEXT, rewriteTexts, toNamePattern } from './strings.ts'

const PREFIX = '#/$defs/'

export const toReference = (name: string): string => `${PREFIX}${name}`
export const toName = (reference: string): string => reference.slice(PREFIX.length)

/** Definitions that are made here, beyond which references stay as they are. */
const MAX_FUSED = 1000

interface Linked {
  schema: Plain
  definitions: ReadonlyMap<string, Plain>
}

/**
 * Returns the schema with the definitions that it reaches. The engine cannot intersect a schema with
 * one that it is still reading, so that a recursive reference beside other keywords is replaced: all
 * that applies there becomes one schema, which is a definition, since it may contain itself.
 */
export function link(root: Plain, definitions: ReadonlyMap<string, Plain>, facts: Facts): Linked {
  const recursive = findRecursive(definitions)
  const made = new Map<string, Plain>()
  /** Names of definitions by the schemas that were fused. */
  const fused = new Map<string, string>()
  const pending: (() => void)[] = []

  const refer = (name: string, schema: () => Plain): Plain => {
    if (!made.has(name)) {
      made.set(name, true)
      pending.push(() => made.set(name, schema()))
    }
    return { $ref: toReference(name) }
  }

  /** Links a schema that stands alone. */
  const linked = (schema: Plain): Plain => {
    const whole =
      joinsRecursive(schema, false) && fused.size < MAX_FUSED ? fuseAll(schema) : undefined
    if (whole === undefined) return descend(schema)
    const key = toKey(schema)
    const name = fused.get(key) ?? `f${fused.size}`
    fused.set(key, name)
    return refer(name, () => descend(whole))
  }

  /** Links what stands below the schema, and not in its place. */
  const descend = (schema: Plain): Plain => {
    if (!isKeywords(schema)) return schema
    if (schema.$ref !== undefined) {
      const name = toName(schema.$ref)
      refer(name, () => linked(definitions.get(name) ?? true))
    }
    return mapSubschemas(schema, linked, descend)
  }

  /** Returns `true` if the engine had to intersect a recursive schema. */
  const joinsRecursive = (schema: Plain, isOuterJoined: boolean): boolean => {
    if (typeof schema === 'boolean') return false
    const { allOf = [], anyOf = [], $ref, ...own } = schema
    const parts: (readonly Plain[])[] = allOf.map((part) => [part])
    if (Object.keys(own).length > 0) parts.push([own])
    if (anyOf.length > 0) parts.push(anyOf)
    if ($ref !== undefined) parts.push([{ $ref }])
    const isJoined = isOuterJoined || parts.length > 1
    if (isJoined && $ref !== undefined && recursive.has(toName($ref))) return true
    if (parts.length > 1 && parts.filter((part) => part.some(isRecursive)).length > 1) return true
    return [...allOf, ...anyOf].some((part) => joinsRecursive(part, isJoined))
  }

  const isRecursive = (schema: Plain): boolean =>
    referencesOf(schema).some((name) => recursive.has(name))

  const fuseAll = (schema: Plain): Plain | undefined => {
    const alternatives = expand([schema], facts)?.map(fuse)
    return alternatives && joinKnown(any, alternatives)
  }

  const schema = linked(root)
  for (let next = pending.pop(); next; next = pending.pop()) next()
  return { schema, definitions: made }
}

function referencesOf(schema: Plain): string[] {
  const found: string[] = []
  const visit = (part: Plain): Plain => {
    if (!isKeywords(part)) return part
    if (part.$ref !== undefined) found.push(toName(part.$ref))
    return mapSubschemas(part, visit, visit)
  }
  visit(schema)
  return found
}

/** Returns the definitions from which a recursive one is reached. */
function findRecursive(definitions: ReadonlyMap<string, Plain>): ReadonlySet<string> {
  const recursive = new Set(definitions.keys())
  // Definitions that refer to nothing, or only to such, are removed. They mostly come behind those that refer to them.
  const targets = [...definitions].map(([name, schema]) => [name, referencesOf(schema)] as const)
  for (let size = -1; size !== recursive.size;) {
    size = recursive.size
    for (const [name, own] of targets.toReversed())
      if (!own.some((each) => recursive.has(each))) recursive.delete(name)
  }
  return recursive
}

/** Keywords of objects and arrays, whose subschemas are joined name by name and place by place. */
const STRUCTURE = (
  'type properties patternProperties additionalProperties required minProperties maxProperties ' +
  'prefixItems items minItems maxItems'
).split(' ')

/** Returns one schema for those of a flat list, with properties in their order, unless patterns of names differ. */
function fuse(flat: readonly PlainKeywords[]): Plain | undefined {
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
  const others = flat.map((part) => omit(part, STRUCTURE))
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
  const properties = names.map((name) => [name, joinAll(propertySchemas(flat, name))])
  const patternProperties = patterns.map((pattern) => [
    pattern,
    joinAll(
      flat.map((part) => part.patternProperties?.[pattern] ?? part.additionalProperties ?? true),
    ),
  ])
  const additionalProperties = joinAll(flat.map((part) => part.additionalProperties ?? true))
  const [min, max] = [most(flat, 'minProperties'), least(flat, 'maxProperties')]
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
  const prefixItems = Array.from({ length: places }, (_, index) =>
    joinAll(itemSchemas(flat, index)),
  )
  const items = joinAll(flat.map((part) => part.items ?? true))
  const [min, max] = [most(flat, 'minItems'), least(flat, 'maxItems')]
  return {
    ...(places > 0 && { prefixItems }),
    ...(items !== true && { items }),
    ...(min > 0 && { minItems: min }),
    ...(max < Infinity && { maxItems: max }),
  }
}

const joinAll = (parts: readonly Plain[]): Plain => all(...distinct(parts))

/** Returns the schema with its definitions; `false` if no value is valid. */
export function writeSchema(linked: Linked, steps: Facts['steps']): JsonSchema {
  const definitions = withoutLoops(linked.definitions)
  const { schema } = linked
  const facts: Facts = { lookUp: (reference) => definitions.get(toName(reference)), steps }
  const satisfiable = findSatisfiable(definitions, facts)
  if (!isSatisfiable(schema, satisfiable)) return false
  const written = write(schema, satisfiable)
  if (typeof written === 'boolean' || definitions.size === 0) return written
  const kept = [...definitions].filter(([name]) => satisfiable.has(name))
  const $defs = kept.map(([name, definition]) => [name, write(definition, satisfiable)])
  return { ...written, $defs: Object.fromEntries($defs) }
}

/** Removes references by which a definition leads to itself in its own place. They say nothing. */
function withoutLoops(definitions: ReadonlyMap<string, Plain>): ReadonlyMap<string, Plain> {
  const targets = memoize((name: string) => referencesInPlace(definitions.get(name) ?? true))
  const reached = memoize((from: string) => {
    const seen = new Set(targets(from))
    for (const name of seen) for (const next of targets(name)) seen.add(next)
    return seen
  })
  const without = (schema: Plain, name: string): Plain => {
    if (!isKeywords(schema)) return schema
    const { $ref, ...rest } = mapSubschemas(
      schema,
      (part) => part,
      (part) => without(part, name),
    )
    return $ref === undefined || reached(toName($ref)).has(name) ? rest : { $ref, ...rest }
  }
  const entries = [...definitions].map(([name, schema]): [string, Plain] => [
    name,
    reached(name).has(name) ? without(schema, name) : schema,
  ])
  return new Map(entries)
}

function referencesInPlace(schema: Plain): string[] {
  if (!isKeywords(schema)) return []
  const { $ref, allOf = [], anyOf = [] } = schema
  const own = $ref === undefined ? [] : [toName($ref)]
  return [...own, ...[...allOf, ...anyOf].flatMap(referencesInPlace)]
}

/** Returns the names of the definitions that a finite value satisfies, as far as that is plain to see. */
function findSatisfiable(
  definitions: ReadonlyMap<string, Plain>,
  facts: Facts,
): ReadonlySet<string> {
  const possible = [...definitions].filter(([, schema]) => !isEmpty([schema], facts))
  const found = new Set<string>()
  // A value of a definition has values of those that it needs in it, so that some need none.
  for (let size = -1; size < found.size;) {
    size = found.size
    for (const [name, schema] of possible.toReversed())
      if (!found.has(name) && isSatisfiable(schema, found)) found.add(name)
  }
  return found
}

function isSatisfiable(schema: Plain, found: ReadonlySet<string>): boolean {
  if (!isKeywords(schema)) return schema
  const holds = (part: Plain): boolean => isSatisfiable(part, found)
  if (schema.$ref !== undefined && !found.has(toName(schema.$ref))) return false
  if (schema.allOf && !schema.allOf.every(holds)) return false
  if (schema.anyOf && !schema.anyOf.some(holds)) return false
  return typesOf(schema).some((type) => hasValue(type, schema, holds))
}

function hasValue(type: TypeName, schema: PlainKeywords, holds: (part: Plain) => boolean): boolean {
  if (type === 'object')
    return (schema.required ?? []).every((name) => propertySchemas([schema], name).every(holds))
  if (type === 'string') return rewriteTexts(schema).schema['pattern'] !== NO_TEXT
  if (type !== 'array') return true
  const places = Math.min(schema.minItems ?? 0, 1 + (schema.prefixItems?.length ?? 0))
  return Array.from({ length: places }, (_, index) => itemSchemas([schema], index)).every((parts) =>
    parts.every(holds),
  )
}

/** Writes a schema. A definition without values has no reference. */
function write(schema: Plain, satisfiable: ReadonlySet<string>): JsonSchema {
  if (!isKeywords(schema)) return schema
  const { $ref, type } = schema
  const change = (part: Plain): Plain => write(part, satisfiable) as Plain
  if ($ref !== undefined && !satisfiable.has(toName($ref))) return false
  const texts = TEXTS.some((keyword) => schema[keyword] !== undefined)
    ? rewriteTexts(schema)
    : undefined
  const own = omit(mapSubschemas(schema, change, change), TEXTS)
  const { allOf = [], ...text } = texts?.schema ?? {}
  const parts = [...(own.allOf ?? []), ...(allOf as readonly Plain[])]
  return {
    ...own,
    ...text,
    ...(parts.length > 0 && { allOf: parts }),
    ...(own.patternProperties && { patternProperties: writeNames(own.patternProperties) }),
    ...(type && { type: type.length === 1 ? type[0] : type }),
  }
}

const TEXTS = ['pattern', 'format', 'minLength', 'maxLength'] as const

const writeNames = (patterns: PlainMap): PlainMap =>
  Object.fromEntries(
    Object.entries(patterns).map(([name, schema]) => [toNamePattern(name) ?? name, schema]),
  )
