/** Reads what a flat schema requires of single values. */
import { memoize } from '../../values/memoize.ts'
import { CHARACTERS_PER_STEP, type Context, type Flat, values } from './flatten.ts'
import { formatPattern, NUMBER_FORMATS } from './formats.ts'
import { TYPE_NAMES } from './keywords.ts'
import { get, type Node, TYPES, type TypeName } from './node.ts'
import type { Bounds } from './numbers.ts'
import type { Expression } from './expression.ts'
import { patternOf } from './patterns.ts'
import { isObject } from '../../values/objects.ts'

/** Returns the types that a value may have. */
export const typesOf = memoize(
  (flat: Flat): readonly TypeName[] =>
    TYPES.filter((type) =>
      flat.every((part) => {
        const names = get(part, 'type')
        if (names === undefined) return true
        if (type === 'null' && get(part, 'nullable') === true) return true
        const listed: unknown[] = Array.isArray(names) ? names : [names]
        return listed.some((name) => TYPE_NAMES[String(name)]?.includes(type))
      }),
    ),
  new WeakMap(),
)

/** Values that a flat schema lists, by their identity. */
const lists = new WeakMap<Flat, ReadonlyMap<string, unknown> | null>()

/** Returns the values that `enum` and `const` allow; `null` if the schema has neither. */
export function listedOf(flat: Flat, context: Context): unknown[] | null {
  const listed = listing(flat, context)
  return listed && [...listed.values()]
}

/** Returns `true` if the schema lists the value, or lists no values at all. */
export const isListed = (flat: Flat, value: unknown, context: Context): boolean =>
  listing(flat, context)?.has(identityOf(value, context)) ?? true

function listing(flat: Flat, context: Context): ReadonlyMap<string, unknown> | null {
  const cached = lists.get(flat)
  if (cached !== undefined) return cached
  const all = flat.flatMap((part): Map<string, unknown>[] => {
    const several = get(part, 'enum')
    const fixed = get(part, 'const')
    return [
      ...(Array.isArray(several) ? [several] : []),
      ...(fixed === undefined ? [] : [[fixed]]),
    ].map((each: unknown[]) => new Map(each.map((value) => [identityOf(value, context), value])))
  })
  const [first, ...others] = all
  const left = [...(first ?? [])].filter(([key]) => others.every((other) => other.has(key)))
  const listed = first ? new Map(left) : null
  lists.set(flat, listed)
  return listed
}

function identityOf(value: unknown, { steps }: Context): string {
  const made = identity(value)
  steps.spend(1 + made.length / CHARACTERS_PER_STEP)
  return made
}

/**
 * Returns equal keys for values that are equal in JSON Schema, which ignores the order of names.
 */
function identity(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(identity).join()}]`
  if (!isObject(value)) return value === 0 ? '0' : JSON.stringify(value)
  const pairs = Object.keys(value).map((name) => `${JSON.stringify(name)}:${identity(value[name])}`)
  return `{${pairs.sort().join()}}`
}

export function boundsOf(flat: Flat): Bounds {
  const bounds: Bounds = { min: -Infinity, max: Infinity, above: false, below: false }
  const raise = (min: number, above: boolean): void => {
    if (min > bounds.min) Object.assign(bounds, { min, above })
    else if (min === bounds.min) bounds.above ||= above
  }
  const lower = (max: number, below: boolean): void => {
    if (max < bounds.max) Object.assign(bounds, { max, below })
    else if (max === bounds.max) bounds.below ||= below
  }
  for (const value of values(flat, 'minimum')) raise(Number(value), false)
  for (const value of values(flat, 'maximum')) lower(Number(value), false)
  for (const value of values(flat, 'exclusiveMinimum')) raise(Number(value), true)
  for (const value of values(flat, 'exclusiveMaximum')) lower(Number(value), true)
  for (const format of values(flat, 'format')) {
    const range = NUMBER_FORMATS[String(format)]
    if (range) {
      raise(range[0], false)
      lower(range[1], false)
    }
  }
  return bounds
}

/** Returns the range that keywords such as `minLength` and `maxLength` allow. */
export function rangeOf(flat: Flat, what: 'Length' | 'Items' | 'Properties'): [number, number] {
  return [
    Math.max(0, ...values(flat, `min${what}`).map(Number)),
    Math.min(Infinity, ...values(flat, `max${what}`).map(Number)),
  ]
}

interface RequiredPattern {
  pattern: string
  expression: Expression
  part: Node
}

/** Returns the patterns that `pattern` and `format` require of a string, without duplicates. */
export function patternsOf(flat: Flat, context: Context): RequiredPattern[] {
  const found = new Map<string, Node>()
  for (const part of flat) {
    const pattern = get(part, 'pattern')
    const format = formatPattern(String(get(part, 'format')))
    if (typeof pattern === 'string' && !found.has(pattern)) found.set(pattern, part)
    if (format !== undefined && !found.has(format)) found.set(format, part)
  }
  return [...found].map(([pattern, part]) => ({
    pattern,
    expression: patternOf(pattern, context),
    part,
  }))
}
