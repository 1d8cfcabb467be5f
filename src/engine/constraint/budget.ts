/** Limits the time that compiling a constraint takes, since it blocks all other answers. */
import { InoriginError } from '../../error.ts'
import type { Grammar } from '../schema/expression.ts'
import type { Steps } from '../schema/steps.ts'
import { type Ebnf, toEbnf } from './ebnf.ts'

/** Maximum number of rules. A rule costs time, whatever the vocabulary. */
const MOST_RULES = 4000

/**
 * Limits of the estimated number of tries. Each token is tried in each place where its first byte
 * may come. A grammar below `QUICK` is compiled as it is, and one above `MOST` is rejected. With
 * 150,000 tokens on a busy machine with 2 slow cores, xgrammar took 0.3 to 0.8 s for enums and
 * optional properties of 11 to 22 million tries. It took 2 to 3.4 s for formats of 15 million.
 */
const QUICK = 6_000_000
const MOST = 25_000_000

/**
 * Factor of the cost of tries where many bytes may come, since tokens continue there. Sets of
 * nearly all characters took 2.6 to 3.8 s for 7 to 8 million tries. That is 10 to 20 times as long
 * as in places where one byte may come.
 */
const WIDE_WEIGHT = 10

/** Numbers of repetitions up to which each one gets a rule: in the fast and in the small form. */
const [MANY, FEW] = [64, 8] as const

/**
 * Returns a function that writes a grammar for this vocabulary. The function throws
 * `invalid_request` if the grammar would take too long to compile.
 */
export function createBudget(
  bytes: readonly (Uint8Array | null)[],
): (grammar: Grammar, exact: boolean, steps: Steps) => Ebnf {
  const tokens = new Uint32Array(256)
  for (const [first] of bytes.map((each) => each ?? [])) {
    if (first !== undefined) tokens[first] = (tokens[first] ?? 0) + 1
  }
  const weigh = (places: Uint32Array): number =>
    places.reduce((sum, count, byte) => sum + count * (tokens[byte] ?? 0), 0)
  const cost = ({ places }: Ebnf): number => weigh(places.narrow) + WIDE_WEIGHT * weigh(places.wide)

  return (grammar, exact, steps) => {
    const fits = (made: Ebnf, most: number): boolean =>
      made.rules <= MOST_RULES && cost(made) <= most
    const best = toEbnf(grammar, { exact, chained: MANY }, steps)
    if (fits(best, QUICK)) return best
    const small = toEbnf(grammar, { exact, chained: FEW }, steps)
    if (fits(small, MOST)) return small
    throw new InoriginError(
      'invalid_request',
      'The format or the tools take too long to compile for this model. Use fewer properties, ' +
        'simpler patterns and shorter lists.',
      { code: 'constraint_too_large' },
    )
  }
}
