/** Grammars as data. Schemas, patterns and grammars of users are converted to them. */
import type { Characters } from './characters.ts'

export type Expression =
  | { type: 'text'; text: string }
  | { type: 'set'; set: Characters }
  | { type: 'sequence'; parts: readonly Expression[] }
  | { type: 'choice'; parts: readonly Expression[] }
  /** Repetition; `max` may be `Infinity`. */
  | { type: 'repeat'; part: Expression; min: number; max: number }
  | { type: 'rule'; name: string }
  | StringOf
  | Dispatch

/** JSON string whose characters are in a set, with limits of its length in characters. */
export interface StringOf {
  type: 'string'
  set: Characters
  min: number
  /** Maximum length; may be `Infinity`. */
  max: number
}

/**
 * Free text. After a trigger, its rule must follow. The text ends with `stop`, which is a part of
 * it, or anywhere if there is none.
 */
export interface Dispatch {
  type: 'dispatch'
  triggers: readonly { text: string; rule: string }[]
  stop?: string
  /** `true` if nothing follows the first rule. */
  single: boolean
}

export type Rules = Map<string, Expression>

export interface Grammar {
  root: Expression
  rules: Rules
}

export const EMPTY: Expression = { type: 'text', text: '' }

/** Expression without any text. */
export const NOTHING: Expression = { type: 'choice', parts: [] }

export const isNothing = (expression: Expression): boolean =>
  expression.type === 'choice' && expression.parts.length === 0

export const text = (value: string): Expression => ({ type: 'text', text: value })

export const rule = (name: string): Expression => ({ type: 'rule', name })

/** Returns the concatenation of the parts. It is `NOTHING` if one of them is. */
export function sequence(...parts: readonly Expression[]): Expression {
  const flat: Expression[] = []
  for (const part of parts) {
    if (isNothing(part)) return NOTHING
    const last = flat.at(-1)
    if (part.type === 'sequence') flat.push(...part.parts)
    else if (part.type === 'text' && part.text === '') continue
    else if (part.type === 'text' && last?.type === 'text') {
      flat[flat.length - 1] = text(last.text + part.text)
    } else flat.push(part)
  }
  const [only] = flat
  return flat.length > 1 ? { type: 'sequence', parts: flat } : (only ?? EMPTY)
}

/** Returns the alternatives as one expression. */
export function choice(...parts: readonly Expression[]): Expression {
  const flat = parts.flatMap((part) => (part.type === 'choice' ? part.parts : [part]))
  const [only] = flat
  return flat.length === 1 && only ? only : { type: 'choice', parts: flat }
}

/** Returns the part repeated between `min` and `max` times. */
export function repeat(part: Expression, min: number, max = Infinity): Expression {
  if (max < min) return NOTHING
  if (isNothing(part)) return min === 0 ? EMPTY : NOTHING
  if (max === 0) return EMPTY
  return min === 1 && max === 1 ? part : { type: 'repeat', part, min, max }
}

export const optional = (part: Expression): Expression => repeat(part, 0, 1)
