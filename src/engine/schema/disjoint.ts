/** Proves that two schemas are disjoint: no value is valid for both. */
import { boundsOf, listedOf, typesOf } from './flat.ts'
import { type Context, type Flat, flatten, type IsDisjoint } from './flatten.ts'
import type { Node } from './node.ts'
import type { StepBudget } from './step-budget.ts'
import { isValidForFlat, propertyOf, requiredOf } from './validate.ts'

/** Maximum depth of nested properties that are compared. */
const MAX_COMPARED_DEPTH = 4

export function createContext(root: Node, steps: StepBudget): Context {
  /**
   * Results by pair and depth. Alternatives that share definitions compare the same pairs often.
   */
  const cache = new WeakMap<Flat, WeakMap<Flat, boolean[]>>()

  const isDisjointWithin =
    (depth: number): IsDisjoint =>
    (a, b) => {
      steps.spend(1 + a.length + b.length)
      const results = cache.get(a)?.get(b) ?? []
      const result = results[depth] ?? compare(a, b, depth)
      results[depth] = result
      if (!cache.has(a)) cache.set(a, new WeakMap())
      cache.get(a)?.set(b, results)
      return result
    }

  const compare = (a: Flat, b: Flat, depth: number): boolean => {
    const types = typesOf(a).filter((type) => typesOf(b).includes(type))
    if (types.length === 0) return true
    if (areListsDisjoint(a, b) || areListsDisjoint(b, a)) return true
    return types.every((type) => {
      if (type === 'integer' || type === 'fraction') return areBoundsDisjoint(a, b)
      return type === 'object' && depth > 0 && areObjectsDisjoint(a, b, depth)
    })
  }

  const areListsDisjoint = (a: Flat, b: Flat): boolean =>
    listedOf(a, context)?.every((value) => !isValidForFlat(b, value, context)) ?? false

  const areBoundsDisjoint = (a: Flat, b: Flat): boolean => {
    const [x, y] = [boundsOf(a), boundsOf(b)]
    return (
      x.max < y.min ||
      y.max < x.min ||
      (x.max === y.min && (x.below || y.above)) ||
      (y.max === x.min && (y.below || x.above))
    )
  }

  /** Returns `true` if a property that either requires has no value that is valid for both. */
  const areObjectsDisjoint = (a: Flat, b: Flat, depth: number): boolean =>
    [...new Set([...requiredOf(a, context), ...requiredOf(b, context)])].some((name) => {
      const [one, other] = [a, b].map((flat) => flatten(propertyOf(flat, name, context), context))
      return one?.every((x) => other?.every((y) => isDisjointWithin(depth - 1)(x, y)))
    })

  const context: Context = {
    root,
    steps,
    isDisjoint: isDisjointWithin(MAX_COMPARED_DEPTH),
    reportedOverlaps: new Set(),
    checked: new Set(),
    flats: new Map(),
    patterns: new Map(),
  }
  return context
}
