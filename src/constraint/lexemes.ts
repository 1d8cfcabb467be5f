/**
 * Divides a language into lexemes and rules. The engine's lexer takes the longest lexeme that may come, and never
 * goes back. So a lexeme is as long as possible, which is fast, but is split where it would take what belongs to the
 * next one. A split leaves out no text; a lexeme that cannot be split may.
 */
import { findConflicts, type Steps } from './conflicts.ts'
import {
  type Characters,
  childrenOf,
  type Choice,
  contains,
  type Conflict,
  EMPTY,
  type Expression,
  isEmpty,
  type Language,
  type Lexeme,
  type Lexemes,
  type Limits,
  memoize,
  NOTHING,
  type Rule,
  type Sequence,
  type Symbol,
  text,
  type TextExpression,
} from './expression.ts'
import { ConstraintError } from './constraint.ts'

/** A repetition of so many characters is not split: each one would be an item of the parser. */
const MAX_SPLIT_CHARACTERS = 16
/** Number of rules that refer to each other, and of parts that they have together, up to which they are a lexeme. */
const MAX_REGULAR_DEPTH = 50
const MAX_REGULAR_PARTS = 400

/** Remembers which expressions are lexemes, and which ones are split. */
class Splitter {
  readonly #language: Language
  readonly #regularRules = new Map<string, boolean>()
  #depth = 0
  /** The expressions that were split. */
  readonly split = new Set<Expression>()
  readonly pieces = new Map<Expression, readonly TextExpression[]>()
  /** Runs of the parts of an expression, by the places of these parts. */
  readonly #runs = memoize((_whole: Expression) => new Map<string, Expression>())
  /** Expressions over whose texts JSON takes precedence, and what contains it. */
  readonly preferring = new Set<Expression>()
  readonly limits = new Map<Expression, Limits>()
  /** Rules that have the empty text. */
  readonly #optional: ReadonlySet<string>

  constructor(language: Language) {
    this.#language = language
    this.#optional = findRules(language, isOptional)
  }

  get rules(): ReadonlyMap<string, Expression> {
    return this.#language.rules
  }

  ruleOf(name: string): Expression {
    return this.rules.get(name) ?? NOTHING
  }

  isOptional(expression: Expression): boolean {
    return isOptional(expression, this.#optional)
  }

  /** Returns `true` if the expression is one lexeme. */
  isWhole(expression: Expression): boolean {
    return this.#isRegular(expression) && !this.split.has(expression)
  }

  /** Returns the sequence or the choice of some neighboring parts, always the same object. */
  run(whole: Sequence<Expression> | Choice<Expression>, parts: readonly Expression[]): Expression {
    const [only] = parts
    if (parts.length === 1 && only) return only
    if (parts.length === whole.parts.length) return whole
    const runs = this.#runs(whole)
    const key = parts.map((part) => whole.parts.indexOf(part)).join()
    const run = runs.get(key) ?? { type: whole.type, parts }
    runs.set(key, run)
    return run
  }

  /** Splits a lexeme. Returns `false` if nothing is left to do. */
  resolve({ short, long }: Conflict): boolean {
    const { beginnings = [], isShortest = false } = this.limits.get(long) ?? {}
    if (this.preferring.has(long) && long !== short && this.#isRegular(short)) {
      if (beginnings.includes(short)) return false
      this.limits.set(long, { beginnings: [...beginnings, short], isShortest })
      return true
    }
    if (long === short && !this.split.has(long) && this.#endsAtText(long)) {
      if (isShortest) return false
      this.limits.set(long, { beginnings, isShortest: true })
      return true
    }
    if (short.type === 'engine') return this.#splitBeforeJson(long)
    if (long.type === 'engine') return this.#splitBeforeJson(short)
    // Pieces of the short one would end too early as well.
    return this.#splitOnce(long)
  }

  readonly #isRegular = memoize((expression: Expression): boolean =>
    expression.type === 'rule'
      ? this.#isRegularRule(expression.name)
      : expression.type !== 'engine' &&
        childrenOf(expression).every((part) => this.#isRegular(part)),
  )

  #isRegularRule(name: string): boolean {
    const known = this.#regularRules.get(name)
    if (known !== undefined) return known
    const body = this.ruleOf(name)
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
    return expression.type === 'rule'
      ? this.#countRule(expression.name)
      : childrenOf(expression).reduce((sum, part) => sum + this.#countParts(part), 1)
  }

  readonly #countRule = memoize((name: string): number => this.#countParts(this.ruleOf(name)))

  #splitOnce(expression: Expression): boolean {
    if (this.split.has(expression) || contains(expression, ({ type }) => type === 'free'))
      return false
    if (expression.type === 'text') return this.#splitText(expression, [...expression.text])
    if (expression.type === 'set' || expression.type === 'engine') return false
    if (expression.type === 'repeat' && this.#isWideCharacter(expression.part)) return false
    this.split.add(expression)
    return true
  }

  /** Splits a lexeme where JSON may come as well, so that their first lexemes are the same. */
  #splitBeforeJson(expression: Expression): boolean {
    if (expression.type !== 'text') return this.#splitOnce(expression)
    if (expression.isJsonToken || this.split.has(expression)) return false
    const tokens = expression.text.match(JSON_TOKENS) ?? []
    return this.#splitText(expression, tokens, true)
  }

  #splitText(expression: TextExpression, pieces: readonly string[], isJsonToken = false): boolean {
    if (pieces.length < 2) return false
    const parts = pieces.map((piece) => ({ ...text(piece), isJsonToken }))
    this.pieces.set(expression, parts)
    this.split.add(expression)
    return true
  }

  /** Returns `true` if the texts are any number of many characters and a fixed end. */
  #endsAtText(expression: Expression): boolean {
    if (expression.type === 'rule') return this.#endsAtText(this.ruleOf(expression.name))
    if (expression.type !== 'sequence') return false
    const { parts } = expression
    return parts.at(-1)?.type === 'text' && parts.some((part) => this.#isWideRepetition(part))
  }

  #isWideRepetition(expression: Expression): boolean {
    return contains(expression, (part) =>
      part.type === 'repeat'
        ? this.#isWideCharacter(part.part)
        : part.type === 'rule' && this.#isWideRepetition(this.ruleOf(part.name)),
    )
  }

  /** Returns `true` if many single characters are texts of the expression. */
  #isWideCharacter(expression: Expression): boolean {
    if (expression.type === 'set') return isWide(expression.set)
    if (expression.type === 'rule') return this.#isWideCharacter(this.ruleOf(expression.name))
    return (
      expression.type === 'choice' && expression.parts.some((part) => this.#isWideCharacter(part))
    )
  }
}

/** Texts that are lexemes of JSON as the engine writes it, and other characters. */
const JSON_TOKENS = /"(?:[^"\\]|\\[^])*"|[:,] |[^]/gu

const isWide = (ranges: Characters): boolean =>
  ranges.reduce((count, [first, last]) => count + last - first + 1, 0) > MAX_SPLIT_CHARACTERS

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
  readonly #choices = new Map<Choice<Expression>, Rule>()
  readonly #pending: (() => unknown)[] = []

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
    if (this.#splitter.split.has(expression) || whole.length === 0) {
      return parts.flatMap((part) => this.#alternatives(part))
    }
    const merged = this.#splitter.run(expression, whole)
    if (expression.prefersJson) this.#splitter.preferring.add(merged)
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
        return (this.#splitter.pieces.get(expression) ?? [expression]).flatMap((piece) =>
          this.#symbols(piece),
        )
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
  #sequence(expression: Sequence<Expression>): readonly Symbol[] {
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
    const isJoined = !this.#splitter.split.has(expression)
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

  readonly #namedRule = memoize((name: string): Rule => {
    const rule = this.#rule()
    const add = (): number =>
      rule.alternatives.push(...this.#alternatives(this.#splitter.ruleOf(name)))
    this.#pending.push(add)
    return rule
  })

  readonly #lexeme = memoize((expression: Expression): Lexeme => {
    const isOptional = this.#splitter.isOptional(expression)
    return { expression, isOptional, limits: this.#splitter.limits.get(expression) ?? null }
  })
}

/** Returns the rules for which something holds as soon as it holds for enough of the rules that they refer to. */
function findRules(
  { rules }: Language,
  holds: (body: Expression, found: ReadonlySet<string>) => boolean,
): ReadonlySet<string> {
  const found = new Set<string>()
  // Rules are mostly written before those that they refer to.
  const all = [...rules].toReversed()
  for (let size = -1; size < found.size;) {
    size = found.size
    for (const [name, body] of all) if (!found.has(name) && holds(body, found)) found.add(name)
  }
  return found
}

/** Removes what has no text from a language. Returns `null` if it has no text. */
function prune(language: Language): Language | null {
  const productive = findRules(language, hasTexts)
  const isKept = (expression: Expression): boolean => hasTexts(expression, productive)
  const rewrite = memoize((expression: Expression): Expression => {
    switch (expression.type) {
      case 'sequence':
        return { ...expression, parts: expression.parts.map(rewrite) }
      case 'choice':
        return { ...expression, parts: expression.parts.filter(isKept).map(rewrite) }
      case 'repeat':
        return isKept(expression.part) ? { ...expression, part: rewrite(expression.part) } : EMPTY
      default:
        return expression
    }
  })
  if (!isKept(language.root)) return null
  const kept = [...language.rules].filter(([name]) => productive.has(name))
  return {
    root: rewrite(language.root),
    rules: new Map(kept.map(([name, body]) => [name, rewrite(body)])),
  }
}

const hasTexts = (expression: Expression, productive: ReadonlySet<string>): boolean =>
  consistsOf(expression, (leaf) => {
    if (leaf.type === 'set') return leaf.set.length > 0
    return leaf.type !== 'rule' || productive.has(leaf.name)
  })

/** Returns `true` if the empty text is a text of the expression. */
const isOptional = (expression: Expression, optional: ReadonlySet<string>): boolean =>
  consistsOf(expression, (leaf) => {
    if (leaf.type === 'text') return leaf.text === ''
    if (leaf.type === 'free') return leaf.end === null
    return leaf.type === 'rule' && optional.has(leaf.name)
  })

/** Returns `true` if something holds for a text of the expression as soon as it holds for all that the text consists of. */
function consistsOf(expression: Expression, test: (leaf: Expression) => boolean): boolean {
  switch (expression.type) {
    case 'sequence':
      return expression.parts.every((part) => consistsOf(part, test))
    case 'choice':
      return expression.parts.some((part) => consistsOf(part, test))
    case 'repeat':
      return expression.min === 0 || consistsOf(expression.part, test)
    default:
      return test(expression)
  }
}
