/** Keeps the time that compiling takes, during which nothing else is answered, within limits. */
import { InoriginError } from '../../error.ts'
import type { Grammar } from '../schema/expression.ts'
import type { Steps } from '../schema/steps.ts'
import { type Ebnf, toEbnf } from './ebnf.ts'

/** Rules cost time whatever the vocabulary. */
const MOST_RULES = 4000

/**
 * Each token is tried in each place where its first byte may come. A grammar below the first limit is
 * compiled as it is; one above the second is refused. With 150,000 tokens, on a busy machine with 2
 * slow cores, xgrammar took 0.3 to 0.8 s for enums and optional properties of 11 to 22 million, and 2 to
 * 3.4 s for formats of 15 million.
 */
const QUICK = 6_000_000
const MOST = 25_000_000

/**
 * Tries where many bytes may come cost more, since the tokens go on: sets of nearly all characters took
 * 2.6 to 3.8 s for 7 to 8 million tries, which is 10 to 20 times as long as where one byte may come.
 */
const WIDE_WEIGHT = 10

/** Repetitions that are counted rule by rule: many, or as few as it takes. */
const [MANY, FEW] = [64, 8] as const

/** Writes a grammar for a vocabulary; throws `invalid_request` where it would take too long. */
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
      'This format, or these tools, take too long to prepare for this model. Use fewer properties, or ' +
        'plainer patterns and shorter lists.',
      { code: 'constraint_too_large' },
    )
  }
}
