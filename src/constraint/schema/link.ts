/** Puts a schema and its definitions together, so that the engine can resolve every reference. */
import { expand, type Facts } from './empty.ts'
import { fuse } from './fuse.ts'
import { any, isKeywords, mapSubschemas, type Plain, toKey } from './plain.ts'

const PREFIX = '#/$defs/'

export const toReference = (name: string): string => `${PREFIX}${name}`
export const toName = (reference: string): string => reference.slice(PREFIX.length)

/** Definitions that are made here, beyond which references stay as they are. */
const MAX_FUSED = 1000

export interface Linked {
  schema: Plain
  /** Definitions that the schema reaches, by name. */
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
    return alternatives && !alternatives.includes(undefined)
      ? any(...alternatives.map((each) => each ?? true))
      : undefined
  }

  const schema = linked(root)
  for (let next = pending.pop(); next; next = pending.pop()) next()
  return { schema, definitions: made }
}

/** Returns the names of all definitions that a schema refers to. */
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
  const targets = new Map<string, readonly string[]>()
  for (const [name, schema] of definitions) targets.set(name, [...new Set(referencesOf(schema))])
  // Definitions that refer to nothing, or only to such, are removed until none is left.
  const users = new Map<string, string[]>()
  const open = new Map<string, number>()
  for (const [name, own] of targets) {
    open.set(name, own.length)
    for (const target of own) users.set(target, [...(users.get(target) ?? []), name])
  }
  const done = [...open].filter(([, count]) => count === 0).map(([name]) => name)
  const recursive = new Set(targets.keys())
  for (let name = done.pop(); name !== undefined; name = done.pop()) {
    recursive.delete(name)
    for (const user of users.get(name) ?? []) {
      const left = (open.get(user) ?? 0) - 1
      open.set(user, left)
      if (left === 0) done.push(user)
    }
  }
  return recursive
}
