/** Measures the shortest text of a grammar. */
import type { Expression, Grammar } from './expression.ts'
import type { StepBudget } from './step-budget.ts'

/**
 * Maximum number of characters that a grammar may require. Text without a choice is written at
 * once, and it is no longer than the shortest text. xgrammar aborts, for all models of a page, when
 * it runs out of memory.
 */
export const MAX_SHORTEST_TEXT = 100_000

/** Returns the number of characters of the shortest text. The grammar must have no dead ends. */
export function findShortest({ root, rules }: Grammar, steps: StepBudget): number {
  const found = new Map<string, number>()
  const lengthOf = (expression: Expression): number => {
    steps.spend(1)
    switch (expression.type) {
      case 'text':
        return expression.text.length
      case 'set':
        return 1
      case 'string':
        return expression.min + 2
      case 'sequence':
        return expression.parts.reduce((sum, part) => sum + lengthOf(part), 0)
      case 'choice':
        return expression.parts.reduce((least, part) => Math.min(least, lengthOf(part)), Infinity)
      case 'repeat':
        return expression.min === 0 ? 0 : lengthOf(expression.part) * expression.min
      case 'rule':
        return found.get(expression.name) ?? Infinity
      case 'dispatch':
        return expression.stop?.length ?? 0
    }
  }
  // Most rules come before those that they refer to, so that few rounds are enough.
  const backwards = [...rules].toReversed()
  for (let changed = true; changed;) {
    changed = false
    for (const [name, body] of backwards) {
      const length = lengthOf(body)
      if (length >= (found.get(name) ?? Infinity)) continue
      found.set(name, length)
      changed = true
    }
  }
  return lengthOf(root)
}
