/** Takes out of a grammar what no text can complete: a dead end for whoever walks into it. */
import {
  choice, EMPTY, type Expression, type Grammar, isNothing, NOTHING, repeat, type Rules, sequence,
} from './expression.ts'

/** The same texts without dead ends; the root is nothing where there is no text at all. */
export function prune({ root, rules }: Grammar): Grammar {
  const good = new Set<string>()
  const ends = (expression: Expression): boolean => {
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
  // Most rules are made before those that they need, so that few rounds are enough.
  const backwards = [...rules].toReversed()
  for (let before = -1; before < good.size; ) {
    before = good.size
    for (const [name, body] of backwards) if (!good.has(name) && ends(body)) good.add(name)
  }

  const pruned: Rules = new Map()
  const pending: string[] = []
  const rewrite = (expression: Expression): Expression => {
    if (!ends(expression)) return NOTHING
    switch (expression.type) {
      case 'sequence':
        return sequence(...expression.parts.map(rewrite))
      case 'choice':
        return choice(...expression.parts.map(rewrite).filter((part) => !isNothing(part)))
      case 'repeat': {
        const part = rewrite(expression.part)
        return isNothing(part) ? EMPTY : repeat(part, expression.min, expression.max)
      }
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
  }
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
