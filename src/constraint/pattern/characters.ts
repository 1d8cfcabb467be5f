/** Sets of characters, as ranges of code points. Surrogates in them stand for nothing. */
import { type CharacterRange, complement, MAX_CODE_POINT, normalizeRanges } from '../expression.ts'

/** Ranges of code points, which ascend and do not touch. */
export type Characters = readonly CharacterRange[]

export const union = (...sets: readonly Characters[]): Characters => normalizeRanges(sets.flat())

export const intersection = (some: Characters, others: Characters): Characters =>
  complement(union(complement(some), complement(others)))

export function one(character: string): Characters {
  const code = character.codePointAt(0) ?? 0
  return [[code, code]]
}

export const includes = (set: Characters, code: number): boolean =>
  set.some(([first, last]) => first <= code && code <= last)

/** Returns the only character of the set; `undefined` if it has none or several. */
export const onlyOf = (set: Characters): number | undefined =>
  set.length === 1 && set[0]?.[0] === set[0]?.[1] ? set[0]?.[0] : undefined

export const DIGIT: Characters = [[0x30, 0x39]]
export const WORD: Characters = [...DIGIT, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]]
export const LINE_END: Characters = [
  [0xa, 0xa],
  [0xd, 0xd],
  [0x2028, 0x2029],
]
export const SPACE: Characters = [
  [0x9, 0xd],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]

/** Last character that UTF-16 writes as one unit. */
const LAST_OF_ONE_UNIT = 0xffff
/** Units of which two write another character. */
const SURROGATES: CharacterRange = [0xd800, 0xdfff]

const properties = new Map<string, Characters>()

/**
 * Returns the characters that have a Unicode property, such as `Script=Greek` or `Lu`; `undefined` if the property is
 * unknown. It asks the regular expressions of JavaScript about each character.
 */
export function propertyOf(name: string): Characters | undefined {
  const known = properties.get(name)
  if (known) return known
  let form: RegExp
  try {
    form = new RegExp(`\\p{${name}}+`, 'gu')
  } catch {
    return undefined
  }
  const found = [...allCharacters().matchAll(form)].map(([text]): CharacterRange => {
    const last = text.codePointAt(text.length - 2) ?? 0
    return [
      text.codePointAt(0) ?? 0,
      last > LAST_OF_ONE_UNIT ? last : text.charCodeAt(text.length - 1),
    ]
  })
  const set = normalizeRanges(found)
  properties.set(name, set)
  return set
}

/** Returns a text of all characters, in their order. */
function allCharacters(): string {
  const [firstSurrogate, lastSurrogate] = SURROGATES
  const units = new Uint16Array(2 * (MAX_CODE_POINT + 1))
  let length = 0
  for (let code = 0; code <= LAST_OF_ONE_UNIT; code += 1) {
    if (code < firstSurrogate || code > lastSurrogate) units[length++] = code
  }
  for (let high = firstSurrogate; high < firstSurrogate + 0x400; high += 1) {
    for (let low = firstSurrogate + 0x400; low <= lastSurrogate; low += 1) {
      units[length++] = high
      units[length++] = low
    }
  }
  return new TextDecoder('utf-16le', { ignoreBOM: true }).decode(units.subarray(0, length))
}

/** Maps each character that has other cases to all that are equal to it if case is ignored. */
type Cases = ReadonlyMap<number, readonly number[]>
const cases = new Map<boolean, Cases>()

/** Returns the set with the other cases of its characters, as the flag `i` compares them, with or without `u`. */
export function withOtherCases(set: Characters, isUnicode: boolean): Characters {
  const others: CharacterRange[] = []
  for (const [code, equal] of casesOf(isUnicode)) {
    if (includes(set, code)) others.push(...equal.map((other): CharacterRange => [other, other]))
  }
  return union(set, others)
}

/** Last character with two cases, a letter of Adlam. */
const LAST_CASED = 0x1e943

function casesOf(isUnicode: boolean): Cases {
  const known = cases.get(isUnicode)
  if (known) return known
  const byKey = new Map<number, number[]>()
  const last = isUnicode ? LAST_CASED : 0xffff
  for (let code = 0; code <= last; code += 1) {
    const key = isUnicode ? foldCase(code) : upperCase(code)
    const equal = byKey.get(key)
    if (equal) equal.push(code)
    else byKey.set(key, [code])
  }
  const found = new Map<number, readonly number[]>()
  for (const equal of byKey.values()) {
    if (equal.length > 1) for (const code of equal) found.set(code, equal)
  }
  cases.set(isUnicode, found)
  return found
}

/** Returns the only character of the text, and the other character if the text has several. */
function onlyCharacter(text: string, other: number): number {
  const code = text.codePointAt(0) ?? other
  return String.fromCodePoint(code).length === text.length ? code : other
}

/** Returns what the flag `i` compares without `u`. A character outside ASCII never equals one of ASCII. */
function upperCase(code: number): number {
  const upper = onlyCharacter(String.fromCodePoint(code).toUpperCase(), code)
  return code >= 0x80 && upper < 0x80 ? code : upper
}

/** Returns what the flag `i` compares with `u`, which is Unicode's simple case folding. */
function foldCase(code: number): number {
  // Only Turkic languages fold the dotless i.
  if (code === 0x131) return code
  const upper = onlyCharacter(String.fromCodePoint(code).toUpperCase(), code)
  return onlyCharacter(String.fromCodePoint(upper).toLowerCase(), upper)
}

/** Maximum number of ranges that are looked up in sets. */
const MAX_DIVISIONS = 200_000

/** Divides all characters into sets that are each inside or outside of each given set. */
export function divide(sets: readonly Characters[]): Characters[] {
  const distinct = [...new Map(sets.map((set) => [set.join(), set])).values()]
  const bounds = new Set([0])
  for (const set of distinct) {
    for (const [first, last] of set) bounds.add(first).add(last + 1)
  }
  const starts = [...bounds]
    .filter((code) => code <= MAX_CODE_POINT)
    .sort((some, other) => some - other)
  if (starts.length * distinct.length > MAX_DIVISIONS) {
    throw new PatternError('a condition with too many sets of characters')
  }
  const byKey = new Map<string, [number, number][]>()
  starts.forEach((first, index) => {
    const last = (starts[index + 1] ?? MAX_CODE_POINT + 1) - 1
    const key = distinct.map((set) => Number(includes(set, first))).join('')
    const ranges = byKey.get(key)
    const before = ranges?.at(-1)
    if (before?.[1] === first - 1) before[1] = last
    else if (ranges) ranges.push([first, last])
    else byKey.set(key, [[first, last]])
  })
  return [...byKey.values()]
}

/** Part of a regular expression that is not supported. The message has the form "a backreference at character 5". */
export class PatternError extends Error {
  override name = 'PatternError'
}
