/** What a text may be, said in pieces that fit together. Plain data; an engine compiles it. */
import type { JsonSchema } from '../types/index.ts'

export type Constraint =
  /** Any text. */
  | { type: 'text' }
  /** This text and no other. */
  | { type: 'constant'; text: string }
  /** JSON that the schema accepts. */
  | { type: 'json'; schema: JsonSchema }
  /** Text of a grammar in xgrammar's EBNF, from its rule `root`. */
  | { type: 'grammar'; grammar: string }
  | { type: 'pattern'; pattern: string }
  /** One after the other. */
  | { type: 'sequence'; parts: readonly Constraint[] }
  /** One of them. */
  | { type: 'choice'; parts: readonly Constraint[] }
  | TaggedConstraint
  /** Any text; where a trigger is written, one of the tags that begin with it must follow. */
  | {
      type: 'triggered'
      triggers: readonly string[]
      tags: readonly TaggedConstraint[]
      /** The text begins with a tag, and there is no text before it. */
      required: boolean
      /** Nothing follows the first tag. */
      single: boolean
    }
  /** Tags alone, with this text between two. */
  | {
      type: 'separated'
      tags: readonly TaggedConstraint[]
      separator: string
      required: boolean
      single: boolean
    }

/** A text between a beginning and an end. */
export interface TaggedConstraint {
  type: 'tagged'
  begin: string
  content: Constraint
  end: string
}
