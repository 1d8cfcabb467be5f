/**
 * Parses ECMAScript regular expressions with the flag `u`, as far as a grammar can express them.
 */
import {
  ANY,
  type Characters,
  characters,
  complement,
  intersection,
  one,
  size,
} from './characters.ts'
import { choice, EMPTY, type Expression, repeat, sequence } from './expression.ts'

/** Reason why a pattern is not supported. The caller names the pattern. */
export class PatternError extends Error {}

const DIGIT: Characters = [[0x30, 0x39]]
const WORD = characters([...DIGIT, [0x41, 0x5a], [0x61, 0x7a], [0x5f, 0x5f]])
const LINE_ENDS = characters([
  [0xa, 0xa],
  [0xd, 0xd],
  [0x2028, 0x2029],
])
const SPACE = characters([
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
])
const CLASSES: Readonly<Record<string, Characters>> = {
  d: DIGIT,
  D: complement(DIGIT),
  w: WORD,
  W: complement(WORD),
  s: SPACE,
  S: complement(SPACE),
}
const CONTROLS: Readonly<Record<string, string>> = {
  t: '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
  0: '\0',
}
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
  const source = Array.from(pattern)
  let at = 0
  const fail = (what: string): never => {
    throw new PatternError(`${what} at character ${at + 1}`)
  }
  const take = (character: string): boolean => source[at] === character && ++at > 0

  const alternation = (top: boolean): Expression => {
    const parts = [alternative(top)]
    while (take('|')) parts.push(alternative(top))
    return choice(...parts)
  }

  const alternative = (top: boolean): Expression => {
    const isAnchored = top && take('^')
    const parts: Expression[] = isAnchored || !top ? [] : [anything]
    let ended = false
    while (at < source.length && source[at] !== '|' && source[at] !== ')') {
      if (top && source[at] === '$' && [undefined, '|'].includes(source[at + 1])) {
        ended = take('$')
      } else parts.push(quantified())
    }
    if (top && source[at] === ')') fail('an unmatched )')
    if (top && !ended) parts.push(anything)
    return sequence(...parts)
  }

  const quantified = (): Expression => {
    const part = atom()
    let [min, max] = [1, 1]
    if (take('*')) [min, max] = [0, Infinity]
    else if (take('+')) [min, max] = [1, Infinity]
    else if (take('?')) [min, max] = [0, 1]
    else if (source[at] === '{') [min, max] = braces()
    else return part
    take('?')
    if (max < min) fail('a range in the wrong order')
    return part === EMPTY ? EMPTY : repeat(part, min, max)
  }

  const braces = (): [number, number] => {
    const found = /^\{(\d+)(,)?(\d+)?\}/.exec(source.slice(at, at + 20).join(''))
    if (!found) return fail('a { without a count')
    at += found[0].length
    const counts = toCounts(found)
    if (hasLargeCount(counts)) fail(`a count above ${MAX_REPETITIONS}`)
    return counts
  }

  const atom = (): Expression => {
    const character = source[at]
    if (character === undefined) return fail('an unexpected end')
    if (character === '(') return group()
    if (character === '^' || character === '$') fail(`a ${character} inside the pattern`)
    if ('*+?{}]'.includes(character)) fail(`a ${character} on its own`)
    at += 1
    if (character === '.') return { type: 'set', set: complement(LINE_ENDS) }
    if (character === '[') return { type: 'set', set: bracket() }
    return { type: 'set', set: character === '\\' ? escape() : literal(character) }
  }

  const group = (): Expression => {
    at += 1
    if (take('?')) {
      if (take('<')) {
        if (source[at] === '=' || source[at] === '!') fail('a look-behind')
        while (at < source.length && !take('>')) at += 1
      } else if (!take(':')) fail('a look-ahead')
    }
    const inner = alternation(false)
    if (!take(')')) fail('an unclosed (')
    return inner
  }

  const bracket = (): Characters => {
    const negated = take('^')
    const ranges: (readonly [number, number])[] = []
    while (!take(']')) {
      const from = member()
      const dashed = source[at] === '-' && source[at + 1] !== ']' && source[at + 1] !== undefined
      if (!dashed) {
        ranges.push(...from)
        continue
      }
      at += 1
      const to = member()
      const [first, last] = [from[0]?.[0] ?? 0, to[0]?.[0] ?? 0]
      if (size(from) !== 1 || size(to) !== 1 || last < first) fail('an invalid range')
      ranges.push([first, last])
    }
    const set = intersection(characters(ranges), ANY)
    return negated ? complement(set) : set
  }

  const member = (): Characters => {
    const character = source[at++]
    if (character === undefined) return fail('an unclosed [')
    if (character !== '\\') return literal(character)
    if (take('b')) return one('\b')
    return take('-') ? one('-') : escape()
  }

  const escape = (): Characters => {
    const character = source[at++]
    if (character === undefined) return fail('an unexpected end')
    const known = CLASSES[character]
    if (known) return known
    if (character === 'x' || character === 'u') return coded(character)
    if (character === '0' && /\d/.test(source[at] ?? '')) fail('an octal escape')
    const control = CONTROLS[character]
    if (control !== undefined) return one(control)
    if (character === 'c' && /[a-z]/i.test(source[at] ?? '')) {
      return one(String.fromCharCode((source[at++] ?? '').charCodeAt(0) % 32))
    }
    if (!'^$\\.*+?()[]{}|/'.includes(character)) fail(`an unsupported escape \\${character}`)
    return one(character)
  }

  const coded = (kind: string): Characters => {
    const rest = source.slice(at, at + 12).join('')
    const pair = /^([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})/.exec(rest)
    if (kind === 'u' && pair?.[1] !== undefined && pair[2] !== undefined) {
      at += pair[0].length
      return one(String.fromCharCode(Number.parseInt(pair[1], 16), Number.parseInt(pair[2], 16)))
    }
    const form = kind === 'x' ? /^([0-9a-fA-F]{2})/ : /^(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,8})\})/
    const found = form.exec(rest)
    if (!found) return fail(`\\${kind} without its digits`)
    at += found[0].length
    const code = Number.parseInt(found[1] ?? found[2] ?? '', 16)
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      fail('an escape of an invalid character')
    return [[code, code]]
  }

  const literal = (character: string): Characters => {
    const set = intersection(one(character), ANY)
    return set.length > 0 ? set : fail('half of a surrogate pair')
  }

  const whole = alternation(true)
  return at < source.length ? fail('an unmatched )') : whole
}
