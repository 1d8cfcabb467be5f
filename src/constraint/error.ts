/** What is wrong with a constraint. */
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

export interface ConstraintErrorOptions extends ErrorOptions {
  /** Place in the constraint's schema, such as `$.properties.age`. */
  path?: string
  /** Keyword of the schema that cannot be kept. */
  keyword?: string
}

export class ConstraintError extends Error {
  readonly code: ConstraintErrorCode
  readonly path: string | undefined
  readonly keyword: string | undefined

  constructor(code: ConstraintErrorCode, message: string, options: ConstraintErrorOptions = {}) {
    super(message, options)
    this.name = 'ConstraintError'
    this.code = code
    this.path = options.path
    this.keyword = options.keyword
  }
}
