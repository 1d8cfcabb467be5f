/** Reads grammars that requests contain: xgrammar's EBNF, llama.cpp's GBNF, and Lark for the engine. */
import { ConstraintError } from './constraint.ts'
import {
  type Characters,
  choice,
  contains,
  EMPTY,
  type Expression,
  isEmpty,
  repeat,
  sequence,
} from './expression.ts'
import { ANY_CHARACTER, complement, union } from './pattern/characters.ts'
import { Scanner } from './pattern/parse.ts'

const MAX_GRAMMAR_CHARACTERS = 200_000
/** Maximum number of texts, sets, groups and references. */
const MAX_GRAMMAR_ELEMENTS = 20_000
const MAX_NESTED_BRACKETS = 100
const MAX_REPETITIONS = 100_000
const MAX_SHOWN_CHARACTERS = 100

const RULE_NAMES = { ebnf: /[A-Za-z_][\w.-]*/y, gbnf: /[\w-][\w.-]*/y }

/** Letters of escapes, and the characters that they stand for. */
const ESCAPES = new Map(
  [...'nrtbfvae0'].map((letter, at) => [letter, '\n\r\t\b\f\v\x07\x1b\0'[at]]),
)

interface GrammarOptions {
  /** Prefix of the names of the grammar's rules. */
  scope: string
  /** Rules that the grammar's rules are added to. */
  rules: Map<string, Expression>
  findToken: (name: string) => Expression | null
  /** Returns the expression of a text, in which special tokens may be spelled out. */
  toText: (value: string) => Expression
}

/** Reads a grammar in xgrammar's EBNF or in the GBNF of llama.cpp, and returns its rule `root`. */
export const readGrammar = (
  source: string,
  syntax: keyof typeof RULE_NAMES,
  options: GrammarOptions,
): Expression => new GrammarReader(source, syntax, options).read()

class GrammarReader extends Scanner {
  readonly #syntax: keyof typeof RULE_NAMES
  readonly #options: GrammarOptions
  readonly #isGbnf: boolean
  #elements = 0
  /** Names that are referred to, and where they are used first. */
  readonly #used = new Map<string, number>()

  constructor(source: string, syntax: keyof typeof RULE_NAMES, options: GrammarOptions) {
    super(source)
    this.#syntax = syntax
    this.#isGbnf = syntax === 'gbnf'
    this.#options = options
  }

  read(): Expression {
    if (this.source.length > MAX_GRAMMAR_CHARACTERS)
      throw invalid(`The grammar has more than ${MAX_GRAMMAR_CHARACTERS} characters.`)
    const { rules, scope } = this.#options
    while (!this.#isAtEnd()) {
      const name = this.#definition()
      if (rules.has(scope + name)) this.#fail(`a second rule ${shorten(name)}`)
      rules.set(scope + name, EMPTY)
      const alternatives = this.#alternatives(0)
      rules.set(scope + name, withoutTailRecursion(scope + name, alternatives))
    }
    const grammar = `The grammar in ${this.#syntax.toUpperCase()}`
    for (const [name, at] of this.#used) {
      if (rules.has(scope + name)) continue
      throw invalid(`${grammar} has no rule ${shorten(name)}, which line ${this.#lineOf(at)} uses.`)
    }
    if (!rules.has(`${scope}root`)) throw invalid(`${grammar} has no rule root.`)
    return { type: 'rule', name: `${scope}root` }
  }

  #alternatives(depth: number): readonly Expression[] {
    if (depth > MAX_NESTED_BRACKETS) this.#fail(`more than ${MAX_NESTED_BRACKETS} nested brackets`)
    const parts = [this.#sequence(depth)]
    while (this.take('|')) parts.push(this.#sequence(depth))
    return parts
  }

  #sequence(depth: number): Expression {
    const parts: Expression[] = []
    for (let part = this.#element(depth); part; part = this.#element(depth)) {
      this.#elements += 1
      if (this.#elements > MAX_GRAMMAR_ELEMENTS)
        this.#fail(`more than ${MAX_GRAMMAR_ELEMENTS} elements`)
      parts.push(this.#counted(part))
    }
    if (parts.length === 0 && !this.#isGbnf) this.#fail('no element where one is expected')
    return sequence(...parts)
  }

  #element(depth: number): Expression | null {
    if (this.take('"')) return this.#options.toText(this.#quoted())
    if (this.take('[')) return { type: 'set', set: this.#bracket() }
    if (this.take('(')) {
      if (this.take('=')) this.#fail('a look-ahead, which is not supported')
      const inner = choice(...this.#alternatives(depth + 1))
      if (!this.take(')')) this.#fail('an unclosed (')
      return inner
    }
    if (this.#isGbnf) {
      if (this.take('.')) return { type: 'set', set: ANY_CHARACTER }
      if (this.take('!')) this.#fail('a negated token, which is not supported')
      if (this.take('<')) return this.#token()
    }
    const name = this.#reference()
    if (name === null) return null
    if (!this.#used.has(name)) this.#used.set(name, this.at)
    return { type: 'rule', name: this.#options.scope + name }
  }

  #counted(part: Expression): Expression {
    if (this.take('*')) return repeat(part, 0)
    if (this.take('+')) return repeat(part, 1)
    if (this.take('?')) return repeat(part, 0, 1)
    if (!this.take('{')) return part
    const found = this.match(/\s*(\d{1,9})\s*(?:(,)\s*(?:(\d{1,9})\s*)?)?\}/y)
    const [, least, comma, most] = found ?? this.#fail('a { without a count')
    const min = Number(least)
    const max = most === undefined ? (comma ? Infinity : min) : Number(most)
    if (max < min) this.#fail('an invalid count')
    if (min > MAX_REPETITIONS || (max > MAX_REPETITIONS && max < Infinity))
      this.#fail(`a count above ${MAX_REPETITIONS}`)
    return repeat(part, min, max)
  }

  #definition(): string {
    const [name] =
      this.match(RULE_NAMES[this.#syntax]) ?? this.#fail('no rule where one is expected')
    if (!this.take('::=')) this.#fail(`no ::= after ${shorten(name)}`)
    return name
  }

  /** Reads the name of a rule that is referred to; `null` if there is none. */
  #reference(): string | null {
    this.#skip()
    const before = this.at
    const [name] = this.match(RULE_NAMES[this.#syntax]) ?? []
    if (name === undefined) return null
    if (name === 'TagDispatch') this.#fail('a TagDispatch, which is not supported')
    const after = this.at
    const isDefinition = this.take('::=')
    this.at = isDefinition ? before : after
    return isDefinition ? null : name
  }

  /** Reads a token of llama.cpp after its first bracket, such as `<[1000]>` or `<think>`. */
  #token(): Expression {
    const [found] = this.match(/[^<>\s]+>/y) ?? this.#fail('an unclosed <')
    const name = `<${found}`
    return this.#options.findToken(name) ?? this.#fail(`an unknown token ${shorten(name)}`)
  }

  #quoted(): string {
    let value = ''
    for (let code = this.#character('"'); code !== null; code = this.#character('"')) {
      if (code >= 0xd800 && code <= 0xdfff) this.#fail('a text with an invalid character')
      value += String.fromCodePoint(code)
    }
    return value
  }

  /** Reads a set of characters after its first bracket. */
  #bracket(): Characters {
    const isNegated = this.match(/\^/y) !== null
    const ranges: [number, number][] = []
    for (let code = this.#character(']'); code !== null; code = this.#character(']')) {
      const last = this.match(/-(?!\])/y) ? this.#character(']') : code
      if (last === null || last < code) return this.#fail('an invalid range')
      ranges.push([code, last])
    }
    return isNegated ? complement(union(ranges)) : union(ranges)
  }

  /** Reads a character of a text or set; `null` if it is the one that ends it. */
  #character(end: string): number | null {
    const [found] = this.match(/[^]/uy) ?? []
    if (found === undefined || found === '\n') return this.#fail(`an unclosed ${end}`)
    if (found === end) return null
    if (found !== '\\') return found.codePointAt(0) ?? 0
    const digits = this.match(/x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})/y)
    if (digits) {
      const code = Number.parseInt(digits[1] ?? digits[2] ?? digits[3] ?? '', 16)
      return code <= 0x10ffff ? code : this.#fail('a character above U+10FFFF')
    }
    const [escaped = ''] = this.match(/[^]/uy) ?? []
    const known = ESCAPES.get(escaped) ?? (/[\w\s]/.test(escaped) ? undefined : escaped)
    return known?.codePointAt(0) ?? this.#fail(`an unknown escape \\${escaped}`)
  }

  #skip(): void {
    this.match(/(?:\s+|#[^\n]*)*/y)
  }

  /** Moves past blanks and comments, and past the token if it follows. Returns `true` if it does. */
  override take(token: string): boolean {
    this.#skip()
    return super.take(token)
  }

  #isAtEnd(): boolean {
    this.#skip()
    return this.at >= this.source.length
  }

  #lineOf(at: number): number {
    return this.source.slice(0, at).split('\n').length
  }

  #fail(what: string): never {
    throw invalid(
      `The grammar in ${this.#syntax.toUpperCase()} has ${what} in line ${this.#lineOf(this.at)}.`,
    )
  }
}

/** Parts of a Lark grammar: comments, texts, regular expressions, tokens, and other characters. */
const LARK_PARTS =
  /(?<comment>(?:#|\/\/)[^\n]*)|(?<literal>"(?:[^"\\\n]|\\.)*"|\/(?:[^/\\]|\\.)+\/)|(?<token><[^<>\s]+>)|[^]/g

/** Prepares a Lark grammar of a request for the engine, which knows special tokens by their ids only. */
export function readLark(
  source: string,
  findToken: (name: string) => { source: string } | null,
): string {
  if (source.length > MAX_GRAMMAR_CHARACTERS)
    throw invalid(`The grammar has more than ${MAX_GRAMMAR_CHARACTERS} characters.`)
  let rest = ''
  const written = source.replaceAll(LARK_PARTS, (part, ...found: unknown[]) => {
    const { comment, literal, token } = found.at(-1) as Record<string, string | undefined>
    if (token !== undefined) {
      const known = findToken(token)
      if (!known) throw invalid(`The grammar in Lark has an unknown token ${shorten(token)}.`)
      return known.source
    }
    rest += comment === undefined && literal === undefined ? part : ' '
    return part
  })
  if (!/^[ \t]*[!?]{0,2}start\s*(?:::_\s*)?[[:.{]/m.test(rest))
    throw invalid('The grammar in Lark has no rule start.')
  return written
}

const shorten = (name: string): string =>
  name.length > MAX_SHOWN_CHARACTERS ? `${name.slice(0, MAX_SHOWN_CHARACTERS)}...` : name

const invalid = (message: string): ConstraintError =>
  new ConstraintError('invalid_grammar', message)

/** Writes a rule that begins or ends with itself as a repetition: `a ::= b a | c` has the texts of `b* c`. */
function withoutTailRecursion(name: string, alternatives: readonly Expression[]): Expression {
  const isSelf = (part: Expression | undefined): boolean =>
    part?.type === 'rule' && part.name === name
  const lists = alternatives
    .flatMap((each) => expandEnd(toParts(each), name))
    .filter((parts) => parts.length !== 1 || !isSelf(parts[0]))
  const ending = lists.filter((parts) => isSelf(parts.at(-1)))
  const beginning = lists.filter((parts) => isSelf(parts[0]))
  const toChoice = (all: readonly (readonly Expression[])[]): Expression =>
    choice(...all.map((parts) => sequence(...parts)))
  if (ending.length > 0 && beginning.length === 0) {
    const others = lists.filter((parts) => !ending.includes(parts))
    return sequence(
      repeat(toChoice(ending.map((parts) => parts.slice(0, -1))), 0),
      toChoice(others),
    )
  }
  if (beginning.length > 0 && ending.length === 0) {
    const others = lists.filter((parts) => !beginning.includes(parts))
    return sequence(toChoice(others), repeat(toChoice(beginning.map((parts) => parts.slice(1))), 0))
  }
  return choice(...alternatives)
}

/** Returns the sequences of a sequence whose last part is optional, or a choice, and refers to the rule. */
function expandEnd(parts: readonly Expression[], name: string): (readonly Expression[])[] {
  const last = parts.at(-1)
  const isSelf = (part: Expression): boolean => part.type === 'rule' && part.name === name
  if (!last || last.type === 'rule' || !contains(last, isSelf)) return [parts]
  const before = parts.slice(0, -1)
  if (last.type === 'choice')
    return last.parts.flatMap((part) => expandEnd([...before, ...toParts(part)], name))
  if (last.type === 'repeat' && last.min === 0 && last.max === 1)
    return [before, ...expandEnd([...before, ...toParts(last.part)], name)]
  return [parts]
}

const toParts = (expression: Expression): readonly Expression[] => {
  if (expression.type === 'sequence') return expression.parts
  return isEmpty(expression) ? [] : [expression]
}
