/** Limits the time that compiling a constraint takes, since it blocks all other answers. */
import { InoriginError } from '../../error.ts'
import type { Grammar } from '../schema/expression.ts'
import type { StepBudget } from '../schema/step-budget.ts'
import { type Ebnf, toEbnf } from './ebnf.ts'

/** Maximum number of rules. A rule costs time, whatever the vocabulary. */
const MAX_RULES = 4000

/**
 * Limits of the estimated number of tries. Each token is tried in each place where its first byte
 * may come. A grammar below `MAX_FAST_TRIES` is compiled as it is, and one above `MAX_TRIES` is
 * rejected. With 150,000 tokens on a busy machine with 2 slow cores, xgrammar took 0.3 to 0.8 s for
 * enums and optional properties of 11 to 22 million tries. It took 2 to 3.4 s for formats of 15
 * million.
 */
const MAX_FAST_TRIES = 6_000_000
const MAX_TRIES = 25_000_000

/**
 * Factor of the cost of tries where many bytes may come, since tokens continue there. Sets of
 * nearly all characters took 2.6 to 3.8 s for 7 to 8 million tries. That is 10 to 20 times as long
 * as in places where one byte may come.
 */
const WIDE_WEIGHT = 10

/** Numbers of repetitions up to which each one gets a rule: in the fast and in the small form. */
const [FAST_CHAIN_LENGTH, SMALL_CHAIN_LENGTH] = [64, 8] as const

/**
 * Returns a function that writes a grammar for this vocabulary. The function throws
 * `invalid_request` if the grammar would take too long to compile.
 */
export function createGrammarWriter(
  bytes: readonly (Uint8Array | null)[],
): (grammar: Grammar, exact: boolean, steps: StepBudget) => Ebnf {
  const tokens = new Uint32Array(256)
  for (const [first] of bytes.map((each) => each ?? [])) {
    if (first !== undefined) tokens[first] = (tokens[first] ?? 0) + 1
  }
  const weigh = (positions: Uint32Array): number =>
    positions.reduce((sum, count, byte) => sum + count * (tokens[byte] ?? 0), 0)
  const cost = ({ positions }: Ebnf): number =>
    weigh(positions.narrow) + WIDE_WEIGHT * weigh(positions.wide)

  return (grammar, exact, steps) => {
    const fits = (ebnf: Ebnf, maxTries: number): boolean =>
      ebnf.rules <= MAX_RULES && cost(ebnf) <= maxTries
    const best = toEbnf(grammar, { exact, maxChainLength: FAST_CHAIN_LENGTH }, steps)
    if (fits(best, MAX_FAST_TRIES)) return best
    const small = toEbnf(grammar, { exact, maxChainLength: SMALL_CHAIN_LENGTH }, steps)
    if (fits(small, MAX_TRIES)) return small
    throw new InoriginError(
      'invalid_request',
      'The format or the tools take too long to compile for this model. Use fewer properties, ' +
        'simpler patterns and shorter lists.',
      { code: 'constraint_too_large' },
    )
  }
}
