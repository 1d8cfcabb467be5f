/** Multiplies alternatives that apply together, and makes those of `oneOf` exclude each other. */
import { commonTypes, expand, type Facts, isEmpty, propertySchemas } from './empty.ts'
import { listProperty, negate } from './negate.ts'
import {
  all,
  any,
  type Apart,
  isKeywords,
  type Kept,
  type Plain,
  toKey,
  type TypeName,
} from './plain.ts'
import { without } from './objects.ts'

/** Schema that applies beside others, and the keyword from which it comes. */
export type Part = readonly [keyword: string, schema: Plain]

const MAX_ALTERNATIVES = 160
/** Names on which conditions depend, by whose presence objects are split. */
const MAX_SPLITS = 2

export interface Known {
  facts: Facts
  /** Conditions, by the schemas of the values that do not meet them. */
  complements: Map<Plain, Plain>
}

/** Joins schemas that all apply. Parts that would make too many alternatives are left out. */
export function joinParts(parts: readonly Part[], known: Known): Kept {
  const beside = parts.map(([, schema]) => schema).filter((schema) => !isChoice(schema))
  const choices = parts.filter(([, schema]) => isChoice(schema))
  const loosened: string[] = []
  let alternatives: Plain[][] = [[]]
  for (const [keyword, schema] of [...splitByPresence(choices, known), ...choices]) {
    const next = alternatives.flatMap((chosen) =>
      optionsOf(schema).flatMap((option) => {
        if (choices.length === 1) return [[option]]
        const now = [...beside, ...chosen]
        if (isEmpty([...now, option], known.facts)) return []
        return [isImplied(option, now, known) ? chosen : addOption(chosen, option, known)]
      }),
    )
    if (next.length > MAX_ALTERNATIVES && alternatives.length > 1) loosened.push(keyword)
    else alternatives = next
  }
  const needed = alternatives.map((chosen) =>
    chosen.filter((each) => !isImplied(each, [...beside, ...chosen], known)),
  )
  return { schema: all(...beside, any(...needed.map((chosen) => all(...chosen)))), loosened }
}

const isChoice = (schema: Plain): boolean =>
  isKeywords(schema) && schema.anyOf !== undefined && Object.keys(schema).length === 1

const optionsOf = (schema: Plain): readonly Plain[] => (isKeywords(schema) && schema.anyOf) || []

/** Returns `true` if the other parts allow only values that do not meet a condition. */
function isImplied(part: Plain, parts: readonly Plain[], { facts, complements }: Known): boolean {
  const condition = complements.get(part)
  if (condition === undefined) return false
  return isEmpty([...parts.filter((each) => each !== part), condition], facts)
}

/** Adds an option. Values of the same property that are left by several conditions become one list. */
function addOption(chosen: readonly Plain[], option: Plain, { complements }: Known): Plain[] {
  const condition = complements.get(option)
  for (const other of chosen) {
    const joined = condition !== undefined && complements.has(other) && joinListed(other, option)
    if (!joined) continue
    complements.set(joined, any(complements.get(other) ?? true, condition))
    return [...chosen.filter((each) => each !== other), joined]
  }
  return [...chosen, option]
}

/** Returns one schema for two that list values of the same property; otherwise `undefined`. */
function joinListed(a: Plain, b: Plain): Plain | undefined {
  const [[name, values] = [], [other, others] = []] = [findListed(a), findListed(b)]
  if (name === undefined || name !== other) return undefined
  const keys = new Set(others?.map(toKey))
  return listProperty(name, values?.filter((value) => keys.has(toKey(value))) ?? [])
}

/** Returns the property of which the schema lists the values, and these, if it does nothing else. */
function findListed(schema: Plain): [name: string, values: readonly unknown[]] | undefined {
  if (!isKeywords(schema)) return undefined
  const [[name, part] = ['', true], ...others] = Object.entries(schema.properties ?? {})
  if (!isKeywords(part) || !part.enum || others.length > 0) return undefined
  return toKey(schema) === toKey(listProperty(name, part.enum)) ? [name, part.enum] : undefined
}

/** Splits objects by the presence of names on which several conditions depend, which mostly exclude each other. */
function splitByPresence(choices: readonly Part[], { complements }: Known): Part[] {
  const names = choices
    .flatMap(([, schema]) => optionsOf(schema))
    .flatMap((option) => (complements.has(option) && isKeywords(option) && option.required) || [])
  const shared = new Set(names.filter((name, index) => names.indexOf(name) < index))
  return [...shared]
    .slice(0, MAX_SPLITS)
    .map((name): Part => ['if', any(without(name), { required: [name] })])
}

/** Options that are excluded from others, beyond which the result is too large. */
const MAX_EXCLUSIONS = 400

/**
 * Returns options of which one value is valid for one at most, if `isKept`, and the options as they
 * are otherwise.
 *
 * @param beside - Schema that applies beside the options, to values of the types.
 * @param exact - Facts with only those schemas that allow exactly what was meant.
 */
export function separateOptions(
  options: readonly Apart[],
  beside: Plain,
  types: readonly TypeName[],
  facts: Facts,
  exact: Facts,
): { options: readonly Plain[]; isKept: boolean } {
  const schemas = options.map(({ schema }) => schema)
  if (haveDiscriminator(schemas, facts)) return { options: schemas, isKept: true }
  const overlaps = options.map(({ schema }, index) =>
    options.filter((other, at) => at !== index && !isEmpty([beside, schema, other.schema], facts)),
  )
  const isFew = overlaps.flat().length <= MAX_EXCLUSIONS
  const negated = new Map<Apart, Plain | undefined>()
  for (const option of new Set(overlaps.flat())) {
    const isExact = isFew && option.loosened.length === 0
    negated.set(option, isExact ? negate(option.schema, exact, types) : undefined)
  }
  if ([...negated.values()].includes(undefined)) return { options: schemas, isKept: false }
  const separate = schemas.map((schema, index) =>
    all(schema, ...(overlaps[index] ?? []).map((other) => negated.get(other) ?? true)),
  )
  return { options: separate, isKept: true }
}

/** Returns `true` if all schemas require the same property, with other listed values in each. This is fast. */
function haveDiscriminator(schemas: readonly Plain[], facts: Facts): boolean {
  const flats = schemas.map((schema) => expand([schema], facts) ?? [[]])
  const alternatives = flats.flat()
  if (alternatives.some((flat) => commonTypes(flat).join() !== 'object')) return false
  const names = (alternatives[0] ?? []).flatMap(({ required = [] }) => required)
  return names.some((name) => {
    const owners = new Map<string, number>()
    return flats.every((own, index) =>
      own.every((flat) => {
        const parts = propertySchemas(flat, name)
        const listed = parts.filter(isKeywords).find((part) => part.enum !== undefined)
        if (!flat.some(({ required = [] }) => required.includes(name))) return false
        if (!listed?.enum || !facts.steps.spend(flat.length)) return false
        return listed.enum.every((value) => {
          const key = toKey(value)
          owners.set(key, owners.get(key) ?? index)
          return owners.get(key) === index
        })
      }),
    )
  })
}
