/** Removes the empty text from expressions, so that each repetition consumes characters. */
import { choice, EMPTY, type Expression, NOTHING, repeat, sequence } from './expression.ts'

/**
 * Returns `true` if the empty text is one of the texts. Rules are assumed to have no empty text.
 */
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

/** Returns a repetition with the same texts whose part is never empty. */
export function nonEmptyRepeat(
  part: Expression,
  min: number,
  max: number,
): { part: Expression; min: number; max: number } {
  return isEmptyable(part) ? { part: withoutEmpty(part), min: 0, max } : { part, min, max }
}
