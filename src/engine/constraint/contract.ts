/** What the loop that writes answers needs of a constraint. */
import type { Constraint } from '../constraint.ts'

export interface Constraints {
  /**
   * Begins a text that keeps the constraint. Compiles it where no text has needed it before; rejects
   * with `invalid_request` when it cannot be kept.
   */
  open(constraint: Constraint, signal: AbortSignal): Promise<Matcher>
  close(): void
}

/** One text that keeps a constraint, token by token. */
export interface Matcher {
  /** The tokens that may come next, a bit for each id. Valid until `accept`. */
  mask(): Promise<Int32Array>
  /** The text that must come next, empty where there is a choice. */
  forced(): string
  /** A longer token that begins like this one may come in its place. */
  goesOn(token: number): boolean
  /** Takes the next token, an end token included; false, and nothing taken, where it may not come. */
  accept(token: number): boolean
  close(): void
}
