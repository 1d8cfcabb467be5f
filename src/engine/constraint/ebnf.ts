/**
 * Writes a grammar in xgrammar's EBNF, in the few forms that version 0.1.27 handles correctly.
 * xgrammar takes ranges of characters for ranges of bytes, so characters are written byte by byte.
 * Deep brackets overflow its stack, so the output has none.
 */
import { memoize } from '../../values/memoize.ts'
import { inString } from '../schema/escape.ts'
import { nonEmptyRepeat } from '../schema/empty.ts'
import {
  type Dispatch,
  type Expression,
  type Grammar,
  NOTHING,
  type Rules,
  type StringOf,
} from '../schema/expression.ts'
import type { StepBudget } from '../schema/step-budget.ts'
import { determinize } from './determinize.ts'
import {
  countPositions,
  distinct,
  type Item,
  type Production,
  quote,
  type RuleItem,
  writeRule,
} from './production.ts'
import { writeRepetition } from './repetition.ts'
import { createRuleTable, type RuleTable } from './rule-table.ts'
import { utf8 } from './utf8.ts'

/**
 * Highest string length that all grammars count. For longer strings, the states cost tens of
 * milliseconds for each length.
 */
export const MAX_COUNTED_LENGTH = 8

interface EbnfOptions {
  /** `false` if strings with limits above {@link MAX_COUNTED_LENGTH} may have any length. */
  exact: boolean
  /**
   * Number of repetitions up to which each one gets a rule, which takes long to compile. Higher
   * numbers are composed from powers of two, which takes long for each token.
   */
  maxChainLength: number
}

export interface Ebnf {
  source: string
  rules: number
  /**
   * `true` if strings have limits above {@link MAX_COUNTED_LENGTH}, which only exact writing
   * enforces.
   */
  hasLongLimits: boolean
  /** Numbers of places in which a text may continue with each byte. */
  positions: ReturnType<typeof countPositions>
}

/** Steps to convert a range of characters, which becomes several sequences of bytes. */
const RANGE_STEPS = 20

/** State of one conversion. */
interface Writer {
  /** Rules of the grammar. */
  readonly rules: Rules
  readonly options: EbnfOptions
  readonly steps: StepBudget
  /** Rules that are written. */
  readonly table: RuleTable
  /** Returns the alternatives of an expression, which are written once. */
  readonly alternatives: (expression: Expression) => readonly Production[]
  /** Written rules by the names that they have in the grammar. */
  readonly references: Map<string, RuleItem>
  /** Rules that are referred to but have no alternatives yet. */
  readonly pending: (readonly [name: string, body: Expression])[]
  readonly dispatches: string[]
  hasLongLimits: boolean
}

export function toEbnf({ root, rules }: Grammar, options: EbnfOptions, steps: StepBudget): Ebnf {
  const writer: Writer = {
    rules,
    options,
    steps,
    table: createRuleTable(steps),
    alternatives: memoize((expression) => writeAlternatives(writer, expression)),
    references: new Map(),
    pending: [],
    dispatches: [],
    hasLongLimits: false,
  }
  const { pending, dispatches } = writer
  const { productions, unsplitRules } = writer.table
  productions.set('root', writer.alternatives(root))
  for (let next = pending.pop(); next; next = pending.pop()) {
    const [name, body] = next
    productions.set(name, writer.alternatives(body))
  }
  determinize(productions, unsplitRules, steps)
  const lines = [...productions].map(([name, each]) => writeRule(name, each))
  return {
    source: [...dispatches, ...lines].join('\n'),
    rules: dispatches.length + lines.length,
    hasLongLimits: writer.hasLongLimits,
    positions: countPositions(productions),
  }
}

function writeAlternatives(writer: Writer, expression: Expression): readonly Production[] {
  const { steps, table } = writer
  steps.spend(2)
  if (expression.type === 'set') {
    steps.spend(expression.set.length * RANGE_STEPS)
    return utf8(expression.set)
  }
  if (expression.type !== 'choice') return [write(writer, expression)]
  return distinct(expression.parts.flatMap(writer.alternatives), table.keyOf)
}

function write(writer: Writer, expression: Expression): Production {
  const { alternatives, options, steps, table } = writer
  switch (expression.type) {
    case 'text':
      steps.spend(expression.text.length)
      return bytesOf(expression.text)
    case 'set':
    case 'choice': {
      const all = alternatives(expression)
      const [only] = all
      return all.length === 1 && only ? only : [table.define(() => all)]
    }
    case 'sequence':
      return expression.parts.flatMap((part) => write(writer, part))
    case 'repeat': {
      const { part, ...counts } = nonEmptyRepeat(expression.part, expression.min, expression.max)
      const { maxChainLength } = options
      const each = alternatives(part)
      return writeRepetition(table, { each, ...counts, end: [], maxChainLength })
    }
    case 'rule':
      return [refer(writer, expression.name)]
    case 'string':
      return writeString(writer, expression)
    case 'dispatch':
      return [writeDispatch(writer, expression)]
  }
}

/** Returns a rule of the grammar, which is written later. */
function refer({ rules, table, references, pending }: Writer, name: string): RuleItem {
  const cached = references.get(name)
  if (cached) return cached
  const item = { rule: table.createName() }
  references.set(name, item)
  pending.push([item.rule, rules.get(name) ?? NOTHING])
  return item
}

/** Writes a JSON string. Its rules include the closing quote, so that most tokens are precomputed. */
function writeString(writer: Writer, { set, min, max }: StringOf): Production {
  const isLong = (length: number): boolean => length > MAX_COUNTED_LENGTH
  const { exact } = writer.options
  writer.hasLongLimits ||= isLong(min) || (isLong(max) && max < Infinity)
  const repetition = writeRepetition(writer.table, {
    each: writer.alternatives(inString(set)),
    min: !exact && isLong(min) ? 0 : min,
    max: !exact && isLong(max) ? Infinity : max,
    end: QUOTE,
    maxChainLength: MAX_COUNTED_LENGTH,
  })
  return [...QUOTE, ...repetition]
}

function writeDispatch(writer: Writer, { triggers, stop, single }: Dispatch): Item {
  const rule = writer.table.createName()
  const pairs = triggers.map(
    ({ text, rule: name }) => `(${quote(text)}, ${refer(writer, name).rule}), `,
  )
  const ends = stop === undefined
  const stops = ends ? '' : quote(stop)
  const rest = `stop_eos=${ends}, stop_str=(${stops}), loop_after_dispatch=${!single}`
  writer.dispatches.push(`${rule} ::= TagDispatch(${pairs.join('')}${rest})`)
  return { rule }
}

/** Items of single bytes, shared so that each is assigned a key only once. */
const BYTES: readonly Item[] = Array.from({ length: 256 }, (_, byte) => [[byte, byte]])

const bytesOf = (text: string): Production =>
  Array.from(new TextEncoder().encode(text), (byte) => BYTES[byte] ?? [])

const QUOTE = bytesOf('"')
