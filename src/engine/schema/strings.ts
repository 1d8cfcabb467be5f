/** Compiles schemas of strings into the texts of their values. */
import { ANY } from './characters.ts'
import { type Expression, NOTHING } from './expression.ts'
import { patternsOf, rangeOf } from './flat.ts'
import type { Context, Flat } from './flatten.ts'
import { quoted, stringOf } from './literal.ts'
import { findLoop, lengths } from './match.ts'
import { rejectSchema } from './node.ts'

/** Returns the texts of the strings that the flat schema allows, with their quotes. */
export function strings(flat: Flat, context: Context): Expression {
  const [min, max] = rangeOf(flat, 'Length')
  const [first, ...others] = patternsOf(flat, context)
  if (!first) return stringOf(ANY, min, max)
  const { pattern, expression, part } = first
  context.steps.spend(pattern.length, part.path)
  if (others.length > 0) {
    rejectSchema(part.path, 'combines several patterns or formats of one string. Use only one.')
  }
  const loop = findLoop(expression)
  if (loop) return stringOf(loop.set, Math.max(min, loop.min), Math.min(max, loop.max))
  const [least, most] = lengths(expression)
  if (most < min || least > max) return NOTHING
  if (least < min || most > max) {
    rejectSchema(
      part.path,
      'limits the length of a string with a pattern. Limit it in the pattern.',
    )
  }
  return quoted(expression, context.steps)
}
