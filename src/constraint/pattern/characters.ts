/** Sets of characters, as ranges of code points. Surrogates in them stand for nothing. */
import { type Characters, memoize } from '../expression.ts'

const MAX_CODE_POINT = 0x10ffff
export const ANY_CHARACTER: Characters = [[0, MAX_CODE_POINT]]

/** Returns the characters of all sets. Here, ranges may be in any order, and touch or overlap. */
export function union(...sets: readonly Characters[]): Characters {
  const merged: [number, number][] = []
  for (const [first, last] of sets.flat().sort((a, b) => a[0] - b[0])) {
    const previous = merged.at(-1)
    if (previous && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last)
    else merged.push([first, last])
  }
  return merged
}

/** Returns the characters that are not in the set. */
export function complement(set: Characters): Characters {
  const others: (readonly [number, number])[] = []
  let next = 0
  for (const [first, last] of set) {
    if (first > next) others.push([next, first - 1])
    next = last + 1
  }
  if (next <= MAX_CODE_POINT) others.push([next, MAX_CODE_POINT])
  return others
}

export const intersection = (some: Characters, others: Characters): Characters =>
  complement(union(complement(some), complement(others)))

export function setOf(character: string): Characters {
  const code = character.codePointAt(0) ?? 0
  return [[code, code]]
}

/** Returns the set of all characters of a text. */
export function setsOf(characters: string): Characters {
  return union(...Array.from(characters, setOf))
}

export const includes = (set: Characters, code: number): boolean =>
  set.some(([first, last]) => first <= code && code <= last)

/** Returns the only character of the set; `undefined` if it has none or several. */
export const onlyOf = (set: Characters): number | undefined =>
  set.length === 1 && set[0]?.[0] === set[0]?.[1] ? set[0]?.[0] : undefined

export const DIGIT: Characters = [[0x30, 0x39]]
export const WORD: Characters = [...DIGIT, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]]
export const LINE_END = setsOf('\n\r\u2028\u2029')
export const SPACE = union(setsOf('\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff'), [
  [0x2000, 0x200a],
])

/** Returns the characters of a Unicode property, such as `Script=Greek`, or `undefined` if it is unknown. */
export const propertyOf = memoize((name: string): Characters | undefined => {
  try {
    return findIn(allCharacters(), new RegExp(`\\p{${name}}+`, 'gu'))
  } catch {
    return undefined
  }
})

/** Returns the characters of the text that match a form, which may match some that follow each other at once. */
const findIn = (text: string, form: RegExp): Characters =>
  union(
    Array.from(text.matchAll(form), ([run]) => {
      const last = /.$/su.exec(run)?.[0]
      return [run.codePointAt(0) ?? 0, last?.codePointAt(0) ?? 0]
    }),
  )

/** Returns a text of all characters, in their order. */
const allCharacters = (): string =>
  Array.from({ length: (MAX_CODE_POINT + 1) / BLOCK }, (_, block) =>
    String.fromCodePoint(...Array.from({ length: BLOCK }, (__, at) => block * BLOCK + at)),
  )
    .filter((block) => !/[\ud800-\udfff]/u.test(block))
    .join('')

const BLOCK = 0x400

/** Text of the characters that have other cases. */
let cased: string | undefined

/** Returns the set with the other cases of its characters, as the flag `i` compares them, with or without `u`. */
export function withOtherCases(set: Characters, isUnicode: boolean): Characters {
  cased ??= [...allCharacters().matchAll(/\p{Changes_When_Casemapped}/gu)].join('')
  const own = isUnicode ? set : intersection(set, [[0, 0xffff]])
  const ranges = own.map((range) => range.map(escapeCharacter).join('-'))
  const form = new RegExp(`[${ranges.join('')}]`, isUnicode ? 'giu' : 'gi')
  return union(set, findIn(cased, form))
}

/** Returns the escape of a character in a regular expression. */
export const escapeCharacter = (code: number): string =>
  code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`

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
