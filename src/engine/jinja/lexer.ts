/**
 * Splits a template into tokens, as jinja2 does with `trim_blocks` and `lstrip_blocks`: a block
 * removes the white space before it on its line, and the newline after it.
 */
import { TemplateError } from './errors.ts'
import { SPACE } from './text.ts'

/** A token. `data` is the text between tags, `operator` any punctuation. */
export interface Token {
  type:
    | 'data'
    | 'variable_begin'
    | 'variable_end'
    | 'block_begin'
    | 'block_end'
    | 'name'
    | 'string'
    | 'integer'
    | 'float'
    | 'operator'
    | 'end'
  /** Text of the token; that of a string without its quotes and escapes. */
  value: string
  /** Line of the token, counted from 1. */
  line: number
}

const OPENING = /\{[%{#]/g
const RAW_BEGIN = new RegExp(`\\{%[-+]?[${SPACE}]*raw[${SPACE}]*(?:-%\\}[${SPACE}]*|%\\})`, 'y')
const RAW_END = new RegExp(
  `\\{%([-+]?)[${SPACE}]*endraw[${SPACE}]*(?:\\+%\\}|-%\\}[${SPACE}]*|%\\}\\n?)`,
  'g',
)
const COMMENT_END = new RegExp(`\\+#\\}|-#\\}[${SPACE}]*|#\\}\\n?`, 'g')
const BLOCK_END = new RegExp(`\\+%\\}|-%\\}[${SPACE}]*|%\\}\\n?`, 'y')
const VARIABLE_END = new RegExp(`-\\}\\}[${SPACE}]*|\\}\\}`, 'y')
const SPACES = new RegExp(`[${SPACE}]+`, 'y')
const LAST_SPACES = new RegExp(`[${SPACE}]+$`)
const ONLY_SPACES = new RegExp(`^[${SPACE}]+$`)

/** Patterns of the tokens in a tag. The first one that matches wins. */
const PATTERNS: readonly (readonly [Token['type'], RegExp])[] = [
  ['float', /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[-+]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy],
  ['integer', /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy],
  ['name', /[\p{L}\p{M}\p{N}\p{Pc}]+/uy],
  ['string', /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y],
  ['operator', /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y],
]

/** Returns the tokens of a template. Throws a `TemplateSyntaxError` if it has an invalid one. */
export function tokenize(source: string): Token[] {
  return new Lexer(source).tokenize()
}

class Lexer {
  readonly #source: string
  readonly #tokens: Token[] = []
  #at = 0
  #line = 1

  constructor(source: string) {
    // As in Python, one newline at the end does not count.
    this.#source = source.replace(/\r\n?/g, '\n').replace(/\n$/, '')
  }

  tokenize(): Token[] {
    while (this.#at < this.#source.length) this.#readText()
    this.#add('end', '')
    return this.#tokens
  }

  /** Reads text up to the next tag, and the tag. */
  #readText(): void {
    OPENING.lastIndex = this.#at
    const found = OPENING.exec(this.#source)
    if (!found) {
      this.#addText(this.#source.slice(this.#at))
      this.#at = this.#source.length
      return
    }
    const kind = found[0].charAt(1)
    RAW_BEGIN.lastIndex = found.index
    const raw = kind === '%' ? RAW_BEGIN.exec(this.#source) : null
    const sign = this.#source.charAt(found.index + 2)
    this.#addText(this.#cutText(found.index, sign, kind !== '{'))
    if (raw) {
      this.#moveTo(found.index + raw[0].length)
      this.#readRaw()
    } else if (kind === '#') this.#skipComment(found.index + 2)
    else {
      this.#moveTo(found.index + (sign === '-' || sign === '+' ? 3 : 2))
      this.#readTag(kind === '%')
    }
  }

  /** Returns the text up to a tag without the white space that the tag removes. */
  #cutText(to: number, sign: string, isBlock: boolean): string {
    const text = this.#source.slice(this.#at, to)
    if (sign === '-') return text.replace(LAST_SPACES, '')
    if (sign === '+' || !isBlock) return text
    const lineStart = text.lastIndexOf('\n') + 1
    const startsLine = lineStart > 0 || this.#at === 0 || this.#source.charAt(this.#at - 1) === '\n'
    return startsLine && ONLY_SPACES.test(text.slice(lineStart)) ? text.slice(0, lineStart) : text
  }

  #readRaw(): void {
    RAW_END.lastIndex = this.#at
    const found = RAW_END.exec(this.#source)
    if (!found) throw this.#error('Missing end of raw directive')
    this.#addText(this.#cutText(found.index, found[1] ?? '', true))
    this.#moveTo(found.index + found[0].length)
  }

  #skipComment(from: number): void {
    COMMENT_END.lastIndex = from
    const found = COMMENT_END.exec(this.#source)
    if (!found) throw this.#error('Missing end of comment tag')
    this.#moveTo(found.index + found[0].length)
  }

  /** Reads the tokens of a tag up to its end. */
  #readTag(isBlock: boolean): void {
    this.#add(isBlock ? 'block_begin' : 'variable_begin', '')
    const end = isBlock ? BLOCK_END : VARIABLE_END
    const open: string[] = []
    while (this.#at < this.#source.length) {
      const closing = open.length === 0 ? this.#match(end) : null
      if (closing !== null) {
        this.#add(isBlock ? 'block_end' : 'variable_end', '')
        this.#moveTo(this.#at + closing.length)
        return
      }
      const spaces = this.#match(SPACES)
      if (spaces === null) this.#readToken(open)
      else this.#moveTo(this.#at + spaces.length)
    }
    this.#add('end', '')
  }

  /** Reads one token. `open` are the brackets that it must close. */
  #readToken(open: string[]): void {
    for (const [type, pattern] of PATTERNS) {
      const text = this.#match(pattern)
      if (text === null) continue
      if (type === 'operator') this.#balance(text, open)
      this.#add(type, type === 'string' ? unescape(text.slice(1, -1)) : text)
      this.#moveTo(this.#at + text.length)
      return
    }
    throw this.#error(`unexpected char '${this.#source.charAt(this.#at)}' at ${this.#at}`)
  }

  #balance(text: string, open: string[]): void {
    const closing = { '(': ')', '[': ']', '{': '}' }[text]
    if (closing !== undefined) open.push(closing)
    if (text !== ')' && text !== ']' && text !== '}') return
    const expected = open.pop()
    if (expected === undefined) throw this.#error(`unexpected '${text}'`)
    if (expected !== text) throw this.#error(`unexpected '${text}', expected '${expected}'`)
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    return pattern.exec(this.#source)?.[0] ?? null
  }

  #addText(text: string): void {
    if (text !== '') this.#add('data', text)
  }

  #add(type: Token['type'], value: string): void {
    this.#tokens.push({ type, value, line: this.#line })
  }

  #moveTo(at: number): void {
    for (let index = this.#at; index < at; index += 1)
      if (this.#source.charCodeAt(index) === 10) this.#line += 1
    this.#at = at
  }

  #error(message: string): TemplateError {
    return new TemplateError('TemplateSyntaxError', message, this.#line)
  }
}

const ESCAPE = /\\(?:\n|[\\'"abfnrtv]|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{1,3})/g

const CHARACTERS: Readonly<Record<string, string>> = {
  '\n': '',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

/** Replaces the escapes of a string. Unknown ones stay, as in Python. */
const unescape = (text: string): string =>
  text.replace(ESCAPE, (found) => {
    const [kind, digits] = [found.charAt(1), found.slice(2)]
    if (/[xuU]/.test(kind) && digits !== '') return fromCode(Number.parseInt(digits, 16))
    if (/[0-7]/.test(kind)) return fromCode(Number.parseInt(found.slice(1), 8))
    return CHARACTERS[kind] ?? kind
  })

const fromCode = (code: number): string => (code > 0x10ffff ? '' : String.fromCodePoint(code))
