/** Filters of jinja2 that make HTML of texts, or wrap their lines. */
import { typeError, valueError } from './errors.ts'
import { defineAll, type Filter, type Runtime } from './functions.ts'
import { escapeHtml } from './markup.ts'
import { iterate } from './sequences.ts'
import { splitLines } from './string-methods.ts'
import { countCodePoints, repr, sliceText, SPACE, toCodePoints, toText } from './text.ts'
import { Dict, isTrue, toCount, toStr, typeNameOf, Undefined, type Value } from './values.ts'

// Links.

const WORD = '\\p{L}\\p{N}_'
const HOST = `[${WORD}%-]`
const ADDRESS = new RegExp(
  '^(?:' +
    `(?:https?://|www\\.)(?:(?:${HOST}+\\.)+)?(?:[a-z]{2,63}|xn--[${WORD}%]{2,59})` +
    `|(?:${HOST}{2,63}\\.)+(?:com|net|int|edu|gov|org|info|mil)` +
    '|https?://(?:\\p{Nd}{1,3}(?:\\.\\p{Nd}{1,3}){3}' +
    '|\\[(?:[\\p{Nd}a-f]{0,4}:){2}(?:[\\p{Nd}a-f]{0,4}:?){1,6}\\])' +
    `)(?::\\p{Nd}{1,5})?(?:[/?#][^${SPACE}]*)?$`,
  'iu',
)
const EMAIL = new RegExp(`^[^${SPACE}]+@[${WORD}][${WORD}.-]*\\.[${WORD}]+$`, 'u')
const SCHEME = new RegExp(`^[${WORD}.+-]{2,}:/{0,2}$`, 'u')
const SPACES = new RegExp(`([${SPACE}]+)`, 'u')
const HEAD = /^(?:\(|&lt;)+/
const BRACKETS = [
  ['(', ')'],
  ['&lt;', '&gt;'],
] as const
const TAILS = [')', '.', ',', '&gt;']

function urlize(
  { budget }: Runtime,
  value: Value,
  limit: Value,
  noFollow: Value,
  target: Value,
  rel: Value,
  schemes: Value,
): string {
  const text = escapeHtml(toText(value, budget))
  budget.read(text)
  const rels = new Set(['noopener', ...(isTrue(rel) ? toStr(rel).split(SPACES) : [])])
  if (isTrue(noFollow)) rels.add('nofollow')
  const kinds = [...rels].filter((kind) => kind.trim() !== '').sort()
  const attributes =
    ` rel="${escapeHtml(kinds.join(' '))}"` +
    (isTrue(target) ? ` target="${escapeHtml(toText(target, budget))}"` : '')
  const others = schemes === null ? [] : iterate(schemes, budget).map(toStr)
  for (const scheme of others) {
    if (!SCHEME.test(scheme))
      throw valueError(`${repr(scheme, budget)} is not a valid URI scheme prefix.`)
  }
  const most = limit === null ? Infinity : toCount(limit)
  const trim = (url: string): string =>
    countCodePoints(url) > most ? `${sliceText(url, 0, most)}...` : url

  const link = (url: string): string => {
    if (ADDRESS.test(url)) {
      const scheme = /^https?:\/\//.test(url) ? '' : 'https://'
      return `<a href="${scheme}${url}"${attributes}>${trim(url)}</a>`
    }
    if (url.startsWith('mailto:') && EMAIL.test(url.slice(7)))
      return `<a href="${url}">${url.slice(7)}</a>`
    if (/^(?!www\.|@)[^:]*$/.test(url) && EMAIL.test(url))
      return `<a href="mailto:${url}">${url}</a>`
    // Each scheme that fits encloses the link of the one before.
    return others.reduce(
      (made, scheme) =>
        made !== scheme && made.startsWith(scheme)
          ? `<a href="${made}"${attributes}>${made}</a>`
          : made,
      url,
    )
  }
  const linked = text
    .split(SPACES)
    .map((word) => {
      const { head, middle, tail } = splitWord(word)
      return head + link(middle) + tail
    })
    .join('')
  budget.assertLength(linked.length)
  return linked
}

/** Cuts off brackets before a word and punctuation after it, unless a bracket belongs to the word. */
function splitWord(word: string): { head: string; middle: string; tail: string } {
  const [head = ''] = HEAD.exec(word) ?? []
  let to = word.length
  for (;;) {
    const mark = TAILS.find((each) => word.endsWith(each, to) && to - each.length >= head.length)
    if (mark === undefined) break
    to -= mark.length
  }
  for (const [open, close] of BRACKETS) {
    const middle = word.slice(head.length, to)
    const opened = count(middle, open)
    if (opened <= count(middle, close)) continue
    const closed = count(word.slice(to), close)
    for (let moved = 0; moved < Math.min(opened, closed); moved += 1)
      to = word.indexOf(close, to) + close.length
  }
  return { head, middle: word.slice(head.length, to), tail: word.slice(to) }
}

const count = (text: string, mark: string): number => text.split(mark).length - 1

// Attributes.

function toAttributes({ budget }: Runtime, value: Value, autospace: Value): string {
  if (value instanceof Undefined) throw value.toError()
  if (!(value instanceof Dict)) throw typeError(`'${typeNameOf(value)}' object has no items`)
  const written = value
    .entries()
    .filter(([, item]) => item !== null && !(item instanceof Undefined))
    .map(([key, item]) => {
      const name = toStr(key)
      if (/[ \t-\r/>=]/.test(name))
        throw valueError(`Invalid character in attribute name: ${repr(name, budget)}`)
      return `${escapeHtml(name)}="${escapeHtml(toText(item, budget))}"`
    })
    .join(' ')
  return written !== '' && isTrue(autospace) ? ` ${written}` : written
}

// Lines.

const LETTER = '[\\p{L}\\p{Nl}\\p{No}_]'
const INK = '[^\\t-\\r ]'
const PUNCTUATION = `[${WORD}!"'&.,?]`
/** Parts between which lines may break: spaces, dashes, and words up to their hyphens. */
const PARTS = new RegExp(
  `[\\t-\\r ]+|(?<=${PUNCTUATION})-{2,}(?=[${WORD}])|${INK}+?(?:` +
    `-(?:(?<=${LETTER}{2}-)|(?<=${LETTER}-${LETTER}-))(?=${LETTER}-?${LETTER})` +
    `|(?=[\\t-\\r ]|$)|(?<=${PUNCTUATION})(?=-{2,}[${WORD}]))`,
  'gu',
)
const WHOLE_PARTS = new RegExp(`[\\t-\\r ]+|${INK}+`, 'gu')

function wordWrap(
  { budget }: Runtime,
  value: Value,
  width: Value,
  breaksWords: Value,
  separator: Value,
  breaksHyphens: Value,
): string {
  if (value instanceof Undefined) throw value.toError()
  const text = toStr(value)
  budget.spend(text.length)
  const lines = splitLines(text)
  const most = toCount(width)
  if (most <= 0 && lines.length > 0) throw valueError(`invalid width ${most} (must be > 0)`)
  const parts = breaksHyphens === true ? PARTS : WHOLE_PARTS
  const joiner = separator === null ? '\n' : toStr(separator)
  const wrapped = lines
    .map((line) =>
      wrapLine(line.match(parts) ?? [], most, isTrue(breaksWords), isTrue(breaksHyphens)).join(
        joiner,
      ),
    )
    .join(joiner)
  budget.assertLength(wrapped.length)
  return wrapped
}

/** Returns the lines of the parts of a line, as Python's `textwrap` does. */
function wrapLine(
  texts: readonly string[],
  width: number,
  breaksWords: boolean,
  breaksHyphens: boolean,
): string[] {
  const parts = texts.map(toPart).toReversed()
  const lines: string[] = []
  for (let part = parts.at(-1); part; part = parts.at(-1)) {
    const line: string[][] = []
    let length = 0
    const add = (signs: string[]): void => {
      line.push(signs)
      length += signs.length
    }
    if (lines.length > 0 && part.from > part.lastInk) parts.pop()
    for (part = parts.at(-1); part && length + rest(part) <= width; part = parts.at(-1)) {
      add(part.signs.slice(part.from))
      parts.pop()
    }
    if (part && rest(part) > width && breaksWords) {
      const { signs, from } = part
      const piece = signs.slice(from, from + width - length)
      const hyphen = breaksHyphens ? piece.lastIndexOf('-') : -1
      const isAfterText = hyphen > 0 && piece.slice(0, hyphen).some((sign) => sign !== '-')
      const cut = isAfterText ? piece.slice(0, hyphen + 1) : piece
      add(cut)
      part.from += cut.length
    } else if (part && rest(part) > width && line.length === 0) {
      add(part.signs.slice(part.from))
      parts.pop()
    }
    if (!line.at(-1)?.some(isInk)) line.pop()
    if (line.length > 0) lines.push(line.flat().join(''))
  }
  return lines
}

/** A part of a line, as code points. */
interface Part {
  signs: string[]
  /** Place of the first code point that no line has yet. */
  from: number
  /** Place of the last code point that is not white space; -1 if there is none. */
  lastInk: number
}

const rest = ({ signs, from }: Part): number => signs.length - from

const isInk = (sign: string): boolean => !SPACE_SIGN.test(sign)
const SPACE_SIGN = new RegExp(`[${SPACE}]`)

function toPart(text: string): Part {
  const signs = toCodePoints(text)
  return { signs, from: 0, lastInk: signs.findLastIndex(isInk) }
}

/** The filters of this file by their names. */
export const MARKUP_FILTER_TABLE: readonly (readonly [string, Filter])[] = defineAll<Value, Value>({
  urlize: [
    { trim_url_limit: null, nofollow: false, target: null, rel: null, extra_schemes: null },
    urlize,
  ],
  wordwrap: [
    { width: 79n, break_long_words: true, wrapstring: null, break_on_hyphens: true },
    wordWrap,
  ],
  xmlattr: [{ autospace: true }, toAttributes],
})
