/** Writes repetitions as rules: one for each repetition, or composed from powers of two. */
import type { Production, RuleItem } from './production.ts'
import type { RuleTable } from './rule-table.ts'

export interface Repetition {
  /** Alternatives of the part that is repeated. */
  each: readonly Production[]
  min: number
  max: number
  /** Items after the last repetition. */
  end: Production
  /** Number of repetitions up to which each one gets a rule. */
  maxChainLength: number
}

export function writeRepetition(
  table: RuleTable,
  { each, min, max, end, maxChainLength }: Repetition,
): Production {
  if (max === Infinity) {
    const star = table.define((self) => [end, ...each.map((one) => [...one, self])])
    if (min > maxChainLength) return [...exactly(table, each, min), star]
    return chain(table, each, min, [star], [])
  }
  if (max <= maxChainLength) {
    return chain(table, each, min, chain(table, each, max - min, end, [end]), [])
  }
  return [...exactly(table, each, min), ...upTo(table, each, max - min), ...end]
}

/** Repeats `each` `length` times before `rest`. `early` may take the place of the remainder. */
function chain(
  table: RuleTable,
  each: readonly Production[],
  length: number,
  rest: Production,
  early: readonly Production[],
): Production {
  let tail = rest
  for (let i = 0; i < length; i++) {
    const next = tail
    tail = [table.define(() => [...early, ...each.map((one) => [...one, ...next])])]
  }
  return tail
}

/** Writes `2 ** exponent` repetitions. */
function power(table: RuleTable, each: readonly Production[], exponent: number): RuleItem {
  let item = table.define(() => each)
  for (let i = 0; i < exponent; i++) item = table.defineWhole([[item, item]])
  return item
}

function exactly(table: RuleTable, each: readonly Production[], length: number): Production {
  const exponents = [...Array(32).keys()].filter((i) => Math.floor(length / 2 ** i) % 2 === 1)
  return exponents.map((exponent) => power(table, each, exponent))
}

/** Writes fewer than `2 ** exponent` repetitions: half of that or none, then fewer than half. */
function below(table: RuleTable, each: readonly Production[], exponent: number): Production {
  if (exponent === 0) return []
  const rest = below(table, each, exponent - 1)
  return [table.defineWhole([rest, [power(table, each, exponent - 1), ...rest]])]
}

function upTo(table: RuleTable, each: readonly Production[], length: number): Production {
  const exponent = Math.floor(Math.log2(length + 1))
  const left = length - 2 ** exponent
  const few = below(table, each, exponent)
  if (left < 0) return few
  return [table.defineWhole([few, [power(table, each, exponent), ...upTo(table, each, left)]])]
}
