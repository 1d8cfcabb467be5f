/** Multiplies alternatives that apply together, which the engine would do without dropping empty ones. */
import { type Facts, isEmpty } from './empty.ts'
import { type Kept, without } from './objects.ts'
import { listProperty } from './negate.ts'
import { all, any, isKeywords, type Plain, toKey } from './plain.ts'

/** Schema that applies beside others, and the keyword from which it comes. */
export type Part = readonly [keyword: string, schema: Plain]

/** Alternatives of one schema. */
const MAX_ALTERNATIVES = 160
/** Names on which conditions depend, by whose presence objects are split. */
const MAX_SPLITS = 2

/** What is known about the parts. */
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

const optionsOf = (schema: Plain): readonly Plain[] =>
  isKeywords(schema) ? (schema.anyOf ?? []) : []

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
  const [one, other] = [findListed(a), findListed(b)]
  if (!one || one.name !== other?.name) return undefined
  const keys = new Set(other.values.map(toKey))
  const left = one.values.filter((value) => keys.has(toKey(value)))
  return listProperty(one.name, left)
}

/** Returns the property of which the schema lists the values, if it does nothing else. */
function findListed(schema: Plain): { name: string; values: readonly unknown[] } | undefined {
  if (!isKeywords(schema)) return undefined
  const [[name, part] = ['', true], ...others] = Object.entries(schema.properties ?? {})
  if (!isKeywords(part) || !part.enum || others.length > 0) return undefined
  const isSame = toKey(schema) === toKey(listProperty(name, part.enum))
  return isSame ? { name, values: part.enum } : undefined
}

/**
 * Returns choices between objects with and without a name on which several conditions depend. Where it
 * is absent, all of them hold, and where it is there, they mostly exclude each other.
 */
function splitByPresence(choices: readonly Part[], { complements }: Known): Part[] {
  const names = choices
    .flatMap(([, schema]) => optionsOf(schema))
    .filter((option) => complements.has(option))
    .flatMap((option) => (isKeywords(option) ? (option.required ?? []) : []))
  const shared = new Set(names.filter((name, index) => names.indexOf(name) < index))
  return [...shared]
    .slice(0, MAX_SPLITS)
    .map((name): Part => ['if', any(without(name), { required: [name] })])
}
