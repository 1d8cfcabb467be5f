/** Escapes characters of JSON strings. */
import { memoize } from '../../values/memoize.ts'
import { type Characters, characters, difference, intersection, one } from './characters.ts'
import { choice, type Expression, text } from './expression.ts'

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

/**
 * Escapes a character of a JSON string. The form is unique, so that equal strings are equal texts.
 */
export function escaped(character: string): string {
  const code = character.charCodeAt(0)
  return SHORT[character] ?? (code < 0x20 ? `\\u${code.toString(16).padStart(4, '0')}` : character)
}

const ESCAPED: Characters = characters([[0, 0x1f], ...one('"'), ...one('\\')])

/** Returns one escaped character of the set. The same set gives the same expression. */
export const inString = memoize(writeSet, new WeakMap())

function writeSet(set: Characters): Expression {
  const plain = difference(set, ESCAPED)
  const others: Expression[] = []
  for (const [first, last] of intersection(set, ESCAPED)) {
    for (let code = first; code <= last; code++) {
      others.push(text(escaped(String.fromCharCode(code))))
    }
  }
  return choice(...(plain.length > 0 ? [{ type: 'set', set: plain } as const] : []), ...others)
}
