/** Defines what the decode loop needs from a constraint. */
import type { Constraint } from '../constraint.ts'

export interface ConstraintCompiler {
  /**
   * Starts a text that must satisfy the constraint. Compiles the constraint if it is not cached.
   * Rejects with `invalid_request` if it is not supported.
   */
  open(constraint: Constraint, signal: AbortSignal): Promise<Matcher>
  close(): void
}

/** State of one text that must satisfy a constraint, advanced token by token. */
export interface Matcher {
  /**
   * Resolves with the mask of the tokens that may come next, a bit for each id. Valid until
   * `accept`.
   */
  mask(): Promise<Int32Array>
  /** Returns the text that must come next; empty if there is a choice. */
  forced(): string
  /** Returns `true` if a longer token that begins like this one may come in its place. */
  canExtend(token: number): boolean
  /**
   * Accepts the next token, which may be an end token. Returns `false` and changes nothing if the
   * token is not allowed.
   */
  accept(token: number): boolean
  close(): void
}
