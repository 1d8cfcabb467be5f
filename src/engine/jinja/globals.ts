/** Functions that each template has, as in transformers. */
import { type Budget, TemplateError, TemplateRejection, typeError, valueError } from './errors.ts'
import { bind, REQUIRED } from './functions.ts'
import { Cycler, Joiner } from './loop.ts'
import { iterate, unpack } from './sequences.ts'
import { toText } from './text.ts'
import {
  type Arguments,
  Builtin,
  Dict,
  Namespace,
  Range,
  toInteger,
  toStr,
  type Value,
} from './values.ts'

/** Longest range that the sandbox of jinja2 allows. */
const MAX_RANGE = 100_000

/** Returns the global functions by their names. */
export function createGlobals(budget: Budget): Map<string, Value> {
  const functions: [string, (args: Arguments) => Value][] = [
    ['cycler', (args) => new Cycler(args)],
    ['dict', (args) => createDict(args, budget)],
    ['joiner', (args) => new Joiner(args)],
    ['namespace', (args) => new Namespace(createDict(args, budget))],
    ['raise_exception', (args) => reject(args, budget)],
    ['range', range],
    ['strftime_now', formatNow],
  ]
  return new Map(functions.map(([name, run]) => [name, new Builtin(name, run)]))
}

/** Returns `dict(...)` of a mapping or of pairs, with the keywords as more entries. */
function createDict({ positional, keywords }: Arguments, budget: Budget): Dict {
  const [source, extra] = positional
  if (extra !== undefined)
    throw typeError(`dict expected at most 1 argument, got ${positional.length}`)
  const dict = new Dict(source instanceof Dict ? source.entries() : [])
  if (source !== undefined && !(source instanceof Dict)) {
    for (const pair of iterate(source, budget)) {
      const [key = null, value = null] = unpack(pair, 2, budget)
      dict.set(key, value)
    }
  }
  for (const [key, value] of keywords) dict.set(key, value)
  return dict
}

function reject(args: Arguments, budget: Budget): never {
  const [message = null] = bind('raise_exception', { message: REQUIRED }, args)
  throw new TemplateRejection(toText(message, budget))
}

function range({ positional }: Arguments): Range {
  const [first = 0n, second, third] = positional.map(toInteger)
  if (positional.length < 1 || positional.length > 3)
    throw typeError(`range expected 1 to 3 arguments, got ${positional.length}`)
  const step = third ?? 1n
  if (step === 0n) throw valueError('range() arg 3 must not be zero')
  const made = second === undefined ? new Range(0n, first, step) : new Range(first, second, step)
  if (made.size() > MAX_RANGE) {
    throw new TemplateError(
      'OverflowError',
      `Range too big. The sandbox blocks ranges larger than MAX_RANGE (${MAX_RANGE}).`,
    )
  }
  return made
}

// Dates.

function formatNow(args: Arguments): string {
  const [format = ''] = bind('strftime_now', { format: REQUIRED }, args)
  return formatDate(new Date(), toStr(format))
}

/** Formats a date like Python's `strftime`, with English names, as in the training data. */
export function formatDate(date: Date, format: string): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (found, dash: string, letter: string) => {
    const text = datePart(date, letter)
    if (text === null) return found
    return dash === '' ? text : text.replace(/^[0 ]+(?=.)/, '')
  })
}

const pad = (value: number, width = 2, fill = '0'): string => String(value).padStart(width, fill)

/** Returns a part of a date by its letter; `null` if there is no such part. */
function datePart(date: Date, letter: string): string | null {
  const name = (options: Intl.DateTimeFormatOptions): string =>
    date.toLocaleDateString('en', options)
  const hours = date.getHours()
  const composed = COMPOSED.get(letter)
  if (composed !== undefined) return formatDate(date, composed)
  switch (letter) {
    case 'Y':
      return String(date.getFullYear())
    case 'y':
      return pad(date.getFullYear() % 100)
    case 'm':
      return pad(date.getMonth() + 1)
    case 'd':
      return pad(date.getDate())
    case 'e':
      return pad(date.getDate(), 2, ' ')
    case 'j':
      return pad(dayOfYear(date), 3)
    case 'B':
      return name({ month: 'long' })
    case 'b':
    case 'h':
      return name({ month: 'short' })
    case 'A':
      return name({ weekday: 'long' })
    case 'a':
      return name({ weekday: 'short' })
    case 'w':
      return String(date.getDay())
    case 'u':
      return String(date.getDay() || 7)
    case 'U':
      return pad(Math.floor((dayOfYear(date) + 6 - date.getDay()) / 7))
    case 'H':
      return pad(hours)
    case 'I':
      return pad(hours % 12 || 12)
    case 'p':
      return hours < 12 ? 'AM' : 'PM'
    case 'M':
      return pad(date.getMinutes())
    case 'S':
      return pad(date.getSeconds())
    case 'f':
      return pad(date.getMilliseconds() * 1000, 6)
    case 'Z':
    case 'z':
      return ''
    case '%':
      return '%'
    default:
      return null
  }
}

const COMPOSED = new Map([
  ['D', '%m/%d/%y'],
  ['F', '%Y-%m-%d'],
  ['R', '%H:%M'],
  ['T', '%H:%M:%S'],
  ['X', '%H:%M:%S'],
  ['c', '%a %b %e %H:%M:%S %Y'],
  ['x', '%m/%d/%y'],
])

const dayOfYear = (date: Date): number =>
  Math.round(
    (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) -
      Date.UTC(date.getFullYear(), 0, 0)) /
      86_400_000,
  )
