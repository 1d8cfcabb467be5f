/** Describes sets of texts as trees, which `lexemes.ts` divides into the lexemes of a Lark grammar. */

/** First and last code point of a range of characters. */
export type CharacterRange = readonly [first: number, last: number]

export type Expression =
  | TextExpression
  /** One character. The ranges ascend and do not touch. */
  | { type: 'set'; ranges: readonly CharacterRange[] }
  | FreeText
  | SequenceExpression
  | ChoiceExpression
  | { type: 'repeat'; part: Expression; min: number; max: number }
  | { type: 'rule'; name: string }
  | EnginePart

export interface TextExpression {
  type: 'text'
  text: string
  /** `true` if a JSON value that begins here has the same lexeme. */
  isJsonToken?: boolean
}

/** Any text in which the words occur at most at the end. */
export interface FreeText {
  type: 'free'
  words: readonly string[]
  /** Word that ends the text. `null` if no word occurs. */
  end: string | null
}

export interface SequenceExpression {
  type: 'sequence'
  parts: readonly Expression[]
}

export interface ChoiceExpression {
  type: 'choice'
  parts: readonly Expression[]
  /** `true` if a text that begins like one of the parts that contain JSON must be a text of that part. */
  prefersJson?: boolean
}

/** What only the engine knows. It never becomes a part of a lexeme. */
export interface EnginePart {
  type: 'engine'
  kind: 'token' | 'json' | 'lark'
  /** Source in Lark syntax. */
  source: string
  /** Characters with which it can begin. */
  first: readonly CharacterRange[]
}

export interface Language {
  root: Expression
  rules: ReadonlyMap<string, Expression>
}

export const MAX_CODE_POINT = 0x10ffff
export const ANY_CHARACTER: readonly CharacterRange[] = [[0, MAX_CODE_POINT]]

export const EMPTY: Expression = { type: 'text', text: '' }
/** No text at all. */
export const NOTHING: Expression = { type: 'choice', parts: [] }

export const text = (value: string): TextExpression => ({ type: 'text', text: value })

export function sequence(...parts: readonly Expression[]): Expression {
  const some = parts.filter((part) => !isEmpty(part))
  const [only] = some
  if (!only) return EMPTY
  return some.length === 1 ? only : { type: 'sequence', parts: some }
}

export function choice(...parts: readonly Expression[]): Expression {
  const [only] = parts
  return parts.length === 1 && only ? only : { type: 'choice', parts }
}

export function repeat(part: Expression, min: number, max = Infinity): Expression {
  return min === 1 && max === 1 ? part : { type: 'repeat', part, min, max }
}

export const optional = (part: Expression): Expression => repeat(part, 0, 1)

export const isEmpty = (part: Expression): boolean => part.type === 'text' && part.text === ''

/** Returns the parts of an expression, or of a pattern. */
export function childrenOf<Node extends object>(node: Node): readonly Node[] {
  if ('parts' in node) return node.parts as readonly Node[]
  return 'part' in node ? [node.part as Node] : []
}

/** Returns `true` if the test holds for the expression or the pattern, or for anything in it. */
export const contains = <Node extends object>(node: Node, test: (part: Node) => boolean): boolean =>
  test(node) || childrenOf(node).some((part) => contains(part, test))

/** Returns the characters that are in none of the ranges. */
export function complement(ranges: readonly CharacterRange[]): readonly CharacterRange[] {
  const others: CharacterRange[] = []
  let next = 0
  for (const [first, last] of ranges) {
    if (first > next) others.push([next, first - 1])
    next = last + 1
  }
  if (next <= MAX_CODE_POINT) others.push([next, MAX_CODE_POINT])
  return others
}

/** Returns the same characters as ranges that ascend and do not touch. */
export function normalizeRanges(ranges: readonly CharacterRange[]): readonly CharacterRange[] {
  const merged: [number, number][] = []
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const previous = merged.at(-1)
    if (previous && first <= previous[1] + 1) previous[1] = Math.max(previous[1], last)
    else merged.push([first, last])
  }
  return merged
}

// A language is divided into rules, and lexemes that the engine's lexer reads.

/** A part of a rule. */
export type Symbol =
  | { type: 'lexeme'; lexeme: Lexeme }
  | { type: 'rule'; rule: Rule }
  | { type: 'repeat'; symbol: Symbol; min: number; max: number }

export interface Lexeme {
  /** Texts of the lexeme, or the part that only the engine knows. */
  expression: Expression
  isOptional: boolean
  limits: Limits | null
}

export interface Rule {
  alternatives: (readonly Symbol[])[]
}

export interface Lexemes {
  root: Rule
  rules: readonly Rule[]
  /** Rules that are lexemes or parts of them. */
  expressions: ReadonlyMap<string, Expression>
}

/** Texts that a lexeme leaves out, so that the lexer finds its end. */
export interface Limits {
  /** Lexemes that take precedence: texts that begin with one of theirs are left out. */
  beginnings: readonly Expression[]
  /** `true` if texts that begin with a shorter text of the same lexeme are left out. */
  isShortest: boolean
}

/** Two lexemes of one place, of which the second may go on where the first one and the next ones should come. */
export interface Conflict {
  short: Expression
  long: Expression
  /** `true` if the lexeme takes whatever may come next, so that it never ends. */
  isEndless: boolean
}
