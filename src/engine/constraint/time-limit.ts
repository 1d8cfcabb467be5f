/**
 * Limits the time that one answer's constraint takes from all others. Some small grammars compile
 * fast but cost a second at each token, since a text can be parsed in very many ways.
 */
import { InoriginError } from '../../error.ts'
import type { Matcher } from './types.ts'

/**
 * Time in milliseconds that an answer may spend at first, and that each accepted token adds. With a
 * vocabulary of 150,000 tokens in Node 20 on two busy cores, a token of any JSON took 5 ms. It took
 * 15 ms for an object of strings and an enum, 100 ms for strings of at most 200 characters, and
 * 1,200 ms or more for hostile patterns.
 */
const FIRST_ALLOWANCE_MS = 10_000
const TOKEN_ALLOWANCE_MS = 500

/**
 * Time in milliseconds that the first long call counts at most. It looks long if the computer slept
 * in the meantime.
 */
const FIRST_LONG_CALL_MS = FIRST_ALLOWANCE_MS / 2

/**
 * Returns the matcher with a limit on the total time of all its calls. Once it is exceeded, the
 * next call of `mask` rejects, and the next call of the others throws, with `constraint_too_slow`.
 */
export function limitTime(matcher: Matcher): Matcher {
  let left = FIRST_ALLOWANCE_MS
  let wasLong = false

  function count(start: number): void {
    const elapsed = performance.now() - start
    const isFirstLong = elapsed > FIRST_LONG_CALL_MS && !wasLong
    wasLong ||= isFirstLong
    left -= isFirstLong ? FIRST_LONG_CALL_MS : elapsed
  }

  function measure<Result>(work: () => Result): Result {
    if (left < 0) throw tooSlow()
    const start = performance.now()
    try {
      return work()
    } finally {
      count(start)
    }
  }

  return {
    async mask() {
      if (left < 0) throw tooSlow()
      const start = performance.now()
      const bits = await matcher.mask()
      count(start)
      return bits
    },
    forced: () => measure(() => matcher.forced()),
    canExtend: (token) => measure(() => matcher.canExtend(token)),
    accept(token) {
      const isAccepted = measure(() => matcher.accept(token))
      if (isAccepted) left += TOKEN_ALLOWANCE_MS
      return isAccepted
    },
    close: () => matcher.close(),
  }
}

function tooSlow(): InoriginError {
  const what = 'The schema, pattern or grammar takes too long at each token.'
  const todo = 'Use fewer counted repetitions inside each other, and parts that begin differently.'
  return new InoriginError('invalid_request', `${what} ${todo}`, { code: 'constraint_too_slow' })
}
