/** Methods of Python's `str`. */
import { type Budget, typeError, valueError } from './errors.ts'
import { formatText } from './format.ts'
import { bind, defineAll, REQUIRED, type Runtime, type Signature } from './functions.ts'
import { iterate } from './sequences.ts'
import { countCodePoints, hasPairs, sliceText, SPACE, toCodePoints, toPosition } from './text.ts'
import {
  type Arguments,
  Dict,
  toCount,
  toInteger,
  toStr,
  Tuple,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

/** A method of texts. */
type Method = (self: string, args: Arguments, runtime: Runtime) => Value

const NOTHING: Signature = {}
const CHARS: Signature = { chars: null }
const BOUNDED: Signature = { sub: REQUIRED, start: null, end: null }
const SPLIT: Signature = { sep: null, maxsplit: -1n }
const JUSTIFY: Signature = { width: REQUIRED, fillchar: ' ' }

// White space and stripping.

const SPACES = new RegExp(`[${SPACE}]+`, 'g')
const FIRST_SPACES = new RegExp(`^[${SPACE}]+`)
const SPACE_CHARACTER = new RegExp(`[${SPACE}]`)

/** Returns `text.strip(chars)`, or without one of the two ends. */
export function strip(text: string, chars: Value, side: 'both' | 'left' | 'right'): string {
  const set = chars === null ? null : new Set(toCodePoints(toStr(chars)))
  const isStripped = (character: string): boolean =>
    set === null ? SPACE_CHARACTER.test(character) : set.has(character)
  const from = side === 'right' ? 0 : findStart(text, isStripped)
  return text.slice(from, side === 'left' ? text.length : findStop(text, from, isStripped))
}

/** Returns the position of the first character that stays. */
function findStart(text: string, isStripped: (character: string) => boolean): number {
  let from = 0
  while (from < text.length) {
    const character = String.fromCodePoint(text.codePointAt(from) ?? 0)
    if (!isStripped(character)) break
    from += character.length
  }
  return from
}

/** Returns the position after the last character that stays. */
function findStop(text: string, from: number, isStripped: (character: string) => boolean): number {
  let to = text.length
  while (to > from) {
    const isPair = /[\uDC00-\uDFFF]/.test(text.charAt(to - 1)) && to - 2 >= from
    const character = text.slice(isPair ? to - 2 : to - 1, to)
    if (!isStripped(character)) break
    to -= character.length
  }
  return to
}

// Splitting.

function split(runtime: Runtime, text: string, sep: Value, maxsplit: Value): Value[] {
  runtime.budget.read(text)
  const most = toLimit(maxsplit)
  const parts = sep === null ? splitSpaces(text, most) : splitAt(text, separatorOf(sep), most)
  runtime.budget.items(parts.length)
  return parts
}

function rsplit(runtime: Runtime, text: string, sep: Value, maxsplit: Value): Value[] {
  runtime.budget.read(text)
  const most = toLimit(maxsplit)
  if (most === Number.POSITIVE_INFINITY) return split(runtime, text, sep, maxsplit)
  if (sep === null) {
    const reversed = splitSpaces(reverse(text), most).map(reverse)
    return reversed.toReversed()
  }
  const separator = separatorOf(sep)
  const parts: string[] = []
  let to = text.length
  while (parts.length < most) {
    const at = to < separator.length ? -1 : text.lastIndexOf(separator, to - separator.length)
    if (at < 0) break
    parts.unshift(text.slice(at + separator.length, to))
    to = at
  }
  return [text.slice(0, to), ...parts]
}

const reverse = (text: string): string => toCodePoints(text).toReversed().join('')

function toLimit(maxsplit: Value): number {
  const most = toCount(maxsplit)
  return most < 0 ? Number.POSITIVE_INFINITY : most
}

function separatorOf(value: Value): string {
  const separator = toStr(value)
  if (separator === '') throw valueError('empty separator')
  return separator
}

function splitAt(text: string, separator: string, most: number): string[] {
  const all = text.split(separator)
  if (all.length <= most + 1) return all
  return [...all.slice(0, most), all.slice(most).join(separator)]
}

function splitSpaces(text: string, most: number): string[] {
  const parts: string[] = []
  let rest = text.replace(FIRST_SPACES, '')
  if (most === Number.POSITIVE_INFINITY) {
    const all = rest.split(SPACES)
    return all.at(-1) === '' ? all.slice(0, -1) : all
  }
  while (rest !== '') {
    const end = parts.length < most ? rest.search(SPACE_CHARACTER) : -1
    if (end < 0) {
      // The last part keeps its inner white space. Only one that was cut keeps the end.
      parts.push(rest)
      break
    }
    parts.push(rest.slice(0, end))
    rest = rest.slice(end).replace(FIRST_SPACES, '')
  }
  return parts
}

// oxlint-disable-next-line no-control-regex
const LINE = /([^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*)(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|$)/g

/** Returns `text.splitlines(keepends)`. */
export function splitLines(text: string, keepEnds = false): string[] {
  const lines: string[] = []
  for (const [whole, line = '', end] of text.matchAll(LINE)) {
    if (whole === '') break
    lines.push(keepEnds ? whole : line)
    if (end === '') break
  }
  return lines
}

function partition(text: string, sep: Value, index: number): Tuple | null {
  const separator = separatorOf(sep)
  if (index < 0) return null
  return new Tuple([text.slice(0, index), separator, text.slice(index + separator.length)])
}

// Searching.

/** Returns the part of a text between two bounds, and where it begins; `null` if they cross. */
function within(text: string, start: Value, end: Value): { part: string; from: number } | null {
  const length = countCodePoints(text)
  const clamp = (bound: Value, missing: number): number => {
    if (bound === null) return missing
    const index = toCount(bound)
    return Math.max(0, index < 0 ? index + length : index)
  }
  const from = clamp(start, 0)
  const to = Math.min(length, clamp(end, length))
  return from > to ? null : { part: sliceText(text, from, to), from }
}

type Search = (part: string, sub: string) => number

const find =
  (search: Search, mustFind: boolean) =>
  (runtime: Runtime, text: string, sub: Value, start: Value, end: Value): bigint => {
    runtime.budget.read(text)
    const range = within(text, start, end)
    const found = range ? toPosition(range.part, search(range.part, toStr(sub))) : -1
    if (found < 0 && mustFind) throw valueError('substring not found')
    return BigInt(range && found >= 0 ? found + range.from : -1)
  }

const first: Search = (part, sub) => part.indexOf(sub)
const last: Search = (part, sub) => part.lastIndexOf(sub)

function count(runtime: Runtime, text: string, sub: Value, start: Value, end: Value): bigint {
  runtime.budget.read(text)
  const part = within(text, start, end)?.part
  if (part === undefined) return 0n
  const sought = toStr(sub)
  return BigInt(sought === '' ? countCodePoints(part) + 1 : part.split(sought).length - 1)
}

const hasAffix =
  (name: string, test: (part: string, affix: string) => boolean) =>
  (_: Runtime, text: string, affixes: Value, start: Value, end: Value): boolean => {
    const range = within(text, start, end)
    const isAffix = (affix: Value): boolean => {
      if (affix instanceof Undefined) throw affix.toError()
      if (typeof affix !== 'string') {
        const kind = typeNameOf(affix)
        throw typeError(`${name} first arg must be str or a tuple of str, not ${kind}`)
      }
      return range !== null && test(range.part, affix)
    }
    return affixes instanceof Tuple ? affixes.items.some(isAffix) : isAffix(affixes)
  }

// Replacing and padding.

/** Returns `text.replace(from, to, count)`. */
export function replaceText(
  text: string,
  from: string,
  to: string,
  most: number,
  budget: Budget,
): string {
  budget.read(text)
  if (from === '') return insertBetween(text, to, most, budget)
  const parts = splitAt(text, from, most < 0 ? Number.POSITIVE_INFINITY : most)
  budget.assertLength(text.length + (parts.length - 1) * (to.length - from.length))
  return parts.join(to)
}

/** Inserts a text before each character and at the end. */
function insertBetween(text: string, to: string, most: number, budget: Budget): string {
  const characters = toCodePoints(text)
  const times = most < 0 ? characters.length + 1 : most
  budget.assertLength(text.length + (characters.length + 1) * to.length)
  const padded = [...characters, '']
  return padded.map((character, at) => (at < times ? to + character : character)).join('')
}

function pad(text: string, width: Value, fill: Value, side: 'left' | 'right' | 'both'): string {
  const character = toStr(fill)
  if (countCodePoints(character) !== 1)
    throw typeError('The fill character must be exactly one character long')
  const length = countCodePoints(text)
  const target = toCount(width)
  if (target > MAX_WIDTH) throw valueError('The width is too large')
  const missing = Math.max(0, target - length)
  if (side === 'left') return character.repeat(missing) + text
  if (side === 'right') return text + character.repeat(missing)
  // Python puts the odd character to the left if the width is odd.
  const left = Math.floor(missing / 2) + (missing & target & 1)
  return character.repeat(left) + text + character.repeat(missing - left)
}

const MAX_WIDTH = 1_000_000

function zfill(_: Runtime, text: string, width: Value): string {
  const sign = /^[-+]/.exec(text)?.[0] ?? ''
  return sign + pad(text.slice(sign.length), toInteger(width) - BigInt(sign.length), '0', 'left')
}

function expandTabs(_: Runtime, text: string, tabsize: Value): string {
  const size = Math.min(toCount(tabsize), 1_000)
  let column = 0
  return text.replace(/\t|[\n\r]|[^\t\n\r]+/g, (part) => {
    if (part !== '\t') {
      column = /[\n\r]/.test(part) ? 0 : column + countCodePoints(part)
      return part
    }
    const spaces = size > 0 ? size - (column % size) : 0
    column += spaces
    return ' '.repeat(spaces)
  })
}

// Case and kinds of characters.

/** Returns `text.capitalize()`. */
export function capitalize(text: string): string {
  const [initial = '', ...rest] = hasPairs(text) ? toCodePoints(text) : [text[0], text.slice(1)]
  return initial.toUpperCase() + rest.join('').toLowerCase()
}

const toTitle = (text: string): string => text.replace(/\p{L}+/gu, (word) => capitalize(word))

const swapCase = (text: string): string =>
  text.replace(/\p{L}/gu, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  )

const matches =
  (pattern: RegExp) =>
  (_: Runtime, text: string): boolean =>
    pattern.test(text)

const isCase =
  (pattern: RegExp) =>
  (_: Runtime, text: string): boolean =>
    /\p{Lu}|\p{Ll}|\p{Lt}/u.test(text) && !pattern.test(text)

const isTitle = (_: Runtime, text: string): boolean =>
  /\p{Lu}|\p{Lt}/u.test(text) && toTitle(text) === text

function join(runtime: Runtime, separator: string, iterable: Value): string {
  const { budget } = runtime
  let length = 0
  const texts = iterate(iterable, budget).map((item, at) => {
    if (item instanceof Undefined) throw item.toError()
    if (typeof item !== 'string') {
      throw typeError(`sequence item ${at}: expected str instance, ${typeNameOf(item)} found`)
    }
    length += item.length + separator.length
    budget.assertLength(length)
    return item
  })
  return texts.join(separator)
}

/** The methods of `str` by their names. */
export const STRING_METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ...defineAll<string, Value>({
    capitalize: [NOTHING, (_, text) => capitalize(text)],
    casefold: [NOTHING, (_, text) => text.toLowerCase().replaceAll('ß', 'ss')],
    center: [JUSTIFY, (_, text, width: Value, fill: Value) => pad(text, width, fill, 'both')],
    count: [BOUNDED, count],
    endswith: [BOUNDED, hasAffix('endswith', (part, affix) => part.endsWith(affix))],
    expandtabs: [{ tabsize: 8n }, expandTabs],
    find: [BOUNDED, find(first, false)],
    index: [BOUNDED, find(first, true)],
    isalnum: [NOTHING, matches(/^[\p{L}\p{Nd}\p{No}\p{Nl}]+$/u)],
    isalpha: [NOTHING, matches(/^\p{L}+$/u)],
    // oxlint-disable-next-line no-control-regex
    isascii: [NOTHING, matches(/^[\x00-\x7f]*$/)],
    isdecimal: [NOTHING, matches(/^\p{Nd}+$/u)],
    isdigit: [NOTHING, matches(/^[\p{Nd}\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u2080-\u2089]+$/u)],
    isidentifier: [NOTHING, matches(/^[\p{ID_Start}_]\p{ID_Continue}*$/u)],
    islower: [NOTHING, isCase(/\p{Lu}|\p{Lt}/u)],
    isnumeric: [NOTHING, matches(/^\p{N}+$/u)],
    isprintable: [NOTHING, matches(/^(?:[^\p{C}\p{Z}]| )*$/u)],
    isspace: [NOTHING, matches(new RegExp(`^[${SPACE}]+$`))],
    istitle: [NOTHING, isTitle],
    isupper: [NOTHING, isCase(/\p{Ll}|\p{Lt}/u)],
    join: [{ iterable: REQUIRED }, join],
    ljust: [JUSTIFY, (_, text, width: Value, fill: Value) => pad(text, width, fill, 'right')],
    lower: [NOTHING, (_, text) => text.toLowerCase()],
    lstrip: [CHARS, (_, text, chars: Value) => strip(text, chars, 'left')],
    partition: [
      { sep: REQUIRED },
      (_, text, sep: Value) =>
        partition(text, sep, text.indexOf(toStr(sep))) ?? new Tuple([text, '', '']),
    ],
    removeprefix: [
      { prefix: REQUIRED },
      (_, text, prefix: Value) =>
        text.startsWith(toStr(prefix)) ? text.slice(toStr(prefix).length) : text,
    ],
    removesuffix: [
      { suffix: REQUIRED },
      (_, text, suffix: Value) =>
        text.endsWith(toStr(suffix)) ? text.slice(0, text.length - toStr(suffix).length) : text,
    ],
    replace: [
      { old: REQUIRED, new: REQUIRED, count: -1n },
      ({ budget }, text, from: Value, to: Value, most: Value) =>
        replaceText(text, toStr(from), toStr(to), toCount(most), budget),
    ],
    rfind: [BOUNDED, find(last, false)],
    rindex: [BOUNDED, find(last, true)],
    rjust: [JUSTIFY, (_, text, width: Value, fill: Value) => pad(text, width, fill, 'left')],
    rpartition: [
      { sep: REQUIRED },
      (_, text, sep: Value) =>
        partition(text, sep, text.lastIndexOf(toStr(sep))) ?? new Tuple(['', '', text]),
    ],
    rsplit: [SPLIT, rsplit],
    rstrip: [CHARS, (_, text, chars: Value) => strip(text, chars, 'right')],
    split: [SPLIT, split],
    splitlines: [
      { keepends: false },
      (_, text, keepEnds: Value) => splitLines(text, keepEnds === true),
    ],
    startswith: [BOUNDED, hasAffix('startswith', (part, affix) => part.startsWith(affix))],
    strip: [CHARS, (_, text, chars: Value) => strip(text, chars, 'both')],
    swapcase: [NOTHING, (_, text) => swapCase(text)],
    title: [NOTHING, (_, text) => toTitle(text)],
    upper: [NOTHING, (_, text) => text.toUpperCase()],
    zfill: [{ width: REQUIRED }, zfill],
  }),
  ['format', (text, args, runtime) => formatText(text, args, runtime)],
  [
    'format_map',
    (text, args, runtime) => {
      const [mapping] = bind('format_map', { mapping: REQUIRED }, args)
      if (!(mapping instanceof Dict)) throw typeError('format_map() needs a mapping')
      const keywords = new Map(mapping.entries().map(([key, value]) => [String(key), value]))
      return formatText(text, { positional: [], keywords }, runtime)
    },
  ],
])
