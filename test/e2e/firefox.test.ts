/** The life of the service worker in Firefox, which stops it earlier than others. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import { findFirefox } from '../setup/firefox.ts'
import { checkLifetime } from '../support/lifetime.ts'

const firefox = findFirefox()

// `npm run test:firefox` installs one first, and fails where it cannot.
test.skipIf(!firefox)(
  'Firefox: streams longer than 40 s, then an idle worker',
  { tags: ['slow', 'firefox'] },
  () =>
    checkLifetime(firefox ?? '', (profile, url) => {
      const quiet = 'user_pref("browser.shell.checkDefaultBrowser", false);\n'
      writeFileSync(join(profile, 'user.js'), quiet)
      return ['--headless', '--no-remote', '--profile', profile, url]
    }),
)
