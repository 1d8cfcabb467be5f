/** Numbers as text, text as numbers, and exact rounding. */
import { TemplateError, valueError } from './errors.ts'
import { SPACE } from './text.ts'
import type { PyNumber } from './values.ts'

/** Rounds a float to an integer multiple of `10 ** -digits`, and returns that multiple. */
function toMultiple(value: number, digits: number): bigint {
  // Each float is an integer divided by a power of 2.
  let [scaled, halvings] = [value, 0]
  while (!Number.isInteger(scaled)) {
    scaled *= 2
    halvings += 1
  }
  const factor = 10n ** BigInt(Math.abs(digits))
  const numerator = BigInt(scaled) * (digits > 0 ? factor : 1n)
  const denominator = 2n ** BigInt(halvings) * (digits < 0 ? factor : 1n)
  return divideToEven(numerator, denominator)
}

/** Returns the quotient, rounded to the nearest integer, and to the even one of two. */
function divideToEven(numerator: bigint, denominator: bigint): bigint {
  const sign = numerator < 0n ? -1n : 1n
  const size = numerator * sign
  const [quotient, twice] = [size / denominator, (size % denominator) * 2n]
  const up = twice > denominator || (twice === denominator && quotient % 2n === 1n)
  return sign * (up ? quotient + 1n : quotient)
}

/** Largest number of digits after the point. */
const MAX_DIGITS = 400

/** Returns `round(value, digits)`: a float stays a float. */
export function roundNumber(value: PyNumber, digits: number): PyNumber {
  if (typeof value === 'bigint') {
    if (digits >= 0) return value
    const unit = 10n ** BigInt(Math.min(-digits, MAX_DIGITS))
    return divideToEven(value, unit) * unit
  }
  if (!Number.isFinite(value) || digits > MAX_DIGITS) return value
  const rounded = Number(`${toMultiple(value, Math.max(digits, -MAX_DIGITS))}e${-digits}`)
  return rounded === 0 && (value < 0 || Object.is(value, -0)) ? -0 : rounded
}

/** Returns the digits of `abs(value)` with a fixed number of them after the point. */
export function toFixed(value: number, digits: number): string {
  const multiple = toMultiple(Math.abs(value), digits)
  const text = String(multiple).padStart(digits + 1, '0')
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`
}

/** Returns the digits of `abs(value)` with an exponent. */
export function toExponential(value: number, digits: number): string {
  const [mantissa = '', exponent = '0'] = Math.abs(value).toExponential(digits).split('e')
  const sign = exponent.startsWith('-') ? '-' : '+'
  return `${mantissa}e${sign}${exponent.replace(/^[-+]/, '').padStart(2, '0')}`
}

/** Returns the digits of `abs(value)` with `precision` significant ones, as the type `g` does. */
export function toGeneral(value: number, precision: number, keepZeros: boolean): string {
  const significant = Math.max(1, precision)
  const exponent = Number(toExponential(value, significant - 1).split('e')[1])
  const isPlain = exponent >= -4 && exponent < significant
  const text = isPlain
    ? toFixed(value, significant - 1 - exponent)
    : toExponential(value, significant - 1)
  if (keepZeros || !text.includes('.')) return text
  return text.replace(/\.?0+(?=e|$)/, '')
}

/** Largest number of digits of an integer in a text, as in Python. */
const MAX_INTEGER_DIGITS = 4_300

const SPACES = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, 'g')

/** Returns `int(text, base)`; `null` if the text is no integer. */
export function parseInteger(text: string, base = 10): bigint | null {
  const trimmed = text.replace(SPACES, '').toLowerCase()
  const found = /^([-+]?)(0x|0o|0b)?_?([0-9a-z]+(?:_[0-9a-z]+)*)$/.exec(trimmed)
  if (!found) return null
  const [, sign, prefix = '', digits = ''] = found
  const own = { '0x': 16, '0o': 8, '0b': 2 }[prefix] ?? base
  if (digits.length > MAX_INTEGER_DIGITS) return null
  // With base 16, `0b1` has no prefix.
  const all = own === base || base === 0 ? digits : prefix + digits
  const radix = BigInt(base === 0 ? (own === 0 ? 10 : own) : base)
  let value = 0n
  for (const digit of all.replaceAll('_', '')) {
    const worth = BigInt(Number.parseInt(digit, 36))
    if (worth >= radix) return null
    value = value * radix + worth
  }
  return sign === '-' ? -value : value
}

const FLOAT = /^[-+]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)(e[-+]?\d+(_\d+)*)?$/i
const SPECIAL = /^([-+]?)(inf|infinity|nan)$/i

/** Returns `float(text)`; `null` if the text is no number. */
export function parseFloatText(text: string): number | null {
  const trimmed = text.replace(SPACES, '')
  const special = SPECIAL.exec(trimmed)
  if (special) {
    if (/nan/i.test(trimmed)) return Number.NaN
    return special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  }
  return FLOAT.test(trimmed) ? Number(trimmed.replaceAll('_', '')) : null
}

/** Returns `int(value)` of a float. */
export function truncate(value: number): bigint {
  if (Number.isNaN(value)) throw valueError('cannot convert float NaN to integer')
  if (!Number.isFinite(value))
    throw new TemplateError('OverflowError', 'cannot convert float infinity to integer')
  return BigInt(Math.trunc(value))
}
