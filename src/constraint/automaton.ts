/** Compares the texts of lexemes: whether one may go on where another one ends. */
import {
  ANY_CHARACTER,
  type CharacterRange,
  complement,
  type Expression,
  type FreeText,
  normalizeRanges,
} from './expression.ts'

/** A set of bytes, one bit each. */
export type ByteSet = bigint

export const NO_BYTES: ByteSet = 0n

/** What the texts of two lexemes have in common. */
export interface Comparison {
  /** Bytes with which a text of the second one goes on behind a whole text of the first one. */
  afterFirst: ByteSet
  /** Bytes with which a text of the first one goes on behind a whole text of the second one. */
  afterSecond: ByteSet
  /** `true` if a text is one of both. */
  meet: boolean
}

interface Edge {
  ranges: readonly CharacterRange[]
  bytes: ByteSet
  to: number
}

/** An automaton whose state 0 is the start. */
export interface Automaton {
  edges: Edge[][]
  accepts: boolean[]
}

/** Maximum number of states. The automaton of a larger expression takes any text. */
const MAX_STATES = 2000
/** Maximum number of copies of a part that is repeated. More of them are as good as any number. */
const MAX_COPIES = 40

/** Counter of steps, which the analysis of a grammar has in common. */
export interface Steps {
  left: number
}

/** Creates the automaton of an expression without parts that only the engine knows. */
export function createAutomaton(
  expression: Expression,
  rules: ReadonlyMap<string, Expression>,
  steps: Steps,
): Automaton {
  const builder = new AutomatonBuilder(rules)
  const accept = builder.add(expression, builder.state())
  steps.left -= builder.size
  return builder.size > MAX_STATES
    ? createAutomaton(ANY_TEXT, rules, steps)
    : builder.finish(accept)
}

const ANY_TEXT: Expression = {
  type: 'repeat',
  part: { type: 'set', ranges: ANY_CHARACTER },
  min: 0,
  max: Infinity,
}

class AutomatonBuilder {
  readonly #rules: ReadonlyMap<string, Expression>
  readonly #edges: Edge[][] = []
  /** States that are reached without a character. */
  readonly #jumps: number[][] = []

  constructor(rules: ReadonlyMap<string, Expression>) {
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
        return Array.from(expression.text, (character) => character.codePointAt(0) ?? 0).reduce(
          (state, code) => this.#step(state, [[code, code]]),
          from,
        )
      case 'set':
        return this.#step(from, expression.ranges)
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

  #step(from: number, ranges: readonly CharacterRange[], to = this.state()): number {
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
    const beginnings = [...new Set(['', ...words.flatMap(beginningsOf)])]
    const states = new Map(beginnings.map((each) => [each, this.state()]))
    const accept = this.state()
    const known = normalizeRanges(
      Array.from(words.join(''), (character) => character.codePointAt(0) ?? 0).map((code) => [
        code,
        code,
      ]),
    )
    const characters = new Set(words.join(''))
    for (const [beginning, state] of states) {
      if (end === null) this.#jump(state, accept)
      this.#step(state, complement(known), states.get(''))
      for (const character of characters) {
        const written = beginning + character
        const isEnd = words.some((word) => written.endsWith(word))
        const code = character.codePointAt(0) ?? 0
        if (!isEnd) this.#step(state, [[code, code]], states.get(longestEnd(written, states)))
        else if (end !== null && written.endsWith(end)) this.#step(state, [[code, code]], accept)
      }
    }
    this.#jump(from, states.get('') ?? accept)
    return accept
  }
}

/** Returns the beginnings of a word without the word itself. */
const beginningsOf = (word: string): string[] => {
  const characters = [...word]
  return characters.map((_, length) => characters.slice(0, length).join(''))
}

/** Returns the longest end of a text that is one of the beginnings, which include the empty text. */
function longestEnd(written: string, beginnings: ReadonlyMap<string, unknown>): string {
  let start = 0
  while (!beginnings.has(written.slice(start))) start += 1
  return written.slice(start)
}

/** Returns the bytes with which the UTF-8 of the characters begins. */
export function firstBytes(ranges: readonly CharacterRange[]): ByteSet {
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
export const startBytes = ({ edges }: Automaton): ByteSet => unite(edges[0] ?? [])

const unite = (edges: readonly Edge[]): ByteSet =>
  edges.reduce((bytes, edge) => bytes | edge.bytes, NO_BYTES)

/** Compares the texts of two automatons. Spends a step for each pair of states and of edges. */
export function compare(first: Automaton, second: Automaton, steps: Steps): Comparison {
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
      if (first.accepts[own]) found.afterFirst |= unite(otherEdges)
      if (second.accepts[other]) found.afterSecond |= unite(ownEdges)
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

const overlap = (some: readonly CharacterRange[], others: readonly CharacterRange[]): boolean =>
  some.some(([first, last]) => others.some((other) => first <= other[1] && other[0] <= last))
