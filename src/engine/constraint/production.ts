/**
 * Makes rules of bytes as deterministic as possible. Where two alternatives begin alike, xgrammar
 * 0.1.27 sometimes merges states that it should keep apart, and accepts invalid texts.
 */
import { memoize } from '../../values/memoize.ts'
import type { StepBudget } from '../schema/step-budget.ts'
import type { Bytes } from './utf8.ts'

export type RuleItem = { rule: string }
export type Item = Bytes | RuleItem
/** Items of one alternative of a rule. */
export type Production = readonly Item[]
export type Productions = Map<string, readonly Production[]>

const isRule = (item: Item | undefined): item is RuleItem => item !== undefined && 'rule' in item

/** Number of added rules at which the work ends. A grammar with more rules is rejected anyway. */
const MAX_ADDED_RULES = 4000
/** Maximum number of alternatives that replace those of one rule. */
const MAX_ALTERNATIVES = 20_000

/** Number of bytes from which a place is wide: most tokens continue there for several bytes. */
const WIDE_BYTES = 20

/** Steps to compare, key and sort a tail. */
const TAIL_STEPS = 12

/** Set of bytes, with a bit for each. */
type Head = Uint32Array

const add = (head: Head, index: number, bits: number): void => {
  head[index] = (head[index] ?? 0) | bits
}

/**
 * Makes the rules deterministic, and adds rules if necessary. Rules in `unsplitRules` stay as they
 * are.
 */
export function determinize(
  rules: Productions,
  unsplitRules: ReadonlySet<string>,
  steps: StepBudget,
): void {
  const added = new Map<string, string>()
  const heads = new Map<string, Head>()
  const nullable = findNullable(rules, steps)
  const keyOf = createKeys()
  /** The rules before any change. The work ends only because no other rules are opened. */
  const originals = new Map(rules)
  const pending = [...rules].filter(([name]) => !unsplitRules.has(name))

  /** Returns the bytes that a text of the rule can begin with. */
  const headOf = (name: string): Head => {
    const cached = heads.get(name)
    if (cached) return cached
    const head: Head = new Uint32Array(8)
    heads.set(name, head)
    for (const production of originals.get(name) ?? []) addHead(head, production)
    return head
  }

  const addHead = (head: Head, production: Production): void => {
    steps.spend(1)
    for (const item of production) {
      if (!isRule(item)) {
        for (const byte of bytesOf(item)) add(head, byte >> 5, 1 << (byte & 31))
        return
      }
      headOf(item.rule).forEach((word, index) => add(head, index, word))
      if (!nullable.has(item.rule)) return
    }
  }

  const overlapping = (productions: readonly Production[]): boolean => {
    const seen: Head = new Uint32Array(8)
    return productions.some((production) => {
      const head: Head = new Uint32Array(8)
      addHead(head, production)
      const clash = head.some((word, index) => (word & (seen[index] ?? 0)) !== 0)
      head.forEach((word, index) => add(seen, index, word))
      return clash
    })
  }

  /** Replaces rules at the beginning by their alternatives, unless they are recursive. */
  const opened = (productions: readonly Production[]): Production[] => {
    const result = new Map<string, Production>()
    let left = MAX_ALTERNATIVES
    const open = (production: Production, inside: readonly string[]): void => {
      const [first, ...rest] = production
      const opens = isRule(first) && !inside.includes(first.rule) && !unsplitRules.has(first.rule)
      const bodies = opens ? originals.get(first.rule) : undefined
      left -= bodies?.length ?? 1
      steps.spend(3 + production.length)
      if (!opens || !bodies || left < 0) {
        result.set(keyOf(production), production)
        return
      }
      for (const each of bodies) open([...each, ...rest], [...inside, first.rule])
    }
    for (const production of productions) open(production, [])
    return [...result.values()]
  }

  const split = (productions: readonly Production[]): Production[] | null => {
    if (added.size > MAX_ADDED_RULES || !overlapping(productions)) return null
    const starts = opened(productions)
    /** Indexes of the starts that a byte begins. */
    const byFirstByte = new Map<number, number[]>()
    starts.forEach(([first], index) => {
      for (const byte of first && !isRule(first) ? bytesOf(first) : []) {
        const members = byFirstByte.get(byte) ?? []
        members.push(index)
        byFirstByte.set(byte, members)
      }
    })
    const groups = new Map<string, { bytes: number[]; members: number[] }>()
    for (const [byte, members] of byFirstByte) {
      const group = groups.get(members.join()) ?? { bytes: [], members }
      group.bytes.push(byte)
      groups.set(members.join(), group)
    }
    return [
      ...starts.filter(([first]) => first === undefined || isRule(first)),
      ...[...groups.values()].map(({ bytes, members }): Production => {
        const tails = members.map((index) => (starts[index] ?? []).slice(1))
        for (const tail of tails) steps.spend(TAIL_STEPS + tail.length)
        return [rangesOf(bytes), ...joined(tails)]
      }),
    ]
  }

  const isSame = (a: Item | undefined, b: Item | undefined): boolean =>
    a === b || (a !== undefined && b !== undefined && keyOf([a]) === keyOf([b]))

  /** Combines several tails into their common items and a rule for the rest. */
  const joined = (tails: readonly Production[]): Production => {
    const unique = distinct(tails, keyOf)
    const [only = [], ...others] = unique
    if (others.length === 0) return only
    let common = 0
    while (only[common] && others.every((tail) => isSame(tail[common], only[common]))) common += 1
    const rests = unique.map((tail) => tail.slice(common))
    const key = rests.map(keyOf).sort().join('|')
    const cached = added.get(key)
    const name = cached ?? `d${added.size}`
    if (cached === undefined) {
      added.set(key, name)
      rules.set(name, rests)
      pending.push([name, rests])
    }
    return [...only.slice(0, common), { rule: name }]
  }

  for (let next = pending.shift(); next; next = pending.shift()) {
    const [name, productions] = next
    const better = split(productions)
    if (better) rules.set(name, better)
  }
}

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
const bytesOf = memoize(
  (bytes: Bytes): readonly number[] =>
    bytes.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i)),
  new WeakMap(),
)

function rangesOf(bytes: readonly number[]): Bytes {
  const ranges: [number, number][] = []
  for (const byte of [...bytes].sort((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last?.[1] === byte - 1) last[1] = byte
    else ranges.push([byte, byte])
  }
  return ranges
}

const isNullable = (production: Production, nullable: ReadonlySet<string>): boolean =>
  production.every((item) => isRule(item) && nullable.has(item.rule))

function findNullable(rules: Productions, steps: StepBudget): Set<string> {
  const nullable = new Set<string>()
  for (let before = -1; before < nullable.size;) {
    before = nullable.size
    for (const [name, productions] of rules) {
      steps.spend(1 + productions.length)
      if (productions.some((each) => isNullable(each, nullable))) nullable.add(name)
    }
  }
  return nullable
}

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
