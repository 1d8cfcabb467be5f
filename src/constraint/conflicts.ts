/** Finds the lexemes of a grammar that would take what belongs to others. */
import {
  type Characters,
  type Conflict,
  type Expression,
  type FreeText,
  type Lexeme,
  type Lexemes,
  memoize,
  repeat,
  type Rule,
  sequence,
  type Symbol,
} from './expression.ts'
import { ANY_CHARACTER, complement, setOf, setsOf, union } from './pattern/characters.ts'

/** A set of bytes, one bit each. */
type ByteSet = bigint

const NO_BYTES: ByteSet = 0n

/** Counter of steps, which the analysis of a grammar has in common. */
export interface Steps {
  left: number
}

/** Place behind the end of a text. */
const END = -1

/** Finds the lexemes that would take what belongs to others. */
export function findConflicts(lexemes: Lexemes, steps: Steps): Conflict[] {
  const { expressions: rules } = lexemes
  const places = new Places(lexemes, steps)
  const comparer = new Comparer(rules, steps)
  const conflicts: Conflict[] = []
  const seen = new Set<number>()
  const pending: [number, number][] = []
  const count = places.lexemes.length
  const lexemesAfter = (place: number): Lexeme[] =>
    [...places.next(place)].flatMap((each) => places.lexemes[each] ?? [])
  const bytesAfter = memoize((place: number) => unite(lexemesAfter(place).map(comparer.start)))
  // Blanks of the next lexeme may as well be blanks at the end of this one.
  const bytesAfterBlanks = memoize((place: number) => {
    const blanks = places.lexemes[place] && findBlanks(places.lexemes[place].expression, rules)
    return blanks
      ? unite(lexemesAfter(place).map((each) => comparer.startBehind(each, blanks)))
      : bytesAfter(place)
  })
  const takesAll = (place: number): boolean => {
    const lexeme = places.lexemes[place]
    const blanks = lexeme && findBlanks(lexeme.expression, rules)
    if (!blanks || places.next(place).has(END)) return false
    const others = ~firstBytes(blanks)
    const starts = lexemesAfter(place).map(comparer.start)
    return starts.every((bytes) => bytes !== NO_BYTES && (bytes & others) === NO_BYTES)
  }
  const visit = (some: Iterable<number>, others: ReadonlySet<number>): void => {
    for (const one of some) {
      for (const other of others) {
        if (one === END || other === END) continue
        const pair = Math.min(one, other) * count + Math.max(one, other)
        steps.left -= 1
        if (seen.has(pair)) continue
        seen.add(pair)
        pending.push([one, other])
      }
    }
  }
  visit(places.start, places.start)
  for (let pair = pending.pop(); pair && steps.left > 0; pair = pending.pop()) {
    const [one, other] = pair
    const first = places.lexemes[one]
    const second = places.lexemes[other]
    if (!first || !second) continue
    const { afterFirst, afterSecond, meet } = comparer.compare(first, second)
    const isSame = isSameLexeme(first.expression, second.expression)
    const next = isSame ? bytesAfterBlanks : bytesAfter
    const add = (short: Lexeme, long: Lexeme, at: number): void => {
      const isEndless = isSame && takesAll(at)
      conflicts.push({ short: short.expression, long: long.expression, isEndless })
    }
    if ((afterFirst & next(one)) !== NO_BYTES) add(first, second, one)
    if ((afterSecond & next(other)) !== NO_BYTES) add(second, first, other)
    if (meet) visit(places.next(one), places.next(other))
  }
  return steps.left > 0 ? conflicts : []
}

const isSameLexeme = (one: Expression, other: Expression): boolean =>
  one === other || (one.type === 'rule' && other.type === 'rule' && one.name === other.name)

/** Returns the characters that a text may end with in any number; `null` if they are unknown. */
function findBlanks(expression: Expression, rules: Rules): Characters | null {
  const parts = partsOf(expression, rules)
  const last = parts.at(-1)
  if (last === undefined) return null
  if (last.type !== 'repeat') return last === expression ? null : findBlanks(last, rules)
  return last.max === Infinity ? findCharacters(last.part) : null
}

/** Returns an expression without such characters at its beginning, if it may begin with any number of them. */
function withoutBlanks(expression: Expression, blanks: Characters, rules: Rules): Expression {
  const [first, ...others] = partsOf(expression, rules)
  if (first === undefined) return expression
  if (first.type !== 'repeat') {
    if (first === expression) return expression
    const rest = withoutBlanks(first, blanks, rules)
    return rest === first ? expression : sequence(rest, ...others)
  }
  const { part, min, max } = first
  const known = min === 0 && max === Infinity ? findCharacters(part) : null
  const isBlank = known?.every((own) =>
    blanks.some((each) => each[0] <= own[0] && own[1] <= each[1]),
  )
  return isBlank ? sequence(...others) : expression
}

/** Returns the parts of a sequence, or of the rule that an expression refers to. */
function partsOf(expression: Expression, rules: Rules): readonly Expression[] {
  if (expression.type === 'sequence') return expression.parts
  const body = expression.type === 'rule' ? rules.get(expression.name) : undefined
  return [body ?? expression]
}

/** Returns the characters of an expression whose texts are single characters. */
function findCharacters(expression: Expression): Characters | null {
  if (expression.type === 'set') return expression.set
  if (expression.type === 'text')
    return /^[^]$/u.test(expression.text) ? setOf(expression.text) : null
  if (expression.type !== 'choice') return null
  const parts = expression.parts.map(findCharacters)
  return parts.includes(null) ? null : union(parts.flatMap((part) => part ?? []))
}

const ALL_BYTES: ByteSet = (1n << 256n) - 1n
const UNRELATED: Comparison = { afterFirst: NO_BYTES, afterSecond: NO_BYTES, meet: false }

/** Compares lexemes, and remembers the results. */
class Comparer {
  readonly start: (lexeme: Lexeme) => ByteSet
  readonly #rules: Rules
  readonly #automaton: (lexeme: Lexeme) => Automaton
  readonly #steps: Steps
  readonly #comparisons = memoize((first: Lexeme) =>
    memoize((second: Lexeme) => this.#compare(first, second)),
  )

  constructor(rules: Rules, steps: Steps) {
    this.#steps = steps
    this.#rules = rules
    this.#automaton = memoize(({ expression }) => createAutomaton(expression, rules, steps))
    this.start = memoize((lexeme) =>
      lexeme.expression.type === 'engine'
        ? firstBytes(lexeme.expression.first)
        : startBytes(this.#automaton(lexeme)),
    )
  }

  /** Returns the bytes with which a text can begin behind all blanks. */
  startBehind(lexeme: Lexeme, blanks: Characters): ByteSet {
    const rest = withoutBlanks(lexeme.expression, blanks, this.#rules)
    if (rest === lexeme.expression) return this.start(lexeme)
    return startBytes(createAutomaton(rest, this.#rules, this.#steps))
  }

  compare(first: Lexeme, second: Lexeme): Comparison {
    return this.#comparisons(first)(second)
  }

  #compare(first: Lexeme, second: Lexeme): Comparison {
    const [one, other] = [first.expression, second.expression]
    if (one.type !== 'engine' && other.type !== 'engine') {
      return beginsDifferently(one, other)
        ? UNRELATED
        : compare(this.#automaton(first), this.#automaton(second), this.#steps)
    }
    if (one === other) return { ...UNRELATED, meet: true }
    if ((this.start(first) & this.start(second)) === NO_BYTES) return UNRELATED
    // The engine itself handles what only it knows.
    const isAligned = isAlignedWithJson(one) && isAlignedWithJson(other)
    const after = isAligned ? NO_BYTES : ALL_BYTES
    return { afterFirst: after, afterSecond: after, meet: true }
  }
}

/** Returns `true` if the fixed beginnings of two lexemes differ, as those of many tools do. */
function beginsDifferently(one: Expression, other: Expression): boolean {
  const [first, second] = [fixedBeginning(one), fixedBeginning(other)]
  return !first.startsWith(second) && !second.startsWith(first)
}

function fixedBeginning(expression: Expression): string {
  if (expression.type === 'text') return expression.text
  const first = expression.type === 'sequence' ? expression.parts[0] : undefined
  return first ? fixedBeginning(first) : ''
}

const isAlignedWithJson = (expression: Expression): boolean =>
  expression.type === 'engine' || (expression.type === 'text' && expression.isJsonToken === true)

/** Places of lexemes in the rules, and the places that may come next. */
class Places {
  readonly lexemes: Lexeme[] = []
  readonly start: ReadonlySet<number>
  readonly #next: Set<number>[] = []
  readonly #optional = new Set<Rule>()
  readonly #first = memoize((_rule: Rule) => new Set<number>())
  readonly #follow = memoize((_rule: Rule) => new Set<number>())
  readonly #placeOf = memoize((symbol: Extract<Symbol, { type: 'lexeme' }>) => {
    this.#next.push(new Set())
    return this.lexemes.push(symbol.lexeme) - 1
  })
  readonly #steps: Steps
  #isChanged = false

  constructor({ root, rules }: Lexemes, steps: Steps) {
    this.#steps = steps
    const reversed = rules.toReversed()
    this.#follow(root).add(END)
    this.#untilStable(() => reversed.forEach((rule) => this.#findFirst(rule)))
    this.#untilStable(() => rules.forEach((rule) => this.#findNext(rule)))
    this.start = this.#first(root)
  }

  next(place: number): ReadonlySet<number> {
    return this.#next[place] ?? new Set()
  }

  #untilStable(work: () => void): void {
    do {
      this.#isChanged = false
      work()
    } while (this.#isChanged && this.#steps.left > 0)
  }

  #findFirst(rule: Rule): void {
    for (const symbols of rule.alternatives) {
      const required = symbols.findIndex((symbol) => !this.#isOptional(symbol))
      if (required < 0) this.#add(this.#optional, [rule])
      const reached = required < 0 ? symbols : symbols.slice(0, required + 1)
      for (const symbol of reached) this.#add(this.#first(rule), this.#firstOf(symbol))
    }
  }

  #findNext(rule: Rule): void {
    for (const symbols of rule.alternatives) {
      let after = new Set(this.#follow(rule))
      for (const symbol of symbols.toReversed()) {
        this.#addNext(symbol, after)
        const first = this.#firstOf(symbol)
        after = new Set(this.#isOptional(symbol) ? [...after, ...first] : first)
      }
    }
  }

  #addNext(symbol: Symbol, after: ReadonlySet<number>): void {
    if (symbol.type === 'lexeme') this.#add(this.#next[this.#placeOf(symbol)], after)
    else if (symbol.type === 'rule') this.#add(this.#follow(symbol.rule), after)
    else {
      const again = symbol.max > 1 ? this.#firstOf(symbol.symbol) : []
      this.#addNext(symbol.symbol, new Set([...after, ...again]))
    }
  }

  #isOptional(symbol: Symbol): boolean {
    if (symbol.type === 'lexeme') return symbol.lexeme.isOptional
    if (symbol.type === 'rule') return this.#optional.has(symbol.rule)
    return symbol.min === 0 || this.#isOptional(symbol.symbol)
  }

  #firstOf(symbol: Symbol): Iterable<number> {
    if (symbol.type === 'lexeme') return [this.#placeOf(symbol)]
    return symbol.type === 'rule' ? this.#first(symbol.rule) : this.#firstOf(symbol.symbol)
  }

  #add<Value>(set: Set<Value> | undefined, others: Iterable<Value>): void {
    for (const each of others) {
      this.#steps.left -= 1
      this.#isChanged ||= !set?.has(each)
      set?.add(each)
    }
  }
}

/** Result of comparing the texts of two lexemes. */
interface Comparison {
  /** Bytes with which a text of the second one goes on behind a whole text of the first one. */
  afterFirst: ByteSet
  /** Bytes with which a text of the first one goes on behind a whole text of the second one. */
  afterSecond: ByteSet
  /** `true` if a text is one of both. */
  meet: boolean
}

interface Edge {
  ranges: Characters
  bytes: ByteSet
  to: number
}

/** An automaton whose state 0 is the start. */
interface Automaton {
  edges: Edge[][]
  accepts: boolean[]
}

/** Maximum number of states. The automaton of a larger expression takes any text. */
const MAX_STATES = 2000
/** Maximum number of copies of a part that is repeated. More of them are as good as any number. */
const MAX_COPIES = 40

/** Creates the automaton of an expression without parts that only the engine knows. */
function createAutomaton(expression: Expression, rules: Rules, steps: Steps): Automaton {
  const builder = new AutomatonBuilder(rules)
  const accept = builder.add(expression, builder.state())
  steps.left -= builder.size
  return builder.size > MAX_STATES
    ? createAutomaton(ANY_TEXT, rules, steps)
    : builder.finish(accept)
}

type Rules = ReadonlyMap<string, Expression>

const ANY_TEXT = repeat({ type: 'set', set: ANY_CHARACTER }, 0)

class AutomatonBuilder {
  readonly #rules: Rules
  readonly #edges: Edge[][] = []
  /** States that are reached without a character. */
  readonly #jumps: number[][] = []

  constructor(rules: Rules) {
    this.#rules = rules
  }

  get size(): number {
    return this.#edges.length
  }

  state(): number {
    this.#jumps.push([])
    return this.#edges.push([]) - 1
  }

  /** Adds the texts of an expression behind a state, and returns the state in which they end. */
  add(expression: Expression, from: number): number {
    if (this.size > MAX_STATES) return from
    switch (expression.type) {
      case 'text':
        return Array.from(expression.text).reduce(
          (state, character) => this.#step(state, setOf(character)),
          from,
        )
      case 'set':
        return this.#step(from, expression.set)
      case 'free':
        return this.#addFreeText(expression, from)
      case 'engine':
        return this.add(ANY_TEXT, from)
      case 'sequence':
        return expression.parts.reduce((state, part) => this.add(part, state), from)
      case 'choice': {
        const end = this.state()
        for (const part of expression.parts) this.#jump(this.add(part, from), end)
        return end
      }
      case 'rule':
        return this.add(this.#rules.get(expression.name) ?? ANY_TEXT, from)
      case 'repeat':
        return this.#addRepetition(expression.part, expression.min, expression.max, from)
    }
  }

  /** Removes the jumps. */
  finish(accept: number): Automaton {
    const closures = this.#jumps.map((_, state) => this.#closure(state))
    return {
      edges: closures.map((states) => states.flatMap((state) => this.#edges[state] ?? [])),
      accepts: closures.map((states) => states.includes(accept)),
    }
  }

  #closure(state: number): readonly number[] {
    const states = new Set([state])
    for (const each of states) for (const next of this.#jumps[each] ?? []) states.add(next)
    return [...states]
  }

  #step(from: number, ranges: Characters, to = this.state()): number {
    this.#edges[from]?.push({ ranges, bytes: firstBytes(ranges), to })
    return to
  }

  #jump(from: number, to: number): void {
    this.#jumps[from]?.push(to)
  }

  #addRepetition(part: Expression, min: number, max: number, from: number): number {
    const least = Math.min(min, MAX_COPIES)
    let state = from
    for (let count = 0; count < least; count += 1) state = this.add(part, state)
    if (max > MAX_COPIES) {
      const loop = this.state()
      this.#jump(state, loop)
      this.#jump(this.add(part, loop), loop)
      return loop
    }
    const end = this.state()
    this.#jump(state, end)
    for (let count = least; count < max; count += 1) {
      state = this.add(part, state)
      this.#jump(state, end)
    }
    return end
  }

  /** Adds states that know the longest beginning of a word with which the text ends so far. */
  #addFreeText({ words, end }: FreeText, from: number): number {
    const beginnings = new Set(['', ...words.flatMap(beginningsOf)])
    const states = new Map(Array.from(beginnings, (each) => [each, this.state()]))
    const accept = this.state()
    const characters = new Set(words.join(''))
    const longestEnd = (written: string): string =>
      states.has(written) ? written : longestEnd(written.slice(1))
    const known = setsOf(words.join(''))
    for (const [beginning, state] of states) {
      if (end === null) this.#jump(state, accept)
      this.#step(state, complement(known), states.get(''))
      for (const character of characters) {
        const written = beginning + character
        const isEnd = words.some((word) => written.endsWith(word))
        const range = setOf(character)
        if (!isEnd) this.#step(state, range, states.get(longestEnd(written)))
        else if (end !== null && written.endsWith(end)) this.#step(state, range, accept)
      }
    }
    this.#jump(from, states.get('') ?? accept)
    return accept
  }
}

/** Returns the beginnings of a word without the word itself. */
const beginningsOf = (word: string): string[] =>
  Array.from(word, (_, length) => [...word].slice(0, length).join(''))

/** Returns the bytes with which the UTF-8 of the characters begins. */
function firstBytes(ranges: Characters): ByteSet {
  let bytes = NO_BYTES
  for (const [first, last] of ranges) {
    const least = leadByte(first)
    bytes |= ((1n << BigInt(leadByte(last) - least + 1)) - 1n) << BigInt(least)
  }
  return bytes
}

function leadByte(code: number): number {
  if (code < 0x80) return code
  if (code < 0x800) return 0xc0 | (code >> 6)
  return code < 0x10000 ? 0xe0 | (code >> 12) : 0xf0 | (code >> 18)
}

/** Returns the bytes with which a text of the automaton can begin. */
const startBytes = ({ edges }: Automaton): ByteSet => uniteEdges(edges[0] ?? [])

const uniteEdges = (edges: readonly Edge[]): ByteSet => unite(edges.map(({ bytes }) => bytes))

const unite = (bytes: readonly ByteSet[]): ByteSet =>
  bytes.reduce((all, each) => all | each, NO_BYTES)

/** Compares the texts of two automatons. Spends a step for each pair of states and of edges. */
function compare(first: Automaton, second: Automaton, steps: Steps): Comparison {
  const found: Comparison = { afterFirst: NO_BYTES, afterSecond: NO_BYTES, meet: false }
  const width = second.edges.length
  const seen = new Set([0])
  for (const pair of seen) {
    const own = Math.floor(pair / width)
    const other = pair % width
    const ownEdges = first.edges[own] ?? []
    const otherEdges = second.edges[other] ?? []
    steps.left -= 1 + ownEdges.length * otherEdges.length
    if (steps.left < 0) return found
    // An empty text is no lexeme.
    if (pair !== 0) {
      if (first.accepts[own]) found.afterFirst |= uniteEdges(otherEdges)
      if (second.accepts[other]) found.afterSecond |= uniteEdges(ownEdges)
      found.meet ||= (first.accepts[own] && second.accepts[other]) ?? false
    }
    for (const edge of ownEdges) {
      for (const { ranges, to } of otherEdges) {
        if (overlap(edge.ranges, ranges)) seen.add(edge.to * width + to)
      }
    }
  }
  return found
}

const overlap = (some: Characters, others: Characters): boolean =>
  some.some(([first, last]) => others.some((other) => first <= other[1] && other[0] <= last))
