/** Rules for tests, as a plugin of oxlint. */
import { asyncPredicate } from './async-predicate.mjs'
import { concurrentExpect } from './concurrent-expect.mjs'
import { noFixedWait } from './no-fixed-wait.mjs'
import { waitTimeout } from './wait-timeout.mjs'

export default {
  meta: { name: 'tests' },
  rules: {
    'async-predicate': asyncPredicate,
    'concurrent-expect': concurrentExpect,
    'no-fixed-wait': noFixedWait,
    'wait-timeout': waitTimeout,
  },
}
