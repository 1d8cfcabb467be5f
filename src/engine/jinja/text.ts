/** Text of values as Python's `str()` and `repr()` write it, and texts as lists of code points. */
import type { Budget } from './errors.ts'
import { Dict, DictView, Namespace, type PyObject, Tuple, Undefined, type Value } from './values.ts'

/** Returns `str(value)`. */
export function toText(value: Value, budget: Budget): string {
  if (typeof value === 'string') return value
  return value instanceof Undefined ? '' : repr(value, budget)
}

/** Returns `repr(value)`. */
export function repr(value: Value, budget: Budget): string {
  return new ReprWriter(budget).write(value)
}

/** Writes one value. A value in itself is cut, as Python does. */
class ReprWriter {
  readonly #budget: Budget
  readonly #open = new Set<Value>()
  #length = 0

  constructor(budget: Budget) {
    this.#budget = budget
  }

  write(value: Value): string {
    const text = this.#write(value)
    this.#length += text.length
    this.#budget.assertLength(this.#length)
    return text
  }

  #write(value: Value): string {
    this.#budget.spend(1)
    if (typeof value === 'string') {
      this.#budget.read(value)
      return quote(value)
    }
    if (typeof value === 'boolean') return value ? 'True' : 'False'
    if (value === null) return 'None'
    if (typeof value === 'number') return floatToText(value)
    if (typeof value === 'bigint') return String(value)
    if (value instanceof Undefined) return 'Undefined'
    return this.#writeContainer(value)
  }

  #writeContainer(value: Value[] | Tuple | Dict | PyObject): string {
    if (this.#open.has(value)) return Array.isArray(value) ? '[...]' : '{...}'
    this.#open.add(value)
    const text = this.#budget.nest(() => this.#writeItems(value))
    this.#open.delete(value)
    return text
  }

  #writeItems(value: Value[] | Tuple | Dict | PyObject): string {
    if (Array.isArray(value)) return `[${this.#join(value)}]`
    if (value instanceof Tuple)
      return `(${this.#join(value.items)}${value.items.length === 1 ? ',' : ''})`
    if (value instanceof Dict) {
      const entries = value
        .entries()
        .map(([key, item]) => `${this.write(key)}: ${this.write(item)}`)
      return `{${entries.join(', ')}}`
    }
    if (value instanceof DictView) return `${value.typeName}([${this.#join(value.members())}])`
    if (value instanceof Namespace) return `<Namespace ${this.write(value.attributes)}>`
    return value.toText()
  }

  #join(items: readonly Value[]): string {
    return items.map((item) => this.write(item)).join(', ')
  }
}

/** Returns `repr` of a float: its shortest digits, with an exponent if it is large or small. */
export function floatToText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  if (Object.is(value, -0)) return '-0.0'
  const [mantissa = '', exponentText = '0'] = value.toExponential().split('e')
  const exponent = Number(exponentText)
  if (exponent >= -4 && exponent < 16) {
    const text = plainDigits(mantissa, exponent)
    return text.includes('.') ? text : `${text}.0`
  }
  const sign = exponent < 0 ? '-' : '+'
  return `${mantissa}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** Returns digits without their exponent. */
function plainDigits(mantissa: string, exponent: number): string {
  const sign = mantissa.startsWith('-') ? '-' : ''
  const digits = mantissa.replace(/[-.]/g, '')
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  const rest = digits.slice(exponent + 1)
  return sign + (rest === '' ? whole : `${whole}.${rest}`)
}

/** Returns `repr` of a text. */
function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  const escaped = text.replace(NEEDS_ESCAPE, (found) => {
    if (found === ' ' || (found === "'" && mark !== found)) return found
    const known = ESCAPES.get(found)
    if (known !== undefined) return known
    const code = found.codePointAt(0) ?? 0
    const hex = code.toString(16)
    if (code < 0x100) return `\\x${hex.padStart(2, '0')}`
    return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
  })
  return mark + escaped + mark
}

/** Characters that `repr` escapes, with the space and the apostrophe. */
const NEEDS_ESCAPE = /[\p{C}\p{Z}'\\]/gu

const ESCAPES = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\\', '\\\\'],
  ["'", "\\'"],
])

/** White space of Python's `str`, for a class of a regular expression. */
export const SPACE =
  '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'

// Positions in texts count code points, which matters only for texts with characters beyond U+FFFF.

/** The last long text that was asked about. Templates ask about one text many times. */
let lastText = ''
let lastHasPairs = false

/** Returns `true` if positions in a text differ from those of JavaScript. */
export function hasPairs(text: string): boolean {
  if (text.length < 64) return PAIR.test(text)
  if (text !== lastText) {
    lastText = text
    lastHasPairs = PAIR.test(text)
  }
  return lastHasPairs
}

const PAIR = /[\uD800-\uDBFF][\uDC00-\uDFFF]/

/** Returns the number of code points. */
export function countCodePoints(text: string): number {
  if (!hasPairs(text)) return text.length
  let count = 0
  for (const _ of text) count += 1
  return count
}

/** Returns the code points as texts. */
export const toCodePoints = (text: string): string[] => Array.from(text)

/** Converts a position of JavaScript into one of Python. -1 stays. */
export const toPosition = (text: string, index: number): number =>
  index > 0 && hasPairs(text) ? countCodePoints(text.slice(0, index)) : index

/** Returns the part of a text between two positions of Python, of which none is negative. */
export function sliceText(text: string, from: number, to: number): string {
  if (!hasPairs(text)) return text.slice(from, Math.max(from, to))
  return toCodePoints(text).slice(from, Math.max(from, to)).join('')
}
