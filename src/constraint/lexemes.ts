/**
 * Divides a language into lexemes and rules. The engine's lexer takes the longest lexeme that may come, and never
 * goes back. So a lexeme is as long as possible, which is fast, but is split where it would take what belongs to the
 * next one. A split leaves out no text; a lexeme that cannot be split may.
 */
import type { Steps } from './automaton.ts'
import { ConstraintError } from './error.ts'
import { findConflicts } from './conflicts.ts'
import type { Lexeme, Lexemes, Rule, Symbol } from './division.ts'
import {
  type ChoiceExpression,
  type Expression,
  isEmpty,
  type Language,
  NOTHING,
  type SequenceExpression,
} from './expression.ts'
import { prune } from './prune.ts'
import { Splitter } from './splitter.ts'

/** Steps of the analysis of one grammar. What is left over then is not split. */
const MAX_STEPS = 2_000_000
const MAX_ROUNDS = 40

/** Divides a language, or returns `null` if it has no text. */
export function divide(source: Language): Lexemes | null {
  const language = prune(source)
  if (!language) return null
  const splitter = new Splitter(language)
  const steps: Steps = { left: MAX_STEPS }
  for (let round = 0; ; round += 1) {
    const lexemes = new Divider(splitter).divide(language.root)
    const conflicts = findConflicts(lexemes, steps)
    const isChanged = conflicts.map((conflict) => splitter.resolve(conflict)).includes(true)
    if (isChanged && round < MAX_ROUNDS) continue
    if (conflicts.some(({ isEndless }) => isEndless)) {
      throw new ConstraintError(
        'unsupported_constraint',
        'A repetition of characters in the grammar never ends, because what follows it begins with the same ' +
          'characters. Leave them out of the repetition, as in [^<]* "<".',
      )
    }
    return lexemes
  }
}

/** Writes expressions as rules whose symbols are lexemes. */
class Divider {
  readonly #splitter: Splitter
  readonly #rules: Rule[] = []
  readonly #named = new Map<string, Rule>()
  readonly #choices = new Map<ChoiceExpression, Rule>()
  readonly #lexemes = new Map<Expression, Lexeme>()
  readonly #pending: (() => void)[] = []

  constructor(splitter: Splitter) {
    this.#splitter = splitter
  }

  divide(root: Expression): Lexemes {
    const rule = this.#rule()
    rule.alternatives.push(...this.#alternatives(root))
    for (let next = this.#pending.pop(); next; next = this.#pending.pop()) next()
    return { root: rule, rules: this.#rules, expressions: this.#splitter.rules }
  }

  #rule(): Rule {
    const rule: Rule = { alternatives: [] }
    this.#rules.push(rule)
    return rule
  }

  #alternatives(expression: Expression): (readonly Symbol[])[] {
    if (expression.type !== 'choice' || this.#splitter.isWhole(expression)) {
      return [this.#symbols(expression)]
    }
    const { parts } = expression
    const whole = parts.filter((part) => this.#splitter.isWhole(part))
    if (this.#splitter.isSplit(expression) || whole.length === 0) {
      return parts.flatMap((part) => this.#alternatives(part))
    }
    const merged = this.#splitter.run(expression, whole)
    if (expression.prefersJson) this.#splitter.prefer(merged)
    const others = parts.filter((part) => !whole.includes(part))
    const own = this.#splitter.isWhole(merged) ? [merged] : whole
    return [...others, ...own].flatMap((part) => this.#alternatives(part))
  }

  #symbols(expression: Expression): readonly Symbol[] {
    if (isEmpty(expression)) return []
    if (expression.type === 'engine' || this.#splitter.isWhole(expression)) {
      return [{ type: 'lexeme', lexeme: this.#lexeme(expression) }]
    }
    switch (expression.type) {
      case 'text':
        return this.#splitter.pieces(expression).flatMap((piece) => this.#symbols(piece))
      case 'sequence':
        return this.#sequence(expression)
      case 'choice': {
        const known = this.#choices.get(expression)
        if (known) return [{ type: 'rule', rule: known }]
        const alternatives = this.#alternatives(expression)
        const [only] = alternatives
        if (alternatives.length === 1 && only) return only
        const rule = this.#rule()
        rule.alternatives.push(...alternatives)
        this.#choices.set(expression, rule)
        return [{ type: 'rule', rule }]
      }
      case 'repeat': {
        const { part, min, max } = expression
        if (max === 0) return []
        return [{ type: 'repeat', symbol: this.#symbol(part), min, max }]
      }
      case 'rule':
        return [{ type: 'rule', rule: this.#namedRule(expression.name) }]
      default:
        return []
    }
  }

  #symbol(expression: Expression): Symbol {
    const symbols = this.#symbols(expression)
    const [only] = symbols
    if (symbols.length === 1 && only && only.type !== 'repeat') return only
    const rule = this.#rule()
    rule.alternatives.push(symbols)
    return { type: 'rule', rule }
  }

  /** Joins neighboring parts that are lexemes. */
  #sequence(expression: SequenceExpression): readonly Symbol[] {
    const symbols: Symbol[] = []
    let run: Expression[] = []
    const endRun = (): void => {
      if (run.length > 0) {
        const joined = this.#splitter.run(expression, run)
        const parts = this.#splitter.isWhole(joined) ? [joined] : run
        symbols.push(...parts.flatMap((part) => this.#symbols(part)))
      }
      run = []
    }
    const isJoined = !this.#splitter.isSplit(expression)
    for (const part of expression.parts) {
      if (isJoined && this.#splitter.isWhole(part)) {
        run.push(part)
        continue
      }
      endRun()
      symbols.push(...this.#symbols(part))
    }
    endRun()
    return symbols
  }

  #namedRule(name: string): Rule {
    const known = this.#named.get(name)
    if (known) return known
    const rule = this.#rule()
    this.#named.set(name, rule)
    const body = this.#splitter.rules.get(name) ?? NOTHING
    this.#pending.push(() => rule.alternatives.push(...this.#alternatives(body)))
    return rule
  }

  #lexeme(expression: Expression): Lexeme {
    const known = this.#lexemes.get(expression)
    if (known) return known
    const lexeme: Lexeme = {
      expression,
      isOptional: this.#splitter.isOptional(expression),
      limits: this.#splitter.limits(expression),
    }
    this.#lexemes.set(expression, lexeme)
    return lexeme
  }
}
