/** Patterns of schemas, which stay those of ECMAScript until they are written for the engine. */
import { NOTHING } from '../pattern/node.ts'
import { PatternError, toEnginePattern, writeWhole } from '../pattern.ts'
import type { PlainKeywords } from './plain.ts'
import { type RewrittenString, rewriteString } from './strings.ts'

/** Pattern of the engine that no text matches. */
export const NO_TEXT = writeWhole(NOTHING)

/** Results that are kept. One schema asks for them several times. */
const MAX_KNOWN = 500

/** Returns the function with a memory of its last results. */
function remember<Result>(work: (key: string) => Result): (key: string) => Result {
  const known = new Map<string, { result: Result }>()
  return (key) => {
    const found = known.get(key) ?? { result: work(key) }
    if (known.size >= MAX_KNOWN) known.clear()
    known.set(key, found)
    return found.result
  }
}

const rewriteKey = remember((key): RewrittenString => rewriteString(JSON.parse(key)))

/** Returns what the engine keeps of the keywords of strings. */
export function rewriteTexts(keywords: PlainKeywords): RewrittenString {
  const { pattern, format, minLength, maxLength } = keywords
  const patterns = pattern === undefined ? [] : [pattern]
  return rewriteKey(JSON.stringify({ patterns, format, minLength, maxLength }))
}

/** Returns the pattern of names for the engine; `undefined` if it cannot match exactly the same. */
export const toNamePattern = remember((source): string | undefined => {
  try {
    return toEnginePattern(source)
  } catch (error) {
    if (error instanceof PatternError) return undefined
    throw error
  }
})

/** Returns a pattern for the texts in which some patterns find something, and others find nothing. */
export const combine = (found: readonly string[], missing: readonly string[]): string =>
  `^${found.map((each) => String.raw`(?=[\s\S]*(?:${each}))`).join('')}` +
  missing.map((each) => String.raw`(?![\s\S]*(?:${each}))`).join('')

/** Returns a pattern for the texts that differ from the listed ones. */
export const otherTexts = (texts: readonly string[]): string =>
  `^(?!(?:${texts.map(escape).join('|')})$)`

const escape = (text: string): string => text.replaceAll(/[^\p{L}\p{N} ]/gu, toEscape)

function toEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`
}
