/** Whether two schemas can be told apart for certain: no value is of both. */
import { boundsOf, listedOf, typesOf } from './flat.ts'
import { type Apart, type Context, type Flat, flatten } from './flatten.ts'
import type { Node } from './node.ts'
import { isOf, propertyOf, requiredOf } from './validate.ts'

/** Properties within properties are looked at so deep. */
const DEPTH = 4

export function createContext(root: Node): Context {
  const within =
    (depth: number): Apart =>
    (a, b) => {
      const types = typesOf(a).filter((type) => typesOf(b).includes(type))
      if (types.length === 0) return true
      if (listedApart(a, b) || listedApart(b, a)) return true
      return types.every((type) => {
        if (type === 'integer' || type === 'fraction') return boundsApart(a, b)
        return type === 'object' && depth > 0 && objectsApart(a, b, depth)
      })
    }

  const listedApart = (a: Flat, b: Flat): boolean =>
    listedOf(a)?.every((value) => !isOf(b, value, context)) ?? false

  const boundsApart = (a: Flat, b: Flat): boolean => {
    const [x, y] = [boundsOf(a), boundsOf(b)]
    return (
      x.max < y.min || y.max < x.min ||
      (x.max === y.min && (x.below || y.above)) || (y.max === x.min && (y.below || x.above))
    )
  }

  /** One asks for a property that the other excludes, or of which no value is right for both. */
  const objectsApart = (a: Flat, b: Flat, depth: number): boolean =>
    [...new Set([...requiredOf(a), ...requiredOf(b)])].some((name) => {
      const [one, other] = [a, b].map((flat) => flatten(propertyOf(flat, name), context))
      return one?.every((x) => other?.every((y) => within(depth - 1)(x, y)))
    })

  const context: Context = { root, apart: within(DEPTH), told: new Set() }
  return context
}
