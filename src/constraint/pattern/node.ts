/** Regular expressions as data, and how they are written for the engine. */
import {
  type Characters,
  type CharacterSet,
  type Choice,
  childrenOf,
  EMPTY,
  type Expression,
  NOTHING,
  type Repetition,
  type Sequence,
} from '../expression.ts'
import { ANY_CHARACTER, complement, onlyOf, union } from './characters.ts'

/** A place in the text that a pattern can require. */
export type Assertion = 'start' | 'end' | 'line-start' | 'line-end' | 'boundary' | 'no-boundary'

export type Pattern =
  | CharacterSet
  | Sequence<Pattern>
  | Choice<Pattern>
  | Repetition<Pattern>
  | { type: 'assertion'; assertion: Assertion }
  /** A condition on the text that follows, or that comes before. */
  | { type: 'look'; part: Pattern; isBehind: boolean; isNegative: boolean }

/** A pattern without assertions. */
export type PlainPattern =
  | CharacterSet
  | Sequence<PlainPattern>
  | Choice<PlainPattern>
  | Repetition<PlainPattern>

/** Matches any text. */
export const ANYTHING: Pattern = {
  type: 'repeat',
  part: { type: 'set', set: ANY_CHARACTER },
  min: 0,
  max: Infinity,
}

export function sequence(...parts: readonly Pattern[]): Pattern {
  const flat = parts.flatMap((part) => (part.type === 'sequence' ? part.parts : [part]))
  if (flat.includes(NOTHING)) return NOTHING
  const [only = EMPTY] = flat
  return flat.length < 2 ? only : { type: 'sequence', parts: flat }
}

/** Joins the sets among the parts into one. */
export function choice(...parts: readonly Pattern[]): Pattern {
  const flat = parts.flatMap((part) => (part.type === 'choice' ? part.parts : [part]))
  const sets = flat.flatMap((part) => (part.type === 'set' ? [part.set] : []))
  const others = [...new Set(flat.filter((part) => part.type !== 'set'))]
  const all: readonly Pattern[] =
    sets.length > 0 ? [{ type: 'set', set: union(...sets) }, ...others] : others
  const [only = NOTHING] = all
  return all.length < 2 ? only : { type: 'choice', parts: all }
}

export function repeat(part: Pattern, min: number, max: number): Pattern {
  if (max === 0 || part === EMPTY) return EMPTY
  if (part === NOTHING) return min === 0 ? EMPTY : NOTHING
  if (min === 1 && max === 1) return part
  const isStar = part.type === 'repeat' && part.min === 0 && part.max === Infinity
  return isStar ? part : { type: 'repeat', part, min, max }
}

/** Returns the lowest and the highest number of characters that a text of the pattern has. */
export function lengthsOf(pattern: Pattern): readonly [min: number, max: number] {
  if (pattern.type === 'set') return [1, 1]
  if (pattern.type === 'repeat') {
    const [min, max] = lengthsOf(pattern.part)
    return [min * pattern.min, max === 0 ? 0 : max * pattern.max]
  }
  if (pattern.type === 'assertion' || pattern.type === 'look') return [0, 0]
  const parts = pattern.parts.map(lengthsOf)
  const [least, most] = [parts.map(([min]) => min), parts.map(([, max]) => max)]
  return pattern.type === 'sequence'
    ? [sum(least), sum(most)]
    : [Math.min(...least), Math.max(...most)]
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** Returns the number of patterns inside, with itself. */
export function sizeOf(pattern: Pattern): number {
  if (pattern.type === 'set') return 1 + pattern.set.length
  return 1 + sum(childrenOf(pattern).map(sizeOf))
}

/** Returns the pattern as the engine reads it. It has no assertions and looks nowhere. */
export function write(pattern: Pattern | Expression): string {
  switch (pattern.type) {
    case 'text':
      return Array.from(pattern.text, (each) => writeCharacter(each.codePointAt(0) ?? 0)).join('')
    case 'set':
      return writeSet(pattern.set)
    case 'sequence':
      return pattern.parts
        .map((part) => (part.type === 'choice' ? grouped(part) : write(part)))
        .join('')
    case 'choice':
      return pattern.parts.length === 0 ? writeSet([]) : pattern.parts.map(write).join('|')
    case 'repeat': {
      const { part, min, max } = pattern
      if (max === 0) return ''
      return `${part.type === 'set' ? write(part) : grouped(part)}${writeCount(min, max)}`
    }
    default:
      throw new TypeError('An assertion cannot be written.')
  }
}

const grouped = (pattern: Pattern | Expression): string => `(?:${write(pattern)})`

export function writeCount(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`
  if (min === 0 && max === 1) return '?'
  return min === max ? `{${min}}` : `{${min},${max}}`
}

/** Last character before the surrogates, and first one behind them. */
const [BEFORE_SURROGATES, BEHIND_SURROGATES] = [0xd7ff, 0xe000]

function writeSet(set: Characters): string {
  const some = set.flatMap(([first, last]): Characters => {
    const from = isSurrogate(first) ? BEHIND_SURROGATES : first
    const to = isSurrogate(last) ? BEFORE_SURROGATES : last
    return from <= to ? [[from, to]] : []
  })
  const only = onlyOf(some)
  if (only !== undefined) return writeCharacter(only)
  if (some.length === 0) return `[^${writeRanges(ANY_CHARACTER)}]`
  const others = complement(some)
  if (others.length === 0) return '(?s:.)'
  return others.length < some.length && !others.flat().some(isSurrogate)
    ? `[^${writeRanges(others)}]`
    : `[${writeRanges(some)}]`
}

const isSurrogate = (code: number): boolean => code > BEFORE_SURROGATES && code < BEHIND_SURROGATES

const writeRanges = (ranges: Characters): string =>
  ranges
    .map(([first, last]) =>
      first === last
        ? writeCharacter(first)
        : `${writeCharacter(first)}${last > first + 1 ? '-' : ''}${writeCharacter(last)}`,
    )
    .join('')

/** Escapes all that means something in an expression, in a set, or in the grammar around them. */
function writeCharacter(code: number): string {
  const character = String.fromCodePoint(code)
  return /^[\w !"%',:;=@`]$/.test(character) ? character : `\\x{${code.toString(16).toUpperCase()}}`
}
