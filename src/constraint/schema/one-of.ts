/** Rewrites `oneOf` into `anyOf`, if the options exclude each other, or can be made to. */
import { commonTypes, expand, type Facts, isEmpty, propertySchemas } from './empty.ts'
import { negate } from './negate.ts'
import { all, isKeywords, type Plain, toKey, type TypeName } from './plain.ts'
import type { Apart } from './source.ts'

/** Options that are excluded from others, beyond which the result is too large. */
const MAX_EXCLUSIONS = 400

/** What is known: `exact` has only schemas that allow exactly what was meant. */
interface Known {
  facts: Facts
  exact: Facts
}

/**
 * Returns options of which one value is valid for one at most, if `isKept`, and the options as they
 * are otherwise.
 *
 * @param beside - Schema that applies beside the options, to values of the types.
 */
export function separateOptions(
  options: readonly Apart[],
  beside: Plain,
  types: readonly TypeName[],
  { facts, exact }: Known,
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

/**
 * Returns `true` if all schemas are of objects that require the same property, with other listed
 * values in each. It finds at once what comparing each two of them would find.
 */
function haveDiscriminator(schemas: readonly Plain[], facts: Facts): boolean {
  const flats = schemas.map((schema) => expand([schema], facts))
  const alternatives = flats.flatMap((each) => each ?? [])
  if (
    flats.includes(undefined) ||
    alternatives.some((flat) => commonTypes(flat).join() !== 'object')
  )
    return false
  const names = (alternatives[0] ?? []).flatMap(({ required = [] }) => required)
  return names.some((name) => {
    const seen = new Map<string, number>()
    return flats.every((own, index) =>
      own?.every((flat) => {
        const parts = propertySchemas(flat, name)
        const listed = parts.find((part) => isKeywords(part) && part.enum !== undefined)
        if (!flat.some(({ required = [] }) => required.includes(name))) return false
        if (!listed || !isKeywords(listed) || !facts.steps.spend(flat.length)) return false
        return (listed.enum ?? []).every((value) => {
          const key = toKey(value)
          const owner = seen.get(key) ?? index
          seen.set(key, owner)
          return owner === index
        })
      }),
    )
  })
}
