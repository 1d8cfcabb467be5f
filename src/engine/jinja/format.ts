/** Formatted text: the operator `%`, and the method `format` with its small language. */
import { type Budget, TemplateError, typeError, valueError } from './errors.ts'
import type { Runtime } from './functions.ts'
import { toExponential, toFixed, toGeneral, truncate } from './numbers.ts'
import { countCodePoints, floatToText, repr, sliceText, toText } from './text.ts'
import {
  type Arguments,
  Dict,
  type PyNumber,
  toInteger,
  toNumber,
  Tuple,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

/** Format of a value. Each field is empty or absent if it is left out. */
interface Spec {
  fill: string
  align: string
  sign: string
  alternate: boolean
  width: number
  grouping: string
  precision: number | null
  type: string
}

/** Largest width and precision. */
const MAX_SIZE = 100_000

function toSize(digits: string | bigint): number {
  const size = Number(digits)
  if (size > MAX_SIZE) throw valueError('Too many decimal digits in format string')
  return size
}

// The operator %.

const PERCENT = /%(?:\(([^)]*)\))?([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?[hlL]?([\s\S]?)/g

/** Returns `text % args`. */
export function formatPercent(text: string, args: Value, budget: Budget): string {
  budget.read(text)
  const items = args instanceof Tuple ? args.items : [args]
  let next = 0
  const take = (): Value => {
    const item = items[next]
    next += 1
    if (item === undefined) throw typeError('not enough arguments for format string')
    return item
  }
  let length = text.length
  const formatted = text.replace(
    PERCENT,
    (_: string, name?: string, flags = '', width = '', precision?: string, type = '') => {
      if (type === '%') return '%'
      const size = (digits: string): number => toSize(digits === '*' ? toInteger(take()) : digits)
      const spec = {
        fill: flags.includes('0') && !flags.includes('-') ? '0' : ' ',
        grouping: '',
        align: flags.includes('-') ? '<' : '>',
        sign: /[+ ]/.exec(flags)?.[0] ?? '',
        alternate: flags.includes('#'),
        width: size(width),
        precision: precision === undefined ? null : size(precision),
        type,
      }
      const written = convert(name === undefined ? take() : lookUp(args, name), spec, budget)
      length += written.length
      budget.assertLength(length)
      return written
    },
  )
  const isMapping = args instanceof Dict || Array.isArray(args)
  if (next < items.length && !(isMapping && next === 0) && !(next === 0 && usesNames(text)))
    throw typeError('not all arguments converted during string formatting')
  return formatted
}

const usesNames = (text: string): boolean => /%\(/.test(text)

function lookUp(args: Value, name: string): Value {
  if (!(args instanceof Dict)) throw typeError('format requires a mapping')
  const value = args.get(name)
  if (value === undefined) throw new TemplateError('KeyError', `'${name}'`)
  return value
}

/** Writes a value for the operator `%`. */
function convert(value: Value, spec: Spec, budget: Budget): string {
  const { type } = spec
  if (type === '') throw valueError('incomplete format')
  if (type === 's') return writeText(toText(value, budget), { ...spec, fill: ' ' })
  if (type === 'r' || type === 'a') return writeText(repr(value, budget), { ...spec, fill: ' ' })
  if (type === 'c' && typeof value === 'string') return writeText(value, { ...spec, fill: ' ' })
  if (!'diuoxXeEfFgGc'.includes(type))
    throw valueError(
      `unsupported format character '${type}' (0x${type.charCodeAt(0).toString(16)})`,
    )
  const number = toNumber(value)
  if (number === null) {
    if (value instanceof Undefined) throw value.toError()
    const kind = 'diu'.includes(type)
      ? 'a real number'
      : 'eEfFgG'.includes(type)
        ? ''
        : 'an integer'
    throw typeError(
      kind === ''
        ? 'must be real number, not ' + typeNameOf(value)
        : `%${type} format: ${kind} is required, not ${typeNameOf(value)}`,
    )
  }
  const zero = spec.fill === '0' ? { ...spec, align: '=' } : spec
  if ('eEfFgG'.includes(type)) return writeFloat(Number(number), zero)
  if (typeof number === 'number' && 'oxXc'.includes(type))
    throw typeError(`%${type} format: an integer is required, not float`)
  const integer = typeof number === 'number' ? truncate(number) : number
  return writeInteger(integer, { ...zero, type: 'iu'.includes(type) ? 'd' : type })
}

// The method `format`.

/** Returns `text.format(...)`. */
export function formatText(text: string, args: Arguments, runtime: Runtime): string {
  return new Formatter(args, runtime).format(text, 2)
}

/** Formats one text. Fields without a number take the arguments in turn. */
class Formatter {
  readonly #args: Arguments
  readonly #runtime: Runtime
  #next = 0

  constructor(args: Arguments, runtime: Runtime) {
    this.#args = args
    this.#runtime = runtime
  }

  format(text: string, depth: number): string {
    const { budget } = this.#runtime
    budget.read(text)
    if (depth === 0) throw valueError('Max string recursion exceeded')
    let result = ''
    let at = 0
    while (at < text.length) {
      const character = text.charAt(at)
      if (character !== '{' && character !== '}') {
        const plain = /^[^{}]+/.exec(text.slice(at))?.[0] ?? character
        result += plain
        at += plain.length
      } else if (text.charAt(at + 1) === character) {
        result += character
        at += 2
      } else {
        if (character === '}') throw valueError("Single '}' encountered in format string")
        const end = findEnd(text, at)
        result += this.#formatField(text.slice(at + 1, end), depth)
        at = end + 1
      }
      budget.assertLength(result.length)
    }
    return result
  }

  #formatField(field: string, depth: number): string {
    const { budget } = this.#runtime
    const [, name = '', conversion, spec = ''] =
      /^((?:[^!:[\]]|\[[^\]]*\])*)(?:!(\w))?(?::([\s\S]*))?$/.exec(field) ?? []
    let value = this.#find(name)
    if (conversion === 'r' || conversion === 'a') value = repr(value, budget)
    else if (conversion === 's') value = toText(value, budget)
    else if (conversion !== undefined)
      throw valueError(`Unknown conversion specifier '${conversion}'`)
    return formatValue(value, spec.includes('{') ? this.format(spec, depth - 1) : spec, budget)
  }

  /** Returns the value of a field name such as `0.name[key]`. */
  #find(name: string): Value {
    const [first = ''] = /^[^.[]*/.exec(name) ?? []
    let value = this.#findArgument(first)
    for (const [, attribute, key = ''] of name
      .slice(first.length)
      .matchAll(/\.([^.[]+)|\[([^\]]+)\]/g)) {
      if (attribute !== undefined) value = this.#runtime.getAttribute(value, attribute)
      else value = this.#runtime.getItem(value, /^\d+$/.test(key) ? BigInt(key) : key)
    }
    return value
  }

  #findArgument(name: string): Value {
    const { positional, keywords } = this.#args
    if (name !== '' && !/^\d+$/.test(name)) {
      const value = keywords.get(name)
      if (value === undefined) throw new TemplateError('KeyError', `'${name}'`)
      return value
    }
    const index = name === '' ? this.#next : Number(name)
    if (name === '') this.#next += 1
    const value = positional[index]
    if (value === undefined) {
      throw new TemplateError(
        'IndexError',
        `Replacement index ${index} out of range for positional args tuple`,
      )
    }
    return value
  }
}

/** Returns the position of the brace that closes the one at `start`. */
function findEnd(text: string, start: number): number {
  let depth = 0
  for (let at = start; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '{') depth += 1
    if (character === '}') depth -= 1
    if (depth === 0) return at
  }
  throw valueError("expected '}' before end of string")
}

const SPEC = /^(?:([\s\S])?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/u

/** Returns `format(value, spec)`. */
function formatValue(value: Value, text: string, budget: Budget): string {
  if (text === '') return toText(value, budget)
  const found = SPEC.exec(text)
  if (!found) throw valueError('Invalid format specifier')
  const [, fill, align, sign = '', hash, zero, width = '', grouping = '', precision, type = ''] =
    found
  const isNumber = toNumber(value) !== null && !(typeof value === 'boolean' && type === '')
  const spec = {
    sign,
    grouping,
    type,
    alternate: hash !== undefined,
    fill: fill ?? (zero === undefined ? ' ' : '0'),
    align: align ?? (isNumber ? (zero === undefined ? '>' : '=') : '<'),
    width: toSize(width),
    precision: precision === undefined ? null : toSize(precision),
  }
  if (typeof value === 'string' || (typeof value === 'boolean' && type === 's')) {
    if (type !== '' && type !== 's')
      throw valueError(`Unknown format code '${type}' for object of type 'str'`)
    return writeText(toText(value, budget), spec)
  }
  const number = toNumber(value)
  if (number === null)
    throw typeError(`unsupported format string passed to ${typeNameOf(value)}.__format__`)
  return writeNumber(number, spec)
}

function writeNumber(number: PyNumber, spec: Spec): string {
  const { type } = spec
  if (typeof number === 'bigint' && (type === '' || 'bcdnoxX'.includes(type)))
    return writeInteger(number, spec)
  if (type !== '' && !'eEfFgGn%'.includes(type)) {
    const name = typeof number === 'bigint' ? 'int' : 'float'
    throw valueError(`Unknown format code '${type}' for object of type '${name}'`)
  }
  return writeFloat(Number(number), spec)
}

/** Pads a text, which a precision cuts. */
function writeText(text: string, spec: Spec): string {
  return pad('', spec.precision === null ? text : sliceText(text, 0, spec.precision), spec)
}

function writeInteger(value: bigint, spec: Spec): string {
  const { type, alternate, precision } = spec
  if (type === 'c') return pad('', String.fromCodePoint(Number(value)), spec)
  const radix = { b: 2, o: 8, x: 16, X: 16 }[type] ?? 10
  const prefix = alternate && radix !== 10 ? `0${type}` : ''
  let digits = (value < 0n ? -value : value).toString(radix)
  if (type === 'X') digits = digits.toUpperCase()
  if (precision !== null) digits = digits.padStart(precision, '0')
  return pad(signOf(value < 0n, spec) + prefix, group(digits, spec.grouping, radix), spec)
}

function writeFloat(value: number, spec: Spec): string {
  const { type, alternate } = spec
  const isNegative = value < 0 || Object.is(value, -0)
  const digits = Number.isFinite(value)
    ? floatDigits(Math.abs(value), spec)
    : floatToText(Math.abs(value))
  const [whole = '', ...rest] = digits.split(/(?=[.e])/)
  const grouped = group(whole, spec.grouping, 10) + rest.join('')
  const text = alternate && !grouped.includes('.') ? `${grouped}.` : grouped
  const percent = type === '%' ? '%' : ''
  const sized = 'EFG'.includes(type) && type !== '' ? text.toUpperCase() : text
  return pad(signOf(isNegative, spec), sized + percent, spec)
}

function floatDigits(value: number, { type, precision, alternate }: Spec): string {
  const digits = precision ?? 6
  switch (type.toLowerCase()) {
    case '':
      if (precision === null) return floatToText(value)
      return toGeneral(value, precision, alternate)
    case 'f':
      return toFixed(value, digits)
    case '%':
      return toFixed(value * 100, digits)
    case 'e':
      return toExponential(value, digits)
    default:
      return toGeneral(value, digits, alternate)
  }
}

const signOf = (isNegative: boolean, { sign }: Spec): string =>
  isNegative ? '-' : sign === '-' ? '' : sign

/** Puts a separator between groups of digits. */
function group(digits: string, separator: string, radix: number): string {
  if (separator === '') return digits
  const size = radix === 10 ? 3 : 4
  return digits.replace(new RegExp(`\\B(?=(?:.{${size}})+$)`, 'g'), separator)
}

/** Pads a text to its width. The padding of `=` comes after the sign. */
function pad(sign: string, text: string, { fill, align, width }: Spec): string {
  const missing = Math.max(0, width - countCodePoints(sign + text))
  if (align === '=') return sign + fill.repeat(missing) + text
  if (align === '<') return sign + text + fill.repeat(missing)
  const before = align === '^' ? Math.floor(missing / 2) : missing
  return fill.repeat(before) + sign + text + fill.repeat(missing - before)
}
