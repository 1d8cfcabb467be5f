/** Renders untrusted Jinja templates as Python's jinja2 does in transformers, within limits. */
import { type Limits, LimitExceeded, TemplateError, TemplateRejection } from './errors.ts'
import { Interpreter } from './interpreter.ts'
import { parseJson, toCompactJson, toValue } from './json.ts'
import { parse, type Program } from './parser.ts'
import { Dict, type Value } from './values.ts'

export {
  Dict,
  LimitExceeded,
  parse,
  parseJson,
  TemplateError,
  TemplateRejection,
  toCompactJson,
  toValue,
}
export type { Program, Value }

/** Size of the input of a rendering, on which its limits depend. */
export interface InputSize {
  /** Number of characters in all texts. */
  characters: number
  messages: number
}

/** Renders a template. Throws {@link TemplateError} if it fails or exceeds a limit. */
export function render(
  { statements }: Program,
  variables: Iterable<readonly [string, Value]>,
  { characters, messages }: InputSize,
): string {
  const limits: Limits = {
    steps: STEPS.least + STEPS.forCharacter * characters + STEPS.forMessage * messages,
    characters: CHARACTERS.least + CHARACTERS.forCharacter * characters + 256 * messages,
    items: 1_000_000,
    depth: 200,
  }
  return new Interpreter(variables, limits).render(statements)
}

/**
 * Limits of the steps. A step takes 0.1 to 0.3 us. A real template takes up to 2,000 steps for a
 * message, and more for each pair of messages if it searches the history.
 */
const STEPS = { least: 4_000_000, forCharacter: 64, forMessage: 50_000 }

/** Limits of the length of a text. */
const CHARACTERS = { least: 8 * 1024 * 1024, forCharacter: 4 }
