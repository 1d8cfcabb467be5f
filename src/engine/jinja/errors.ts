/** Errors of templates, with Python's names, and the limits of one rendering. */

/** Name of the exception that Python raises. */
export type ErrorType =
  | 'IndexError'
  | 'KeyError'
  | 'OverflowError'
  | 'RecursionError'
  | 'SecurityError'
  | 'TemplateError'
  | 'TemplateRuntimeError'
  | 'TemplateSyntaxError'
  | 'TypeError'
  | 'UndefinedError'
  | 'ValueError'
  | 'ZeroDivisionError'

/** Error of a template. Its message is the one of Python. */
export class TemplateError extends Error {
  readonly type: ErrorType
  /** Line of the template, counted from 1. The parser or the interpreter sets it. */
  line: number | undefined
  /** Items of the loops that were running, the innermost first. */
  loopItems: readonly unknown[] = []

  constructor(type: ErrorType, message: string, line?: number) {
    super(message)
    this.type = type
    this.line = line
  }
}

/** Error of a template that rejects the conversation with `raise_exception`. */
export class TemplateRejection extends TemplateError {
  constructor(message: string) {
    super('TemplateError', message)
  }
}

/** Error of a template that exceeds a limit. */
export class LimitExceeded extends TemplateError {
  constructor(message: string) {
    super('TemplateRuntimeError', message)
  }
}

/** Returns Python's error for a value of a wrong type. */
export const typeError = (message: string): TemplateError => new TemplateError('TypeError', message)

/** Returns Python's error for a wrong value of the right type. */
export const valueError = (message: string): TemplateError =>
  new TemplateError('ValueError', message)

/** Limits of one rendering. */
export interface Limits {
  /** Number of steps: evaluated nodes, items, and units of 64 characters that are read. */
  steps: number
  /** Length of the longest text, in UTF-16 units. */
  characters: number
  /** Length of the longest list. */
  items: number
  /** Number of macros and recursive loops inside each other. */
  depth: number
}

/** Counts the work of one rendering. Its methods throw {@link LimitExceeded}. */
export class Budget {
  readonly #limits: Limits
  #steps: number
  #depth = 0

  constructor(limits: Limits) {
    this.#limits = limits
    this.#steps = limits.steps
  }

  /** Spends steps. */
  spend(steps: number): void {
    this.#steps -= steps
    if (this.#steps < 0) throw new LimitExceeded('it runs for too long')
  }

  /** Spends the steps that reading a text takes. */
  read(text: string): void {
    this.spend(1 + (text.length >> 6))
  }

  /** Asserts that a text of this length may be made. */
  assertLength(length: number): void {
    if (length > this.#limits.characters) throw new LimitExceeded('it produces too much text')
  }

  /** Spends the steps that a list of this length takes. */
  items(length: number): void {
    if (length > this.#limits.items) throw new LimitExceeded('it creates too long a list')
    this.spend(length)
  }

  /** Runs `work` one level deeper. */
  nest<T>(work: () => T): T {
    this.#depth += 1
    if (this.#depth > this.#limits.depth)
      throw new TemplateError('RecursionError', 'maximum recursion depth exceeded')
    const result = work()
    this.#depth -= 1
    return result
  }
}
