/** Analyzes expressions of characters without compiling them. */
import { type Characters, contains } from './characters.ts'
import type { Expression } from './expression.ts'
import type { StepBudget } from './step-budget.ts'

/** Returns the range of text lengths in characters. Rules are not followed: patterns have none. */
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
      return all.reduce(
        (a, b) => [Math.min(a[0], b[0]), Math.max(a[1], b[1])],
        [Infinity, -Infinity],
      )
    }
    case 'repeat': {
      const [min, max] = lengths(expression.part)
      return [min * expression.min, max === 0 ? 0 : max * expression.max]
    }
    default:
      return [0, Infinity]
  }
}

/** Returns the set and its range if the expression only repeats one set; otherwise `null`. */
export function findLoop(
  expression: Expression,
): { set: Characters; min: number; max: number } | null {
  if (expression.type === 'set') return { set: expression.set, min: 1, max: 1 }
  if (expression.type === 'sequence') return joined(expression.parts)
  if (expression.type !== 'repeat' || expression.part.type !== 'set') return null
  return { set: expression.part.set, min: expression.min, max: expression.max }
}

/** Joins sequences such as `a+a*` into one loop. Unanchored patterns have this form. */
function joined(parts: readonly Expression[]): ReturnType<typeof findLoop> {
  const loops = parts.map(findLoop)
  const [first] = loops
  if (!first) return null
  let [min, max] = [0, 0]
  for (const loop of loops) {
    if (!loop || !isSame(loop.set, first.set)) return null
    min += loop.min
    max += loop.max
  }
  return { set: first.set, min, max }
}

const isSame = (a: Characters, b: Characters): boolean =>
  a === b ||
  (a.length === b.length && a.every((range, i) => range[0] === b[i]?.[0] && range[1] === b[i]?.[1]))

/**
 * Returns `true` if the expression matches the whole text. Spends a step for each place it tries.
 */
export function matches(expression: Expression, text: string, steps: StepBudget): boolean {
  const characters = Array.from(text)
  steps.spend(characters.length)
  const after = (part: Expression, starts: ReadonlySet<number>): Set<number> => {
    steps.spend(2 + 2 * starts.size)
    const ends = new Set<number>()
    switch (part.type) {
      case 'text': {
        const wanted = Array.from(part.text)
        for (const at of starts) {
          if (wanted.every((each, i) => characters[at + i] === each)) ends.add(at + wanted.length)
        }
        return ends
      }
      case 'set':
        for (const at of starts) {
          const code = characters[at]?.codePointAt(0)
          if (code !== undefined && contains(part.set, code)) ends.add(at + 1)
        }
        return ends
      case 'sequence':
        return part.parts.reduce((from, each) => after(each, from), new Set(starts))
      case 'choice':
        for (const each of part.parts) for (const end of after(each, starts)) ends.add(end)
        return ends
      case 'repeat':
        return repeated(part, starts)
      default:
        return ends
    }
  }

  const repeated = (
    { part, min, max }: Extract<Expression, { type: 'repeat' }>,
    starts: ReadonlySet<number>,
  ): Set<number> => {
    const ends = new Set<number>()
    let now = new Set(starts)
    for (let i = 0; i < max && now.size > 0; i++) {
      const before = ends.size
      if (i >= min) for (const end of now) ends.add(end)
      if (i > min && ends.size === before) return ends
      const next = after(part, now)
      // Once an iteration changes nothing, no later one does.
      if (next.size === now.size && [...next].every((end) => now.has(end))) break
      now = next
    }
    for (const end of now) ends.add(end)
    return ends
  }
  return after(expression, new Set([0])).has(characters.length)
}
