/** Rewrites the keywords of a schema that say something about its own value, items and properties. */
import { keepContained, keepUnique } from './arrays.ts'
import { divisors, keepBounds } from './numbers.ts'
import { dropRepeated, limitCount, limitNames, separatePatterns } from './objects.ts'
import {
  distinct,
  isKeywords,
  isObject,
  merge,
  type Plain,
  type PlainKeywords,
  TYPES,
  type TypeName,
} from './plain.ts'
import type { Node } from './references.ts'
import type { Source } from './source.ts'
import { rewriteTexts } from './texts.ts'

/** Returns the schema of the node without references and combinations. */
export function rewriteOwn(node: Node, source: Source): Plain {
  const { path } = node
  const value = Object(node.value) as Record<string, unknown>
  const type = toTypes(value)
  const types = type ?? TYPES
  const listed = 'const' in value ? [value['const']] : undefined
  const given = value['enum'] as readonly unknown[] | undefined
  const own: PlainKeywords = { ...(type && { type }) }
  const parts: Plain[] = [own]
  for (const values of [listed, given]) if (values) parts.push({ enum: distinct(values) })
  if (value['required'] === true) source.loosen(path, 'required')
  if (types.includes('number') || types.includes('integer'))
    parts.push(source.take(keepBounds(value), path), divisors(value))
  if (types.includes('string')) parts.push(rewriteText(node, source))
  else if (typeof value['format'] === 'string') source.ignore(path, `format:${value['format']}`)
  if (types.includes('array')) parts.push(rewriteArray(node, own, source))
  if (types.includes('object')) parts.push(rewriteObject(node, own, source))
  return merge(parts)
}

const NAMES = new Set<string>([...TYPES, 'integer'])

/** Returns the types that the keyword allows; `undefined` if it allows all, or has no known one. */
function toTypes({
  type,
  nullable,
}: Readonly<Record<string, unknown>>): readonly TypeName[] | undefined {
  const names = (Array.isArray(type) ? type : [type]) as string[]
  if (!names.every((name) => NAMES.has(name))) return undefined
  const types = nullable === true ? [...names, 'null'] : names
  // An integer is a number, and the engine takes it twice otherwise.
  const found = [...new Set(types)].filter(
    (name) => name !== 'integer' || !types.includes('number'),
  )
  return found as TypeName[]
}

function rewriteText(node: Node, source: Source): Plain {
  const { pattern, format, minLength, maxLength } = Object(node.value)
  const keywords = { pattern, format, minLength, maxLength }
  const { loosened, ignored } = rewriteTexts(keywords)
  for (const each of loosened) source.loosen(node.path, each)
  for (const each of ignored) source.ignore(node.path, each)
  return defined({ ...keywords, format: ignored.length > 0 ? undefined : format })
}

function rewriteArray(node: Node, { type }: PlainKeywords, source: Source): Plain {
  const { path } = node
  const value = Object(node.value) as Record<string, unknown>
  const { items, prefixItems, additionalItems, minItems, maxItems, contains, uniqueItems } = value
  const places = Array.isArray(items) ? 'items' : 'prefixItems'
  const rest = Array.isArray(items) ? 'additionalItems' : 'items'
  const list = (Array.isArray(items) ? items : prefixItems) as unknown[] | undefined
  const tail = Array.isArray(items) ? additionalItems : items
  const own = defined({
    type,
    prefixItems: list?.map((_, index) => source.rewrite(source.below(node, places, index))),
    items: tail === undefined ? undefined : source.rewrite(source.below(node, rest)),
    minItems,
    maxItems,
  })
  const parts: Plain[] = [own]
  if (contains !== undefined) {
    const least = (value['minContains'] as number | undefined) ?? 1
    const greatest = (value['maxContains'] as number | undefined) ?? Infinity
    const { schema, negated, loosened } = source.negate(source.below(node, 'contains'))
    for (const each of loosened) source.loosen(each.path, each.keyword)
    parts.push(
      source.take(keepContained(own, schema, negated, [least, greatest], source.facts), path),
    )
  }
  if (uniqueItems === true) parts.push(source.take(keepUnique(own, source.facts), path))
  return merge(parts)
}

function rewriteObject(node: Node, { type }: PlainKeywords, source: Source): Plain {
  const { path } = node
  const value = Object(node.value) as Record<string, unknown>
  const below = (keyword: string): Record<string, Plain> | undefined =>
    isObject(value[keyword])
      ? Object.fromEntries(
          Object.keys(value[keyword]).map((name) => [
            name,
            source.rewrite(source.below(node, keyword, name)),
          ]),
        )
      : undefined
  const { required, additionalProperties, propertyNames, minProperties, maxProperties } = value
  const given = defined({
    type,
    properties: below('properties'),
    patternProperties: below('patternProperties'),
    additionalProperties:
      additionalProperties === undefined
        ? undefined
        : source.rewrite(source.below(node, 'additionalProperties')),
    required: Array.isArray(required) ? [...new Set(required as string[])] : undefined,
    minProperties,
    maxProperties,
  })
  let own: Plain = given
  if (propertyNames !== undefined) {
    const { schema, loosened } = source.rewriteApart(source.below(node, 'propertyNames'))
    if (loosened.length > 0) source.loosen(path, 'propertyNames')
    own = source.take(limitNames(given, schema), path)
  }
  if (isKeywords(own)) own = source.take(separatePatterns(dropRepeated(own)), path)
  return isKeywords(own) ? source.take(limitCount(own), path) : own
}

/**
 * Returns what a schema says plainly, for proofs while it is not rewritten yet. It allows all values
 * of the schema.
 */
export function sketch(value: unknown, depth = 2): Plain {
  if (typeof value === 'boolean') return value
  if (!isObject(value) || value['$ref'] !== undefined || depth === 0) return true
  const { required, properties } = value
  const listed = 'const' in value ? [value['const']] : value['enum']
  const named = isObject(properties) ? Object.entries(properties) : []
  return defined({
    type: toTypes(value),
    enum: Array.isArray(listed) ? distinct(listed) : undefined,
    required: Array.isArray(required) ? required.map(String) : undefined,
    properties:
      named.length > 0
        ? Object.fromEntries(named.map(([name, each]) => [name, sketch(each, depth - 1)]))
        : undefined,
  })
}

/** Returns the keywords that have a value. */
const defined = (keywords: Readonly<Record<string, unknown>>): PlainKeywords =>
  Object.fromEntries(Object.entries(keywords).filter(([, value]) => value !== undefined))
