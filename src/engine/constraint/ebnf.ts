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
  type StringOf,
} from '../schema/expression.ts'
import type { StepBudget } from '../schema/step-budget.ts'
import {
  countPositions,
  createKeys,
  determinize,
  type Item,
  type Production,
  type Productions,
  quote,
  writeRule,
} from './production.ts'
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

export function toEbnf(
  { root, rules }: Grammar,
  { exact, maxChainLength }: EbnfOptions,
  steps: StepBudget,
): Ebnf {
  const productions: Productions = new Map()
  const dispatches: string[] = []
  const unsplitRules = new Set<string>()
  const pending: (readonly [id: string, body: Expression])[] = []
  const names = new Map<string, string>()
  const bodies = new Map<string, Item>()
  const keyOf = createKeys()
  let count = 0
  let hasLongLimits = false
  const fresh = (): string => `r${count++}`

  const keyOfAll = (all: readonly Production[]): string => {
    for (const each of all) steps.spend(1 + each.length)
    return all.map(keyOf).join('|')
  }

  /** Returns a rule for these alternatives, which may refer to it. Equal alternatives share one. */
  const define = (alternatives: (self: Item) => readonly Production[]): Item => {
    const key = keyOfAll(alternatives({ rule: '' }))
    const cached = bodies.get(key)
    if (cached) return cached
    const name = fresh()
    const item = { rule: name }
    bodies.set(key, item)
    productions.set(name, alternatives(item))
    return item
  }

  const alternatives = memoize((expression: Expression): readonly Production[] => {
    steps.spend(2)
    if (expression.type === 'set') {
      steps.spend(expression.set.length * RANGE_STEPS)
      return utf8(expression.set)
    }
    if (expression.type !== 'choice') return [write(expression)]
    const all = expression.parts.flatMap(alternatives)
    return [...new Map(all.map((each) => [keyOf(each), each])).values()]
  })

  const write = (expression: Expression): Production => {
    switch (expression.type) {
      case 'text':
        steps.spend(expression.text.length)
        return bytesOf(expression.text)
      case 'set':
      case 'choice': {
        const all = alternatives(expression)
        const [only] = all
        return all.length === 1 && only ? only : [define(() => all)]
      }
      case 'sequence':
        return expression.parts.flatMap(write)
      case 'repeat': {
        const { part, min, max } = nonEmptyRepeat(expression.part, expression.min, expression.max)
        return times(part, min, max)
      }
      case 'rule':
        return [named(expression.name)]
      case 'string':
        return quoted(expression)
      case 'dispatch':
        return [dispatch(expression)]
    }
  }

  const named = (name: string): Item => {
    const cached = names.get(name)
    if (cached !== undefined) return { rule: cached }
    const id = fresh()
    names.set(name, id)
    pending.push([id, rules.get(name) ?? NOTHING])
    return { rule: id }
  }

  /** Repeats `each` `length` times before `rest`. `early` may take the place of the remainder. */
  const chain = (
    each: readonly Production[],
    length: number,
    rest: Production,
    early: Production | null,
  ): Production => {
    let tail = rest
    for (let i = 0; i < length; i++) {
      const next = tail
      tail = [define(() => [...(early ? [early] : []), ...each.map((one) => [...one, ...next])])]
    }
    return tail
  }

  const times = (part: Expression, min: number, max: number): Production => {
    const each = alternatives(part)
    if (max === Infinity) {
      const star = define((self) => [[], ...each.map((one) => [...one, self])])
      return min > maxChainLength ? [...exactly(each, min), star] : chain(each, min, [star], null)
    }
    if (max <= maxChainLength) return chain(each, min, chain(each, max - min, [], []), null)
    return [...exactly(each, min), ...upTo(each, max - min)]
  }

  /** Like {@link define}, for rules that stay whole: splitting them adds a rule for each number. */
  const defineWhole = (all: readonly Production[]): Item => {
    const item = define(() => all)
    unsplitRules.add(ruleOf(item))
    return item
  }

  const power = (each: readonly Production[], exponent: number): Item => {
    let item = define(() => each)
    for (let i = 0; i < exponent; i++) item = defineWhole([[item, item]])
    return item
  }

  const exactly = (each: readonly Production[], length: number): Production => {
    const exponents = [...Array(32).keys()].filter((i) => Math.floor(length / 2 ** i) % 2 === 1)
    return exponents.map((exponent) => power(each, exponent))
  }

  /** Writes fewer than `2 ** exponent` repetitions: half of that or none, then fewer than half. */
  const below = (each: readonly Production[], exponent: number): Production => {
    if (exponent === 0) return []
    const rest = below(each, exponent - 1)
    return [defineWhole([rest, [power(each, exponent - 1), ...rest]])]
  }

  const upTo = (each: readonly Production[], length: number): Production => {
    const exponent = Math.floor(Math.log2(length + 1))
    const left = length - 2 ** exponent
    const few = below(each, exponent)
    return left < 0 ? few : [defineWhole([few, [power(each, exponent), ...upTo(each, left)]])]
  }

  /**
   * Writes a JSON string. Its rules include the closing quote, so that most tokens are precomputed.
   */
  const quoted = ({ set, min, max }: StringOf): Production => {
    hasLongLimits ||= min > MAX_COUNTED_LENGTH || (max > MAX_COUNTED_LENGTH && max < Infinity)
    const low = !exact && min > MAX_COUNTED_LENGTH ? 0 : min
    const high = !exact && max > MAX_COUNTED_LENGTH ? Infinity : max
    const each = alternatives(inString(set))
    const mark = bytesOf('"')
    if (high <= MAX_COUNTED_LENGTH) {
      return [...mark, ...chain(each, low, chain(each, high - low, mark, mark), null)]
    }
    if (high === Infinity) {
      const rest = define((self) => [mark, ...each.map((one) => [...one, self])])
      const first =
        low > MAX_COUNTED_LENGTH ? [...exactly(each, low), rest] : chain(each, low, [rest], null)
      return [...mark, ...first]
    }
    return [...mark, ...exactly(each, low), ...upTo(each, high - low), ...mark]
  }

  const dispatch = ({ triggers, stop, single }: Dispatch): Item => {
    const name = fresh()
    const pairs = triggers.map(({ text, rule }) => `(${quote(text)}, ${ruleOf(named(rule))}), `)
    const ends = stop === undefined
    const stops = ends ? '' : quote(stop)
    const rest = `stop_eos=${ends}, stop_str=(${stops}), loop_after_dispatch=${!single}`
    dispatches.push(`${name} ::= TagDispatch(${pairs.join('')}${rest})`)
    return { rule: name }
  }

  productions.set('root', alternatives(root))
  for (let next = pending.pop(); next; next = pending.pop()) {
    const [id, body] = next
    productions.set(id, alternatives(body))
  }
  determinize(productions, unsplitRules, steps)
  const lines = [...productions].map(([name, each]) => writeRule(name, each))
  return {
    source: [...dispatches, ...lines].join('\n'),
    rules: dispatches.length + lines.length,
    hasLongLimits,
    positions: countPositions(productions),
  }
}

const ruleOf = (item: Item): string => ('rule' in item ? item.rule : '')

/** Items of single bytes, shared so that each is assigned a key only once. */
const BYTES: readonly Item[] = Array.from({ length: 256 }, (_, byte) => [[byte, byte]])

const bytesOf = (text: string): Production =>
  Array.from(new TextEncoder().encode(text), (byte) => BYTES[byte] ?? [])
