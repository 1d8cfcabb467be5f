/** Writes rules and lexemes as a grammar in the engine's Lark syntax. */
import { ConstraintError } from './error.ts'
import {
  type CharacterRange,
  type Expression,
  type FreeText,
  MAX_CODE_POINT,
} from './expression.ts'
import type { Lexeme, Lexemes, Rule, Symbol } from './division.ts'

/** Number of rules and lexemes that contain each other. More of them would exhaust the engine's stack. */
const MAX_DEPTH = 150
/** Number of groups of a regular expression that contain each other. The engine takes 250 nodes of any kind. */
const MAX_GROUP_DEPTH = 25

/** Writes a grammar with the rule `start`. */
export function writeSource(lexemes: Lexemes): string {
  return new SourceWriter(lexemes).write(lexemes.root)
}

class SourceWriter {
  /** Rules of the language that are lexemes or parts of them. */
  readonly #expressions: ReadonlyMap<string, Expression>
  readonly #names = new Map<Rule, string>()
  readonly #atoms = new Map<Expression, string>()
  readonly #ruleAtoms = new Map<string, string>()
  /** Names of lexemes and of engine rules, by their source. */
  readonly #definitions = new Map<string, string>()
  readonly #rules: string[] = []
  #depth = 0

  constructor({ expressions }: Lexemes) {
    this.#expressions = expressions
  }

  write(root: Rule): string {
    this.#rule(root)
    const definitions = [...this.#definitions].map(([source, name]) => `${name}: ${source}`)
    return `${[...this.#rules, ...definitions].join('\n')}\n`
  }

  #rule(rule: Rule): string {
    const known = this.#names.get(rule)
    if (known !== undefined) return known
    const name = this.#names.size === 0 ? 'start' : `r${this.#names.size}`
    this.#names.set(rule, name)
    this.#enter()
    const alternatives = rule.alternatives.map((symbols) =>
      symbols.length === 0 ? '""' : symbols.map((symbol) => this.#symbol(symbol)).join(' '),
    )
    this.#depth -= 1
    this.#rules.push(`${name}: ${alternatives.join(' | ')}`)
    return name
  }

  #enter(): void {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) {
      throw new ConstraintError(
        'unsupported_constraint',
        `The constraint has more than ${MAX_DEPTH} rules that contain each other. Make it flatter.`,
      )
    }
  }

  #symbol(symbol: Symbol): string {
    if (symbol.type === 'lexeme') return this.#lexeme(symbol.lexeme)
    if (symbol.type === 'rule') return this.#rule(symbol.rule)
    return this.#symbol(symbol.symbol) + writeCount(symbol.min, symbol.max)
  }

  #lexeme({ expression, limits }: Lexeme): string {
    const atom = this.#atom(expression)
    if (!limits) return atom
    const { beginnings, isShortest } = limits
    const refused = beginnings.map((each) => `${this.#atom(each)} ${ANY_TEXT}`)
    if (isShortest) refused.push(`${atom} ${SOME_TEXT}`)
    return this.#define([atom, ...refused.map((each) => `~(${each})`)].join(' & '), 'T')
  }

  /** Returns the literal or the name of an expression. */
  #atom(expression: Expression): string {
    const known = this.#atoms.get(expression)
    if (known !== undefined) return known
    this.#enter()
    const atom = this.#writeAtom(expression)
    this.#depth -= 1
    this.#atoms.set(expression, atom)
    return atom
  }

  #writeAtom(expression: Expression): string {
    if (expression.type === 'text') return writeText(expression.text)
    if (expression.type === 'engine') {
      const { kind, source } = expression
      return kind === 'token' ? source : this.#define(source, 'e')
    }
    if (expression.type !== 'rule') return this.#define(this.#body(expression), 'T')
    const { name } = expression
    const body = this.#expressions.get(name)
    const atom = this.#ruleAtoms.get(name) ?? (body ? this.#atom(body) : '""')
    this.#ruleAtoms.set(name, atom)
    return atom
  }

  /** Returns the name of a lexeme, or of a rule if the prefix is lower case. */
  #define(source: string, prefix: 'T' | 'e'): string {
    const known = this.#definitions.get(source) ?? `${prefix}${this.#definitions.size}`
    this.#definitions.set(source, known)
    return known
  }

  /** Returns what defines a lexeme. Parts that are no regular expression have a name each. */
  #body(expression: Expression): string {
    const pattern = writePattern(expression)
    if (pattern !== null) return `/${pattern || '(?:)'}/`
    switch (expression.type) {
      case 'free':
        return writeFreeText(expression)
      case 'sequence':
        return expression.parts.map((part) => this.#atom(part)).join(' ')
      case 'choice':
        return expression.parts.map((part) => this.#atom(part)).join(' | ')
      case 'repeat':
        return this.#atom(expression.part) + writeCount(expression.min, expression.max)
      default:
        return this.#atom(expression)
    }
  }
}

const ANY_TEXT = '/(?s:.*)/'
const SOME_TEXT = '/(?s:.+)/'

/** Writes free text. Whatever ends it ends the lexeme, so no text of it begins with another one. */
function writeFreeText({ words, end }: FreeText): string {
  if (words.length === 0) return ANY_TEXT
  const all = `(${words.map(writeText).join(' | ')})`
  return end === null
    ? `${ANY_TEXT} & ~(${ANY_TEXT} ${all} ${ANY_TEXT})`
    : `${ANY_TEXT} ${writeText(end)} & ~(${ANY_TEXT} ${all} ${SOME_TEXT})`
}

/**
 * Returns a regular expression of the engine; `null` if the expression has none, refers to a rule, or is nested too
 * deeply.
 */
function writePattern(expression: Expression, depth = 0): string | null {
  if (depth > MAX_GROUP_DEPTH) return null
  switch (expression.type) {
    case 'text':
      return Array.from(expression.text, writeCharacter).join('')
    case 'set':
      return writeSet(expression.ranges)
    case 'sequence':
    case 'choice': {
      const parts = expression.parts.map((part) => writePattern(part, depth + 1))
      if (parts.includes(null)) return null
      return expression.type === 'sequence' ? parts.join('') : `(?:${parts.join('|')})`
    }
    case 'repeat': {
      const { part, min, max } = expression
      if (max === 0) return ''
      const pattern = writePattern(part, depth + 1)
      if (pattern === null) return null
      return (part.type === 'set' ? pattern : `(?:${pattern})`) + writeCount(min, max)
    }
    default:
      return null
  }
}

function writeCount(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`
  if (min === max) return `{${min}}`
  return min === 0 && max === 1 ? '?' : `{${min},${max}}`
}

/** Writes a string literal, which is JSON but for the character U+007F. */
const writeText = (value: string): string => JSON.stringify(value).replaceAll('\x7f', '\\u007f')

const writeCharacter = (character: string): string =>
  /[\p{L}\p{N} _<>"',:;=!@%`]/u.test(character)
    ? character
    : writeCode(character.codePointAt(0) ?? 0)

const writeCode = (code: number): string => `\\x{${code.toString(16)}}`

const [FIRST_SURROGATE, LAST_SURROGATE] = [0xd800, 0xdfff] as const

function writeSet(ranges: readonly CharacterRange[]): string {
  const [only] = ranges
  if (ranges.length === 1 && only?.[0] === 0 && only[1] === MAX_CODE_POINT) return '(?s:.)'
  const written = ranges.map(([first, last]) => {
    const least = first >= FIRST_SURROGATE && first <= LAST_SURROGATE ? LAST_SURROGATE + 1 : first
    const most = last >= FIRST_SURROGATE && last <= LAST_SURROGATE ? FIRST_SURROGATE - 1 : last
    if (least > most) return ''
    return least === most ? writeCode(least) : `${writeCode(least)}-${writeCode(most)}`
  })
  return `[${written.join('')}]`
}
