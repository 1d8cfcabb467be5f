/** What a language is divided into: rules, and the lexemes that the engine's lexer reads. */
import type { Expression } from './expression.ts'

/** What a rule consists of. */
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

/** What is left out of the texts of a lexeme, so that the lexer finds its end. */
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
