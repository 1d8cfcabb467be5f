/** Rewrites the bounds of numbers into those that the engine takes. */
import type { Kept } from './objects.ts'
import { any, type Plain, type PlainKeywords } from './plain.ts'

/** Bounds beyond it have more digits than the engine can compare. */
const MAX_BOUND = 1e18
/** The engine has a state for each remainder, and multiplies two divisors as 32-bit integers. */
const MAX_DIVISOR = 10_000
const MAX_PLACES = 9

/** Returns the bounds, with those of draft 4 in the form of later drafts. */
export function keepBounds(keywords: Readonly<Record<string, unknown>>): Kept {
  const { multipleOf, minimum, maximum, exclusiveMinimum, exclusiveMaximum } = keywords
  const loosened: string[] = []
  const bounds: Record<string, number> = {}
  const add = (name: keyof PlainKeywords, keyword: string, value: unknown): void => {
    if (typeof value !== 'number') return
    if (Math.abs(value) < MAX_BOUND) bounds[name] = value
    else loosened.push(keyword)
  }
  if (exclusiveMinimum === true) add('exclusiveMinimum', 'minimum', minimum)
  else {
    add('minimum', 'minimum', minimum)
    add('exclusiveMinimum', 'exclusiveMinimum', exclusiveMinimum)
  }
  if (exclusiveMaximum === true) add('exclusiveMaximum', 'maximum', maximum)
  else {
    add('maximum', 'maximum', maximum)
    add('exclusiveMaximum', 'exclusiveMaximum', exclusiveMaximum)
  }
  if (typeof multipleOf === 'number' && !toDecimal(multipleOf)) loosened.push('multipleOf')
  return { schema: bounds, loosened }
}

/**
 * Returns the schema of the multiples. The engine writes those of 0.25 with two decimals, so that
 * those of 0.5 and 1 are alternatives.
 */
export function divisors({ multipleOf }: Readonly<Record<string, unknown>>): Plain {
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
  while (!Number.isInteger(digits) && places < MAX_PLACES) {
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
