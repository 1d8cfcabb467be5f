/** Parses the expressions of a template, with the precedence of jinja2. */
import { TemplateError } from './errors.ts'
import type { Token } from './lexer.ts'
import type { CallArguments, CompareOperator, Expression, NamedCall } from './nodes.ts'
import type { BinaryOperator } from './operators.ts'
import { parseInteger } from './numbers.ts'
import type { Value } from './values.ts'

/** Names of constants. */
export const SPECIAL_NAMES: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
])

const COMPARE_OPERATORS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>='])

/** Names that a macro has without parameters, if its body reads them. */
const MACRO_NAMES = new Set(['caller', 'kwargs', 'varargs'])

/** Deepest nesting of expressions and statements. */
const MAX_DEPTH = 200

/** Parser of expressions; a subclass parses statements. */
export class ExpressionParser {
  readonly #tokens: readonly Token[]
  readonly #readers: Set<string>[] = []
  /** Names that the parsed expressions read. */
  protected readonly names = new Set<string>()
  #at = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  /** The token that comes next. The last one is an `end`. */
  protected get current(): Token {
    return this.#tokens[this.#at] ?? END
  }

  protected advance(): void {
    this.#at += 1
  }

  protected isOperator(value: string): boolean {
    return this.current.type === 'operator' && this.current.value === value
  }

  protected isName(value: string): boolean {
    return this.current.type === 'name' && this.current.value === value
  }

  /** Skips an operator. Returns `false` if another token comes next. */
  protected skip(operator: string): boolean {
    if (!this.isOperator(operator)) return false
    this.advance()
    return true
  }

  /** Skips a name. Returns `false` if another token comes next. */
  protected skipName(name: string): boolean {
    if (!this.isName(name)) return false
    this.advance()
    return true
  }

  /** Returns the text of the next token and skips it. Throws if it is of another kind. */
  protected expect(type: Token['type'], value?: string): string {
    const token = this.current
    if (token.type !== type || (value !== undefined && token.value !== value)) {
      const wanted = value ?? EXPECTED[type] ?? type
      throw this.error(`expected token '${wanted}', got '${describe(token)}'`)
    }
    this.advance()
    return token.value
  }

  protected expectName(name: string): void {
    this.expect('name', name)
  }

  protected error(message: string, line = this.current.line): TemplateError {
    return new TemplateError('TemplateSyntaxError', message, line)
  }

  /** Parses one level deeper. */
  protected nest<T>(work: () => T): T {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) throw this.error('The template is nested too deeply')
    const result = work()
    this.#depth -= 1
    return result
  }

  /** Adds the special names that the parsed expressions read. */
  protected collectNames<T>(names: Set<string>, work: () => T): T {
    this.#readers.push(names)
    const result = work()
    this.#readers.pop()
    return result
  }

  /** Parses an expression, or several with commas as a tuple. */
  protected tuple(mayBeCondition = true, ends: readonly string[] = []): Expression {
    return this.#tuple(mayBeCondition, ends, false)
  }

  #tuple(mayBeCondition: boolean, ends: readonly string[], isEnclosed: boolean): Expression {
    const { line } = this.current
    const items: Expression[] = []
    let isTuple = false
    while (!this.#isTupleEnd(ends)) {
      items.push(mayBeCondition ? this.expression() : this.nest(() => this.#or()))
      if (!this.skip(',')) break
      isTuple = true
    }
    const [first] = items
    if (first && !isTuple) return first
    if (!first && !isEnclosed)
      throw this.error(`Expected an expression, got '${describe(this.current)}'`)
    return { type: 'tuple', items, line }
  }

  #isTupleEnd(ends: readonly string[]): boolean {
    const { type } = this.current
    if (type === 'variable_end' || type === 'block_end' || this.isOperator(')')) return true
    return ends.some((end) => this.isName(end))
  }

  /** Parses an expression, which may be a condition. */
  protected expression(): Expression {
    return this.nest(() => {
      let value = this.#or()
      for (let { line } = this.current; this.skipName('if'); line = this.current.line) {
        const test = this.#or()
        const otherwise = this.skipName('else') ? this.expression() : null
        value = { type: 'condition', test, value, otherwise, line }
      }
      return value
    })
  }

  #or(): Expression {
    let left = this.#and()
    for (let { line } = this.current; this.skipName('or'); line = this.current.line)
      left = { type: 'logic', operator: 'or', left, right: this.#and(), line }
    return left
  }

  #and(): Expression {
    let left = this.#not()
    for (let { line } = this.current; this.skipName('and'); line = this.current.line)
      left = { type: 'logic', operator: 'and', left, right: this.#not(), line }
    return left
  }

  #not(): Expression {
    const { line } = this.current
    if (!this.skipName('not')) return this.#compare()
    return { type: 'not', value: this.nest(() => this.#not()), line }
  }

  #compare(): Expression {
    const { line } = this.current
    const first = this.#sum()
    const others: [CompareOperator, Expression][] = []
    for (let next = this.#compareOperator(); next; next = this.#compareOperator())
      others.push([next, this.#sum()])
    return others.length === 0 ? first : { type: 'compare', first, others, line }
  }

  #compareOperator(): CompareOperator | null {
    const { type, value } = this.current
    if (type === 'operator' && COMPARE_OPERATORS.has(value)) {
      this.advance()
      return value as CompareOperator
    }
    if (this.skipName('in')) return 'in'
    const next = this.#tokens[this.#at + 1]
    if (!this.isName('not') || next?.type !== 'name' || next.value !== 'in') return null
    this.#at += 2
    return 'not in'
  }

  #sum(): Expression {
    return this.#binary(['+', '-'], () => this.#concat())
  }

  #concat(): Expression {
    const { line } = this.current
    const first = this.#product()
    const parts = [first]
    while (this.skip('~')) parts.push(this.#product())
    return parts.length === 1 ? first : { type: 'concat', parts, line }
  }

  #product(): Expression {
    return this.#binary(['*', '/', '//', '%'], () => this.#power())
  }

  #power(): Expression {
    return this.#binary(['**'], () => this.#unary(true))
  }

  /** Parses operands with operators between them, from left to right. */
  #binary(operators: readonly BinaryOperator[], operand: () => Expression): Expression {
    let left = operand()
    for (;;) {
      const { line } = this.current
      const operator = operators.find((each) => this.skip(each))
      if (operator === undefined) return left
      left = { type: 'binary', operator, left, right: operand(), line }
    }
  }

  #unary(withFilters: boolean): Expression {
    const { line } = this.current
    const operator = (['-', '+'] as const).find((each) => this.skip(each))
    const value: Expression = operator
      ? { type: 'sign', operator, value: this.nest(() => this.#unary(false)), line }
      : this.#primary()
    const whole = this.#postfix(value)
    return withFilters ? this.#filtersAndTests(whole) : whole
  }

  #primary(): Expression {
    const { type, value, line } = this.current
    this.advance()
    switch (type) {
      case 'name':
        return this.#name(value, line)
      case 'string': {
        let text = value
        while (this.current.type === 'string') text += this.expect('string')
        return { type: 'constant', value: text, line }
      }
      case 'integer': {
        const integer = parseInteger(value, 0)
        if (integer === null) throw this.error('The integer has too many digits', line)
        return { type: 'constant', value: integer, line }
      }
      case 'float':
        return { type: 'constant', value: Number(value.replaceAll('_', '')), line }
      case 'operator':
        if (value === '(') {
          const tuple = this.#tuple(true, [], true)
          this.expect('operator', ')')
          return tuple
        }
        if (value === '[') return this.#list(line)
        if (value === '{') return this.#dict(line)
    }
    throw this.error(`unexpected '${describe({ type, value })}'`, line)
  }

  #name(name: string, line: number): Expression {
    const constant = SPECIAL_NAMES.get(name)
    if (constant !== undefined) return { type: 'constant', value: constant, line }
    this.names.add(name)
    if (MACRO_NAMES.has(name)) for (const reader of this.#readers) reader.add(name)
    return { type: 'name', name, line }
  }

  #list(line: number): Expression {
    const items: Expression[] = []
    while (!this.skip(']')) {
      if (items.length > 0) this.expect('operator', ',')
      if (this.skip(']')) break
      items.push(this.expression())
    }
    return { type: 'list', items, line }
  }

  #dict(line: number): Expression {
    const entries: [Expression, Expression][] = []
    while (!this.skip('}')) {
      if (entries.length > 0) this.expect('operator', ',')
      if (this.skip('}')) break
      const key = this.expression()
      this.expect('operator', ':')
      entries.push([key, this.expression()])
    }
    return { type: 'dict', entries, line }
  }

  /** Parses attributes, items and calls after a value. */
  #postfix(value: Expression): Expression {
    let object = value
    for (;;) {
      const { line } = this.current
      if (this.skip('.')) object = this.#member(object, line)
      else if (this.skip('[')) object = this.#subscript(object, line)
      else if (this.isOperator('(')) {
        object = { type: 'call', callee: object, args: this.#arguments(), line }
      } else return object
    }
  }

  #member(object: Expression, line: number): Expression {
    const { type, value } = this.current
    if (type !== 'integer') return { type: 'attribute', object, name: this.expect('name'), line }
    this.advance()
    const key: Expression = { type: 'constant', value: BigInt(value), line }
    return { type: 'item', object, key, line }
  }

  #subscript(object: Expression, line: number): Expression {
    const start = this.isOperator(':') ? null : this.expression()
    if (this.skip(':')) {
      const part = (): Expression | null =>
        this.isOperator(':') || this.isOperator(']') ? null : this.expression()
      const stop = part()
      const step = this.skip(':') ? part() : null
      this.expect('operator', ']')
      return { type: 'slice', object, start, stop, step, line }
    }
    const items = [start as Expression]
    while (this.skip(',')) items.push(this.expression())
    this.expect('operator', ']')
    const key: Expression =
      items.length > 1 ? { type: 'tuple', items, line } : (start as Expression)
    return { type: 'item', object, key, line }
  }

  #arguments(): CallArguments {
    const positional: Expression[] = []
    const keywords: [string, Expression][] = []
    let spread: Expression | null = null
    let spreadKeywords: Expression | null = null
    const { line } = this.current
    this.expect('operator', '(')
    while (!this.skip(')')) {
      if (spreadKeywords) throw this.error('invalid syntax for function call expression', line)
      const next = this.#tokens[this.#at + 1]
      if (this.skip('**')) spreadKeywords = this.expression()
      else if (this.skip('*')) spread = this.expression()
      else if (this.current.type === 'name' && next?.type === 'operator' && next.value === '=') {
        const name = this.expect('name')
        this.advance()
        keywords.push([name, this.expression()])
      } else {
        if (keywords.length > 0 || spread)
          throw this.error('invalid syntax for function call expression', line)
        positional.push(this.expression())
      }
      if (!this.isOperator(')')) this.expect('operator', ',')
    }
    return { positional, keywords, spread, spreadKeywords }
  }

  #filtersAndTests(value: Expression): Expression {
    let object = value
    for (;;) {
      const { line } = this.current
      if (this.skip('|')) object = { type: 'filter', value: object, filter: this.filter(), line }
      else if (this.skipName('is')) object = this.#test(object, line)
      else if (this.isOperator('(')) {
        object = { type: 'call', callee: object, args: this.#arguments(), line }
      } else return object
    }
  }

  /** Parses the name and the arguments of a filter. */
  protected filter(): NamedCall {
    const { line } = this.current
    const name = this.#dottedName()
    return { name, args: this.isOperator('(') ? this.#arguments() : NO_ARGUMENTS, line }
  }

  #test(value: Expression, line: number): Expression {
    const isNegated = this.skipName('not')
    const name = this.#dottedName()
    const test: Expression = {
      type: 'test',
      value,
      test: { name, args: this.#testArguments(), line },
      line,
    }
    return isNegated ? { type: 'not', value: test, line } : test
  }

  #testArguments(): CallArguments {
    if (this.isOperator('(')) return this.#arguments()
    const { type, value } = this.current
    const begins =
      ['string', 'integer', 'float'].includes(type) ||
      (type === 'name' && !['else', 'or', 'and'].includes(value)) ||
      (type === 'operator' && (value === '[' || value === '{'))
    if (!begins) return NO_ARGUMENTS
    if (this.isName('is')) throw this.error('You cannot chain multiple tests with is')
    return { ...NO_ARGUMENTS, positional: [this.#postfix(this.#primary())] }
  }

  #dottedName(): string {
    let name = this.expect('name')
    while (this.skip('.')) name += `.${this.expect('name')}`
    return name
  }
}

const END: Token = { type: 'end', value: '', line: 0 }

const NO_ARGUMENTS: CallArguments = {
  positional: [],
  keywords: [],
  spread: null,
  spreadKeywords: null,
}

/** Names of tokens in errors. */
const EXPECTED: Readonly<Partial<Record<Token['type'], string>>> = {
  block_end: 'end of statement block',
  variable_end: 'end of print statement',
}

const describe = ({ type, value }: Pick<Token, 'type' | 'value'>): string =>
  type === 'end' ? 'end of template' : value || (EXPECTED[type] ?? type)
