/** Rewrites keywords of objects that the engine lacks into those that it has. */
import { matches, propertySchemas } from './empty.ts'
import {
  all,
  any,
  defined,
  type Kept,
  mapValues,
  omit,
  type Plain,
  type PlainKeywords,
  toKey,
  typesBut,
} from './plain.ts'
import { combine, toNamePattern } from './strings.ts'

/** Alternatives that one keyword may become. */
const MAX_ALTERNATIVES = 128
/** Patterns that are split by which of them match. */
const MAX_SPLIT_PATTERNS = 3

/** Returns the schema that holds for objects without the name, and for all other values. */
export const without = (name: string): PlainKeywords => ({ properties: { [name]: false } })

/** Returns the schema of objects whose names are valid for `names`, as listed properties or by a pattern. */
export function limitNames(own: PlainKeywords, names: Plain): Kept {
  const { properties = {}, patternProperties = {}, additionalProperties = true, ...more } = own
  const cannot: Kept = { schema: own, loosened: ['propertyNames'] }
  if (names === true) return { schema: own, loosened: [] }
  const limit: PlainKeywords = names === false ? { enum: [] } : names
  const { minLength, maxLength, pattern, enum: listed, type, ...unknown } = limit
  if (Object.keys(unknown).length > 0) return cannot
  const isText = !type || type.includes('string')
  if (listed || !isText) {
    const allowed = (isText ? (listed ?? []) : []).filter(
      (name): name is string => typeof name === 'string' && fits(name, limit),
    )
    const kept = Object.keys(properties).filter((name) => allowed.includes(name))
    const entries = [...new Set([...kept, ...allowed])].map((name) => [
      name,
      all(...propertySchemas([own], name)),
    ])
    const schema = { ...more, properties: Object.fromEntries(entries), additionalProperties: false }
    return { schema: refuseRequired(schema), loosened: [] }
  }
  const patterns = pattern === undefined ? [] : [pattern]
  if (minLength !== undefined || maxLength !== undefined)
    patterns.push(String.raw`^[\s\S]{${minLength ?? 0},${maxLength ?? ''}}$`)
  if (patterns.length === 0) return { schema: own, loosened: [] }
  const only = patterns.length === 1 ? (patterns[0] ?? '') : combine(patterns, [])
  if (toNamePattern(only) === undefined) return cannot
  // Names of other patterns have to match both, and the rest are the other names that match this one.
  const others = Object.keys(patternProperties)
  const both = others.map((each) => [combine([each, only], []), patternProperties[each]])
  const rest = others.length === 0 ? only : combine([only], others)
  return {
    schema: {
      ...more,
      properties: mapValues(properties, (schema, name) => matches(only, name) && schema),
      patternProperties: Object.fromEntries([...both, [rest, additionalProperties]]),
      additionalProperties: false,
    },
    loosened: [],
  }
}

/** Requires names of which the schema of properties knows nothing, so that the engine refuses them. */
function refuseRequired(schema: PlainKeywords): Plain {
  const { properties = {}, required = [] } = schema
  return required.every((name) => Object.hasOwn(properties, name))
    ? schema
    : { ...schema, type: typesBut(schema, 'object') }
}

function fits(name: string, keywords: PlainKeywords): boolean {
  const { minLength = 0, maxLength = Infinity, pattern = '' } = keywords
  const { length } = Array.from(name)
  return length >= minLength && length <= maxLength && matches(pattern, name)
}

/** Drops what a name and its pattern say both. The engine cannot intersect a schema that it is still reading. */
export function dropRepeated(own: PlainKeywords): PlainKeywords {
  const { properties, patternProperties } = own
  if (!properties || !patternProperties) return own
  const patterns = Object.entries(patternProperties)
  const isRepeated = (schema: Plain, name: string): boolean =>
    patterns.some(([pattern, other]) => toKey(other) === toKey(schema) && matches(pattern, name))
  return {
    ...own,
    properties: mapValues(properties, (schema, name) => isRepeated(schema, name) || schema),
  }
}

/** Returns the schema with patterns of which no two match the same name. They are joined, or split if they are few. */
export function separatePatterns(own: PlainKeywords): Kept {
  const { additionalProperties = true, patternProperties } = own
  if (!patternProperties) return { schema: own, loosened: [] }
  const groups = new Map<string, PatternGroup>()
  for (const [pattern, schema] of Object.entries(patternProperties)) {
    // A pattern without restrictions says nothing where other names have none.
    if (schema === true && additionalProperties === true) continue
    const key = toKey(schema)
    const known = groups.get(key)
    groups.set(key, { pattern: known ? `(?:${known.pattern})|(?:${pattern})` : pattern, schema })
  }
  const joined = [...groups.values()]
  const patterns = joined.map(({ pattern }) => pattern)
  const separate = areDisjoint(patterns) ? joined : splitPatterns(joined)
  if (separate?.every(({ pattern }) => toNamePattern(pattern) !== undefined)) {
    const entries = separate.map(({ pattern, schema }) => [pattern, schema])
    return { schema: { ...own, patternProperties: Object.fromEntries(entries) }, loosened: [] }
  }
  // Names of the patterns may be any then, with a value that one of them or other names allow.
  const { patternProperties: _, ...rest } = own
  const schemas = [...joined.map(({ schema }) => schema), additionalProperties]
  return {
    schema: { ...rest, additionalProperties: any(...schemas) },
    loosened: ['patternProperties'],
  }
}

interface PatternGroup {
  pattern: string
  schema: Plain
}

/** Returns patterns for each choice of those that match; `undefined` if there are too many. */
function splitPatterns(groups: readonly PatternGroup[]): PatternGroup[] | undefined {
  if (groups.length > MAX_SPLIT_PATTERNS) return undefined
  const choices = Array.from({ length: 2 ** groups.length - 1 }, (_, index) => index + 1)
  return choices.map((choice) => {
    const of = (bit: number): PatternGroup[] =>
      groups.filter((_, index) => ((choice >> index) & 1) === bit)
    const [missing, found] = [of(0), of(1)].map((some) => some.map(({ pattern }) => pattern))
    return {
      pattern: combine(found ?? [], missing ?? []),
      schema: all(...of(1).map(({ schema }) => schema)),
    }
  })
}

/** Returns `true` if each two patterns are texts, or begin with texts, that exclude each other. */
function areDisjoint(patterns: readonly string[]): boolean {
  const texts = patterns.map((pattern) => /^\^([\w/: -]+)(\$?)$/.exec(pattern))
  return texts.every((one, index) =>
    texts.slice(index + 1).every((other) => {
      const [[, a = '', aEnd = ''], [, b = '', bEnd = '']] = [one ?? [], other ?? []]
      if (a === '' || b === '') return false
      return (aEnd !== '' || !b.startsWith(a)) && (bEnd !== '' || !a.startsWith(b)) && a !== b
    }),
  )
}

/** Limits the number of properties. The engine counts other names only, so each choice becomes an alternative. */
export function limitCount(own: PlainKeywords): Kept {
  const { properties = {}, required = [] } = own
  const { minProperties = 0, maxProperties = Infinity, ...loose } = own
  const optional = Object.keys(properties).filter(
    (name) => !required.includes(name) && properties[name] !== false,
  )
  const forced = new Set(required).size
  const isClosed =
    own.additionalProperties === false && Object.keys(own.patternProperties ?? {}).length === 0
  const min = Math.max(0, minProperties - forced)
  const max = maxProperties - forced
  const isMaxFree = max === Infinity || (isClosed && max >= optional.length)
  if (max < 0 || (isClosed && min > optional.length)) return { schema: own, loosened: [] }
  if (min === 0 && isMaxFree) return { schema: loose, loosened: [] }
  if (optional.length === 0) {
    // A name that comes twice counts twice for the engine.
    return { schema: own, loosened: min > 1 ? ['minProperties'] : [] }
  }
  const sizes = Array.from({ length: optional.length + 1 }, (_, size) => size)
  // From `min` on, no other name is needed; up to `max`, each choice is an alternative.
  const wanted = sizes.filter(
    (size) => (isMaxFree ? size <= min : size <= max) && (!isClosed || size >= min),
  )
  const count = wanted.reduce((sum, size) => sum + choose(optional.length, size), 0)
  if (count > MAX_ALTERNATIVES) {
    const loosened = [
      ...(min > 0 ? ['minProperties'] : []),
      ...(isMaxFree ? [] : ['maxProperties']),
    ]
    return { schema: loose, loosened }
  }
  let isDoubtful = false
  const options = wanted.flatMap((size) =>
    combinations(optional, size).map((present): Plain => {
      const isFree = isMaxFree && size >= min
      const left = Math.max(0, min - size)
      isDoubtful ||= left > 1 && !isClosed
      const absent = isFree ? [] : optional.filter((name) => !present.includes(name))
      return defined({
        ...omit(loose, ['properties', 'required']),
        properties: mapValues(properties, (schema, name) => !absent.includes(name) && schema),
        required: [...required, ...present],
        minProperties: left > 0 ? forced + size + left : undefined,
        maxProperties: isMaxFree || isClosed ? undefined : maxProperties,
      })
    }),
  )
  return { schema: any(...options), loosened: isDoubtful ? ['minProperties'] : [] }
}

function choose(of: number, size: number): number {
  let count = 1
  for (let at = 0; at < size; at++) count = (count * (of - at)) / (at + 1)
  return count
}

function combinations(names: readonly string[], size: number): string[][] {
  if (size === 0) return [[]]
  return names.flatMap((name, index) =>
    combinations(names.slice(index + 1), size - 1).map((rest) => [name, ...rest]),
  )
}
