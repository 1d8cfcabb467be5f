/** Reads the engine's regular expressions, as far as they are regular in the narrow sense. */
import {
  ANY_CHARACTER,
  type CharacterRange,
  choice,
  complement,
  EMPTY,
  type Expression,
  MAX_CODE_POINT,
  normalizeRanges,
  repeat,
  sequence,
} from './expression.ts'

const MAX_NESTED_BRACKETS = 100

/**
 * Returns the texts of a regular expression, so that they can be compared with others and be joined with them. What
 * is more than characters, sets, groups and counts stays a pattern, whose texts are unknown.
 */
export function readRegex(source: string): Expression {
  const reader = new RegexReader(source)
  return reader.read() ?? { type: 'pattern', source }
}

class RegexReader {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  read(): Expression | null {
    const all = this.#alternatives(0)
    return this.#at === this.#source.length ? all : null
  }

  #alternatives(depth: number): Expression | null {
    if (depth > MAX_NESTED_BRACKETS) return null
    const parts: Expression[] = []
    do {
      const part = this.#sequence(depth)
      if (!part) return null
      parts.push(part)
    } while (this.#take('|'))
    return choice(...parts)
  }

  #sequence(depth: number): Expression | null {
    const parts: Expression[] = []
    while (this.#at < this.#source.length && !/[|)]/.test(this.#source[this.#at] ?? '')) {
      const part = this.#atom(depth)
      const counted = part && this.#counted(part)
      if (!counted) return null
      parts.push(counted)
    }
    return sequence(...parts)
  }

  #atom(depth: number): Expression | null {
    if (this.#take('(?s:.)')) return { type: 'set', ranges: ANY_CHARACTER }
    if (this.#take('(?:')) {
      const inner = this.#alternatives(depth + 1)
      return inner && this.#take(')') ? inner : null
    }
    if (this.#take('[')) {
      const ranges = this.#set()
      return ranges && { type: 'set', ranges }
    }
    const code = this.#character(/[^\\.^$*+?()[\]{}|]/uy)
    return code === null ? null : { type: 'set', ranges: [[code, code]] }
  }

  #counted(part: Expression): Expression | null {
    const found = this.#match(/(\*)|(\+)|(\?)|\{(\d{1,9})(?:(,)(\d{1,9})?)?\}/y)
    if (!found) return part
    // A lazy or a second count.
    if (/[*+?{]/.test(this.#source[this.#at] ?? '')) return null
    const [, star, plus, question, least, comma, most] = found
    if (star) return repeat(part, 0)
    if (plus) return repeat(part, 1)
    if (question) return repeat(part, 0, 1)
    const min = Number(least)
    const max = most === undefined ? (comma ? Infinity : min) : Number(most)
    if (max === 0) return EMPTY
    return max < min ? null : repeat(part, min, max)
  }

  #set(): readonly CharacterRange[] | null {
    const isNegated = this.#take('^')
    const ranges: CharacterRange[] = []
    while (!this.#take(']')) {
      const first = this.#character(/[^\\[\]&~^-]/uy)
      const last = first !== null && this.#take('-') ? this.#character(/[^\\[\]&~^-]/uy) : first
      if (first === null || last === null || last < first) return null
      ranges.push([first, last])
    }
    const normalized = normalizeRanges(ranges)
    return isNegated ? complement(normalized) : normalized
  }

  /** Reads a character that is written as itself, or escaped. */
  #character(plain: RegExp): number | null {
    const [written] = this.#match(plain) ?? []
    if (written !== undefined) return written.codePointAt(0) ?? null
    const [, digits, control, other] =
      this.#match(/\\(?:x\{([0-9a-fA-F]{1,6})\}|([nrtfv])|([^\w\s<>]))/uy) ?? []
    if (digits !== undefined) {
      const code = Number.parseInt(digits, 16)
      return code <= MAX_CODE_POINT ? code : null
    }
    return control === undefined
      ? (other?.codePointAt(0) ?? null)
      : (CONTROLS[control]?.codePointAt(0) ?? null)
  }

  #match(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.#at
    const found = form.exec(this.#source)
    if (found) this.#at = form.lastIndex
    return found
  }

  #take(token: string): boolean {
    if (!this.#source.startsWith(token, this.#at)) return false
    this.#at += token.length
    return true
  }
}

const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v' }
