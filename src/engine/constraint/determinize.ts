/**
 * Makes rules of bytes as deterministic as possible. Where two alternatives begin alike, xgrammar
 * 0.1.27 sometimes merges states that it should keep apart, and accepts invalid texts.
 */
import type { StepBudget } from '../schema/step-budget.ts'
import { createOverlapCheck } from './overlap.ts'
import {
  bytesOf,
  createKeys,
  distinct,
  isRule,
  type Item,
  type Production,
  type Productions,
} from './production.ts'
import type { Bytes } from './utf8.ts'

/** Number of added rules at which the work ends. A grammar with more rules is rejected anyway. */
const MAX_ADDED_RULES = 4000
/** Maximum number of alternatives that replace those of one rule. */
const MAX_ALTERNATIVES = 20_000

/** Steps to compare, key and sort a tail. */
const TAIL_STEPS = 12

/** State of the work on one grammar. */
interface Work {
  readonly rules: Productions
  /** Rules before any change. The work ends only because no other rules are opened. */
  readonly originals: Productions
  readonly unsplitRules: ReadonlySet<string>
  readonly steps: StepBudget
  readonly keyOf: (production: Production) => string
  /** Returns `true` if two of the productions can begin with the same byte. */
  readonly overlap: (productions: readonly Production[]) => boolean
  /** Names of the added rules by the keys of their alternatives. */
  readonly added: Map<string, string>
  /** Rules that are to be split, in this order. */
  readonly pending: [name: string, productions: readonly Production[]][]
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
  const originals = new Map(rules)
  const work: Work = {
    rules,
    originals,
    unsplitRules,
    steps,
    keyOf: createKeys(),
    overlap: createOverlapCheck(originals, steps),
    added: new Map(),
    pending: [...rules].filter(([name]) => !unsplitRules.has(name)),
  }
  for (let next = work.pending.shift(); next; next = work.pending.shift()) {
    const [name, productions] = next
    if (work.added.size > MAX_ADDED_RULES) return
    if (work.overlap(productions)) rules.set(name, split(work, productions))
  }
}

/** Returns alternatives of which no two begin with the same byte, unless a rule is recursive. */
function split(work: Work, productions: readonly Production[]): Production[] {
  const starts = open(work, productions)
  return [
    ...starts.filter(([first]) => first === undefined || isRule(first)),
    ...groupByFirstByte(starts).map(({ bytes, members }): Production => {
      const tails = members.map((start) => start.slice(1))
      for (const tail of tails) work.steps.spend(TAIL_STEPS + tail.length)
      return [rangesOf(bytes), ...joinTails(work, tails)]
    }),
  ]
}

/** Replaces rules at the beginning by their alternatives, unless they are recursive. */
function open(
  { originals, unsplitRules, steps, keyOf }: Work,
  productions: readonly Production[],
): Production[] {
  const result = new Map<string, Production>()
  let left = MAX_ALTERNATIVES
  const add = (production: Production, inside: readonly string[]): void => {
    const [first, ...rest] = production
    const opens = isRule(first) && !inside.includes(first.rule) && !unsplitRules.has(first.rule)
    const bodies = opens ? originals.get(first.rule) : undefined
    left -= bodies?.length ?? 1
    steps.spend(3 + production.length)
    if (!opens || !bodies || left < 0) {
      result.set(keyOf(production), production)
      return
    }
    for (const each of bodies) add([...each, ...rest], [...inside, first.rule])
  }
  for (const production of productions) add(production, [])
  return [...result.values()]
}

interface Group {
  bytes: number[]
  /** Productions that each of the bytes begins. */
  members: readonly Production[]
}

/** Groups the bytes that begin the same productions. */
function groupByFirstByte(starts: readonly Production[]): Group[] {
  /** Indexes of the starts that a byte begins. */
  const byFirstByte = new Map<number, number[]>()
  starts.forEach(([first], index) => {
    for (const byte of first && !isRule(first) ? bytesOf(first) : []) {
      const members = byFirstByte.get(byte) ?? []
      members.push(index)
      byFirstByte.set(byte, members)
    }
  })
  const groups = new Map<string, Group>()
  for (const [byte, indexes] of byFirstByte) {
    const key = indexes.join()
    const group = groups.get(key) ?? { bytes: [], members: indexes.map((at) => starts[at] ?? []) }
    group.bytes.push(byte)
    groups.set(key, group)
  }
  return [...groups.values()]
}

/** Combines several tails into their common items and a rule for the rest. */
function joinTails(
  { rules, keyOf, added, pending }: Work,
  tails: readonly Production[],
): Production {
  const isSame = (a: Item | undefined, b: Item | undefined): boolean =>
    a === b || (a !== undefined && b !== undefined && keyOf([a]) === keyOf([b]))
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

function rangesOf(bytes: readonly number[]): Bytes {
  const ranges: [number, number][] = []
  for (const byte of [...bytes].sort((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last?.[1] === byte - 1) last[1] = byte
    else ranges.push([byte, byte])
  }
  return ranges
}
