/** Describes which texts an answer may be, as plain data. */

/** A JSON Schema, of any draft from 4 to 2020-12. */
export type JsonSchema = boolean | { readonly [keyword: string]: unknown }

/** A constraint on the text of an answer. Constraints can contain each other. */
export type Constraint =
  /** Any text. */
  | { type: 'text' }
  /** Exactly this text. */
  | { type: 'constant'; text: string }
  | JsonConstraint
  /** Text that matches an ECMAScript pattern as a whole. Flags: `i`, `s` and `u`. */
  | { type: 'pattern'; pattern: string; flags?: string }
  /** Text of a grammar: llguidance's Lark, the EBNF of xgrammar with the rule `root`, or the GBNF of llama.cpp. */
  | { type: 'grammar'; grammar: string; syntax?: 'lark' | 'ebnf' | 'gbnf' }
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
  /** What may follow `text` in a text of `whole`. It stands only at the top. */
  | { type: 'rest'; text: string; whole: Constraint }

/** JSON that conforms to a schema. */
export interface JsonConstraint {
  type: 'json'
  schema: JsonSchema
  /** `true` to refuse the constraint if a keyword cannot be kept. Default: `false`, the schema is loosened. */
  strict?: boolean
  /**
   * `true` if the text need not have this JSON, as with one tool of several. If the schema is not strict and allows no
   * value, any value is allowed then. Default: `false`, the constraint is refused.
   */
  isOptional?: boolean
  /** Place of the schema in the request, such as `tools[0].parameters`, for errors. Default: `''`. */
  path?: string
}

/** Text between a fixed beginning and a fixed end. */
export interface TaggedConstraint {
  type: 'tagged'
  begin: string
  content: Constraint
  end: string
}

/** Kinds of faults of a constraint. */
export type ConstraintErrorCode =
  /** It is not valid, not supported, or no text satisfies it. */
  | 'unsupported_constraint'
  /** A grammar cannot be read, or exceeds a limit. */
  | 'invalid_grammar'
  /** It takes more steps at a token, or more memory, than one answer may. */
  | 'constraint_too_slow'
  /** The WASM module failed. The next text gets a new instance. */
  | 'constraint_trap'
  /** The file of the WASM module could not be loaded. */
  | 'constraint_missing'

export class ConstraintError extends Error {
  override name = 'ConstraintError'
  readonly code: ConstraintErrorCode
  /** Place in the constraint's schema, such as `$.properties.age`. */
  readonly path: string | undefined
  /** Keyword of the schema that cannot be kept. */
  readonly keyword: string | undefined

  constructor(
    code: ConstraintErrorCode,
    message: string,
    options: ErrorOptions & { path?: string; keyword?: string } = {},
  ) {
    super(message, options)
    this.code = code
    this.path = options.path
    this.keyword = options.keyword
  }
}
