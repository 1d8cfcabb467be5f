/** Writes a linked schema for the engine, which takes only definitions that some value satisfies. */
import type { JsonSchema } from '../constraint.ts'
import { type Facts, isEmpty, itemSchemas, propertySchemas } from './empty.ts'
import { type Linked, toName } from './link.ts'
import {
  isKeywords,
  mapSubschemas,
  type Plain,
  type PlainMap,
  type TypeName,
  typesOf,
} from './plain.ts'
import { NO_TEXT, rewriteTexts, toNamePattern } from './texts.ts'

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
  const targets = new Map<string, readonly string[]>()
  for (const [name, schema] of definitions) {
    const own = referencesInPlace(schema)
    if (own.length > 0) targets.set(name, own)
  }
  const leads = (from: string, to: string): boolean => {
    const seen = new Set([from])
    for (const name of seen) for (const next of targets.get(name) ?? []) seen.add(next)
    return [...seen].some((name) => targets.get(name)?.includes(to))
  }
  const without = (schema: Plain, name: string): Plain => {
    if (!isKeywords(schema)) return schema
    const { $ref, ...rest } = mapSubschemas(
      schema,
      (part) => part,
      (part) => without(part, name),
    )
    return $ref === undefined || leads(toName($ref), name) ? rest : { $ref, ...rest }
  }
  const entries = [...definitions].map(([name, schema]): [string, Plain] => [
    name,
    targets.has(name) && leads(name, name) ? without(schema, name) : schema,
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

function hasValue(
  type: TypeName,
  schema: Exclude<Plain, boolean>,
  holds: (part: Plain) => boolean,
): boolean {
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
  const {
    minLength: _,
    maxLength: __,
    pattern: ___,
    format: ____,
    ...own
  } = mapSubschemas(schema, change, change)
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
    Object.entries(patterns).map(([pattern, schema]) => [
      toNamePattern(pattern) ?? pattern,
      schema,
    ]),
  )
