/** Describes the JSON texts of the numbers between two bounds. */
import { characters, one } from './characters.ts'
import { choice, type Expression, NOTHING, optional, repeat, sequence, text } from './expression.ts'

export interface Bounds {
  min: number
  max: number
  /** `true` if the lower bound itself is excluded. */
  above: boolean
  /** `true` if the upper bound itself is excluded. */
  below: boolean
}

/** Maximum number of digits before the point. The longest common integers, of 64 bits, have 20. */
const MAX_WHOLE_DIGITS = 20
const MAX_FINITE = BigInt(Number.MAX_VALUE)
/** Number of significant digits that a double always preserves. */
const SIGNIFICANT_DIGITS = 15

const digits = (first: number, last: number): Expression => ({
  type: 'set',
  set: [[0x30 + first, 0x30 + last]],
})
const DIGIT = digits(0, 9)
const FRACTION = sequence(text('.'), repeat(DIGIT, 1, MAX_WHOLE_DIGITS))
const NATURAL = choice(text('0'), sequence(digits(1, 9), repeat(DIGIT, 0, MAX_WHOLE_DIGITS - 1)))
const oneOf = (signs: string): Expression => ({
  type: 'set',
  set: characters([...signs].flatMap(one)),
})
const EXPONENT = sequence(oneOf('Ee'), optional(oneOf('+-')), repeat(DIGIT, 1, 2))

/** Returns the steps to compile numbers between these bounds: the square of their digit count. */
export function countNumberSteps({ min, max }: Bounds): number {
  const digitsOf = (bound: number): number => {
    const size = Math.abs(bound)
    return size === 0 || size === Infinity ? 0 : Math.abs(Math.log10(size))
  }
  return Math.ceil(Math.max(digitsOf(min), digitsOf(max), SIGNIFICANT_DIGITS) ** 2)
}

/** Returns the integers, without point, exponent or `-0`. Unbounded ones have few digits. */
export function integers({ min, max, above, below }: Bounds): Expression {
  if (min === -Infinity && max === Infinity) {
    return choice(
      NATURAL,
      sequence(text('-'), digits(1, 9), repeat(DIGIT, 0, MAX_WHOLE_DIGITS - 1)),
    )
  }
  if (min > max) return NOTHING
  const next = above && Number.isInteger(min) ? 1n : 0n
  const before = below && Number.isInteger(max) ? 1n : 0n
  const low =
    min === -Infinity ? -findGreatest(BigInt(-Math.floor(max))) : BigInt(Math.ceil(min)) + next
  const high = max === Infinity ? findGreatest(low) : BigInt(Math.floor(max)) - before
  const positive = high >= 0n ? naturals(low > 0n ? low : 0n, high) : []
  const negative = low < 0n ? naturals(high < -1n ? -high : 1n, -low) : []
  return choice(...positive, ...negative.map((part) => sequence(text('-'), part)))
}

/** Returns the highest number without an upper bound: of 20 digits, or one more than `least`. */
function findGreatest(least: bigint): bigint {
  const length = Math.max(MAX_WHOLE_DIGITS, least < 0n ? 0 : String(least).length + 1)
  const last = 10n ** BigInt(length) - 1n
  return last < MAX_FINITE ? last : MAX_FINITE
}

/** Returns the natural numbers between two bounds, both inclusive. */
function naturals(low: bigint, high: bigint): Expression[] {
  if (low > high) return []
  const [from, to] = [String(low), String(high)]
  if (from.length === to.length) return [sameLength(from, to)]
  const parts = [sameLength(from, '9'.repeat(from.length))]
  if (from.length + 1 < to.length) {
    parts.push(sequence(digits(1, 9), repeat(DIGIT, from.length, to.length - 2)))
  }
  return [...parts, sameLength(`1${'0'.repeat(to.length - 1)}`, to)]
}

/** Returns the digit strings between two bounds of the same length, both inclusive. */
function sameLength(low: string, high: string): Expression {
  const { length } = low
  if (length === 0) return text('')
  const [a, b] = [Number(low[0]), Number(high[0])]
  const [lows, highs] = [low.slice(1), high.slice(1)]
  if (a === b) return sequence(text(String(a)), sameLength(lows, highs))
  const parts: Expression[] = []
  let [first, last] = [a, b]
  if (/[^0]/.test(lows)) {
    parts.push(sequence(text(String(a)), sameLength(lows, '9'.repeat(length - 1))))
    first += 1
  }
  if (/[^9]/.test(highs)) {
    parts.push(sequence(text(String(b)), sameLength('0'.repeat(length - 1), highs)))
    last -= 1
  }
  if (first <= last)
    parts.push(sequence(digits(first, last), repeat(DIGIT, length - 1, length - 1)))
  return choice(...parts)
}

/** Returns the numbers between the bounds. Bounded ones have no exponent. */
export function numbers(bounds: Bounds): Expression {
  const { min, max, above, below } = bounds
  if (min === -Infinity && max === Infinity) {
    return sequence(optional(text('-')), NATURAL, optional(FRACTION), optional(EXPONENT))
  }
  if (min > max) return NOTHING
  const positive =
    max < 0 || (max === 0 && below)
      ? []
      : magnitudes(min > 0 ? min : 0, max, above && min >= 0, below)
  const negative =
    min >= 0 ? [] : magnitudes(max < 0 ? -max : 0, -min, max > 0 ? true : below || max === 0, above)
  return choice(...positive, ...negative.map((part) => sequence(text('-'), part)))
}

/** Returns decimals between two non-negative bounds. A bound is exactly what its text states. */
function magnitudes(min: number, max: number, above: boolean, below: boolean): Expression[] {
  const low = decimal(min)
  const high = max === Infinity ? { whole: findGreatest(low.whole), fraction: '' } : decimal(max)
  // A text between two bounds parses as a number between them. With too many digits, it may parse
  // as a bound, which is wrong if that bound is excluded.
  const most =
    below || (above && min !== 0) ? 0 : Math.max(low.fraction.length, high.fraction.length)
  if (max > 0 && max < 1) return belowOne(low.fraction, high.fraction, above, below, most)
  const room = (whole: bigint): number =>
    Math.max(0, SIGNIFICANT_DIGITS - String(whole).length, most)
  const places = room(low.whole)
  const lowest = tail(low.fraction, places)
  const raised = low.fraction.length > places
  if (max !== Infinity && low.whole === high.whole) {
    const highest = high.fraction.slice(0, places)
    const cut = high.fraction.length > places
    return withWhole(low.whole, fractions(lowest, highest, above && !raised, below && !cut, places))
  }
  const result = withWhole(low.whole, fractions(lowest, null, above && !raised, false, places))
  // A text just below a whole number must not parse as that number if it is excluded.
  const isNear = max !== Infinity && below && high.fraction === ''
  const near = high.whole - 1n
  const last = max === Infinity ? high.whole : isNear ? near - 1n : near
  result.push(...naturals(low.whole + 1n, last).map((part) => sequence(part, optional(FRACTION))))
  if (isNear && near > low.whole) {
    result.push(...withWhole(near, fractions('', null, false, false, room(near))))
  }
  if (max === Infinity) return result
  const space = room(high.whole)
  const highest = high.fraction.slice(0, space)
  const cut = high.fraction.length > space
  return [...result, ...withWhole(high.whole, fractions('', highest, false, below && !cut, space))]
}

/** Returns decimals below 1 by their digits after the point. Leading zeros are not significant. */
function belowOne(
  low: string,
  high: string,
  above: boolean,
  below: boolean,
  most: number,
): Expression[] {
  const zeros = high.search(/[1-9]/)
  const places = Math.max(SIGNIFICANT_DIGITS, most - zeros)
  const [from, to] = [low.slice(zeros), high.slice(zeros)]
  const lowest = tail(from, places)
  if (lowest === null) return []
  const [raised, cut] = [from.length > places, to.length > places]
  const highest = to.slice(0, places)
  const rest = between(lowest, highest, above && !raised, below && !cut, places, true)
  const result = sequence(text(`0.${'0'.repeat(zeros)}`), rest)
  if (/[^0]/.test(low) || above) return [result]
  return [text('0'), sequence(text('0.'), repeat(text('0'), 1, zeros)), result]
}

const withWhole = (whole: bigint, ends: readonly Expression[]): Expression[] =>
  ends.map((end) => sequence(text(String(whole)), end))

/** Returns the whole part and the digits after the point of a number that is not negative. */
function decimal(value: number): { whole: bigint; fraction: string } {
  const [mantissa = '0', exponent = '0'] = String(value).split('e')
  const [whole = '0', fraction = ''] = mantissa.split('.')
  const shift = Number(exponent)
  if (shift === 0) return { whole: BigInt(whole), fraction }
  if (shift < 0) return { whole: 0n, fraction: '0'.repeat(-shift - 1) + whole + fraction }
  return { whole: BigInt(whole + fraction.padEnd(shift, '0')), fraction: '' }
}

/** Cuts digits to a number of places and rounds up; `null` if that gives the next whole number. */
function tail(fraction: string, places: number): string | null {
  const kept = fraction.slice(0, places)
  if (fraction.length <= places || !/[^0]/.test(fraction.slice(places))) return kept
  if (!/[^9]/.test(kept)) return null
  return String(BigInt(kept) + 1n).padStart(places, '0')
}

/**
 * Returns the texts after a whole number: nothing, or a point and at most `places` digits. `low` is
 * empty if there is no lower bound, and `high` is `null` if there is no upper bound.
 */
function fractions(
  low: string | null,
  high: string | null,
  above: boolean,
  below: boolean,
  places: number,
): Expression[] {
  if (low === null) return []
  const zero = (digitsOf: string): boolean => !/[^0]/.test(digitsOf)
  const ends: Expression[] = []
  const bare = zero(low) && !above && !(high !== null && zero(high) && below)
  if (bare) ends.push(text(''))
  if (places === 0) return ends
  return [...ends, sequence(text('.'), between(low, high, above, below, places, true))]
}

/** Returns digits d with low <= 0.d <= high: at most `places`, and at least one if `some`. */
function between(
  low: string,
  high: string | null,
  above: boolean,
  below: boolean,
  places: number,
  some: boolean,
): Expression {
  const noLow = !/[^0]/.test(low)
  const highZero = high !== null && !/[^0]/.test(high)
  const options: Expression[] = []
  if (!some && noLow && !above && !(highZero && below)) options.push(text(''))
  if (places > 0) {
    if (noLow && !above && high === null) return repeat(DIGIT, some ? 1 : 0, places)
    const a = Number(low[0] ?? '0')
    const b = high === null ? 10 : Number(high[0] ?? '0')
    const next = (bound: string | null): string => (bound ?? '').slice(1)
    const inner = (digit: number, from: boolean, to: boolean): void => {
      const [lows, highs] = [from ? next(low) : '', to ? next(high) : null]
      const rest = between(lows, highs, from && above, to && below, places - 1, false)
      options.push(sequence(text(String(digit)), rest))
    }
    if (a === b) inner(a, true, true)
    else if (a < b) {
      inner(a, true, false)
      if (a + 1 <= Math.min(9, b - 1)) {
        options.push(sequence(digits(a + 1, Math.min(9, b - 1)), repeat(DIGIT, 0, places - 1)))
      }
      if (b < 10) inner(b, false, true)
    }
  }
  return choice(...options)
}
