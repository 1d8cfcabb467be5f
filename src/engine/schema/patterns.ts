/** Parses each pattern of a schema once. */
import type { Expression } from './expression.ts'
import type { Context } from './flatten.ts'
import { matches } from './match.ts'
import { parsePattern } from './pattern.ts'

/** Returns the expression of a pattern, which was checked before. */
export function patternOf(pattern: string, { patterns, steps }: Context): Expression {
  const cached = patterns.get(pattern)
  if (cached) return cached
  steps.spend(pattern.length)
  const made = parsePattern(pattern)
  patterns.set(pattern, made)
  return made
}

export const isMatch = (pattern: string, text: string, context: Context): boolean =>
  matches(patternOf(pattern, context), text, context.steps)
