/**
 * Makes automatons of patterns that look around, or have assertions in their middle.
 *
 * A state says what the rest of the text has to match. It consists of alternatives, of which one has to hold. An
 * alternative has conditions: threads, which are lists of patterns that match the rest one after the other, and states
 * that must not hold.
 */
import {
  type Characters,
  contains,
  EMPTY,
  memoize,
  NOTHING,
  type Repetition,
} from '../expression.ts'
import { divide, includes, LINE_END, PatternError, WORD } from './characters.ts'
import { ANYTHING, type Assertion, choice, type Pattern, repeat, sequence, sizeOf } from './node.ts'

const MAX_STATES = 4_000
/** Maximum number of threads that are derived. */
const MAX_STEPS = 200_000
/** Maximum number of threads that begin in each other without a character between them. */
const MAX_DEPTH = 500
/** Maximum number of alternatives of a state. */
const MAX_ALTERNATIVES = 2_000

/** Steps that several patterns have in common. */
export interface Budget {
  /** Counts steps. Returns `false` once there are too many. */
  spend(count: number): boolean
}

/** Number of derived threads that count as a step. */
const THREADS_PER_STEP = 10

interface Thread {
  id: number
  pattern: Pattern
  next: Thread | null
}

interface Alternative {
  threads: readonly (Thread | null)[]
  refused: readonly State[]
}

/** The rest of the text. It has no alternative if nothing can match, and one without conditions if anything does. */
interface State {
  id: number
  alternatives: readonly Alternative[]
}

/** What a thread is derived by. */
interface Place {
  /** Character that comes next; `null` at the end of the text. */
  next: number | null
  /** Character before; `null` at the start of the text. */
  before: number | null
  /** `true` for each look-behind that holds here. */
  holds: ReadonlyMap<Pattern, boolean>
}

type Look = Extract<Pattern, { type: 'look' }>

/** State of the text, of what the text before was, and of each look-behind. */
interface Position {
  state: State
  before: number | null
  behind: readonly State[]
}

/** Returns a pattern without assertions for the same whole texts, or for all others. Throws a {@link PatternError}. */
export function resolve(pattern: Pattern, budget: Budget, isNegated = false): Pattern {
  return new AutomatonBuilder(pattern, budget).build(isNegated)
}

class AutomatonBuilder {
  readonly #start: Pattern
  readonly #budget: Budget
  readonly #looks: readonly Look[]
  /** Sets of characters that nothing in the pattern distinguishes. */
  readonly #classes: readonly Characters[]
  readonly #threads = new Map<string, Thread>()
  readonly #states = new Map<string, State>()
  readonly #patternIds = new Map<Pattern, number>()
  /** `true` if the pattern has assertions on the character before. */
  readonly #tracksBefore: boolean
  #steps = 0

  constructor(pattern: Pattern, budget: Budget) {
    this.#start = pattern
    this.#budget = budget
    const sets: Characters[] = []
    const looks: Look[] = []
    let hasBoundaries = false
    contains(pattern, (part) => {
      if (part.type === 'set') sets.push(part.set)
      if (part.type === 'look' && part.isBehind) looks.unshift(part)
      hasBoundaries ||= part.type === 'assertion' && part.assertion !== 'end'
      return false
    })
    for (const { part } of looks) refuseAhead(part)
    this.#looks = looks
    this.#classes = divide(hasBoundaries ? [...sets, WORD, LINE_END] : sets)
    this.#tracksBefore = hasBoundaries
  }

  build(isNegated: boolean): Pattern {
    const representatives = this.#classes.map((set) => set[0]?.[0] ?? 0)
    const positions: Position[] = []
    const numbers = new Map<string, number>()
    const add = (position: Position): number => {
      const kind = this.#tracksBefore ? kindOf(position.before) : ''
      const key = [position.state.id, kind, ...position.behind.map(({ id }) => id)].join()
      const known = numbers.get(key)
      if (known !== undefined) return known
      if (positions.length >= MAX_STATES) throw tooMany()
      numbers.set(key, positions.length)
      return positions.push(position) - 1
    }
    add({
      state: this.#stateOf([{ threads: [this.#thread(this.#start, null)], refused: [] }]),
      before: null,
      behind: this.#looks.map(({ part }) =>
        this.#stateOf([{ threads: [this.#thread(sequence(ANYTHING, part), null)], refused: [] }]),
      ),
    })
    const rows: number[][] = []
    const accepts: boolean[] = []
    // The loop adds positions.
    for (let index = 0; index < positions.length; index += 1) {
      const position = positions[index] as Position
      accepts.push(this.#isEnd(position) !== isNegated)
      rows.push(representatives.map((code) => add(this.#step(position, code))))
    }
    if (!this.#budget.spend(rows.length)) throw tooMany()
    return toPattern(rows, accepts, this.#classes)
  }

  #isEnd(position: Position): boolean {
    return isTrue(this.#derive(position.state, this.#place(position, null)))
  }

  #step(position: Position, next: number): Position {
    const place = this.#place(position, next)
    return {
      state: this.#derive(position.state, place),
      before: next,
      behind: position.behind.map((state) => this.#derive(state, place)),
    }
  }

  /** Looks-behind come after those that they contain. */
  #place({ before, behind }: Position, next: number | null): Place {
    const holds = new Map<Pattern, boolean>()
    this.#looks.forEach((look, index) => {
      const state = behind[index] as State
      holds.set(look, isTrue(this.#derive(state, { next: null, before, holds })))
    })
    return { next, before, holds }
  }

  #derive(state: State, place: Place): State {
    return this.#stateOf(
      state.alternatives.flatMap(({ threads, refused }) => {
        const conditions = [
          ...threads.map((thread) => this.#deriveThread(thread, place, new Set())),
          ...refused.map((each) => this.#refuse(this.#derive(each, place))),
        ]
        return conditions.reduce((some, others) => join(some, others), TRUE)
      }),
    )
  }

  /** Returns the alternatives behind the next character. At the end of the text, they hold if one has no conditions. */
  #deriveThread(
    thread: Thread | null,
    place: Place,
    seen: ReadonlySet<number>,
  ): readonly Alternative[] {
    if (!thread) return place.next === null ? TRUE : FALSE
    if (++this.#steps > MAX_STEPS || seen.size > MAX_DEPTH) throw tooMany()
    if (this.#steps % THREADS_PER_STEP === 0 && !this.#budget.spend(1)) throw tooMany()
    // A repetition that matched nothing does not begin again.
    if (seen.has(thread.id)) return FALSE
    const inner = new Set(seen).add(thread.id)
    const { pattern, next } = thread
    const after = (rest: Thread | null): readonly Alternative[] =>
      this.#deriveThread(rest, place, inner)
    switch (pattern.type) {
      case 'set':
        return place.next !== null && includes(pattern.set, place.next)
          ? [{ threads: [next], refused: [] }]
          : FALSE
      case 'sequence':
        return after(pattern.parts.reduceRight((rest, part) => this.#thread(part, rest), next))
      case 'choice':
        return pattern.parts.flatMap((part) => after(this.#thread(part, next)))
      case 'repeat': {
        const again = after(this.#thread(pattern.part, this.#thread(this.#restOf(pattern), next)))
        return pattern.min === 0 ? [...again, ...after(next)] : again
      }
      case 'assertion':
        return ASSERTIONS[pattern.assertion](place.before, place.next) ? after(next) : FALSE
      case 'look': {
        if (pattern.isBehind) {
          return place.holds.get(pattern) === pattern.isNegative ? FALSE : after(next)
        }
        const ahead = after(this.#thread(pattern.part, this.#thread(ANYTHING, null)))
        return join(pattern.isNegative ? this.#refuse(this.#stateOf(ahead)) : ahead, after(next))
      }
    }
  }

  /** Returns the repetition that is left behind one of its parts. */
  readonly #restOf = memoize((pattern: Repetition<Pattern>): Pattern => {
    const { part, min, max } = pattern
    return min === 0 && max === Infinity ? pattern : repeat(part, Math.max(min - 1, 0), max - 1)
  })

  #refuse(state: State): readonly Alternative[] {
    if (isTrue(state)) return FALSE
    return state.alternatives.length === 0 ? TRUE : [{ threads: [], refused: [state] }]
  }

  #thread(pattern: Pattern, next: Thread | null): Thread | null {
    if (pattern === EMPTY) return next
    const patternId = this.#patternIds.get(pattern) ?? this.#patternIds.size
    this.#patternIds.set(pattern, patternId)
    const key = `${patternId},${next?.id ?? ''}`
    const known = this.#threads.get(key)
    if (known) return known
    const thread = { id: this.#threads.size, pattern, next }
    this.#threads.set(key, thread)
    return thread
  }

  #stateOf(alternatives: readonly Alternative[]): State {
    const byKey = new Map<string, Alternative>()
    for (const alternative of alternatives) {
      const simple = {
        threads: sortById(alternative.threads.filter((thread) => !isAnything(thread))),
        refused: sortById(alternative.refused),
      }
      byKey.set(keyOf(simple), simple)
    }
    const kept = byKey.has(';') ? TRUE : [...byKey.values()]
    const key = kept.map(keyOf).sort().join('|')
    const state = this.#states.get(key) ?? { id: this.#states.size, alternatives: kept }
    this.#states.set(key, state)
    return state
  }
}

const TRUE: readonly Alternative[] = [{ threads: [], refused: [] }]
const FALSE: readonly Alternative[] = []

const isTrue = ({ alternatives }: State): boolean =>
  alternatives.some(({ threads, refused }) => threads.length === 0 && refused.length === 0)

const isAnything = (thread: Thread | null): boolean =>
  thread?.pattern === ANYTHING && thread.next === null

const keyOf = ({ threads, refused }: Alternative): string =>
  `${threads.map((thread) => thread?.id ?? 'end').join()};${refused.map(({ id }) => id).join()}`

function sortById<Value extends { id: number } | null>(values: readonly Value[]): Value[] {
  return [...new Set(values)].sort((some, other) => (some?.id ?? -1) - (other?.id ?? -1))
}

/** Returns the alternatives that hold where one of both lists does. */
function join(
  some: readonly Alternative[],
  others: readonly Alternative[],
): readonly Alternative[] {
  if (some.length * others.length > MAX_ALTERNATIVES) throw tooMany()
  return some.flatMap((one) =>
    others.map((other) => ({
      threads: [...one.threads, ...other.threads],
      refused: [...one.refused, ...other.refused],
    })),
  )
}

const tooMany = (): PatternError => new PatternError('a condition on too many texts')

/** A look-behind is decided before the text goes on. */
function refuseAhead(pattern: Pattern): void {
  const looksAhead = contains(pattern, (part) =>
    part.type === 'look' ? !part.isBehind : part.type === 'assertion' && part.assertion !== 'start',
  )
  if (looksAhead) throw new PatternError('a condition on what follows inside a look-behind')
}

const isWord = (code: number | null): boolean => code !== null && includes(WORD, code)
const isLineEnd = (code: number | null): boolean => code !== null && includes(LINE_END, code)

const kindOf = (code: number | null): string =>
  code === null ? 'start' : isLineEnd(code) ? 'line' : isWord(code) ? 'word' : 'other'

/** Tells whether an assertion holds between two characters. */
const ASSERTIONS: Readonly<
  Record<Assertion, (before: number | null, next: number | null) => boolean>
> = {
  start: (before) => before === null,
  end: (_, next) => next === null,
  'line-start': (before) => before === null || isLineEnd(before),
  'line-end': (_, next) => next === null || isLineEnd(next),
  boundary: (before, next) => isWord(before) !== isWord(next),
  'no-boundary': (before, next) => isWord(before) === isWord(next),
}

/** Maximum size of the pattern that is made of an automaton. */
const MAX_SIZE = 20_000

/** Returns the pattern of an automaton that starts in state 0, by taking its states away one after the other. */
function toPattern(
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
  const knownSize = memoize(sizeOf)
  const sizes = (patterns: readonly Pattern[]): number =>
    patterns.reduce((total, each) => total + knownSize(each), 0)
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
