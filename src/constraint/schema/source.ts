/** What the parts of the rewriting need of the whole. */
import type { Facts } from './empty.ts'
import type { Kept } from './objects.ts'
import type { Loosened, Plain } from './plain.ts'
import type { Node } from './references.ts'

/** Subschema in the form of the engine. Without loosened keywords, it allows exactly the same values. */
export interface Apart {
  schema: Plain
  loosened: readonly Loosened[]
}

export interface Source {
  readonly facts: Facts
  /** Number of schemas with unevaluated keywords, within each other, that are being split. */
  splits: number
  /** Returns a subschema in the form of the engine. */
  rewrite(node: Node): Plain
  /** Rewrites a subschema whose loosened keywords are not noted yet. */
  rewriteApart(node: Node): Apart
  below(node: Node, ...keys: readonly (string | number)[]): Node
  /** Returns the schema to which a keyword refers; `undefined` if it is not in this schema. */
  resolve(node: Node, keyword: string): Node | undefined
  /** Returns a reference to the node's definition. */
  refer(node: Node): Plain
  /** Rewrites a subschema, and returns one for all other values, if it can be told exactly. */
  negate(node: Node): Apart & { negated: Plain | undefined }
  /** Returns the options of `oneOf`, so that they exclude each other; `undefined` if they cannot. */
  separate(node: Node): readonly Plain[] | undefined
  /** Returns what is kept, and notes the keywords that are not. */
  take(kept: Kept, path: string): Plain
  loosen(path: string, keyword: string): void
  ignore(path: string, keyword: string): void
}
