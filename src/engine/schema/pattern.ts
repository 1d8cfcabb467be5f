/**
 * Parses ECMAScript regular expressions with the flag `u`, as far as a grammar can express them.
 */
import { ANY } from './characters.ts'
import { choice, EMPTY, type Expression, repeat, sequence } from './expression.ts'
import { parseCharacters } from './pattern-characters.ts'
import { createPatternCursor, type PatternCursor, PatternError } from './pattern-cursor.ts'

const MAX_REPETITIONS = 100_000
/** Maximum length of a pattern in UTF-16 units. Longer ones take seconds, or exhaust the stack. */
const MAX_PATTERN_CHARACTERS = 50_000

/**
 * Returns the counts of `{min}`, `{min,}` or `{min,max}` from the groups of a match: the minimum, the
 * comma and the maximum.
 */
export function toCounts([, least, comma, most]: RegExpExecArray): [min: number, max: number] {
  const min = Number(least)
  return [min, most === undefined ? (comma ? Infinity : min) : Number(most)]
}

/** Returns `true` if a repetition has a count that is too large to compile. */
export const hasLargeCount = ([min, max]: readonly [number, number]): boolean =>
  min > MAX_REPETITIONS || (max > MAX_REPETITIONS && max < Infinity)

const anything = repeat({ type: 'set', set: ANY }, 0)

/** Returns the texts in which the pattern is found. Throws a {@link PatternError}. */
export function parsePattern(pattern: string): Expression {
  if (pattern.length > MAX_PATTERN_CHARACTERS)
    throw new PatternError(`more than ${MAX_PATTERN_CHARACTERS} characters`)
  const cursor = createPatternCursor(pattern)
  const whole = alternation(cursor, true)
  return cursor.peek() === undefined ? whole : cursor.fail('an unmatched )')
}

function alternation(cursor: PatternCursor, top: boolean): Expression {
  const parts = [alternative(cursor, top)]
  while (cursor.take('|')) parts.push(alternative(cursor, top))
  return choice(...parts)
}

function alternative(cursor: PatternCursor, top: boolean): Expression {
  const isAnchored = top && cursor.take('^')
  const parts: Expression[] = isAnchored || !top ? [] : [anything]
  let ended = false
  while (![undefined, '|', ')'].includes(cursor.peek())) {
    if (top && [undefined, '|'].includes(cursor.peek(1)) && cursor.take('$')) ended = true
    else parts.push(quantified(cursor))
  }
  if (top && cursor.peek() === ')') cursor.fail('an unmatched )')
  if (top && !ended) parts.push(anything)
  return sequence(...parts)
}

function quantified(cursor: PatternCursor): Expression {
  const part = atom(cursor)
  let [min, max] = [1, 1]
  if (cursor.take('*')) [min, max] = [0, Infinity]
  else if (cursor.take('+')) [min, max] = [1, Infinity]
  else if (cursor.take('?')) [min, max] = [0, 1]
  else if (cursor.peek() === '{') [min, max] = braces(cursor)
  else return part
  cursor.take('?')
  if (max < min) cursor.fail('a range in the wrong order')
  return part === EMPTY ? EMPTY : repeat(part, min, max)
}

function braces(cursor: PatternCursor): [number, number] {
  const found = cursor.match(/^\{(\d+)(,)?(\d+)?\}/)
  const counts = toCounts(found ?? cursor.fail('a { without a count'))
  if (hasLargeCount(counts)) cursor.fail(`a count above ${MAX_REPETITIONS}`)
  return counts
}

function atom(cursor: PatternCursor): Expression {
  const character = cursor.peek()
  if (character === undefined) return cursor.fail('an unexpected end')
  if (cursor.take('(')) return group(cursor)
  if ('^$'.includes(character)) cursor.fail(`a ${character} inside the pattern`)
  if ('*+?{}]'.includes(character)) cursor.fail(`a ${character} on its own`)
  return { type: 'set', set: parseCharacters(cursor) }
}

function group(cursor: PatternCursor): Expression {
  if (cursor.take('?')) {
    if (cursor.take('<')) {
      if (cursor.peek() === '=' || cursor.peek() === '!') cursor.fail('a look-behind')
      while (cursor.peek() !== undefined && !cursor.take('>')) cursor.next()
    } else if (!cursor.take(':')) cursor.fail('a look-ahead')
  }
  const inner = alternation(cursor, false)
  if (!cursor.take(')')) cursor.fail('an unclosed (')
  return inner
}
