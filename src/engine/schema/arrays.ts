/** Compiles schemas of arrays into the texts of their values. */
import type { Compiler } from './types.ts'
import {
  choice,
  EMPTY,
  type Expression,
  isNothing,
  NOTHING,
  repeat,
  sequence,
  text,
} from './expression.ts'
import { rangeOf } from './flat.ts'
import type { Flat } from './flatten.ts'
import { COMMA } from './literal.ts'
import { itemsAt, prefixOf } from './validate.ts'

export function arrays(flat: Flat, { context, value }: Compiler): Expression {
  const [min, max] = rangeOf(flat, 'Items')
  const tuple = Math.max(0, ...flat.map((part) => prefixOf(part).length))
  const separator = text(COMMA)
  const rest = value(itemsAt(flat, tuple, context))

  /** Returns the texts that may follow the first `index` elements, before the bracket. */
  const behind = (index: number): Expression => {
    if (index >= max) return index >= min ? EMPTY : NOTHING
    if (index >= tuple && index > 0) {
      return repeat(sequence(separator, rest), Math.max(0, min - index), max - index)
    }
    const element = index < tuple ? value(itemsAt(flat, index, context)) : rest
    const end = index >= min ? EMPTY : NOTHING
    if (isNothing(element)) return end
    return choice(end, sequence(index > 0 ? separator : EMPTY, element, behind(index + 1)))
  }
  return sequence(text('['), behind(0), text(']'))
}
