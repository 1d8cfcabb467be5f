/** What the texts of arrays and objects are made with, out of the texts of what is in them. */
import type { Expression } from './expression.ts'
import type { Context, Flat } from './flatten.ts'
import type { Node } from './node.ts'

export interface Compiler {
  readonly context: Context
  /** The texts of values of which all these schemas hold. */
  value(nodes: readonly Node[]): Expression
  /** A rule of its own, under a name that no other has. */
  define(body: (name: string) => Expression): Expression
  /** The texts of strings that the flat allows, with their quotes. */
  string(flat: Flat): Expression
}
