/** Filters of jinja2 for texts, numbers and single values. */
import { type Budget, TemplateError, typeError, valueError } from './errors.ts'
import { formatPercent } from './format.ts'
import { defineAll, type Filter, REQUIRED, type Runtime } from './functions.ts'
import { getOnlyAttribute } from './attributes.ts'
import { toJson } from './json.ts'
import { escapeHtml } from './markup.ts'
import { MARKUP_FILTER_TABLE } from './markup-filters.ts'
import { parseFloatText, parseInteger, roundNumber, truncate } from './numbers.ts'
import { lengthOf } from './sequences.ts'
import { SEQUENCE_FILTERS } from './sequence-filters.ts'
import { capitalize, replaceText, splitLines, strip, STRING_METHODS } from './string-methods.ts'
import { countCodePoints, repr, sliceText, SPACE, toText } from './text.ts'
import {
  type Arguments,
  Dict,
  isTrue,
  PyIterator,
  toCount,
  toNumber,
  Tuple,
  toStr,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

// Texts.

const escape = ({ budget }: Runtime, value: Value): string => escapeHtml(toText(value, budget))

function indent(
  { budget }: Runtime,
  value: Value,
  width: Value,
  first: Value,
  blank: Value,
): string {
  const indention = typeof width === 'string' ? width : spaces(toCount(width), budget)
  const text = `${toText(value, budget)}\n`
  budget.read(text)
  const lines = splitLines(text)
  budget.assertLength(text.length + lines.length * indention.length)
  const rest = lines
    .slice(1)
    .map((line) => (line !== '' || isTrue(blank) ? indention + line : line))
  const indented = [lines[0] ?? '', ...rest].join('\n')
  return isTrue(first) ? indention + indented : indented
}

function spaces(count: number, budget: Budget): string {
  budget.assertLength(count)
  return ' '.repeat(Math.max(0, count))
}

function truncateText(
  { budget }: Runtime,
  value: Value,
  length: Value,
  killWords: Value,
  end: Value,
  leeway: Value,
): string {
  const text = toText(value, budget)
  const [most, mark] = [toCount(length), toStr(end)]
  const slack = leeway === null ? 5 : toCount(leeway)
  if (most < countCodePoints(mark) || slack < 0)
    throw typeError(`expected length >= ${countCodePoints(mark)}, got ${most}`)
  if (countCodePoints(text) <= most + slack) return text
  const cut = sliceText(text, 0, most - countCodePoints(mark))
  if (isTrue(killWords)) return cut + mark
  return cut.slice(0, Math.max(0, cut.lastIndexOf(' ')) || cut.length) + mark
}

/** Words that begin at the start, or after white space, a hyphen or an opening bracket. */
const WORDS = new RegExp(`([-${SPACE}({\\[<]+)`, 'u')

const title = ({ budget }: Runtime, value: Value): string =>
  toText(value, budget).split(WORDS).map(capitalize).join('')

/** Removes the parts of a text from each `open` to the next `close`, in linear time. */
function removeParts(text: string, open: string, close: string): string {
  const kept: string[] = []
  let at = 0
  for (;;) {
    const start = text.indexOf(open, at)
    const end = start < 0 ? -1 : text.indexOf(close, start)
    if (end < 0) return kept.join('') + text.slice(at)
    kept.push(text.slice(at, start))
    at = end + close.length
  }
}

const stripTags = ({ budget }: Runtime, value: Value): string =>
  removeParts(removeParts(toText(value, budget), '<!--', '-->'), '<', '>')
    .split(new RegExp(`[${SPACE}]+`))
    .filter((word) => word !== '')
    .join(' ')
    .replace(/&(amp|lt|gt|quot|#34|#39);/g, (found) => UNESCAPED.get(found) ?? found)

const UNESCAPED = new Map([
  ['&amp;', '&'],
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&quot;', '"'],
  ['&#34;', '"'],
  ['&#39;', "'"],
])

function urlEncode({ budget }: Runtime, value: Value): string {
  const quote = (part: Value, safeSlash: boolean): string => {
    const encoded = encodeURIComponent(toText(part, budget)).replace(
      /[!'()*]/g,
      (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
    )
    return safeSlash ? encoded.replaceAll('%2F', '/') : encoded.replaceAll('%20', '+')
  }
  if (!(value instanceof Dict)) return quote(value, true)
  return value
    .entries()
    .map(([key, item]) => `${quote(key, false)}=${quote(item, false)}`)
    .join('&')
}

function fileSize({ budget }: Runtime, value: Value, binary: Value): string {
  const bytes = toFloat(value) ?? 0
  const base = isTrue(binary) ? 1024 : 1000
  const units = isTrue(binary)
    ? ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB', 'ZiB', 'YiB']
    : ['kB', 'MB', 'GB', 'TB', 'PB', 'EB', 'ZB', 'YB']
  if (bytes === 1) return '1 Byte'
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`
  const at = Math.min(units.length, Math.floor(Math.log(bytes) / Math.log(base)))
  return `${formatPercent('%.1f', bytes / base ** at, budget)} ${units[at - 1] ?? ''}`
}

function wordCount({ budget }: Runtime, value: Value): bigint {
  return BigInt(toText(value, budget).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0)
}

/** Calls a method of `str` on the text of a value. */
const viaMethod =
  (name: string): Filter =>
  (value, args, runtime) =>
    STRING_METHODS.get(name)?.(toText(value, runtime.budget), args, runtime) ?? ''

// Numbers.

/** Returns `float(value)`; `null` if the value is no number. */
function toFloat(value: Value): number | null {
  if (value instanceof Undefined) throw value.toError()
  if (typeof value === 'string') return parseFloatText(value)
  const number = toNumber(value)
  return number === null ? null : Number(number)
}

function toInt(_: Runtime, value: Value, fallback: Value, base: Value): Value {
  if (value instanceof Undefined) throw value.toError()
  if (typeof value === 'string') {
    const integer = parseInteger(value, toCount(base))
    if (integer !== null) return integer
    const float = parseFloatText(value)
    return float !== null && Number.isFinite(float) ? truncate(float) : fallback
  }
  const number = toNumber(value)
  if (number === null) return fallback
  if (typeof number === 'bigint') return number
  return Number.isFinite(number) ? truncate(number) : fallback
}

function round(_: Runtime, value: Value, precision: Value, method: Value): Value {
  const digits = toCount(precision)
  if (method !== 'common' && method !== 'ceil' && method !== 'floor')
    throw new TemplateError('TemplateRuntimeError', 'method must be common, ceil or floor')
  if (value instanceof Undefined) throw value.toError()
  const number = toNumber(value)
  if (number === null) throw typeError(`type ${typeNameOf(value)} doesn't define __round__ method`)
  if (method === 'common') return roundNumber(number, digits)
  const factor = 10 ** digits
  const scaled = Number(number) * factor
  return (method === 'ceil' ? Math.ceil(scaled) : Math.floor(scaled)) / factor
}

function abs(_: Runtime, value: Value): Value {
  if (value instanceof Undefined) throw value.toError()
  const number = toNumber(value)
  if (number === null) throw typeError(`bad operand type for abs(): '${typeNameOf(value)}'`)
  return number < 0 ? -number : number
}

// Other values.

const fallback = (_: Runtime, value: Value, other: Value, boolean: Value): Value =>
  value instanceof Undefined || (isTrue(boolean) && !isTrue(value)) ? other : value

function items({ budget }: Runtime, value: Value): Value {
  if (value instanceof Undefined) return new PyIterator([])
  if (!(value instanceof Dict)) throw typeError('Can only get item pairs from a mapping.')
  budget.items(value.size)
  return new PyIterator(value.entries().map((entry) => new Tuple(entry)))
}

/** Returns JSON without HTML escapes, as transformers does. */
function json(
  { budget }: Runtime,
  value: Value,
  ensureAscii: Value,
  indention: Value,
  separators: Value,
  sortKeys: Value,
): string {
  const given = separators instanceof Tuple ? separators.items : separators
  const [item, key] = Array.isArray(given)
    ? (given as readonly Value[])
    : [indention === null ? ', ' : ',', ': ']
  return toJson(
    value,
    {
      ensureAscii: isTrue(ensureAscii),
      indent:
        indention === null || typeof indention === 'string'
          ? indention
          : spaces(toCount(indention), budget),
      separators: [toStr(item ?? ''), toStr(key ?? '')],
      sortKeys: isTrue(sortKeys),
    },
    budget,
  )
}

function format(value: Value, { positional, keywords }: Arguments, { budget }: Runtime): string {
  if (positional.length > 0 && keywords.size > 0) {
    throw new TemplateError(
      'TemplateRuntimeError',
      "can't handle positional and keyword arguments at the same time",
    )
  }
  const values = keywords.size > 0 ? new Dict(keywords) : new Tuple(positional)
  return formatPercent(toText(value, budget), values, budget)
}

/** The filters of templates by their names. */
export const FILTERS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ...SEQUENCE_FILTERS,
  ...MARKUP_FILTER_TABLE,
  ...defineAll<Value, Value>({
    abs: [{}, abs],
    attr: [
      { name: REQUIRED },
      (runtime, value, name: Value) => getOnlyAttribute(value, toStr(name), runtime),
    ],
    capitalize: [{}, ({ budget }, value) => capitalize(toText(value, budget))],
    count: [{}, ({ budget }, value) => BigInt(lengthOf(value, budget))],
    d: [{ default_value: '', boolean: false }, fallback],
    default: [{ default_value: '', boolean: false }, fallback],
    e: [{}, escape],
    escape: [{}, escape],
    filesizeformat: [{ binary: false }, fileSize],
    float: [{ default: 0 }, (_, value, other: Value) => toFloat(value) ?? other],
    forceescape: [{}, escape],
    indent: [{ width: 4n, first: false, blank: false }, indent],
    int: [{ default: 0n, base: 10n }, toInt],
    items: [{}, items],
    length: [{}, ({ budget }, value) => BigInt(lengthOf(value, budget))],
    pprint: [{}, ({ budget }, value) => repr(value, budget)],
    replace: [
      { old: REQUIRED, new: REQUIRED, count: null },
      ({ budget }, value, from: Value, to: Value, most: Value) =>
        replaceText(
          toText(value, budget),
          toText(from, budget),
          toText(to, budget),
          most === null ? -1 : toCount(most),
          budget,
        ),
    ],
    round: [{ precision: 0n, method: 'common' }, round],
    safe: [{}, ({ budget }, value) => toText(value, budget)],
    string: [{}, ({ budget }, value) => toText(value, budget)],
    striptags: [{}, stripTags],
    title: [{}, title],
    tojson: [{ ensure_ascii: false, indent: null, separators: null, sort_keys: false }, json],
    trim: [
      { chars: null },
      ({ budget }, value, chars: Value) => strip(toText(value, budget), chars, 'both'),
    ],
    truncate: [{ length: 255n, killwords: false, end: '...', leeway: null }, truncateText],
    urlencode: [{}, urlEncode],
    wordcount: [{}, wordCount],
  }),
  ['center', (value, args, runtime) => center(value, args, runtime)],
  ['format', format],
  ['lower', viaMethod('lower')],
  ['upper', viaMethod('upper')],
])

function center(value: Value, args: Arguments, runtime: Runtime): Value {
  const width = args.positional[0] ?? args.keywords.get('width') ?? 80n
  if (toCount(width) > 1_000_000) throw valueError('The width is too large')
  return viaMethod('center')(value, { positional: [width], keywords: new Map() }, runtime)
}
