/** Parses the statements of a template into a syntax tree. */
import { ExpressionParser, SPECIAL_NAMES } from './expression-parser.ts'
import { tokenize } from './lexer.ts'
import type { Expression, MacroDefinition, NamedCall, Statement, Target } from './nodes.ts'

/** A parsed template. */
export interface Program {
  statements: readonly Statement[]
  /** Names that it reads: its variables, functions, macros and loop variables. */
  names: ReadonlySet<string>
}

/** Parses a template. Throws a `TemplateSyntaxError` if it is invalid. */
export function parse(source: string): Program {
  return new Parser(tokenize(source)).parse()
}

/** Tags that other templates are needed for. */
const OTHER_TEMPLATES = new Set(['extends', 'from', 'import', 'include'])

class Parser extends ExpressionParser {
  /** Number of loops around the current statement, within its macro. */
  #loops = 0

  parse(): Program {
    return { statements: this.#statements([]), names: this.names }
  }

  /** Parses statements up to a tag with one of these names, or to the end if there is none. */
  #statements(ends: readonly string[]): Statement[] {
    const statements: Statement[] = []
    for (;;) {
      const { type, value, line } = this.current
      if (type === 'end') {
        if (ends.length === 0) return statements
        const expected = ends.map((end) => `'${end}'`).join(' or ')
        throw this.error(`Unexpected end of template. Jinja was looking for ${expected}.`)
      }
      this.advance()
      if (type === 'data') statements.push({ type: 'text', text: value, line })
      else if (type === 'variable_begin') {
        statements.push({ type: 'output', value: this.tuple(), line })
        this.expect('variable_end')
      } else {
        if (ends.some((end) => this.isName(end))) return statements
        statements.push(...this.nest(() => this.#statement()))
        this.expect('block_end')
      }
    }
  }

  /** Parses the body of a statement and its end tag. */
  #body(end: string): Statement[] {
    this.expect('block_end')
    const body = this.#statements([end])
    this.advance()
    return body
  }

  /** Parses a statement from its name on, up to the end of its last tag. */
  #statement(): Statement[] {
    const { line } = this.current
    const name = this.expect('name')
    switch (name) {
      case 'for':
        return [this.#for(line)]
      case 'if':
        return [this.#if(line)]
      case 'set':
        return [this.#set(line)]
      case 'macro':
        return [this.#macro(line)]
      case 'call':
        return [this.#call(line)]
      case 'filter': {
        const filters = this.#filters(true)
        return [{ type: 'filter_block', filters, body: this.#body('endfilter'), line }]
      }
      case 'with':
        return [this.#with(line)]
      case 'generation':
        return [{ type: 'scope', body: this.#outsideLoop(() => this.#body('endgeneration')), line }]
      case 'block':
        return [this.#block(line)]
      case 'print':
        return this.#print(line)
      case 'break':
      case 'continue':
        if (this.#loops === 0) throw this.error(`'${name}' outside of a loop`, line)
        return [{ type: name, line }]
      case 'autoescape':
        this.expression()
        this.#body('endautoescape')
        return [{ type: 'unsupported', name, line }]
    }
    if (!OTHER_TEMPLATES.has(name)) throw this.error(`Encountered unknown tag '${name}'.`, line)
    while (!['block_end', 'end'].includes(this.current.type)) this.advance()
    return [{ type: 'unsupported', name, line }]
  }

  #for(line: number): Statement {
    const target = this.#target(false)
    this.expectName('in')
    const iterable = this.tuple(false, ['recursive'])
    const test = this.skipName('if') ? this.expression() : null
    const recursive = this.skipName('recursive')
    this.expect('block_end')
    this.#loops += 1
    const body = this.#statements(['endfor', 'else'])
    this.#loops -= 1
    const otherwise = this.skipName('else') ? this.#body('endfor') : (this.advance(), [])
    return { type: 'for', target, iterable, test, recursive, body, otherwise, line }
  }

  #if(line: number): Statement {
    const branches: { test: Expression; body: readonly Statement[] }[] = []
    do {
      const test = this.tuple(false)
      this.expect('block_end')
      branches.push({ test, body: this.#statements(['elif', 'else', 'endif']) })
    } while (this.skipName('elif'))
    const otherwise = this.skipName('else') ? this.#body('endif') : (this.advance(), [])
    return { type: 'if', branches, otherwise, line }
  }

  #set(line: number): Statement {
    const target = this.#target(true)
    if (this.skip('=')) return { type: 'set', target, value: this.tuple(), line }
    const filters = this.#filters(false)
    return { type: 'set_block', target, filters, body: this.#body('endset'), line }
  }

  #macro(line: number): Statement {
    const name = this.expect('name')
    return { type: 'macro', macro: this.#definition(name, 'endmacro'), line }
  }

  #call(line: number): Statement {
    const parameters = this.isOperator('(') ? this.#parameters() : []
    const call = this.expression()
    if (call.type !== 'call') throw this.error('expected call', line)
    const caller = this.#definition('caller', 'endcall', parameters)
    return { type: 'call_block', call, caller, line }
  }

  /** Parses the parameters, unless they are given, and the body of a macro. */
  #definition(
    name: string,
    end: string,
    parameters?: MacroDefinition['parameters'],
  ): MacroDefinition {
    const all = parameters ?? this.#parameters()
    const reads = new Set<string>()
    const body = this.collectNames(reads, () => this.#outsideLoop(() => this.#body(end)))
    for (const parameter of all) reads.delete(parameter.name)
    return { name, parameters: all, body, reads }
  }

  #parameters(): MacroDefinition['parameters'] {
    const parameters: { name: string; initial: Expression | null }[] = []
    this.expect('operator', '(')
    while (!this.skip(')')) {
      if (parameters.length > 0) this.expect('operator', ',')
      const name = this.expect('name')
      const initial = this.skip('=') ? this.expression() : null
      if (initial === null && parameters.at(-1)?.initial)
        throw this.error('non-default argument follows default argument')
      parameters.push({ name, initial })
    }
    return parameters
  }

  #with(line: number): Statement {
    const variables: [Target, Expression][] = []
    while (this.current.type !== 'block_end') {
      if (variables.length > 0) this.expect('operator', ',')
      const target = this.#target(false)
      this.expect('operator', '=')
      variables.push([target, this.expression()])
    }
    return { type: 'with', variables, body: this.#body('endwith'), line }
  }

  #block(line: number): Statement {
    const name = this.expect('name')
    this.skipName('scoped')
    this.skipName('required')
    const body = this.#outsideLoop(() => this.#body('endblock'))
    this.skipName(name)
    return { type: 'scope', body, line }
  }

  #print(line: number): Statement[] {
    const statements: Statement[] = []
    do statements.push({ type: 'output', value: this.expression(), line })
    while (this.skip(','))
    return statements
  }

  /** Parses a body that `break` and `continue` cannot leave. */
  #outsideLoop<T>(work: () => T): T {
    const loops = this.#loops
    this.#loops = 0
    const result = work()
    this.#loops = loops
    return result
  }

  /** Parses filters, of which the first one has no bar if it is inline. */
  #filters(isInline: boolean): NamedCall[] {
    const filters = isInline ? [this.filter()] : []
    while (this.skip('|')) filters.push(this.filter())
    return filters
  }

  /** Parses the target of an assignment, which may set attributes of a namespace. */
  #target(mayBeMember: boolean): Target {
    const targets: Target[] = []
    let isTuple = false
    while (!this.isName('in') && !this.isOperator('=')) {
      targets.push(this.#singleTarget(mayBeMember))
      if (!this.skip(',')) break
      isTuple = true
    }
    const [first] = targets
    if (!first) throw this.error(`unexpected '${this.current.value}', expected a name`)
    return isTuple ? { type: 'tuple', targets } : first
  }

  #singleTarget(mayBeMember: boolean): Target {
    if (this.skip('(') || this.skip('[')) {
      const targets: Target[] = []
      while (!this.isOperator(')') && !this.isOperator(']')) {
        targets.push(this.nest(() => this.#singleTarget(mayBeMember)))
        if (!this.skip(',')) break
      }
      if (!this.skip(']')) this.expect('operator', ')')
      return { type: 'tuple', targets }
    }
    const { line } = this.current
    const name = this.expect('name')
    if (SPECIAL_NAMES.has(name)) throw this.error("can't assign to 'const'", line)
    if (!mayBeMember || !this.skip('.')) return { type: 'name', name }
    return { type: 'member', namespace: name, name: this.expect('name') }
  }
}
