/** Syntax tree of a template. */
import type { OrderOperator, BinaryOperator } from './operators.ts'
import type { Value } from './values.ts'

/** Arguments of a call, in order, with `*args` and `**kwargs`. */
export interface CallArguments {
  positional: readonly Expression[]
  keywords: readonly (readonly [string, Expression])[]
  spread: Expression | null
  spreadKeywords: Expression | null
}

/** Operators of a chain of comparisons. */
export type CompareOperator = OrderOperator | '==' | '!=' | 'in' | 'not in'

/** A filter or test with its arguments; its value is elsewhere. */
export interface NamedCall {
  name: string
  args: CallArguments
  line: number
}

/** An expression. `line` is the line of the template, counted from 1. */
export type Expression = { line: number } & (
  | { type: 'constant'; value: Value }
  | { type: 'name'; name: string }
  | { type: 'list' | 'tuple'; items: readonly Expression[] }
  | { type: 'dict'; entries: readonly (readonly [Expression, Expression])[] }
  | { type: 'attribute'; object: Expression; name: string }
  | { type: 'item'; object: Expression; key: Expression }
  | {
      type: 'slice'
      object: Expression
      start: Expression | null
      stop: Expression | null
      step: Expression | null
    }
  | { type: 'call'; callee: Expression; args: CallArguments }
  | { type: 'filter'; value: Expression; filter: NamedCall }
  | { type: 'test'; value: Expression; test: NamedCall }
  | { type: 'not'; value: Expression }
  | { type: 'sign'; operator: '-' | '+'; value: Expression }
  | { type: 'binary'; operator: BinaryOperator; left: Expression; right: Expression }
  | { type: 'logic'; operator: 'and' | 'or'; left: Expression; right: Expression }
  | { type: 'concat'; parts: readonly Expression[] }
  | {
      type: 'compare'
      first: Expression
      others: readonly (readonly [CompareOperator, Expression])[]
    }
  | { type: 'condition'; test: Expression; value: Expression; otherwise: Expression | null }
)

/** The target of an assignment. */
export type Target =
  | { type: 'name'; name: string }
  | { type: 'member'; namespace: string; name: string }
  | { type: 'tuple'; targets: readonly Target[] }

/** Parameters of a macro, in order, with their defaults. */
export type Parameters = readonly { name: string; initial: Expression | null }[]

/** A macro, or the body of a call block. */
export interface MacroDefinition {
  name: string
  parameters: Parameters
  body: readonly Statement[]
  /** Special names that the body reads: `caller`, `kwargs` and `varargs`. */
  reads: ReadonlySet<string>
}

/** A statement. `line` is the line of the template, counted from 1. */
export type Statement = { line: number } & (
  | { type: 'text'; text: string }
  | { type: 'output'; value: Expression }
  | {
      type: 'for'
      target: Target
      iterable: Expression
      test: Expression | null
      recursive: boolean
      body: readonly Statement[]
      otherwise: readonly Statement[]
    }
  | {
      type: 'if'
      branches: readonly { test: Expression; body: readonly Statement[] }[]
      otherwise: readonly Statement[]
    }
  | { type: 'set'; target: Target; value: Expression }
  | { type: 'set_block'; target: Target; filters: readonly NamedCall[]; body: readonly Statement[] }
  | { type: 'macro'; macro: MacroDefinition }
  | { type: 'call_block'; call: Expression; caller: MacroDefinition }
  | { type: 'filter_block'; filters: readonly NamedCall[]; body: readonly Statement[] }
  | {
      type: 'with'
      variables: readonly (readonly [Target, Expression])[]
      body: readonly Statement[]
    }
  /** A scope of its own: a block, or the text of the assistant. */
  | { type: 'scope'; body: readonly Statement[] }
  | { type: 'break' | 'continue' }
  /** A statement that the renderer lacks. It throws when it runs. */
  | { type: 'unsupported'; name: string }
)
