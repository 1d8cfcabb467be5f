/** Collects the rules of a grammar while it is written. */
import type { StepBudget } from '../schema/step-budget.ts'
import { createKeys, type Production, type Productions, type RuleItem } from './production.ts'

export interface RuleTable {
  readonly productions: Productions
  /** Names of the rules that stay whole, because splitting them adds a rule for each number. */
  readonly unsplitRules: Set<string>
  /** Returns the same key for equal productions. */
  keyOf(production: Production): string
  /** Returns the name of a new rule. */
  createName(): string
  /** Returns a rule for these alternatives, which may refer to it. Equal alternatives share one. */
  define(alternatives: (self: RuleItem) => readonly Production[]): RuleItem
  /** Like `define`, for rules that stay whole. */
  defineWhole(alternatives: readonly Production[]): RuleItem
}

export function createRuleTable(steps: StepBudget): RuleTable {
  const productions: Productions = new Map()
  const unsplitRules = new Set<string>()
  const rules = new Map<string, RuleItem>()
  const keyOf = createKeys()
  let count = 0

  const createName = (): string => `r${count++}`

  const keyOfAll = (all: readonly Production[]): string => {
    for (const each of all) steps.spend(1 + each.length)
    return all.map(keyOf).join('|')
  }

  const define: RuleTable['define'] = (alternatives) => {
    const key = keyOfAll(alternatives({ rule: '' }))
    const cached = rules.get(key)
    if (cached) return cached
    const item = { rule: createName() }
    rules.set(key, item)
    productions.set(item.rule, alternatives(item))
    return item
  }

  const defineWhole: RuleTable['defineWhole'] = (alternatives) => {
    const item = define(() => alternatives)
    unsplitRules.add(item.rule)
    return item
  }

  return { productions, unsplitRules, keyOf, createName, define, defineWhole }
}
