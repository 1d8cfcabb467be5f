/** Proves that two schemas are disjoint: no value is valid for both. */
import { boundsOf, listedOf, typesOf } from './flat.ts'
import { type Apart, type Context, type Flat, flatten } from './flatten.ts'
import type { Node } from './node.ts'
import type { Steps } from './steps.ts'
import { isOf, propertyOf, requiredOf } from './validate.ts'

/** Maximum depth of nested properties that are compared. */
const MAX_COMPARED_DEPTH = 4

export function createContext(root: Node, steps: Steps): Context {
  /**
   * Results by pair and depth. Alternatives that share definitions compare the same pairs often.
   */
  const known = new WeakMap<Flat, WeakMap<Flat, boolean[]>>()

  const within =
    (depth: number): Apart =>
    (a, b) => {
      steps.spend(1 + a.length + b.length)
      const answers = known.get(a)?.get(b) ?? []
      const answer = answers[depth] ?? compare(a, b, depth)
      answers[depth] = answer
      if (!known.has(a)) known.set(a, new WeakMap())
      known.get(a)?.set(b, answers)
      return answer
    }

  const compare = (a: Flat, b: Flat, depth: number): boolean => {
    const types = typesOf(a).filter((type) => typesOf(b).includes(type))
    if (types.length === 0) return true
    if (listedApart(a, b) || listedApart(b, a)) return true
    return types.every((type) => {
      if (type === 'integer' || type === 'fraction') return boundsApart(a, b)
      return type === 'object' && depth > 0 && objectsApart(a, b, depth)
    })
  }

  const listedApart = (a: Flat, b: Flat): boolean =>
    listedOf(a, context)?.every((value) => !isOf(b, value, context)) ?? false

  const boundsApart = (a: Flat, b: Flat): boolean => {
    const [x, y] = [boundsOf(a), boundsOf(b)]
    return (
      x.max < y.min ||
      y.max < x.min ||
      (x.max === y.min && (x.below || y.above)) ||
      (y.max === x.min && (y.below || x.above))
    )
  }

  /** Returns `true` if a property that either requires has no value that is valid for both. */
  const objectsApart = (a: Flat, b: Flat, depth: number): boolean =>
    [...new Set([...requiredOf(a, context), ...requiredOf(b, context)])].some((name) => {
      const [one, other] = [a, b].map((flat) => flatten(propertyOf(flat, name, context), context))
      return one?.every((x) => other?.every((y) => within(depth - 1)(x, y)))
    })

  const context: Context = {
    root,
    steps,
    apart: within(MAX_COMPARED_DEPTH),
    told: new Set(),
    checked: new Set(),
    flats: new Map(),
    patterns: new Map(),
  }
  return context
}
