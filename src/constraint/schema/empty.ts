/** Proves that no value is valid for some schemas together. A `false` says nothing. */
import {
  isObject,
  type Plain,
  type PlainKeywords,
  type StepBudget,
  toKey,
  typeOf,
  type TypeName,
  TYPES,
  typesOf,
} from './plain.ts'

/** Schemas that all apply, without combinations and references. */
type Flat = readonly PlainKeywords[]

/** Alternatives of one schema beyond which nothing is proved. */
const MAX_ALTERNATIVES = 64
/** Schemas that are copied in one step. */
const COPIES_PER_STEP = 16
/** Schemas within each other that are looked into. */
const MAX_DEPTH = 12

export interface Facts {
  /** Returns the schema of a reference, if it is known already. */
  lookUp(reference: string): Plain | undefined
  steps: StepBudget
}

/** Returns `true` if it is proved that no value is valid for all parts. */
export function isEmpty(parts: readonly Plain[], facts: Facts, depth = 0): boolean {
  if (parts.includes(false)) return true
  if (depth > MAX_DEPTH || !facts.steps.spend(parts.length)) return false
  const alternatives = expand(parts, facts)
  return alternatives?.every((flat) => isFlatEmpty(flat, facts, depth)) ?? false
}

/** Returns the alternatives one of which applies where all parts do; `undefined` if there are too many. */
export function expand(parts: readonly Plain[], facts: Facts): readonly Flat[] | undefined {
  let done: Flat[] = [[]]
  const visit = (part: Plain, chain: readonly string[]): Flat[] | undefined => {
    if (part === true) return [[]]
    if (part === false) return []
    if (!facts.steps.spend()) return undefined
    const { allOf = [], anyOf, $ref } = part
    const own = withoutCombinations(part)
    let found: Flat[] | undefined = Object.keys(own).length > 0 ? [[own]] : [[]]
    for (const each of allOf) found &&= cross(found, visit(each, chain))
    if (found && $ref !== undefined && !chain.includes($ref)) {
      const target = facts.lookUp($ref)
      if (target !== undefined) found = cross(found, visit(target, [...chain, $ref]))
    }
    if (found && anyOf) {
      const options = anyOf.map((option) => visit(option, chain))
      found = options.every((option) => option !== undefined)
        ? cross(found, options.flat())
        : undefined
    }
    return found
  }
  const cross = (a: Flat[] | undefined, b: Flat[] | undefined): Flat[] | undefined => {
    const length = (a?.[0]?.length ?? 0) + (b?.[0]?.length ?? 0)
    if (!a || !b || !facts.steps.spend(a.length * b.length * (1 + length / COPIES_PER_STEP)))
      return undefined
    // A schema that applies twice says nothing new.
    const joined = a.flatMap((one) => b.map((other) => join(one, other)))
    // Alternatives without a type are dropped at once, so that few are left to multiply.
    const possible =
      joined.length === 1 ? joined : joined.filter((flat) => commonTypes(flat).length > 0)
    return possible.length > MAX_ALTERNATIVES ? undefined : possible
  }
  for (const part of parts) {
    const next = cross(done, visit(part, []))
    if (!next) return undefined
    done = next
  }
  return done
}

const join = (one: Flat, other: Flat): Flat => {
  if (one.length === 0) return other
  return other.length === 0 ? one : [...one, ...other.filter((part) => !one.includes(part))]
}

/** Keywords of schemas without combinations and references, so that a schema gives one object. */
const bare = new WeakMap<PlainKeywords, PlainKeywords>()

function withoutCombinations(schema: PlainKeywords): PlainKeywords {
  const known = bare.get(schema)
  if (known) return known
  const { allOf: _, anyOf: __, $ref: ___, ...own } = schema
  bare.set(schema, own)
  return own
}

function isFlatEmpty(flat: Flat, facts: Facts, depth: number): boolean {
  const listed = flat.find((part) => part.enum !== undefined)?.enum
  if (listed) {
    if (!facts.steps.spend(listed.length * flat.length)) return false
    return listed.every((value) => flat.some((part) => isRefused(value, part, facts)))
  }
  return commonTypes(flat).every((type) => isTypeEmpty(type, flat, facts, depth))
}

/** Returns the types that all parts allow. An integer is left out beside numbers. */
export function commonTypes(flat: Flat): readonly TypeName[] {
  const allows = (type: TypeName): boolean =>
    flat.every((part) => {
      const types = typesOf(part)
      return types.includes(type) || (type === 'integer' && types.includes('number'))
    })
  const found: TypeName[] = TYPES.filter(allows)
  return found.includes('number') || !allows('integer') ? found : [...found, 'integer']
}

function isTypeEmpty(type: TypeName, flat: Flat, facts: Facts, depth: number): boolean {
  if (type === 'number' || type === 'integer') return isRangeEmpty(flat, type === 'integer')
  if (type === 'array') return isArrayEmpty(flat, facts, depth)
  if (type === 'object') return isObjectEmpty(flat, facts, depth)
  if (type !== 'string') return false
  const patterns = flat.flatMap(({ pattern }) => pattern ?? [])
  return most(flat, 'minLength') > least(flat, 'maxLength') || haveDifferentBeginnings(patterns)
}

type Bound<Side extends string> = Extract<keyof PlainKeywords, `${Side}${string}`>

export const most = (flat: Flat, keyword: Bound<'min' | 'exclusiveMin'>, none = 0): number =>
  Math.max(none, ...flat.map((part) => part[keyword] ?? none))

export const least = (flat: Flat, keyword: Bound<'max' | 'exclusiveMax'>): number =>
  Math.min(Infinity, ...flat.map((part) => part[keyword] ?? Infinity))

function isRangeEmpty(flat: Flat, isInteger: boolean): boolean {
  const [min, max] = [most(flat, 'minimum', -Infinity), least(flat, 'maximum')]
  const above = most(flat, 'exclusiveMinimum', -Infinity)
  const below = least(flat, 'exclusiveMaximum')
  if (!isInteger) return min > max || min >= below || above >= max || above >= below
  const low = Math.max(Math.ceil(min), Math.floor(above) + 1)
  const high = Math.min(Math.floor(max), Math.ceil(below) - 1)
  return low > high
}

/** Returns `true` if two patterns begin with texts that exclude each other, such as `^a` and `^b`. */
function haveDifferentBeginnings(patterns: readonly string[]): boolean {
  const fixed = patterns.map((pattern) => {
    const beginning = /^\^([\w:/@ -]+)/.exec(pattern)?.[0] ?? '^'
    // A repeated or optional last character is not fixed, nor is a text that is one of several.
    if (/(?:^|[^\\])\|/.test(pattern)) return ''
    return beginning.slice(1, /^[*+?{]/.test(pattern.slice(beginning.length)) ? -1 : undefined)
  })
  return fixed.some((one, index) =>
    fixed.slice(index + 1).some((other) => !one.startsWith(other) && !other.startsWith(one)),
  )
}

/** Returns the schemas that apply to the item at an index. */
export const itemSchemas = (flat: Flat, index: number): Plain[] =>
  flat.map(({ prefixItems = [], items = true }) => prefixItems[index] ?? items)

function isArrayEmpty(flat: Flat, facts: Facts, depth: number): boolean {
  const min = most(flat, 'minItems')
  if (min > least(flat, 'maxItems')) return true
  const places = 1 + Math.max(0, ...flat.map((part) => part.prefixItems?.length ?? 0))
  return Array.from({ length: Math.min(min, places) }, (_, index) => itemSchemas(flat, index)).some(
    (schemas) => isEmpty(schemas, facts, depth + 1),
  )
}

/** Returns the schemas that apply to the property of a name. */
export const propertySchemas = (flat: Flat, name: string): Plain[] =>
  flat.flatMap(({ properties = {}, patternProperties = {}, additionalProperties = true }) => {
    const own = Object.hasOwn(properties, name) ? [properties[name] ?? true] : []
    const matching = Object.entries(patternProperties).filter(([pattern]) => matches(pattern, name))
    const found = [...own, ...matching.map(([, schema]) => schema)]
    return found.length > 0 ? found : [additionalProperties]
  })

function isObjectEmpty(flat: Flat, facts: Facts, depth: number): boolean {
  const required = new Set(flat.flatMap((part) => part.required ?? []))
  if (Math.max(required.size, most(flat, 'minProperties')) > least(flat, 'maxProperties'))
    return true
  return [...required].some((name) => isEmpty(propertySchemas(flat, name), facts, depth + 1))
}

/** Returns `true` if the pattern matches a part of the name. An invalid pattern matches nothing. */
export const matches = (pattern: string, name: string): boolean =>
  compile(pattern)?.test(name) ?? false

/** Returns the regular expression. Many patterns have escapes that are not valid with the flag `u`. */
function compile(pattern: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(pattern, flags)
    } catch {
      // The other flags are tried.
    }
  }
  return undefined
}

/** Returns `true` if the value is not valid for the schema, as far as that is plain to see. */
export function isRefused(value: unknown, schema: Plain, facts: Facts): boolean {
  if (typeof schema === 'boolean') return !schema
  if (!facts.steps.spend()) return false
  const refused = (part: Plain): boolean => isRefused(value, part, facts)
  const type = typeOf(value)
  const types = typesOf(schema)
  const isOfType = types.includes(type) || (types.includes('integer') && Number.isInteger(value))
  if (!isOfType) return true
  if (schema.enum && !schema.enum.some((each) => toKey(each) === toKey(value))) return true
  if (schema.allOf?.some(refused)) return true
  if (schema.anyOf?.every(refused)) return true
  if (schema.$ref !== undefined) {
    const target = facts.lookUp(schema.$ref)
    if (target !== undefined && refused(target)) return true
  }
  if (typeof value === 'number') {
    const { minimum = -Infinity, maximum = Infinity } = schema
    const { exclusiveMinimum: above = -Infinity, exclusiveMaximum: below = Infinity } = schema
    return value < minimum || value > maximum || value <= above || value >= below
  }
  if (typeof value === 'string') {
    const { length } = Array.from(value)
    if (length < (schema.minLength ?? 0) || length > (schema.maxLength ?? Infinity)) return true
    return schema.pattern !== undefined && compile(schema.pattern)?.test(value) === false
  }
  if (Array.isArray(value)) {
    const { minItems = 0, maxItems = Infinity } = schema
    if (value.length < minItems || value.length > maxItems) return true
    return value.some((item: unknown, index) =>
      itemSchemas([schema], index).some((part) => isRefused(item, part, facts)),
    )
  }
  if (!isObject(value)) return false
  const count = Object.keys(value).length
  if (count < (schema.minProperties ?? 0) || count > (schema.maxProperties ?? Infinity)) return true
  if (schema.required?.some((name) => !Object.hasOwn(value, name))) return true
  return Object.entries(value).some(([name, each]) =>
    propertySchemas([schema], name).some((part) => isRefused(each, part, facts)),
  )
}
