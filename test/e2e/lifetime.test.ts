/** The life of the service worker in Chromium. */
import { test } from 'vitest'
import { chromiumArgs, ensureChromium } from '../setup/chromium.ts'
import { checkLifetime } from '../support/lifetime.ts'

test('Chromium: streams longer than 40 s, then an idle worker', { tags: ['slow'] }, () => {
  const args = [...chromiumArgs(), '--headless', '--no-first-run']
  return checkLifetime(ensureChromium(), (profile, url) => [
    ...args,
    `--user-data-dir=${profile}`,
    url,
  ])
})
