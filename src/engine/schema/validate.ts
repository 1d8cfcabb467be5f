/** Validates values against schemas, for the supported keywords. */
import { children, type Context, type Flat, flatten } from './flatten.ts'
import { boundsOf, isListed, patternsOf, rangeOf, typesOf } from './flat.ts'
import { child, element, entry, get, has, list, named, type Node, type TypeName } from './node.ts'
import { matches } from './match.ts'
import { isMatch } from './patterns.ts'
import { isObject } from '../../values/objects.ts'

/** Returns `true` if the value is valid for all schemas. */
export const isValid = (nodes: readonly Node[], value: unknown, context: Context): boolean =>
  flatten(nodes, context).some((flat) => isValidForFlat(flat, value, context))

export function isValidForFlat(flat: Flat, value: unknown, context: Context): boolean {
  context.steps.spend(1 + flat.length)
  const valid = (nodes: readonly Node[], part: unknown): boolean => isValid(nodes, part, context)
  const type = typeOf(value)
  if (!typesOf(flat).includes(type)) return false
  if (!isListed(flat, value, context)) return false
  if (typeof value === 'number') {
    const { min, max, above, below } = boundsOf(flat)
    return (above ? value > min : value >= min) && (below ? value < max : value <= max)
  }
  if (typeof value === 'string') {
    const { length } = Array.from(value)
    return (
      within(length, rangeOf(flat, 'Length')) &&
      patternsOf(flat, context).every(({ expression }) => matches(expression, value, context.steps))
    )
  }
  if (Array.isArray(value)) {
    return (
      within(value.length, rangeOf(flat, 'Items')) &&
      value.every((each: unknown, index) => valid(itemsAt(flat, index, context), each))
    )
  }
  if (!isObject(value)) return true
  const names = Object.keys(value)
  return (
    within(names.length, rangeOf(flat, 'Properties')) &&
    requiredOf(flat, context).every((name) => Object.hasOwn(value, name)) &&
    names.every(
      (name) =>
        valid(children(flat, 'propertyNames'), name) &&
        valid(propertyOf(flat, name, context), value[name]),
    )
  )
}

function typeOf(value: unknown): TypeName {
  if (value === null) return 'null'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'fraction'
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value as TypeName
  return Array.isArray(value) ? 'array' : 'object'
}

const within = (length: number, [min, max]: readonly [number, number]): boolean =>
  length >= min && length <= max

/** Returns the schemas that apply to the element at an index. */
export function itemsAt(flat: Flat, index: number, { steps }: Context): Node[] {
  steps.spend(1 + flat.length)
  return flat.flatMap(
    (part) => element(part, prefixKeyOf(part), index) ?? child(part, restOf(part)) ?? [],
  )
}

/** Returns the schemas of the first elements: `prefixItems`, or `items` if it is a list. */
export const prefixOf = (part: Node): Node[] => list(part, prefixKeyOf(part))

const prefixKeyOf = (part: Node): 'prefixItems' | 'items' =>
  has(part, 'prefixItems') || restOf(part) === 'items' ? 'prefixItems' : 'items'

/** Returns the keyword for the elements after the first ones. */
const restOf = (part: Node): 'items' | 'additionalItems' =>
  !has(part, 'prefixItems') && Array.isArray(get(part, 'items')) ? 'additionalItems' : 'items'

export const requiredOf = (flat: Flat, { steps }: Context): string[] => [
  ...new Set(
    flat.flatMap(({ keywords }) => {
      const required = typeof keywords === 'boolean' ? undefined : keywords['required']
      if (!Array.isArray(required)) return []
      steps.spend(1 + required.length)
      return required.map(String)
    }),
  ),
]

/** Steps to look up a property in a part: by name, by pattern, and among additional properties. */
const PROPERTY_STEPS = 5

/** Returns the schemas that apply to the value of a property. */
export function propertyOf(flat: Flat, name: string, context: Context): Node[] {
  context.steps.spend(1 + flat.length * PROPERTY_STEPS)
  return flat.flatMap((part) => {
    const own = entry(part, 'properties', name)
    const matching = [...named(part, 'patternProperties')]
      .filter(([pattern]) => isMatch(pattern, name, context))
      .map(([, each]) => each)
    if (own || matching.length > 0) return [...(own ? [own] : []), ...matching]
    return child(part, 'additionalProperties') ?? []
  })
}
