/** Writes rules without recursion where a repetition does. */
import { choice, type Expression, isEmpty, repeat, sequence } from './expression.ts'

/**
 * Writes a rule that refers to itself only where it begins, or only where it ends, as a repetition, which may become a
 * part of a lexeme: `a ::= b a | c` has the texts of `b* c`.
 */
export function withoutTailRecursion(
  name: string,
  alternatives: readonly Expression[],
): Expression {
  const isSelf = (part: Expression | undefined): boolean =>
    part?.type === 'rule' && part.name === name
  const lists = alternatives
    .flatMap((each) => expandEnd(toParts(each), name))
    .filter((parts) => parts.length !== 1 || !isSelf(parts[0]))
  const [ending, others] = partition(lists, (parts) => isSelf(parts.at(-1)))
  const [beginning, rest] = partition(lists, (parts) => isSelf(parts[0]))
  const toChoice = (all: readonly (readonly Expression[])[]): Expression =>
    choice(...all.map((parts) => sequence(...parts)))
  if (ending.length > 0 && beginning.length === 0) {
    return sequence(
      repeat(toChoice(ending.map((parts) => parts.slice(0, -1))), 0),
      toChoice(others),
    )
  }
  if (beginning.length > 0 && ending.length === 0) {
    return sequence(toChoice(rest), repeat(toChoice(beginning.map((parts) => parts.slice(1))), 0))
  }
  return choice(...alternatives)
}

/** Returns the sequences of a sequence whose last part is optional, or a choice, and refers to the rule. */
function expandEnd(parts: readonly Expression[], name: string): (readonly Expression[])[] {
  const last = parts.at(-1)
  if (!last || last.type === 'rule' || !refersTo(last, name)) return [parts]
  const before = parts.slice(0, -1)
  if (last.type === 'choice')
    return last.parts.flatMap((part) => expandEnd([...before, ...toParts(part)], name))
  if (last.type === 'repeat' && last.min === 0 && last.max === 1)
    return [before, ...expandEnd([...before, ...toParts(last.part)], name)]
  return [parts]
}

const toParts = (expression: Expression): readonly Expression[] => {
  if (expression.type === 'sequence') return expression.parts
  return isEmpty(expression) ? [] : [expression]
}

function refersTo(expression: Expression, name: string): boolean {
  switch (expression.type) {
    case 'rule':
      return expression.name === name
    case 'sequence':
    case 'choice':
      return expression.parts.some((part) => refersTo(part, name))
    case 'repeat':
      return refersTo(expression.part, name)
    default:
      return false
  }
}

function partition<Item>(items: readonly Item[], holds: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(holds), items.filter((item) => !holds(item))]
}
