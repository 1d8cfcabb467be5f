/** Rewrites keywords of arrays that the engine lacks into those that it has. */
import { type Facts, isEmpty, itemSchemas } from './empty.ts'
import {
  all,
  any,
  distinct,
  type Kept,
  type Plain,
  type PlainKeywords,
  toKey,
  typesBut,
} from './plain.ts'

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
export function keepUnique(own: PlainKeywords, facts: Facts): Kept {
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
    const target = Object.keys(schema).length === 1 ? facts.lookUp($ref) : undefined
    return typeof target === 'object' && target.$ref === undefined
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
    return found.includes(undefined) ? undefined : distinct(found.flatMap((each) => each ?? []))
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

/** Returns all arrays of different values, with other ones at the first places, unless they are too many. */
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

/** Returns the schema of arrays of which some items are valid for `part`. `others` are the other values, if known. */
export function keepContained(
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
