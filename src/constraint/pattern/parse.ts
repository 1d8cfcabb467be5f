/**
 * Parses regular expressions of ECMAScript. It reads characters as with the flag `u`, escapes as without it (annex B),
 * and a few spellings of Python: `(?P<name>…)`, `\A`, `\Z` and `(?#…)`.
 */
import { type Characters, EMPTY } from '../expression.ts'
import {
  ANY_CHARACTER,
  complement,
  DIGIT,
  LINE_END,
  setOf,
  onlyOf,
  PatternError,
  propertyOf,
  SPACE,
  union,
  withOtherCases,
  WORD,
} from './characters.ts'
import { type Assertion, choice, type Pattern, repeat, sequence } from './node.ts'

const MAX_CHARACTERS = 50_000
const MAX_DEPTH = 100
/** Maximum count of a repetition. */
const MAX_COUNT = 1_000_000

/** Returns the pattern of a regular expression. Throws a {@link PatternError}. */
export function parsePattern(source: string, flags = ''): Pattern {
  const unknown = /[^dgimsuy]/.exec(flags)
  if (unknown) throw new PatternError(`the flag ${unknown[0]}`)
  if (source.length > MAX_CHARACTERS) {
    throw new PatternError(`more than ${MAX_CHARACTERS} characters`)
  }
  return new PatternParser(source, flags).parse()
}

const CLASSES: Readonly<Record<string, Characters>> = {
  d: DIGIT,
  D: complement(DIGIT),
  w: WORD,
  W: complement(WORD),
  s: SPACE,
  S: complement(SPACE),
}
const CONTROLS: Readonly<Record<string, string>> = { t: '\t', n: '\n', v: '\v', f: '\f', r: '\r' }
const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  b: 'boundary',
  B: 'no-boundary',
  A: 'start',
  Z: 'end',
  z: 'end',
}

/** Reads a source from the left to the right. */
export class Scanner {
  readonly source: string
  at = 0

  constructor(source: string) {
    this.source = source
  }

  /** Moves past what the sticky form matches here. */
  match(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.at
    const found = form.exec(this.source)
    if (found) this.at = form.lastIndex
    return found
  }

  /** Moves past the token if it follows. Returns `true` if it does. */
  take(token: string): boolean {
    if (!this.source.startsWith(token, this.at)) return false
    this.at += token.length
    return true
  }
}

class PatternParser extends Scanner {
  #flags: string
  #depth = 0
  /** Number of groups that can be referred to, once it was counted. */
  #groups: number | undefined

  constructor(source: string, flags: string) {
    super(source)
    this.#flags = flags
  }

  parse(): Pattern {
    const whole = this.#choice()
    return this.at === this.source.length ? whole : this.#fail('an unmatched )')
  }

  #choice(): Pattern {
    if (++this.#depth > MAX_DEPTH) this.#fail(`more than ${MAX_DEPTH} groups in each other`)
    const parts = [this.#sequence()]
    while (this.take('|')) parts.push(this.#sequence())
    this.#depth -= 1
    return choice(...parts)
  }

  #sequence(): Pattern {
    const parts: Pattern[] = []
    while (this.at < this.source.length && !/[|)]/.test(this.source[this.at] ?? '')) {
      parts.push(this.#counted(this.#atom()))
    }
    return sequence(...parts)
  }

  #counted(part: Pattern): Pattern {
    const found = this.match(/([*+?])|\{(\d+)(,)?(\d+)?\}/y)
    if (!found) return part
    const [, sign, least = '0', comma, most] = found
    // A lazy repetition finds the same texts.
    if (!this.take('?') && /[*+]/.test(this.source[this.at] ?? '')) {
      this.#fail('a possessive or a second quantifier')
    }
    if (sign) return repeat(part, sign === '+' ? 1 : 0, sign === '?' ? 1 : Infinity)
    const min = Number(least)
    const max = most === undefined ? (comma ? Infinity : min) : Number(most)
    if (max < min) this.#fail('a count whose end is below its beginning')
    if (min > MAX_COUNT || (max > MAX_COUNT && max < Infinity)) {
      this.#fail(`a count above ${MAX_COUNT}`)
    }
    return repeat(part, min, max)
  }

  #atom(): Pattern {
    const isMultiline = this.#flags.includes('m')
    if (this.take('(')) return this.#group()
    if (this.take('^')) return assertion(isMultiline ? 'line-start' : 'start')
    if (this.take('$')) return assertion(isMultiline ? 'line-end' : 'end')
    if (this.take('.')) {
      const set = this.#flags.includes('s') ? ANY_CHARACTER : complement(LINE_END)
      return { type: 'set', set }
    }
    if (this.take('[')) return { type: 'set', set: this.#set() }
    if (this.take('\\')) {
      const known = ASSERTIONS[this.source[this.at] ?? '']
      if (known) this.at += 1
      return known ? assertion(known) : this.#ofCase(this.#escape())
    }
    if (this.match(/[*+?]|\{\d+(?:,\d*)?\}/y)) this.#fail('a quantifier of nothing')
    return this.#ofCase(setOf(this.#next()))
  }

  #group(): Pattern {
    const outer = this.#flags
    if (this.match(/\?#[^)]*\)/y)) return EMPTY
    const look = this.match(/\?(<?)([=!])/y)
    if (look) {
      const part = this.#closed()
      return { type: 'look', part, isBehind: look[1] === '<', isNegative: look[2] === '!' }
    }
    if (this.take('?P=')) this.#fail('a backreference')
    if (this.take('?>')) this.#fail('an atomic group')
    if (this.match(/\?P?<[\p{ID_Start}$_][\p{ID_Continue}$]*>/uy)) return this.#closed()
    const modifiers = this.match(/\?([ims]*)(?:-([ims]+))?([:)])/y)
    if (!modifiers) {
      if (this.take('?')) this.#fail('an unknown kind of group')
      return this.#closed()
    }
    const [, added = '', removed = '', end] = modifiers
    this.#flags = [...outer, ...added].filter((flag) => !removed.includes(flag)).join('')
    // Modifiers without a group hold up to the end of the group around them.
    if (end === ')') return EMPTY
    const inner = this.#closed()
    this.#flags = outer
    return inner
  }

  /** Parses up to the bracket that closes a group. */
  #closed(): Pattern {
    const flags = this.#flags
    const inner = this.#choice()
    this.#flags = flags
    return this.take(')') ? inner : this.#fail('an unclosed (')
  }

  #set(): Characters {
    const isNegated = this.take('^')
    const members: Characters[] = []
    while (!this.take(']')) {
      const first = this.#member()
      const isRange = this.source[this.at] === '-' && this.source[this.at + 1] !== ']'
      if (!isRange) {
        members.push(first)
        continue
      }
      this.at += 1
      const last = this.#member()
      const [from, to] = [onlyOf(first), onlyOf(last)]
      // A class at an end of a range makes the hyphen stand for itself.
      if (from === undefined || to === undefined) members.push(first, setOf('-'), last)
      else if (to < from) this.#fail('a range whose end is before its beginning')
      else members.push([[from, to]])
    }
    const set = this.#folded(union(...members))
    return isNegated ? complement(set) : set
  }

  #member(): Characters {
    if (this.at >= this.source.length) return this.#fail('an unclosed [')
    if (!this.take('\\')) return setOf(this.#next())
    return this.take('b') ? setOf('\b') : this.#escape()
  }

  /** Parses what follows a backslash, if it is a character or a class. */
  #escape(): Characters {
    const pair = this.match(/u(d[89ab][\da-f]{2})\\u(d[c-f][\da-f]{2})/iy)
    if (pair) return setOf(String.fromCharCode(hex(pair[1]), hex(pair[2])))
    const [, two, four, braced] =
      this.match(/x([\da-f]{2})|u([\da-f]{4})|u\{([\da-f]{1,8})\}/iy) ?? []
    const digits = two ?? four ?? braced
    if (digits !== undefined) {
      const code = hex(digits)
      return code <= 0x10ffff ? [[code, code]] : this.#fail('a code point above 10FFFF')
    }
    const property = this.match(/(p)\{([\w=]+)\}/iy)
    if (property) {
      const [, kind, name = ''] = property
      const set = propertyOf(name) ?? this.#fail(`the unknown property ${name}`)
      return kind === 'P' ? complement(set) : set
    }
    const letter = this.match(/c([a-z])/iy)
    if (letter) return setOf(String.fromCharCode((letter[1] ?? '').charCodeAt(0) % 32))
    if (this.source[this.at] === 'c') return setOf('\\')
    if (/[1-9]/.test(this.source[this.at] ?? '')) this.#refuseReference()
    if (this.match(/k(?=<)/y)) this.#fail('a backreference')
    const octal = this.match(/[0-3][0-7]{0,2}|[4-7][0-7]?/y)
    if (octal) return setOf(String.fromCharCode(Number.parseInt(octal[0], 8)))
    const character = this.#next()
    return CLASSES[character] ?? setOf(CONTROLS[character] ?? character)
  }

  #refuseReference(): void {
    this.#groups ??= (
      this.source.replace(/\\.|\[(?:\\.|[^\]\\])*\]/gs, '').match(/\((?!\?)|\(\?P?<(?![=!])/g) ?? []
    ).length
    const [digits = ''] = /^\d+/.exec(this.source.slice(this.at, this.at + 4)) ?? []
    if (Number(digits) <= this.#groups) this.#fail('a backreference')
  }

  #ofCase(set: Characters): Pattern {
    return { type: 'set', set: this.#folded(set) }
  }

  #folded(set: Characters): Characters {
    const flags = this.#flags
    return flags.includes('i') ? withOtherCases(set, flags.includes('u')) : set
  }

  #next(): string {
    const code = this.source.codePointAt(this.at)
    if (code === undefined) return this.#fail('a \\ at the end')
    const character = String.fromCodePoint(code)
    this.at += character.length
    return character
  }

  #fail(what: string): never {
    throw new PatternError(`${what} at character ${this.at + 1}`)
  }
}

const hex = (digits = ''): number => Number.parseInt(digits, 16)

const assertion = (kind: Assertion): Pattern => ({ type: 'assertion', assertion: kind })
