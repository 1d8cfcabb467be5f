/** Describes sets of texts as trees, which `lexemes.ts` divides into the lexemes of a Lark grammar. */

/** Ranges of code points, which ascend and do not touch. */
export type Characters = readonly (readonly [first: number, last: number])[]

export type Expression =
  | CharacterSet
  | Sequence<Expression>
  | Choice<Expression>
  | Repetition<Expression>
  | TextExpression
  | FreeText
  | { type: 'rule'; name: string }
  | EnginePart

/** One character. */
export interface CharacterSet {
  type: 'set'
  set: Characters
}

export interface Sequence<Part> {
  type: 'sequence'
  parts: readonly Part[]
}

export interface Choice<Part> {
  type: 'choice'
  parts: readonly Part[]
  /** `true` if a text that begins like one of the parts that contain JSON must be a text of that part. */
  prefersJson?: boolean
}

export interface Repetition<Part> {
  type: 'repeat'
  part: Part
  min: number
  max: number
}

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

/** What only the engine knows. It never becomes a part of a lexeme. */
export interface EnginePart {
  type: 'engine'
  kind: 'token' | 'json' | 'lark'
  /** Source in Lark syntax. */
  source: string
  /** Characters with which it can begin. */
  first: Characters
}

export interface Language {
  root: Expression
  rules: ReadonlyMap<string, Expression>
}

/** Matches the empty text. */
export const EMPTY: Sequence<never> = { type: 'sequence', parts: [] }
/** Matches no text. */
export const NOTHING: Choice<never> = { type: 'choice', parts: [] }

export const text = (value: string): TextExpression => ({ type: 'text', text: value })

export function sequence(...parts: readonly Expression[]): Expression {
  const some = parts.filter((part) => !isEmpty(part))
  const [only = EMPTY] = some
  return some.length < 2 ? only : { type: 'sequence', parts: some }
}

export function choice(...parts: readonly Expression[]): Expression {
  const [only] = parts
  return parts.length === 1 && only ? only : { type: 'choice', parts }
}

export function repeat(part: Expression, min: number, max = Infinity): Expression {
  return min === 1 && max === 1 ? part : { type: 'repeat', part, min, max }
}

export const isEmpty = (part: Expression): boolean =>
  part.type === 'text' ? part.text === '' : part.type === 'sequence' && part.parts.length === 0

/** Returns the parts of an expression, or of a pattern. */
export function childrenOf<Node extends object>(node: Node): readonly Node[] {
  if ('parts' in node) return node.parts as readonly Node[]
  return 'part' in node ? [node.part as Node] : []
}

/** Returns `true` if the test holds for the expression or the pattern, or for anything in it. */
export const contains = <Node extends object>(node: Node, test: (part: Node) => boolean): boolean =>
  test(node) || childrenOf(node).some((part) => contains(part, test))

/** Returns the function with a memory of its results, of which it forgets all once there are too many. */
export function memoize<Key, Value>(
  make: (key: Key) => Value,
  limit = Infinity,
): (key: Key) => Value {
  const known = new Map<Key, Value>()
  return (key) => {
    if (known.has(key)) return known.get(key) as Value
    const value = make(key)
    if (known.size >= limit) known.clear()
    known.set(key, value)
    return value
  }
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
