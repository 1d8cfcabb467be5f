/** Lets an expression ignore the case of letters. */
import { type Characters, characters, contains, size } from '../../engine/schema/characters.ts'
import { choice, type Expression, repeat, sequence } from '../../engine/schema/expression.ts'

/** Scripts whose letters have two cases: Latin, Greek and Cyrillic. */
const CASED: Characters = [
  [0x41, 0x5a],
  [0x61, 0x7a],
  [0xc0, 0x24f],
  [0x370, 0x52f],
]

/** Size of a set above which it is taken for the complement of what the pattern names. */
const LARGE_SET = 2_000

/** Returns the expression of texts that match in any case of their letters. */
export function ignoreCase(expression: Expression): Expression {
  switch (expression.type) {
    case 'text':
      return sequence(...Array.from(expression.text, (one) => setOf(codeOf(one))))
    case 'set':
      return { type: 'set', set: withBothCases(expression.set) }
    case 'sequence':
      return sequence(...expression.parts.map(ignoreCase))
    case 'choice':
      return choice(...expression.parts.map(ignoreCase))
    case 'repeat':
      return repeat(ignoreCase(expression.part), expression.min, expression.max)
    default:
      return expression
  }
}

const setOf = (code: number): Expression => ({
  type: 'set',
  set: withBothCases([[code, code]]),
})

/**
 * Adds the other case of each letter. From a complement, it removes the letters whose other case is
 * not in it.
 */
function withBothCases(set: Characters): Characters {
  const isComplement = size(set) > LARGE_SET
  const added: [number, number][] = []
  const removed = new Set<number>()
  for (const [first, last] of CASED) {
    for (let code = first; code <= last; code += 1) {
      if (!contains(set, code)) continue
      for (const other of otherCases(code)) {
        if (!isComplement) added.push([other, other])
        else if (!contains(set, other)) removed.add(code)
      }
    }
  }
  return isComplement ? without(set, removed) : characters([...set, ...added])
}

/** Returns the other cases of a letter that are one character. */
function otherCases(code: number): number[] {
  const letter = String.fromCodePoint(code)
  return [letter.toLowerCase(), letter.toUpperCase()].flatMap((other) =>
    other !== letter && Array.from(other).length === 1 ? [codeOf(other)] : [],
  )
}

function without(set: Characters, removed: ReadonlySet<number>): Characters {
  const kept: [number, number][] = []
  for (const [first, last] of set) {
    let from = first
    for (const code of [...removed].sort((one, other) => one - other)) {
      if (code < from || code > last) continue
      if (code > from) kept.push([from, code - 1])
      from = code + 1
    }
    if (from <= last) kept.push([from, last])
  }
  return kept
}

const codeOf = (character: string): number => character.codePointAt(0) ?? 0
