/** Removes the dead ends of a grammar: parts that no text can complete. */
import {
  choice,
  type Expression,
  type Grammar,
  NOTHING,
  repeat,
  type Rules,
  sequence,
} from './expression.ts'
import { memoize } from '../../values/memoize.ts'
import type { StepBudget } from './step-budget.ts'

/** Steps to look up an expression twice and copy it. */
const EXPRESSION_STEPS = 5

/**
 * Returns a grammar of the same texts without dead ends. The root is `NOTHING` if there is no text.
 */
export function prune({ root, rules }: Grammar, steps: StepBudget): Grammar {
  const good = findCompletable(rules, steps)
  const ends = memoize((expression: Expression): boolean => canComplete(expression, good, ends))

  const pruned: Rules = new Map()
  const pending: string[] = []
  /** Returns the expression without dead ends. Shared parts stay shared. */
  const rewrite = memoize((expression: Expression): Expression => {
    steps.spend(EXPRESSION_STEPS)
    if (!ends(expression)) return NOTHING
    switch (expression.type) {
      case 'sequence':
        return sequence(...expression.parts.map(rewrite))
      case 'choice':
        return choice(...expression.parts.map(rewrite))
      case 'repeat':
        return repeat(rewrite(expression.part), expression.min, expression.max)
      case 'rule':
        visit(expression.name)
        return expression
      case 'dispatch': {
        const triggers = expression.triggers.filter(({ rule }) => good.has(rule))
        for (const { rule } of triggers) visit(rule)
        return { ...expression, triggers }
      }
      default:
        return expression
    }
  })
  const visit = (name: string): void => {
    if (pruned.has(name)) return
    pruned.set(name, NOTHING)
    pending.push(name)
  }
  const kept = rewrite(root)
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    pruned.set(name, rewrite(rules.get(name) ?? NOTHING))
  }
  return { root: kept, rules: pruned }
}

/** Returns `true` if some text completes the expression. Rules outside `good` have no text. */
function canComplete(
  expression: Expression,
  good: ReadonlySet<string>,
  ends: (part: Expression) => boolean,
): boolean {
  switch (expression.type) {
    case 'text':
    case 'dispatch':
      return true
    case 'set':
      return expression.set.length > 0
    case 'string':
      return expression.min === 0 || (expression.min <= expression.max && expression.set.length > 0)
    case 'sequence':
      return expression.parts.every(ends)
    case 'choice':
      return expression.parts.some(ends)
    case 'repeat':
      return expression.min === 0 || ends(expression.part)
    case 'rule':
      return good.has(expression.name)
  }
}

/** Returns the names of the rules that some text completes. */
function findCompletable(rules: Rules, steps: StepBudget): Set<string> {
  const good = new Set<string>()
  const ends = (expression: Expression): boolean => {
    steps.spend(1)
    return canComplete(expression, good, ends)
  }
  // Most rules are defined before those that they refer to, so that few rounds are enough.
  let left = [...rules].toReversed()
  for (let before = Infinity; left.length < before;) {
    before = left.length
    left = left.filter(([name, body]) => {
      if (!ends(body)) return true
      good.add(name)
      return false
    })
  }
  return good
}
