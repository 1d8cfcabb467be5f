/**
 * Translates regular expressions of ECMAScript into those of the engine, for the same texts.
 *
 * The engine knows no look-arounds, no word boundaries, and `^` and `$` only at the ends. Conditions at the beginning
 * and the end, such as `^(?=…)(?!…)`, become regular expressions of their own, which have to match too. All others are
 * resolved by an automaton.
 */
import { contains, EMPTY } from './expression.ts'
import { type Budget, resolve } from './pattern/automaton.ts'
import { PatternError } from './pattern/characters.ts'
import {
  ANYTHING,
  choice,
  lengthsOf,
  type Pattern,
  type PlainPattern,
  repeat,
  sequence,
  write,
} from './pattern/node.ts'
import { parsePattern } from './pattern/parse.ts'

export { type Budget, PatternError }

/** Leaves the limits to those of each pattern. */
const NO_BUDGET: Budget = { spend: () => true }

/** Returns the pattern for the texts that the source matches as a whole. Throws a {@link PatternError}. */
export const toWholePattern = (source: string, flags?: string): PlainPattern =>
  toPlain(parsePattern(source, flags), NO_BUDGET) as PlainPattern

/** Returns the engine's `pattern` for what a JSON Schema's pattern finds. Throws a {@link PatternError}. */
export function toEnginePattern(source: string, budget = NO_BUDGET): string {
  return writeWhole(toPlain(toSearch(parsePattern(source)), budget))
}

/** Returns the pattern as the engine has to write it in a schema, where it would search otherwise. */
export const writeWhole = (pattern: Pattern): string => `^(?:${write(pattern)})$`

/** What a text has to match so that a pattern of JSON Schema finds something in it. */
export interface Conjunction {
  /** Patterns without assertions. A text has to match them all as a whole. */
  patterns: readonly Pattern[]
  /** `true` if other texts match too, since a condition cannot be expressed. */
  isLoosened: boolean
}

/** Returns the result of the work, or something else if a pattern is not supported. */
export function orElse<Result, Other>(work: () => Result, other: Other): Result | Other {
  try {
    return work()
  } catch (error) {
    if (error instanceof PatternError) return other
    throw error
  }
}

/** Returns what a text has to match so that a pattern of JSON Schema finds something in it. */
export function toConjunction(source: string, budget = NO_BUDGET): Conjunction {
  let isLoosened = false
  const attempt = (work: () => Pattern, instead: Pattern): Pattern => {
    const found = orElse(work, undefined)
    isLoosened ||= found === undefined
    return found ?? instead
  }
  const parsed = attempt(() => toSearch(parsePattern(source)), ANYTHING)
  const { left, right, parts, conditions } = takeEnds(parsed, 'end', 'end', true)
  const rest = between(left, sequence(...parts), right)
  const patterns = [rest, ...conditions.flatMap(({ part, isNegative }) => (isNegative ? [] : part))]
    .map((part) => attempt(() => toPlain(part, budget), withoutAssertions(part)))
    .concat(
      conditions
        .filter(({ isNegative }) => isNegative)
        .map(({ part }) => attempt(() => resolve(part, budget, true), ANYTHING)),
    )
  return { patterns: patterns.filter((part) => part !== ANYTHING), isLoosened }
}

/** Returns one pattern that matches the texts that all of them match. Throws a {@link PatternError}. */
export function toIntersection(patterns: readonly Pattern[], budget = NO_BUDGET): Pattern {
  const [first = ANYTHING, ...others] = patterns
  const looks = others.map((part): Pattern => {
    return { type: 'look', part: sequence(part, END), isBehind: false, isNegative: false }
  })
  return resolve(sequence(...looks, first), budget)
}

const END: Pattern = { type: 'assertion', assertion: 'end' }

/** Returns the pattern of whole texts in which the pattern finds something. */
const toSearch = (pattern: Pattern): Pattern => sequence(ANYTHING, pattern, ANYTHING)

const isAsserting = (pattern: Pattern): boolean =>
  contains(pattern, ({ type }) => type === 'assertion' || type === 'look')

/** Returns the pattern without assertions for the same whole texts. */
function toPlain(pattern: Pattern, budget: Budget): Pattern {
  const simpler = resolveInside(pattern, budget)
  return stripEnds(simpler, 'end', 'end') ?? resolve(simpler, budget)
}

/** Resolves the word boundaries and the last look-aheads of a whole text without the parts around that do not matter. */
function resolveInside(pattern: Pattern, budget: Budget): Pattern {
  if (pattern.type !== 'sequence') return pattern
  const parts = [...pattern.parts]
  for (let at = 0; at < parts.length; at += 1) {
    if (!isBoundary(parts[at])) continue
    const before = parts.findLastIndex((part, index) => index < at && isSomething(part))
    const behind = parts.findIndex((part, index) => index > at && isSomething(part))
    const from = Math.max(before, 0)
    const to = behind === -1 ? parts.length : behind + 1
    const around = parts.slice(from, to)
    const isLocal = around.every((part) => !isAsserting(part) || isBoundary(part))
    if (!isLocal) continue
    parts.splice(from, around.length, resolve(sequence(...around), budget))
    at = from
  }
  const first = parts.findIndex((part) => part.type === 'look')
  const tail = parts.slice(Math.max(first, 0))
  const canSplit =
    first > 0 &&
    !contains(sequence(...tail), (part) =>
      part.type === 'look' ? part.isBehind : part.type === 'assertion' && part.assertion !== 'end',
    )
  return canSplit
    ? sequence(...parts.slice(0, first), resolve(sequence(...tail), budget))
    : sequence(...parts)
}

const isBoundary = (pattern: Pattern | undefined): boolean =>
  pattern?.type === 'assertion' &&
  (pattern.assertion === 'boundary' || pattern.assertion === 'no-boundary')

/** Returns `true` if the pattern has no assertions and does not match the empty text. */
const isSomething = (pattern: Pattern): boolean =>
  !isAsserting(pattern) && lengthsOf(pattern)[0] > 0

/** Returns the pattern without its assertions, which matches more. */
function withoutAssertions(pattern: Pattern): Pattern {
  switch (pattern.type) {
    case 'sequence':
      return sequence(...pattern.parts.map(withoutAssertions))
    case 'choice':
      return choice(...pattern.parts.map(withoutAssertions))
    case 'repeat':
      return repeat(withoutAssertions(pattern.part), pattern.min, pattern.max)
    case 'set':
      return pattern
    default:
      return EMPTY
  }
}

/** What stands at one side of a pattern: an end of the text, any text up to it, or another pattern. */
type Side = 'end' | 'any' | 'pattern'

/** A pattern that the whole text must match, or must not. */
interface Condition {
  part: Pattern
  isNegative: boolean
}

const isAssertion = (pattern: Pattern | undefined, kind: 'start' | 'end'): boolean =>
  pattern?.type === 'assertion' && pattern.assertion === kind

/** Takes assertions and any text from the ends of a sequence, and look-arounds as conditions if that is wanted. */
function takeEnds(pattern: Pattern, left: Side, right: Side, takesConditions: boolean) {
  const parts = pattern.type === 'sequence' ? [...pattern.parts] : [pattern]
  const conditions: Condition[] = []
  for (;;) {
    const [first] = parts
    const last = parts.at(-1)
    if (left !== 'pattern' && first === ANYTHING) left = 'any'
    else if (left !== 'pattern' && isAssertion(first, 'start')) left = 'end'
    else if (takesConditions && left === 'end' && first?.type === 'look' && !first.isBehind) {
      conditions.push({ part: sequence(first.part, ANYTHING), isNegative: first.isNegative })
    } else if (right !== 'pattern' && last === ANYTHING) {
      right = 'any'
      parts.pop()
      continue
    } else if (right !== 'pattern' && isAssertion(last, 'end')) {
      right = 'end'
      parts.pop()
      continue
    } else if (takesConditions && right === 'end' && last?.type === 'look' && last.isBehind) {
      conditions.push({ part: sequence(ANYTHING, last.part), isNegative: last.isNegative })
      parts.pop()
      continue
    } else return { left, right, parts, conditions }
    parts.shift()
  }
}

const between = (left: Side, pattern: Pattern, right: Side): Pattern => {
  if (pattern === EMPTY) return left === 'any' || right === 'any' ? ANYTHING : EMPTY
  return sequence(
    ...(left === 'any' ? [ANYTHING] : []),
    pattern,
    ...(right === 'any' ? [ANYTHING] : []),
  )
}

/** Returns the pattern without `^` and `$` at its ends; `undefined` if it has other assertions. */
function stripEnds(pattern: Pattern, leftSide: Side, rightSide: Side): Pattern | undefined {
  if (pattern.type === 'choice') {
    const parts = pattern.parts.flatMap((part) => stripEnds(part, leftSide, rightSide) ?? [])
    return parts.length === pattern.parts.length ? choice(...parts) : undefined
  }
  const { left, right, parts } = takeEnds(pattern, leftSide, rightSide, false)
  const [first, ...others] = parts
  const last = others.pop()
  if (!first || !isAsserting(sequence(...parts))) return between(left, sequence(...parts), right)
  if (!last) return first.type === 'choice' ? stripEnds(first, left, right) : undefined
  const head = stripEnds(first, left, 'pattern')
  const tail = stripEnds(last, 'pattern', right)
  return head && tail && !others.some(isAsserting) ? sequence(head, ...others, tail) : undefined
}
