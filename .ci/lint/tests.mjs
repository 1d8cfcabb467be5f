/** Rules for tests, as a plugin of oxlint. */
import { concurrentExpect } from './concurrent-expect.mjs'
import { noFixedWait } from './no-fixed-wait.mjs'
import { waitTimeout } from './wait-timeout.mjs'

export default {
  meta: { name: 'tests' },
  rules: {
    'concurrent-expect': concurrentExpect,
    'no-fixed-wait': noFixedWait,
    'wait-timeout': waitTimeout,
  },
}
