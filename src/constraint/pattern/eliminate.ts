/** Makes patterns of automatons, by taking their states away one after the other. */
import type { Characters } from './characters.ts'
import { PatternError } from './error.ts'
import { choice, EMPTY, NOTHING, type Pattern, repeat, sequence, sizeOf } from './node.ts'

/** Maximum size of the pattern that is made of an automaton. */
const MAX_SIZE = 20_000

/** Returns the pattern of an automaton whose state 0 is the start, and whose rows have a state for each class. */
export function toPattern(
  rows: readonly (readonly number[])[],
  accepts: readonly boolean[],
  classes: readonly Characters[],
): Pattern {
  const groups = minimize(rows, accepts)
  const live = findLive(rows, accepts)
  /** Patterns from state to state. The state `END` is reached from each that accepts. */
  const edges = new Map<number, Map<number, Pattern>>()
  const END = -1
  const START = -2
  /** States with an edge to each state. */
  const origins = new Map<number, Set<number>>()
  const connect = (from: number, to: number, pattern: Pattern): void => {
    const own = edges.get(from) ?? new Map<number, Pattern>()
    own.set(to, choice(own.get(to) ?? NOTHING, pattern))
    edges.set(from, own)
    origins.set(to, (origins.get(to) ?? new Set<number>()).add(from))
  }
  connect(START, groups[0] ?? 0, EMPTY)
  const done = new Set<number>()
  groups.forEach((group, state) => {
    if (done.has(group) || !live.has(state)) return
    done.add(group)
    if (accepts[state]) connect(group, END, EMPTY)
    rows[state]?.forEach((to, index) => {
      const set = classes[index] ?? []
      if (live.has(to)) connect(group, groups[to] ?? 0, { type: 'set', set })
    })
  })
  const outOf = (state: number): Map<number, Pattern> => edges.get(state) ?? new Map()
  /** Returns about how much the patterns grow without the state. */
  const weigh = (state: number): number => {
    const out = [...outOf(state).values()]
    const into = [...(origins.get(state) ?? [])].flatMap((from) => outOf(from).get(state) ?? [])
    return sizes(out) * (into.length + 1) + sizes(into) * (out.length + 1)
  }
  const weights = new Map([...done].map((state) => [state, weigh(state)]))
  while (weights.size > 0) {
    const least = Math.min(...weights.values())
    const [state = 0] = [...weights].find(([, weight]) => weight === least) ?? []
    const own = outOf(state)
    const loop = repeat(own.get(state) ?? NOTHING, 0, Infinity)
    own.delete(state)
    weights.delete(state)
    edges.delete(state)
    const before = [...(origins.get(state) ?? [])].filter((from) => from !== state)
    origins.delete(state)
    for (const to of own.keys()) origins.get(to)?.delete(state)
    for (const from of before) {
      const out = outOf(from)
      const into = out.get(state) ?? NOTHING
      out.delete(state)
      for (const [to, pattern] of own) connect(from, to, sequence(into, loop, pattern))
      if (sizes([...out.values()]) > MAX_SIZE) {
        throw new PatternError('a condition that takes too long a pattern')
      }
    }
    for (const each of new Set([...before, ...own.keys()])) {
      if (weights.has(each)) weights.set(each, weigh(each))
    }
  }
  return edges.get(START)?.get(END) ?? NOTHING
}

/** Returns the states from which a state that accepts is reached. */
function findLive(
  rows: readonly (readonly number[])[],
  accepts: readonly boolean[],
): ReadonlySet<number> {
  const live = new Set(accepts.flatMap((isAccepted, state) => (isAccepted ? [state] : [])))
  for (let before = -1; before < live.size;) {
    before = live.size
    rows.forEach((row, state) => {
      if (row.some((to) => live.has(to))) live.add(state)
    })
  }
  return live
}

const knownSizes = new WeakMap<Pattern, number>()

function sizes(patterns: readonly Pattern[]): number {
  let total = 0
  for (const pattern of patterns) {
    const size = knownSizes.get(pattern) ?? sizeOf(pattern)
    knownSizes.set(pattern, size)
    total += size
  }
  return total
}

/** Returns a number for each state, which is the same for states with the same texts. */
function minimize(rows: readonly (readonly number[])[], accepts: readonly boolean[]): number[] {
  let groups = accepts.map(Number)
  for (;;) {
    const numbers = new Map<string, number>()
    const next = rows.map((row, state) => {
      const key = [groups[state], ...row.map((to) => groups[to])].join()
      const number = numbers.get(key) ?? numbers.size
      numbers.set(key, number)
      return number
    })
    const count = new Set(groups).size
    groups = next
    if (numbers.size === count) return groups
  }
}
