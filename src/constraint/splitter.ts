/** Decides which expressions are lexemes, and splits them where two lexemes are in each other's way. */
import type { Conflict, Limits } from './division.ts'
import {
  type ChoiceExpression,
  type Expression,
  type Language,
  NOTHING,
  type SequenceExpression,
  text,
  type TextExpression,
} from './expression.ts'
import { findRules, isOptional } from './prune.ts'

/** A repetition of so many characters is not split: each one would be an item of the parser. */
const MAX_SPLIT_CHARACTERS = 16
/** Number of rules that refer to each other, and of parts that they have together, up to which they are a lexeme. */
const MAX_REGULAR_DEPTH = 50
const MAX_REGULAR_PARTS = 400

/** Remembers which expressions are lexemes, and which ones are split. */
export class Splitter {
  readonly #language: Language
  readonly #regularRules = new Map<string, boolean>()
  readonly #regular = new Map<Expression, boolean>()
  readonly #partCounts = new Map<string, number>()
  #depth = 0
  readonly #split = new Set<Expression>()
  readonly #pieces = new Map<TextExpression, readonly TextExpression[]>()
  readonly #runs = new Map<Expression, Map<string, Expression>>()
  readonly #preferring = new Set<Expression>()
  readonly #limits = new Map<Expression, Limits>()
  /** Rules that have the empty text. */
  readonly #optional: ReadonlySet<string>

  constructor(language: Language) {
    this.#language = language
    this.#optional = findRules(language, isOptional)
  }

  get rules(): ReadonlyMap<string, Expression> {
    return this.#language.rules
  }

  isOptional(expression: Expression): boolean {
    return isOptional(expression, this.#optional)
  }

  /** Returns `true` if the expression is one lexeme. */
  isWhole(expression: Expression): boolean {
    return this.#isRegular(expression) && !this.#split.has(expression)
  }

  /** Returns the sequence or the choice of some neighboring parts, always the same object. */
  run(whole: SequenceExpression | ChoiceExpression, parts: readonly Expression[]): Expression {
    const [only] = parts
    if (parts.length === 1 && only) return only
    if (parts.length === whole.parts.length) return whole
    const runs = this.#runs.get(whole) ?? new Map<string, Expression>()
    this.#runs.set(whole, runs)
    const key = parts.map((part) => whole.parts.indexOf(part)).join()
    const run = runs.get(key) ?? { type: whole.type, parts }
    runs.set(key, run)
    return run
  }

  /** Lets texts of JSON and of what contains it take precedence over the texts of a lexeme. */
  prefer(expression: Expression): void {
    this.#preferring.add(expression)
  }

  limits(expression: Expression): Limits | null {
    return this.#limits.get(expression) ?? null
  }

  /** Returns `true` if the expression is a sequence or a choice that was split. */
  isSplit(expression: Expression): boolean {
    return this.#split.has(expression)
  }

  pieces(expression: TextExpression): readonly TextExpression[] {
    return this.#pieces.get(expression) ?? [expression]
  }

  /** Splits a lexeme. Returns `false` if nothing is left to do. */
  resolve({ short, long }: Conflict): boolean {
    const { beginnings, isShortest } = this.#limits.get(long) ?? {
      beginnings: [],
      isShortest: false,
    }
    if (this.#preferring.has(long) && long !== short && this.#isRegular(short)) {
      if (beginnings.includes(short)) return false
      this.#limits.set(long, { beginnings: [...beginnings, short], isShortest })
      return true
    }
    if (long === short && !this.#split.has(long) && this.#endsAtText(long)) {
      if (isShortest) return false
      this.#limits.set(long, { beginnings, isShortest: true })
      return true
    }
    if (short.type === 'engine') return this.#splitBeforeJson(long)
    if (long.type === 'engine') return this.#splitBeforeJson(short)
    // Pieces of the short one would end too early as well.
    return this.#splitOnce(long)
  }

  #isRegular(expression: Expression): boolean {
    const known = this.#regular.get(expression)
    if (known !== undefined) return known
    const isRegular = this.#findRegular(expression)
    this.#regular.set(expression, isRegular)
    return isRegular
  }

  #findRegular(expression: Expression): boolean {
    switch (expression.type) {
      case 'engine':
        return false
      case 'sequence':
      case 'choice':
        return expression.parts.every((part) => this.#isRegular(part))
      case 'repeat':
        return this.#isRegular(expression.part)
      case 'rule':
        return this.#isRegularRule(expression.name)
      default:
        return true
    }
  }

  #isRegularRule(name: string): boolean {
    const known = this.#regularRules.get(name)
    if (known !== undefined) return known
    const body = this.rules.get(name) ?? NOTHING
    // A rule that comes back to itself finds this.
    this.#regularRules.set(name, false)
    this.#depth += 1
    const isRegular =
      this.#depth <= MAX_REGULAR_DEPTH &&
      this.#isRegular(body) &&
      this.#countParts(body) <= MAX_REGULAR_PARTS
    this.#depth -= 1
    this.#regularRules.set(name, isRegular)
    return isRegular
  }

  /** Returns the number of parts of a lexeme, in which each reference is as many parts as its rule. */
  #countParts(expression: Expression): number {
    switch (expression.type) {
      case 'sequence':
      case 'choice':
        return expression.parts.reduce((sum, part) => sum + this.#countParts(part), 1)
      case 'repeat':
        return 1 + this.#countParts(expression.part)
      case 'rule': {
        const { name } = expression
        const known =
          this.#partCounts.get(name) ?? this.#countParts(this.rules.get(name) ?? NOTHING)
        this.#partCounts.set(name, known)
        return known
      }
      default:
        return 1
    }
  }

  #splitOnce(expression: Expression): boolean {
    if (this.#split.has(expression) || this.#hasFreeText(expression)) return false
    switch (expression.type) {
      case 'text':
        return this.#splitText(expression, [...expression.text])
      case 'rule':
      case 'sequence':
      case 'choice':
        break
      case 'repeat':
        if (this.#isWideCharacter(expression.part)) return false
        break
      default:
        return false
    }
    this.#split.add(expression)
    return true
  }

  /** Splits a lexeme where JSON may come as well, so that their first lexemes are the same. */
  #splitBeforeJson(expression: Expression): boolean {
    if (expression.type !== 'text') return this.#splitOnce(expression)
    if (expression.isJsonToken || this.#split.has(expression)) return false
    const tokens = expression.text.match(JSON_TOKENS) ?? []
    return this.#splitText(expression, tokens, true)
  }

  #splitText(
    expression: TextExpression,
    pieces: readonly string[],
    areJsonTokens = false,
  ): boolean {
    if (pieces.length < 2) return false
    this.#pieces.set(
      expression,
      pieces.map((piece) => (areJsonTokens ? { ...text(piece), isJsonToken: true } : text(piece))),
    )
    this.#split.add(expression)
    return true
  }

  /** Returns `true` if the texts are any number of many characters and a fixed end. */
  #endsAtText(expression: Expression): boolean {
    if (expression.type === 'rule')
      return this.#endsAtText(this.rules.get(expression.name) ?? NOTHING)
    if (expression.type !== 'sequence') return false
    const { parts } = expression
    return parts.at(-1)?.type === 'text' && parts.some((part) => this.#isWideRepetition(part))
  }

  #isWideRepetition(expression: Expression): boolean {
    switch (expression.type) {
      case 'repeat':
        return this.#isWideCharacter(expression.part) || this.#isWideRepetition(expression.part)
      case 'sequence':
      case 'choice':
        return expression.parts.some((part) => this.#isWideRepetition(part))
      case 'rule':
        return this.#isWideRepetition(this.rules.get(expression.name) ?? NOTHING)
      default:
        return false
    }
  }

  /** Returns `true` if many single characters are texts of the expression. */
  #isWideCharacter(expression: Expression): boolean {
    switch (expression.type) {
      case 'set':
        return isWide(expression.ranges)
      case 'choice':
        return expression.parts.some((part) => this.#isWideCharacter(part))
      case 'rule':
        return this.#isWideCharacter(this.rules.get(expression.name) ?? NOTHING)
      default:
        return false
    }
  }

  #hasFreeText(expression: Expression): boolean {
    switch (expression.type) {
      case 'free':
        return true
      case 'sequence':
      case 'choice':
        return expression.parts.some((part) => this.#hasFreeText(part))
      case 'repeat':
        return this.#hasFreeText(expression.part)
      default:
        return false
    }
  }
}

/** Texts that are lexemes of JSON as the engine writes it, and other characters. */
const JSON_TOKENS = /"(?:[^"\\]|\\[^])*"|[:,] |[^]/gu

const isWide = (ranges: readonly (readonly [number, number])[]): boolean =>
  ranges.reduce((count, [first, last]) => count + last - first + 1, 0) > MAX_SPLIT_CHARACTERS
