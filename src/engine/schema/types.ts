/** Defines how arrays and objects compile the schemas of their contents. */
import type { Expression } from './expression.ts'
import type { Context } from './flatten.ts'
import type { Node } from './node.ts'

export interface Compiler {
  readonly context: Context
  /** Returns the texts of the values for which all these schemas are valid. */
  value(nodes: readonly Node[]): Expression
  /** Defines a rule under a unique name, and returns a reference to it. */
  define(body: (name: string) => Expression): Expression
}
