/** What can be told of an expression of characters without compiling it. */
import { both, type Characters, one } from './characters.ts'
import type { Expression } from './expression.ts'

/** Fewest and most characters of its texts. Rules are not followed: there are none in patterns. */
export function lengths(expression: Expression): [min: number, max: number] {
  const sum = (parts: readonly Expression[]): [number, number] =>
    parts.map(lengths).reduce((a, b) => [a[0] + b[0], a[1] + b[1]], [0, 0])
  switch (expression.type) {
    case 'text': {
      const { length } = Array.from(expression.text)
      return [length, length]
    }
    case 'set':
      return [1, 1]
    case 'sequence':
      return sum(expression.parts)
    case 'choice': {
      const all = expression.parts.map(lengths)
      return [Math.min(...all.map(([min]) => min)), Math.max(...all.map(([, max]) => max))]
    }
    case 'repeat': {
      const [min, max] = lengths(expression.part)
      return [min * expression.min, max === 0 ? 0 : max * expression.max]
    }
    default:
      return [0, Infinity]
  }
}

/** The set and how often, where the expression is nothing else. */
export function loopOf(expression: Expression): { set: Characters; min: number; max: number } | null {
  if (expression.type === 'set') return { set: expression.set, min: 1, max: 1 }
  if (expression.type === 'sequence') return joined(expression.parts)
  if (expression.type !== 'repeat' || expression.part.type !== 'set') return null
  return { set: expression.part.set, min: expression.min, max: expression.max }
}

/** `a+a*` is one loop, and so is what an unanchored pattern becomes. */
function joined(parts: readonly Expression[]): ReturnType<typeof loopOf> {
  const loops = parts.map(loopOf)
  const [first] = loops
  if (!first) return null
  const same = JSON.stringify(first.set)
  let [min, max] = [0, 0]
  for (const loop of loops) {
    if (!loop || JSON.stringify(loop.set) !== same) return null
    min += loop.min
    max += loop.max
  }
  return { set: first.set, min, max }
}

/** Whether the whole text is one of the expression's; takes time of a power of its length only. */
export function matches(expression: Expression, text: string): boolean {
  const characters = Array.from(text)
  const after = (part: Expression, starts: ReadonlySet<number>): Set<number> => {
    const ends = new Set<number>()
    switch (part.type) {
      case 'text':
        for (const at of starts) {
          const wanted = Array.from(part.text)
          if (wanted.every((each, i) => characters[at + i] === each)) ends.add(at + wanted.length)
        }
        return ends
      case 'set':
        for (const at of starts) {
          const character = characters[at]
          if (character !== undefined && both(part.set, one(character)).length > 0) ends.add(at + 1)
        }
        return ends
      case 'sequence':
        return part.parts.reduce((from, each) => after(each, from), new Set(starts))
      case 'choice':
        for (const each of part.parts) for (const end of after(each, starts)) ends.add(end)
        return ends
      case 'repeat': {
        let now = new Set(starts)
        for (let i = 0; i < part.max && now.size > 0; i++) {
          const before = ends.size
          if (i >= part.min) for (const end of now) ends.add(end)
          if (i > part.min && ends.size === before) return ends
          now = after(part.part, now)
        }
        for (const end of now) ends.add(end)
        return ends
      }
      default:
        return ends
    }
  }
  return after(expression, new Set([0])).has(characters.length)
}
