/** Expressions without their empty text, so that repeating them always gets on. */
import { choice, EMPTY, type Expression, NOTHING, repeat, sequence } from './expression.ts'

/** Whether the empty text is one of its texts; of rules it is not known, and taken for not so. */
function isEmptyable(expression: Expression): boolean {
  switch (expression.type) {
    case 'text':
      return expression.text === ''
    case 'sequence':
      return expression.parts.every(isEmptyable)
    case 'choice':
      return expression.parts.some(isEmptyable)
    case 'repeat':
      return expression.min === 0 || isEmptyable(expression.part)
    default:
      return false
  }
}

function withoutEmpty(expression: Expression): Expression {
  if (!isEmptyable(expression)) return expression
  if (expression.type === 'choice') {
    return choice(...expression.parts.map(withoutEmpty))
  }
  if (expression.type === 'sequence') {
    const [first = EMPTY, ...rest] = expression.parts
    const others = sequence(...rest)
    return choice(sequence(withoutEmpty(first), others), withoutEmpty(others))
  }
  if (expression.type === 'repeat') return repeat(withoutEmpty(expression.part), 1, expression.max)
  return NOTHING
}

/** The same texts as of `part` between `min` and `max` times, of a part that is never empty. */
export function solidRepeat(
  part: Expression,
  min: number,
  max: number,
): { part: Expression; min: number; max: number } {
  return isEmptyable(part) ? { part: withoutEmpty(part), min: 0, max } : { part, min, max }
}
