/** The life of the service worker in Firefox, which stops it earlier than others, and isolation. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findFirefox } from '../setup/firefox.ts'
import { APP, appPage, reportingWorker } from '../support/isolation.ts'
import { checkLifetime, launch } from '../support/lifetime.ts'
import { serveStatic } from '../support/static.ts'

const firefox = findFirefox()

function argsFor(profile: string, url: string): string[] {
  const quiet = 'user_pref("browser.shell.checkDefaultBrowser", false);\n'
  writeFileSync(join(profile, 'user.js'), quiet)
  return ['--headless', '--no-remote', '--profile', profile, url]
}

// `npm run test:firefox` installs one first, and fails where it cannot.
test.skipIf(!firefox)(
  'Firefox: streams longer than 40 s, then an idle worker',
  { tags: ['slow', 'firefox'] },
  () => checkLifetime(firefox ?? '', argsFor),
)

/** Reports how the page is after `serve()`, and after a model has loaded. */
const REPORT = `<script type="module">
  const report = (what) => fetch('/report', { method: 'POST', body: what })
  while (!globalThis.server) await new Promise((resolve) => setTimeout(resolve, 100))
  await report('isolated: ' + crossOriginIsolated)
  await server.models.load('@inorigin/guide').catch((error) => report(String(error)))
  await report('loaded')
</script>`

test.skipIf(!firefox)(
  'Firefox: a page is isolated after one reload, and WASM uses threads',
  { tags: ['slow', 'firefox'] },
  async () => {
    const server = await serveStatic({
      folders: { '/': 'dist-demo' },
      pages: { [APP]: appPage({ isolate: true }) + REPORT, ...reportingWorker() },
    })
    const closeBrowser = launch(firefox ?? '', argsFor, server.url + APP)
    try {
      await expect.poll(() => server.reports, { timeout: 200_000 }).toContain('loaded')
      expect(server.reports[0]).toBe('isolated: true')
      expect(server.reports).toContain('thread')
      expect(server.requests.filter((request) => request === `GET ${APP}`)).toHaveLength(2)
    } finally {
      await closeBrowser()
      await server.close()
    }
  },
)
