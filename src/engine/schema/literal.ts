/**
 * Writes JSON in one form: a blank after each comma and colon, and a unique form of each string.
 */
import type { Characters } from './characters.ts'
import { escaped, inString } from './escape.ts'
import {
  choice,
  type Expression,
  NOTHING,
  repeat,
  sequence,
  type StringOf,
  text,
} from './expression.ts'
import type { StepBudget } from './step-budget.ts'
import { isObject } from '../../values/objects.ts'

/** Steps to convert a set into a choice that lists the characters which JSON escapes. */
const SET_STEPS = 40

export const COMMA = ', '
export const COLON = ': '

/** Returns the JSON text of a value. */
export function writeJson(value: unknown): string {
  if (typeof value === 'string') return writeString(value)
  if (Array.isArray(value)) return `[${value.map(writeJson).join(COMMA)}]`
  if (!isObject(value)) return JSON.stringify(value)
  const pairs = Object.entries(value)
  return `{${pairs.map(([name, each]) => writeString(name) + COLON + writeJson(each)).join(COMMA)}}`
}

/** Returns the JSON text of a string, with its quotes. */
export const writeString = (value: string): string =>
  `"${Array.from(value, (character) =>
    /^[\ud800-\udfff]$/.test(character)
      ? `\\u${character.charCodeAt(0).toString(16)}`
      : escaped(character),
  ).join('')}"`

/**
 * Returns the strings whose characters are in a set and whose length is in a range, with quotes.
 */
export const stringOf = (set: Characters, min: number, max: number): Expression =>
  max < min || (set.length === 0 && min > 0)
    ? NOTHING
    : ({ type: 'string', set, min, max: set.length === 0 ? 0 : max } satisfies StringOf)

/** Returns the texts of an expression as JSON strings, with their quotes. */
export const quoted = (expression: Expression, steps: StepBudget): Expression =>
  sequence(text('"'), inside(expression, steps), text('"'))

function inside(expression: Expression, steps: StepBudget): Expression {
  steps.spend(1)
  switch (expression.type) {
    case 'text':
      return text(writeString(expression.text).slice(1, -1))
    case 'set':
      steps.spend(SET_STEPS + expression.set.length)
      return inString(expression.set)
    case 'sequence':
      return sequence(...expression.parts.map((part) => inside(part, steps)))
    case 'choice':
      return choice(...expression.parts.map((part) => inside(part, steps)))
    case 'repeat':
      return repeat(inside(expression.part, steps), expression.min, expression.max)
    default:
      return expression
  }
}
