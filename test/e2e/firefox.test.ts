/** Firefox: the life of the service worker, which it stops early, isolation, and starts offline. */
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

/** Asks, waits until all is kept and the server fails, starts another host and asks again. */
const START_AGAIN = `<!doctype html><meta charset="utf-8"><title>app</title>
<script type="module">
  import { serve } from '/inorigin/index.js'
  const report = (what) => fetch('/report', { method: 'POST', body: what })
  const until = async (isDone) => {
    while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 100))
  }
  async function ask() {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: '@inorigin/guide',
        messages: [{ role: 'user', content: 'What is inorigin?' }],
        max_tokens: 8,
        temperature: 0,
      }),
    })
    await report(response.status + ' ' + JSON.parse(await response.text()).choices?.[0].message.content)
  }
  const first = await serve({ device: 'wasm' })
  await ask()
  const complete = '/inorigin/files.json?inorigin=complete'
  await until(() => caches.match(complete))
  await report('kept')
  await until(async () => (await fetch('/other')).status === 502)
  first.close()
  await serve({ device: 'wasm' })
  await ask()
</script>`

test.skipIf(!firefox)(
  'Firefox: a host starts and answers while the server fails',
  { tags: ['slow', 'firefox'] },
  async () => {
    const server = await serveStatic({
      folders: { '/': 'dist-demo' },
      pages: { '/again.html': START_AGAIN },
    })
    const closeBrowser = launch(firefox ?? '', argsFor, `${server.url}/again.html`)
    try {
      await expect.poll(() => server.reports, { timeout: 200_000 }).toHaveLength(2)
      const [answer, kept] = server.reports
      expect([answer?.slice(0, 4), kept]).toEqual(['200 ', 'kept'])
      server.answerAll({ status: 502, html: '<!doctype html>' })
      await expect.poll(() => server.reports, { timeout: 200_000 }).toHaveLength(3)
      expect(server.reports[2]).toBe(answer)
    } finally {
      await closeBrowser()
      await server.close()
    }
  },
)
