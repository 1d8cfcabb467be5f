/** Runs the syntax tree of a template. */
import { getAttribute, getItem, getSlice } from './attributes.ts'
import { Budget, type Limits, TemplateError, typeError } from './errors.ts'
import { FILTERS } from './filters.ts'
import { type Filter, NO_ARGUMENTS, type Runtime, type Test } from './functions.ts'
import { createGlobals } from './globals.ts'
import { Loop } from './loop.ts'
import { addMarkup, Markup, MARKUP_FILTERS, toPlain } from './markup.ts'
import type {
  CallArguments,
  CompareOperator,
  Expression,
  MacroDefinition,
  NamedCall,
  Statement,
  Target,
} from './nodes.ts'
import { applySign, calculate, contains, equals, isOrdered } from './operators.ts'
import { iterate, iterateLazily, unpack } from './sequences.ts'
import { TESTS } from './tests.ts'
import { toText } from './text.ts'
import {
  type Arguments,
  Callable,
  Dict,
  isTrue,
  Namespace,
  Tuple,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

/** Variables of a part of a template. A name that it lacks is looked up in its parent. */
class Scope {
  readonly #values = new Map<string, Value | Markup>()
  readonly #parent: Scope | null

  constructor(parent: Scope | null) {
    this.#parent = parent
  }

  get(name: string): Value | Markup | undefined {
    const value = this.#values.get(name)
    return value === undefined ? this.#parent?.get(name) : value
  }

  set(name: string, value: Value | Markup): void {
    this.#values.set(name, value)
  }
}

/** End of a list of statements. */
type Completion = 'end' | 'break' | 'continue'

/** Interpreter of one rendering. */
export class Interpreter implements Runtime {
  readonly budget: Budget
  readonly #root = new Scope(null)
  /** Text of the innermost part whose text is collected. */
  #output = ''
  /** Line of the node that runs. */
  #line = 1
  /** Items of the running loops, the outermost first. */
  readonly #loopItems: Value[] = []

  constructor(variables: Iterable<readonly [string, Value]>, limits: Limits) {
    this.budget = new Budget(limits)
    for (const [name, value] of createGlobals(this.budget)) this.#root.set(name, value)
    for (const [name, value] of variables) this.#root.set(name, value)
  }

  /** Returns the text of a template. Throws {@link TemplateError} with its line if it fails. */
  render(statements: readonly Statement[]): string {
    try {
      this.#run(statements, new Scope(this.#root))
      return this.#output
    } catch (thrown) {
      const error = thrown instanceof TemplateError ? thrown : toRecursionError(thrown)
      error.line ??= this.#line
      error.loopItems = this.#loopItems.toReversed()
      throw error
    }
  }

  getFilter(name: string): Filter {
    const filter = FILTERS.get(name)
    if (filter) return filter
    throw new TemplateError('TemplateRuntimeError', `No filter named '${name}' found.`)
  }

  getTest(name: string): Test {
    const test = TESTS.get(name)
    if (test) return test
    throw new TemplateError('TemplateRuntimeError', `No test named '${name}' found.`)
  }

  getAttribute(value: Value, name: string): Value {
    return getAttribute(value, name, this)
  }

  getItem(value: Value, key: Value): Value {
    return getItem(value, key, this)
  }

  // Statements.

  #run(statements: readonly Statement[], scope: Scope): Completion {
    for (const statement of statements) {
      const completion = this.#execute(statement, scope)
      if (completion !== 'end') return completion
    }
    return 'end'
  }

  #execute(statement: Statement, scope: Scope): Completion {
    this.budget.spend(1)
    this.#line = statement.line
    switch (statement.type) {
      case 'text':
        this.#write(statement.text)
        return 'end'
      case 'output':
        this.#write(toText(this.#evaluate(statement.value, scope), this.budget))
        return 'end'
      case 'if':
        for (const { test, body } of statement.branches)
          if (isTrue(this.#evaluate(test, scope))) return this.#run(body, scope)
        return this.#run(statement.otherwise, scope)
      case 'for':
        this.#loop(statement, this.#evaluate(statement.iterable, scope), scope, 1)
        return 'end'
      case 'set':
        this.#assign(statement.target, this.#evaluateMarkup(statement.value, scope), scope)
        return 'end'
      case 'set_block': {
        const text = this.#capture(statement.body, new Scope(scope))
        this.#assign(statement.target, this.#filterAll(text, statement.filters, scope), scope)
        return 'end'
      }
      case 'macro':
        scope.set(statement.macro.name, this.#createMacro(statement.macro, scope))
        return 'end'
      case 'call_block': {
        const caller = this.#createMacro(statement.caller, scope)
        this.#write(toText(this.#call(statement.call, scope, caller), this.budget))
        return 'end'
      }
      case 'filter_block': {
        const text = this.#capture(statement.body, new Scope(scope))
        const filtered = this.#filterAll(text, statement.filters, scope)
        this.#write(toText(filtered, this.budget))
        return 'end'
      }
      case 'with': {
        const inner = new Scope(scope)
        const values = statement.variables.map(([, value]) => this.#evaluate(value, scope))
        for (const [at, [target]] of statement.variables.entries())
          this.#assign(target, values[at] ?? null, inner)
        return this.#run(statement.body, inner)
      }
      case 'scope':
        return this.#run(statement.body, new Scope(scope))
      case 'unsupported': {
        const message = `the tag '${statement.name}' is not supported`
        throw new TemplateError('TemplateRuntimeError', message)
      }
      default:
        return statement.type
    }
  }

  #write(text: string): void {
    this.budget.assertLength(this.#output.length + text.length)
    this.#output += text
  }

  /** Returns the text of statements instead of writing it. */
  #capture(statements: readonly Statement[], scope: Scope): string {
    const before = this.#output
    this.#output = ''
    this.#run(statements, scope)
    const text = this.#output
    this.#output = before
    return text
  }

  #loop(
    statement: Statement & { type: 'for' },
    iterable: Value,
    scope: Scope,
    depth: number,
  ): void {
    const items = this.#selectItems(statement, iterable, scope)
    if (items.length === 0) {
      this.#run(statement.otherwise, new Scope(scope))
      return
    }
    const recurse = statement.recursive
      ? (inner: Value, innerDepth: number): string =>
          this.budget.nest(() => this.#loopText(statement, inner, scope, innerDepth))
      : null
    const loop = new Loop(items, depth, this.budget, recurse)
    for (const [index, item] of items.entries()) {
      loop.index = index
      const inner = new Scope(scope)
      inner.set('loop', loop)
      this.#assign(statement.target, item, inner)
      this.#loopItems.push(item)
      const completion = this.#run(statement.body, inner)
      this.#loopItems.pop()
      if (completion === 'break') break
    }
  }

  #loopText(
    statement: Statement & { type: 'for' },
    items: Value,
    scope: Scope,
    depth: number,
  ): string {
    const before = this.#output
    this.#output = ''
    this.#loop(statement, items, scope, depth)
    const text = this.#output
    this.#output = before
    return text
  }

  /** Returns the items of a loop for which its test is true. */
  #selectItems(
    { target, test }: Statement & { type: 'for' },
    iterable: Value,
    scope: Scope,
  ): readonly Value[] {
    if (!test) return iterate(iterable, this.budget)
    const selected: Value[] = []
    for (const item of iterateLazily(iterable, this.budget)) {
      const inner = new Scope(scope)
      this.#assign(target, item, inner)
      if (isTrue(this.#evaluate(test, inner))) selected.push(item)
    }
    return selected
  }

  #assign(target: Target, assigned: Value | Markup, scope: Scope): void {
    const value = toPlain(assigned)
    if (target.type === 'name') scope.set(target.name, assigned)
    else if (target.type === 'tuple') {
      const values = unpack(value, target.targets.length, this.budget)
      for (const [at, each] of target.targets.entries())
        this.#assign(each, values[at] ?? null, scope)
    } else {
      const namespace = scope.get(target.namespace)
      if (!(namespace instanceof Namespace)) {
        throw new TemplateError(
          'TemplateRuntimeError',
          'cannot assign attribute on non-namespace object',
        )
      }
      namespace.set(target.name, value)
    }
  }

  #createMacro(definition: MacroDefinition, scope: Scope): Macro {
    return new Macro(definition, (values) => {
      const line = this.#line
      const inner = new Scope(scope)
      for (const [name, value] of values.given) inner.set(name, value)
      for (const { name, initial } of definition.parameters) {
        if (values.given.has(name)) continue
        const message = `parameter '${name}' was not provided`
        inner.set(name, initial ? this.#evaluate(initial, inner) : new Undefined(message))
      }
      const text = this.budget.nest(() => this.#capture(definition.body, inner))
      this.#line = line
      return text
    })
  }

  // Expressions.

  /** Returns the value of an expression. */
  #evaluate(node: Expression, scope: Scope): Value {
    return toPlain(this.#evaluateMarkup(node, scope))
  }

  /** Returns the value of an expression, which may be markup. */
  #evaluateMarkup(node: Expression, scope: Scope): Value | Markup {
    this.budget.spend(1)
    this.#line = node.line
    switch (node.type) {
      case 'constant':
        return node.value
      case 'name': {
        const value = scope.get(node.name)
        return value === undefined ? new Undefined(`'${node.name}' is undefined`) : value
      }
      case 'list':
        return node.items.map((item) => this.#evaluate(item, scope))
      case 'tuple':
        return new Tuple(node.items.map((item) => this.#evaluate(item, scope)))
      case 'dict':
        return new Dict(
          node.entries.map(
            ([key, value]) => [this.#evaluate(key, scope), this.#evaluate(value, scope)] as const,
          ),
        )
      case 'attribute':
        return getAttribute(this.#evaluate(node.object, scope), node.name, this)
      case 'item': {
        const object = this.#evaluate(node.object, scope)
        return getItem(object, this.#evaluate(node.key, scope), this)
      }
      case 'slice': {
        const [object, start, stop, step] = [node.object, node.start, node.stop, node.step].map(
          (part) => (part ? this.#evaluate(part, scope) : null),
        )
        const bounds = { start: start ?? null, stop: stop ?? null, step: step ?? null }
        return getSlice(object ?? null, bounds, this)
      }
      case 'call':
        return this.#call(node, scope)
      case 'filter':
        return this.#filter(this.#evaluateMarkup(node.value, scope), node.filter, scope)
      case 'test': {
        const value = this.#evaluateMarkup(node.value, scope)
        const args = this.#arguments(node.test.args, scope)
        if (node.test.name === 'escaped') return value instanceof Markup
        return this.getTest(node.test.name)(toPlain(value), args, this)
      }
      case 'not':
        return !isTrue(this.#evaluate(node.value, scope))
      case 'sign':
        return applySign(node.operator, this.#evaluate(node.value, scope))
      case 'binary': {
        const left = this.#evaluateMarkup(node.left, scope)
        const right = this.#evaluateMarkup(node.right, scope)
        const isMarkup = left instanceof Markup || right instanceof Markup
        if (node.operator === '+' && isMarkup) return addMarkup(left, right)
        return calculate(node.operator, toPlain(left), toPlain(right), this.budget)
      }
      case 'logic': {
        const left = this.#evaluateMarkup(node.left, scope)
        const isDecided = isTrue(toPlain(left)) === (node.operator === 'or')
        return isDecided ? left : this.#evaluateMarkup(node.right, scope)
      }
      case 'concat': {
        const texts = node.parts.map((part) => toText(this.#evaluate(part, scope), this.budget))
        const text = texts.reduce((all, each) => all + each)
        this.budget.assertLength(text.length)
        return text
      }
      case 'compare':
        return this.#compare(node, scope)
      case 'condition': {
        if (isTrue(this.#evaluate(node.test, scope))) return this.#evaluateMarkup(node.value, scope)
        if (node.otherwise) return this.#evaluateMarkup(node.otherwise, scope)
        return new Undefined(
          `the inline if-expression on line ${node.line} evaluated to false ` +
            'and no else section was defined.',
        )
      }
    }
  }

  #compare({ first, others }: Expression & { type: 'compare' }, scope: Scope): boolean {
    let left = this.#evaluate(first, scope)
    for (const [operator, operand] of others) {
      const right = this.#evaluate(operand, scope)
      if (!this.#isRelated(operator, left, right)) return false
      left = right
    }
    return true
  }

  #isRelated(operator: CompareOperator, left: Value, right: Value): boolean {
    switch (operator) {
      case '==':
        return equals(left, right, this.budget)
      case '!=':
        return !equals(left, right, this.budget)
      case 'in':
        return contains(right, left, this.budget)
      case 'not in':
        return !contains(right, left, this.budget)
      default:
        return isOrdered(operator, left, right, this.budget)
    }
  }

  /** Calls a function or macro. `caller` is the body of a call block. */
  #call(node: Expression, scope: Scope, caller?: Macro): Value {
    if (node.type !== 'call') return null
    const callee = this.#evaluate(node.callee, scope)
    const { positional, keywords } = this.#arguments(node.args, scope)
    this.#line = node.line
    if (callee instanceof Undefined) throw callee.toError()
    if (!(callee instanceof Callable))
      throw typeError(`'${typeNameOf(callee)}' object is not callable`)
    const all = caller ? new Map([...keywords, ['caller', caller]]) : keywords
    return callee.call({ positional, keywords: all })
  }

  #filter(value: Value | Markup, { name, args, line }: NamedCall, scope: Scope): Value | Markup {
    const filter = this.getFilter(name)
    const values = this.#arguments(args, scope)
    this.#line = line
    if (!MARKUP_FILTERS.has(name)) return filter(toPlain(value), values, this)
    if (value instanceof Markup && name !== 'forceescape') return value
    return new Markup(toText(filter(toPlain(value), values, this), this.budget))
  }

  #filterAll(text: string, filters: readonly NamedCall[], scope: Scope): Value {
    let value: Value | Markup = text
    for (const filter of filters) value = this.#filter(value, filter, scope)
    return toPlain(value)
  }

  #arguments(args: CallArguments, scope: Scope): Arguments {
    const { positional, keywords, spread, spreadKeywords } = args
    if (positional.length + keywords.length === 0 && !spread && !spreadKeywords) return NO_ARGUMENTS
    const values = positional.map((each) => this.#evaluate(each, scope))
    if (spread) values.push(...iterate(this.#evaluate(spread, scope), this.budget))
    const named = new Map(keywords.map(([name, each]) => [name, this.#evaluate(each, scope)]))
    if (spreadKeywords) {
      const more = this.#evaluate(spreadKeywords, scope)
      if (!(more instanceof Dict))
        throw typeError(`argument after ** must be a mapping, not ${typeNameOf(more)}`)
      for (const [name, value] of more.entries()) named.set(toText(name, this.budget), value)
    }
    return { positional: values, keywords: named }
  }
}

/** A macro, or the body of a call block. */
class Macro extends Callable {
  readonly typeName = 'Macro'
  readonly #definition: MacroDefinition
  readonly #run: (values: { given: ReadonlyMap<string, Value> }) => string

  constructor(
    definition: MacroDefinition,
    run: (values: { given: ReadonlyMap<string, Value> }) => string,
  ) {
    super()
    this.#definition = definition
    this.#run = run
  }

  override call({ positional, keywords }: Arguments): Value {
    const { name, parameters, reads } = this.#definition
    const given = new Map<string, Value>()
    const unused = new Map(keywords)
    for (const [at, parameter] of parameters.entries()) {
      const value = positional[at] ?? (at < positional.length ? null : unused.get(parameter.name))
      if (value === undefined) continue
      given.set(parameter.name, value)
      if (at >= positional.length) unused.delete(parameter.name)
    }
    if (reads.has('caller')) {
      given.set('caller', unused.get('caller') ?? new Undefined('No caller defined'))
      unused.delete('caller')
    }
    const [unknown] = unused.keys()
    if (reads.has('kwargs')) given.set('kwargs', new Dict(unused))
    else if (unknown !== undefined)
      throw typeError(`macro '${name}' takes no keyword argument '${unknown}'`)
    const rest = positional.slice(parameters.length)
    if (reads.has('varargs')) given.set('varargs', new Tuple(rest))
    else if (rest.length > 0) {
      throw typeError(`macro '${name}' takes not more than ${parameters.length} argument(s)`)
    }
    return this.#run({ given })
  }

  override attribute(name: string): Value | undefined {
    const { parameters, reads } = this.#definition
    if (name === 'name') return this.#definition.name
    if (name === 'arguments') return new Tuple(parameters.map((each) => each.name))
    if (name === 'catch_kwargs') return reads.has('kwargs')
    if (name === 'catch_varargs') return reads.has('varargs')
    return name === 'caller' ? reads.has('caller') : undefined
  }

  override toText(): string {
    return `<Macro '${this.#definition.name}'>`
  }
}

/** Returns the error of a stack overflow. Throws any other error, which is a fault of this code. */
function toRecursionError(thrown: unknown): TemplateError {
  const isOverflow =
    thrown instanceof Error && /call stack|too much recursion/i.test(thrown.message)
  if (!isOverflow) throw thrown
  return new TemplateError('RecursionError', 'maximum recursion depth exceeded')
}
