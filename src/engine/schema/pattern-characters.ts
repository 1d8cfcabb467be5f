/** Parses what stands for one character in a pattern: a character, an escape or a set in brackets. */
import {
  ANY,
  type Characters,
  characters,
  complement,
  intersection,
  one,
  size,
} from './characters.ts'
import type { PatternCursor } from './pattern-cursor.ts'

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

/** Returns the characters that the next part of the pattern stands for. */
export function parseCharacters(cursor: PatternCursor): Characters {
  if (cursor.take('.')) return complement(LINE_ENDS)
  if (cursor.take('[')) return bracket(cursor)
  return cursor.take('\\') ? escape(cursor) : literal(cursor, cursor.next() ?? '')
}

function bracket(cursor: PatternCursor): Characters {
  const negated = cursor.take('^')
  const ranges: (readonly [number, number])[] = []
  while (!cursor.take(']')) {
    const from = member(cursor)
    const last = cursor.peek(1)
    if (last === ']' || last === undefined || !cursor.take('-')) {
      ranges.push(...from)
      continue
    }
    const to = member(cursor)
    const [first, end] = [from[0]?.[0] ?? 0, to[0]?.[0] ?? 0]
    if (size(from) !== 1 || size(to) !== 1 || end < first) cursor.fail('an invalid range')
    ranges.push([first, end])
  }
  const set = intersection(characters(ranges), ANY)
  return negated ? complement(set) : set
}

function member(cursor: PatternCursor): Characters {
  const character = cursor.next()
  if (character === undefined) return cursor.fail('an unclosed [')
  if (character !== '\\') return literal(cursor, character)
  if (cursor.take('b')) return one('\b')
  return cursor.take('-') ? one('-') : escape(cursor)
}

function escape(cursor: PatternCursor): Characters {
  const character = cursor.next()
  if (character === undefined) return cursor.fail('an unexpected end')
  const known = CLASSES[character]
  if (known) return known
  if (character === 'x' || character === 'u') return coded(cursor, character)
  if (character === '0' && /\d/.test(cursor.peek() ?? '')) cursor.fail('an octal escape')
  const control = CONTROLS[character]
  if (control !== undefined) return one(control)
  const letter = character === 'c' && cursor.match(/^[a-z]/i)
  if (letter) return one(String.fromCharCode(letter[0].charCodeAt(0) % 32))
  if (!'^$\\.*+?()[]{}|/'.includes(character)) cursor.fail(`an unsupported escape \\${character}`)
  return one(character)
}

/** Parses the digits of an escape that begins with `\x` or `\u`. */
function coded(cursor: PatternCursor, kind: 'x' | 'u'): Characters {
  const parse = (digits = ''): number => Number.parseInt(digits, 16)
  const pair =
    kind === 'u' && cursor.match(/^([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})/)
  if (pair) return one(String.fromCharCode(parse(pair[1]), parse(pair[2])))
  const form = kind === 'x' ? /^([0-9a-fA-F]{2})/ : /^(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,8})\})/
  const found = cursor.match(form)
  if (!found) return cursor.fail(`\\${kind} without its digits`)
  const code = parse(found[1] ?? found[2])
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
    cursor.fail('an escape of an invalid character')
  return [[code, code]]
}

function literal(cursor: PatternCursor, character: string): Characters {
  const set = intersection(one(character), ANY)
  return set.length > 0 ? set : cursor.fail('half of a surrogate pair')
}
