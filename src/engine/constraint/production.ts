/** Defines the rules of bytes that a grammar is written in. */
import { memoize } from '../../values/memoize.ts'
import type { Bytes } from './utf8.ts'

export type RuleItem = { rule: string }
export type Item = Bytes | RuleItem
/** Items of one alternative of a rule. */
export type Production = readonly Item[]
export type Productions = Map<string, readonly Production[]>

export const isRule = (item: Item | undefined): item is RuleItem =>
  item !== undefined && 'rule' in item

/** Number of bytes from which a place is wide: most tokens continue there for several bytes. */
const WIDE_BYTES = 20

/** Returns a function that makes short keys of productions. Equal productions have equal keys. */
export function createKeys(): (production: Production) => string {
  const cached = new WeakMap<Item, string>()
  const numbers = new Map<string, string>()
  const keyOfItem = (item: Item): string => {
    const made = cached.get(item)
    if (made !== undefined) return made
    const text = JSON.stringify(item)
    const key = numbers.get(text) ?? numbers.size.toString(36)
    numbers.set(text, key)
    cached.set(item, key)
    return key
  }
  return (production) => production.map(keyOfItem).join(' ')
}

/** Returns the productions without those that are equal to another one. */
export const distinct = (
  productions: readonly Production[],
  keyOf: (production: Production) => string,
): readonly Production[] => [...new Map(productions.map((each) => [keyOf(each), each])).values()]

/** Lists the single bytes of a set. */
export const bytesOf = memoize(
  (bytes: Bytes): readonly number[] =>
    bytes.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i)),
  new WeakMap(),
)

/** Counts the places of the rules where each byte may come, by whether few or many bytes may. */
export function countPositions(rules: Productions): { narrow: Uint32Array; wide: Uint32Array } {
  const [narrow, wide] = [new Uint32Array(256), new Uint32Array(256)]
  for (const item of [...rules.values()].flat(2)) {
    if (isRule(item)) continue
    const bytes = bytesOf(item)
    const positions = bytes.length < WIDE_BYTES ? narrow : wide
    for (const byte of bytes) positions[byte] = (positions[byte] ?? 0) + 1
  }
  return { narrow, wide }
}

/** Writes a rule with these alternatives in EBNF. */
export const writeRule = (name: string, productions: readonly Production[]): string =>
  `${name} ::= ${productions.map(writeProduction).join(' | ') || '""'}`

function writeProduction(production: Production): string {
  const parts: string[] = []
  let ascii = ''
  const flush = (): void => {
    if (ascii !== '') parts.push(quote(ascii))
    ascii = ''
  }
  for (const item of production) {
    const byte = isRule(item) ? null : singleOf(item)
    if (byte !== null && byte < 0x80) ascii += String.fromCharCode(byte)
    else {
      flush()
      parts.push(isRule(item) ? item.rule : writeBytes(item))
    }
  }
  flush()
  return parts.join(' ') || '""'
}

function singleOf([only, ...others]: Bytes): number | null {
  return only && others.length === 0 && only[0] === only[1] ? only[0] : null
}

/** Writes a set of bytes. A single byte is written twice, or it would be taken for a character. */
function writeBytes(bytes: Bytes): string {
  const hex = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`
  const all = singleOf(bytes) === null ? bytes : [...bytes, ...bytes]
  return `[${all.map(([first, last]) => `${hex(first)}-${hex(last)}`).join('')}]`
}

/** Writes a text in EBNF. */
export const quote = (text: string): string =>
  `"${text.replaceAll(/["\\\p{Cc}]/gu, (character) =>
    character === '"' || character === '\\'
      ? `\\${character}`
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )}"`
