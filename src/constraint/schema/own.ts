/** Rewrites the keywords of a schema that say something about its own value, items and properties. */
import { type Facts, isEmpty, itemSchemas } from './empty.ts'
import { dropRepeated, type Kept, limitCount, limitNames, separatePatterns } from './objects.ts'
import {
  all,
  any,
  defined,
  distinct,
  isKeywords,
  isObject,
  merge,
  type Plain,
  type PlainKeywords,
  toKey,
  type TypeName,
  TYPES,
  typesBut,
} from './plain.ts'
import { keywordsOf, type Node, type Source } from './references.ts'
import { rewriteTexts } from './strings.ts'

/** Returns the schema of the node without references and combinations. */
export function rewriteOwn(node: Node, source: Source): Plain {
  const { path } = node
  const value = keywordsOf(node)
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
  const value = keywordsOf(node)
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
  const value = keywordsOf(node)
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

// Rewrites keywords of arrays that the engine lacks into those that it has.

/** Arrays of different values that are written out. */
const MAX_ARRAYS = 330
/** Items at which one that is asked for may stand. */
const MAX_PLACES = 16
/** Items that are compared with each other. */
const MAX_COMPARED = 12
/** Integers of a range that are written out. */
const MAX_INTEGERS = 16

/** Returns the length that no array of the schema exceeds. */
const longest = ({ maxItems = Infinity, items, prefixItems = [] }: PlainKeywords): number =>
  items === false ? Math.min(maxItems, prefixItems.length) : maxItems

/** Returns the schema of arrays whose items differ. Few values are written out. */
function keepUnique(own: PlainKeywords, facts: Facts): Kept {
  const max = longest(own)
  if (max <= 1) return { schema: own, loosened: [] }
  if (max <= MAX_COMPARED) {
    const places = Array.from({ length: max }, (_, index) => itemSchemas([own], index))
    const differ = places.every((one, index) =>
      places.slice(index + 1).every((other) => isEmpty([...one, ...other], facts)),
    )
    if (differ) return { schema: own, loosened: [] }
  }
  const first = (own.prefixItems ?? []).map((place) => finiteValues(place, facts))
  const rest = finiteValues(own.items ?? true, facts)
  if (!rest) return { schema: own, loosened: ['uniqueItems'] }
  const limit = Math.min(max, first.length + rest.length)
  const arrays = arrange(first, rest, own.minItems ?? 0, limit)
  // There are no more items than different values, at least.
  if (!arrays) return { schema: { ...own, maxItems: limit }, loosened: ['uniqueItems'] }
  return { schema: any(otherTypes(own), arrays.length > 0 && { enum: arrays }), loosened: [] }
}

/** Returns all values of a schema if they are few. */
function finiteValues(schema: Plain, facts: Facts): readonly unknown[] | undefined {
  if (schema === false) return []
  if (schema === true) return undefined
  const { type, enum: listed, anyOf, minimum, maximum, $ref, ...more } = schema
  if (Object.keys(more).length > 0) return undefined
  if ($ref !== undefined) {
    const target = facts.lookUp($ref)
    const isAlone = Object.keys(schema).length === 1
    return isAlone && isObject(target) && target['$ref'] === undefined
      ? finiteValues(target, facts)
      : undefined
  }
  if (listed) {
    const isPlain = minimum === undefined && maximum === undefined && !anyOf
    const isOfType = (value: unknown): boolean => !isEmpty([{ enum: [value] }, { type }], facts)
    return isPlain ? listed.filter((value) => !type || isOfType(value)) : undefined
  }
  if (anyOf) {
    if (type || minimum !== undefined || maximum !== undefined) return undefined
    const found = anyOf.map((option) => finiteValues(option, facts))
    if (found.includes(undefined)) return undefined
    return distinct(found.flatMap((each) => each ?? []))
  }
  if (!type) return undefined
  const values: unknown[] = []
  for (const each of type) {
    if (each === 'null') values.push(null)
    else if (each === 'boolean') values.push(true, false)
    else if (each === 'integer' && minimum !== undefined && maximum !== undefined) {
      const [low, high] = [Math.ceil(minimum), Math.floor(maximum)]
      if (high - low >= MAX_INTEGERS) return undefined
      for (let value = low; value <= high; value++) values.push(value)
    } else return undefined
  }
  return values
}

/**
 * Returns all arrays of different values of these lengths, with other values at the first places;
 * `undefined` if they are too many.
 */
function arrange(
  first: readonly (readonly unknown[] | undefined)[],
  rest: readonly unknown[],
  min: number,
  max: number,
): unknown[][] | undefined {
  const found: unknown[][] = min === 0 ? [[]] : []
  let now: unknown[][] = [[]]
  for (let length = 1; length <= max; length++) {
    const values = length <= first.length ? first[length - 1] : rest
    if (!values || now.length * values.length > MAX_ARRAYS * 2) return undefined
    now = now.flatMap((items) => {
      const keys = items.map(toKey)
      return values
        .filter((value) => !keys.includes(toKey(value)))
        .map((value) => [...items, value])
    })
    if (length >= min) found.push(...now)
    if (found.length > MAX_ARRAYS) return undefined
  }
  return found
}

/**
 * Returns the schema of arrays of which some items are valid for `part`. `others` are the values
 * that are not valid for it, if the engine can tell them.
 */
function keepContained(
  own: PlainKeywords,
  part: Plain,
  others: Plain | undefined,
  [min, max]: readonly [number, number],
  facts: Facts,
): Kept {
  const lower = raise(own, min)
  const { items = true, prefixItems = [] } = own
  const isFree = max === Infinity
  if (min === 0 && isFree) return { schema: own, loosened: [] }
  if (max < min) return { schema: { ...own, type: typesBut(own, 'array') }, loosened: [] }
  if (max === 0) {
    if (others === undefined) return { schema: own, loosened: ['contains'] }
    const kept = {
      prefixItems: prefixItems.map((each) => all(each, others)),
      items: all(items, others),
    }
    return { schema: { ...own, ...kept }, loosened: [] }
  }
  // Each item counts if no item can be another value.
  const isSure =
    part === true ||
    (others !== undefined &&
      [...prefixItems, items].every((each) => isEmpty([each, others], facts)))
  if (isSure) {
    const maxItems = Math.min(own.maxItems ?? Infinity, max)
    return { schema: maxItems === Infinity ? lower : { ...lower, maxItems }, loosened: [] }
  }
  const length = longest(own)
  // Items behind the first ones are all alike, and need not be looked at if they are refused.
  const places = isEmpty([items, part], facts) ? Math.min(length, prefixItems.length) : length
  if (min === 1 && isFree && places <= MAX_PLACES) {
    const options = Array.from({ length: places }, (_, index): Plain => {
      const before = Array.from({ length: index + 1 }, (__, at) => prefixItems[at] ?? items)
      const found = all(before[index] ?? true, part)
      const after = prefixItems.slice(index + 1)
      return { ...raise(own, index + 1), prefixItems: [...before.slice(0, index), found, ...after] }
    })
    return { schema: any(...options, otherTypes(own)), loosened: [] }
  }
  if (length <= 6 && others !== undefined)
    return { schema: choosePlaces(own, length, part, others, [min, max]), loosened: [] }
  const names = [...(min > 0 ? ['contains'] : []), ...(isFree ? [] : ['maxContains'])]
  return { schema: lower, loosened: names }
}

/** Writes out at which places of a short array the wanted items stand. */
function choosePlaces(
  own: PlainKeywords,
  length: number,
  part: Plain,
  others: Plain,
  [min, max]: readonly [number, number],
): Plain {
  const { items = true, prefixItems = [] } = own
  const options: Plain[] = [otherTypes(own)]
  for (let size = own.minItems ?? 0; size <= length; size++) {
    for (let choice = 0; choice < 2 ** size; choice++) {
      const isWanted = Array.from({ length: size }, (_, at) => ((choice >> at) & 1) === 1)
      const count = isWanted.filter(Boolean).length
      if (count < min || count > max) continue
      const kept = isWanted.map((wanted, at) =>
        all(prefixItems[at] ?? items, wanted ? part : others),
      )
      options.push(
        size === 0
          ? { type: ['array'], maxItems: 0 }
          : { type: ['array'], prefixItems: kept, items: false, minItems: size },
      )
    }
  }
  return any(...options)
}

const raise = (own: PlainKeywords, min: number): PlainKeywords =>
  min > (own.minItems ?? 0) ? { ...own, minItems: min } : own

/** Returns the schema without arrays, to which keywords of arrays say nothing. */
function otherTypes(own: PlainKeywords): Plain {
  const type = typesBut(own, 'array')
  return type.length === 0 ? false : { ...own, type }
}

/** Bounds beyond it have more digits than the engine can compare. */
const MAX_BOUND = 1e18
/** The engine has a state for each remainder, and multiplies two divisors as 32-bit integers. */
const MAX_DIVISOR = 10_000
const MAX_DECIMAL_PLACES = 9

const BOUNDS = [
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
] as const

/** Returns the bounds, with those of draft 4 in the form of later drafts. */
function keepBounds(keywords: Readonly<Record<string, unknown>>): Kept {
  const { multipleOf } = keywords
  const loosened: string[] = []
  const bounds: Record<string, number> = {}
  const add = (name: keyof PlainKeywords, keyword: string, value: unknown): void => {
    if (typeof value !== 'number') return
    if (Math.abs(value) < MAX_BOUND) bounds[name] = value
    else loosened.push(keyword)
  }
  for (const [keyword, exclusive] of BOUNDS) {
    const isExclusive = keywords[exclusive] === true
    add(isExclusive ? exclusive : keyword, keyword, keywords[keyword])
    add(exclusive, exclusive, keywords[exclusive])
  }
  if (typeof multipleOf === 'number' && !toDecimal(multipleOf)) loosened.push('multipleOf')
  return { schema: bounds, loosened }
}

/**
 * Returns the schema of the multiples. The engine writes those of 0.25 with two decimals, so that
 * those of 0.5 and 1 are alternatives.
 */
function divisors({ multipleOf }: Readonly<Record<string, unknown>>): Plain {
  const decimal = typeof multipleOf === 'number' ? toDecimal(multipleOf) : undefined
  if (!decimal) return true
  const { digits, places } = decimal
  const factors = Array.from({ length: places + 1 }, (_, shorter) => 10 ** shorter)
  const found = factors.map((factor) => Number(`${leastCommonMultiple(digits, factor)}e-${places}`))
  return any(...[...new Set(found)].map((each) => ({ multipleOf: each })))
}

/** Returns the digits and decimal places as the engine finds them; `undefined` if they are too many. */
function toDecimal(value: number): { digits: number; places: number } | undefined {
  let [digits, places] = [value, 0]
  while (!Number.isInteger(digits) && places < MAX_DECIMAL_PLACES) {
    digits *= 10
    places += 1
  }
  const isSame = digits <= MAX_DIVISOR && Number(`${digits}e-${places}`) === value
  return isSame ? { digits, places } : undefined
}

function leastCommonMultiple(a: number, b: number): number {
  let [one, other] = [a, b]
  while (other > 0) [one, other] = [other, one % other]
  return (a / one) * b
}
