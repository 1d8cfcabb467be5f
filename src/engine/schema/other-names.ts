/** Describes the property names that a schema does not list. */
import { memoize } from '../../values/memoize.ts'
import { ANY, characters, complement, one } from './characters.ts'
import { escaped, inString } from './escape.ts'
import { choice, type Expression, repeat, sequence, text } from './expression.ts'
import type { StepBudget } from './step-budget.ts'

/** Steps for each character of a name, which becomes a choice. */
const BRANCH_STEPS = 60

interface Branch {
  next: Map<string, Branch>
  ends: boolean
}

/** Returns all strings except these names, with their quotes. */
export function otherNames(names: readonly string[], steps: StepBudget): Expression {
  const top: Branch = { next: new Map(), ends: false }
  for (const name of names) {
    let at = top
    for (const character of name) {
      const cached = at.next.get(character)
      if (!cached) steps.spend(BRANCH_STEPS)
      const next = cached ?? { next: new Map(), ends: false }
      at.next.set(character, next)
      at = next
    }
    at.ends = true
  }
  /** Expressions by the characters that are taken. Most branches continue with one character. */
  const others = memoize((taken: string) =>
    sequence(inString(complement(characters([...taken].flatMap(one)))), REST),
  )
  return sequence(text('"'), restOfNames(top, others))
}

const REST = sequence(repeat(inString(ANY), 0), text('"'))

/** Returns the texts that may follow this part of a name, up to the quote. */
function restOfNames({ next, ends }: Branch, others: (taken: string) => Expression): Expression {
  if (next.size === 0 && !ends) return REST
  return choice(
    ...(ends ? [] : [text('"')]),
    others([...next.keys()].join('')),
    ...[...next].map(([character, branch]) =>
      sequence(text(escaped(character)), restOfNames(branch, others)),
    ),
  )
}
