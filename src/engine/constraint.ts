/** Describes which texts an answer may be, as plain data that an engine compiles. */
import type { JsonSchema } from '../types/index.ts'

/** A constraint on the text of an answer. Constraints can contain each other. */
export type Constraint =
  /** Any text. */
  | { type: 'text' }
  /** Exactly this text. */
  | { type: 'constant'; text: string }
  /** JSON that conforms to the schema. */
  | { type: 'json'; schema: JsonSchema }
  /** Text that matches the rule `root` of a grammar in xgrammar's EBNF. */
  | { type: 'grammar'; grammar: string }
  | { type: 'pattern'; pattern: string }
  /** The parts, one after the other. */
  | { type: 'sequence'; parts: readonly Constraint[] }
  /** One of the parts. */
  | { type: 'choice'; parts: readonly Constraint[] }
  | TaggedConstraint
  /** Free text. After a trigger, one of the tags that begin with it must follow. */
  | {
      type: 'triggered'
      triggers: readonly string[]
      tags: readonly TaggedConstraint[]
      /** `true` if the text must begin with a tag, without text before it. */
      required: boolean
      /** `true` if nothing may follow the first tag. */
      single: boolean
    }
  /** Tags only, with `separator` between two of them. */
  | {
      type: 'separated'
      tags: readonly TaggedConstraint[]
      separator: string
      required: boolean
      single: boolean
    }

/** Text between a fixed beginning and a fixed end. */
export interface TaggedConstraint {
  type: 'tagged'
  begin: string
  content: Constraint
  end: string
}
