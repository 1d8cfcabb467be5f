/** Patterns of schemas, which stay those of ECMAScript until they are written for the engine. */
import { NOTHING } from '../pattern/node.ts'
import { PatternError, toEnginePattern, writeWhole } from '../pattern.ts'
import type { PlainKeywords } from './plain.ts'
import { type RewrittenString, rewriteString } from './strings.ts'

/** Pattern of the engine that no text matches. */
export const NO_TEXT = writeWhole(NOTHING)

/** Returns what the engine keeps of the keywords of strings. */
export function rewriteTexts({
  pattern,
  format,
  minLength,
  maxLength,
}: PlainKeywords): RewrittenString {
  const patterns = pattern === undefined ? [] : [pattern]
  return rewriteString({ patterns, format, minLength, maxLength })
}

/** Returns `true` if the engine can match exactly the names that the pattern does. */
export function isPattern(source: string): boolean {
  try {
    toEnginePattern(source)
    return true
  } catch (error) {
    if (error instanceof PatternError) return false
    throw error
  }
}

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
