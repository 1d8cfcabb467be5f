/** Rewrites what restricts strings into patterns and lengths of the engine. */
import { type CharacterSet, childrenOf, memoize, NOTHING, type Repetition } from '../expression.ts'
import {
  type Budget,
  type Conjunction,
  orElse,
  toConjunction,
  toEnginePattern,
  toIntersection,
  writeWhole,
} from '../pattern.ts'
import { escapeCharacter, intersection } from '../pattern/characters.ts'
import { ANYTHING, lengthsOf, type Pattern, repeat, sequence, sizeOf } from '../pattern/node.ts'
import { findFormat } from './formats.ts'
import type { PlainKeywords } from './plain.ts'

export interface StringKeywords {
  minLength?: number
  maxLength?: number
  format?: string
  patterns: readonly string[]
}

interface RewrittenString {
  /** Keywords that allow the same strings, or more if any of the given ones is loosened. They do not name the type. */
  schema: Record<string, unknown>
  loosened: string[]
  /** `format:` and the name of the format, if it is unknown. */
  ignored: string[]
}

/** Returns keywords of the engine for the strings that have all the given ones. Strings can have a budget in common. */
export function rewriteString(keywords: StringKeywords, budget?: Budget): RewrittenString {
  const { minLength = 0, maxLength = Infinity, format, patterns } = keywords
  const loosened = new Set<string>()
  const ignored: string[] = []
  const parts: Pattern[] = []
  const add = ({ patterns: found, isLoosened }: Conjunction, keyword: string): void => {
    parts.push(...found)
    if (isLoosened) loosened.add(keyword)
  }
  for (const source of new Set(patterns)) add(toConjunction(source, budget), 'pattern')
  // Beside its `mac`, zod writes the pattern with the delimiter that was chosen.
  if (format !== undefined && !(format === 'mac' && patterns.length > 0)) {
    const known = findFormat(format)
    if (!known) ignored.push(`format:${format}`)
    else if (known.source !== undefined) add(parseFormat(known.source), 'format')
    if (known?.isLoose) loosened.add('format')
  }
  if (minLength > maxLength) {
    return { schema: { minLength, maxLength }, loosened: [...loosened], ignored }
  }
  const limited = joinSearches(joinRuns(parts), budget).map(
    (part) => limitRun(part, minLength, maxLength) ?? part,
  )
  const [pattern, ...others] = [...new Set(limited.map(writeWhole))]
  const lengths = keepLengths(limited, minLength, maxLength)
  const schema = {
    ...lengths.kept,
    ...(pattern !== undefined && { pattern }),
    ...(others.length > 0 && { allOf: others.map((each) => ({ pattern: each })) }),
  }
  return { schema, loosened: [...loosened, ...lengths.loosened], ignored }
}

/** What texts of a format have to match. It takes 5 ms for `date-time`. */
const parseFormat = memoize((source: string) => toConjunction(source))

/** Maximum number of characters that a text needs beyond its patterns. The engine looks for one in as many steps. */
const MAX_MISSING_LENGTH = 40
/** Maximum length beside a pattern that counts runs. */
const MAX_COUNTED_LENGTH = 500

/** Keeps the lengths that the patterns do not imply. It loosens those for which the engine takes too many steps. */
function keepLengths(
  patterns: readonly Pattern[],
  minLength: number,
  maxLength: number,
): { kept: Pick<StringKeywords, 'minLength' | 'maxLength'>; loosened: string[] } {
  const lengths = patterns.map(lengthsOf)
  const least = Math.max(0, ...lengths.map(([min]) => min))
  const needsMax = maxLength < Infinity && lengths.every(([, max]) => max > maxLength)
  const needed = { ...(least < minLength && { minLength }), ...(needsMax && { maxLength }) }
  const counts = patterns.flatMap(findCounts)
  const countsMany = counts.some(({ min }) => min > 1) || maxLength > MAX_COUNTED_LENGTH
  const isSlow = counts.length > 0 && (countsMany || needed.minLength !== undefined)
  const isMinSlow = patterns.length > 0 && minLength - least > MAX_MISSING_LENGTH
  const kept = {
    ...(!isSlow && !isMinSlow && needed.minLength !== undefined && { minLength }),
    ...(!isSlow && needed.maxLength !== undefined && { maxLength }),
  }
  return { kept, loosened: Object.keys(needed).filter((keyword) => !Object.hasOwn(kept, keyword)) }
}

/** Returns the counted repetitions of parts that have several runs of any length, such as `(?:\S+\s+){0,99}`. */
const findCounts = (pattern: Pattern): Repetition<Pattern>[] =>
  repetitionsIn(pattern).filter(({ part, min, max }) => {
    const isCounted = min > 1 || (max > 1 && max < Infinity)
    return isCounted && repetitionsIn(part).filter((each) => each.max === Infinity).length > 1
  })

const repetitionsIn = (pattern: Pattern): Repetition<Pattern>[] => [
  ...(pattern.type === 'repeat' ? [pattern] : []),
  ...childrenOf(pattern).flatMap(repetitionsIn),
]

type Run = Repetition<CharacterSet>

const isRun = (pattern: Pattern): pattern is Run =>
  pattern.type === 'repeat' && pattern.part.type === 'set'

function joinRuns(parts: readonly Pattern[]): readonly Pattern[] {
  const [first, ...runs] = parts.filter(isRun)
  if (!first) return parts
  const joined = runs.reduce((one, other): Run => {
    const set = intersection(one.part.set, other.part.set)
    const [min, max] = [Math.max(one.min, other.min), Math.min(one.max, other.max)]
    // Nothing fits into bounds that exclude each other.
    return {
      type: 'repeat',
      part: { type: 'set', set: max < min ? [] : set },
      min,
      max: Math.max(min, max),
    }
  }, first)
  return [joined, ...parts.filter((part) => !isRun(part))]
}

/** Maximum size of the pattern into which those that search are joined. */
const MAX_JOINED_SIZE = 2_000

/** Joins patterns with any text at the end, such as a password's, of which several take the engine too many steps. */
function joinSearches(parts: readonly Pattern[], budget?: Budget): readonly Pattern[] {
  const searches = parts.filter(isSearch)
  if (searches.length < 2) return parts
  const joined = orElse(() => toIntersection(searches, budget), undefined)
  return !joined || sizeOf(joined) > MAX_JOINED_SIZE
    ? parts
    : [joined, ...parts.filter((part) => !isSearch(part))]
}

const isSearch = (pattern: Pattern): boolean =>
  pattern.type === 'sequence' && pattern.parts.at(-1) === ANYTHING

/** Returns the pattern within the lengths, if only one run in it is flexible. To match both takes longer. */
function limitRun(pattern: Pattern, minLength: number, maxLength: number): Pattern | undefined {
  const parts = pattern.type === 'sequence' ? pattern.parts : [pattern]
  const flexible = parts.filter((part) => {
    const [min, max] = lengthsOf(part)
    return min !== max
  })
  const [run] = flexible
  if (!run || flexible.length > 1 || !isRun(run)) return undefined
  const [fixed] = lengthsOf(sequence(...parts.filter((part) => part !== run)))
  const min = Math.max(run.min, minLength - fixed)
  const max = Math.min(run.max, maxLength - fixed)
  if (max < min) return undefined
  return sequence(...parts.map((part) => (part === run ? repeat(part.part, min, max) : part)))
}

export const NO_TEXT = writeWhole(NOTHING)

/** Results that are kept. One schema asks for them several times. */
const MAX_KNOWN = 500

const rewriteKey = memoize(
  (key: string): RewrittenString => rewriteString(JSON.parse(key)),
  MAX_KNOWN,
)

/** Returns what the engine keeps of the keywords of strings. */
export function rewriteTexts(keywords: PlainKeywords): RewrittenString {
  const { pattern, format, minLength, maxLength } = keywords
  const patterns = pattern === undefined ? [] : [pattern]
  return rewriteKey(JSON.stringify({ patterns, format, minLength, maxLength }))
}

/** Returns the pattern of names for the engine; `undefined` if it cannot match exactly the same. */
export const toNamePattern = memoize(
  (source: string) => orElse(() => toEnginePattern(source), undefined),
  MAX_KNOWN,
)

/** Returns a pattern for the texts in which some patterns find something, and others find nothing. */
export const combine = (found: readonly string[], missing: readonly string[]): string =>
  `^${found.map((each) => String.raw`(?=[\s\S]*(?:${each}))`).join('')}` +
  missing.map((each) => String.raw`(?![\s\S]*(?:${each}))`).join('')

/** Returns a pattern for the texts that differ from the listed ones. */
export const otherTexts = (texts: readonly string[]): string =>
  `^(?!(?:${texts.map(escape).join('|')})$)`

const escape = (text: string): string =>
  text.replaceAll(/[^\p{L}\p{N} ]/gu, (character) => escapeCharacter(character.codePointAt(0) ?? 0))
