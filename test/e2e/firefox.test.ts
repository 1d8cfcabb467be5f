/**
 * Firefox: the life of the service worker, which it stops earlier than others, isolation, and the
 * benchmark page.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { BenchResult } from '../../demo/bench/result.ts'
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

/**
 * Starts a short benchmark on WASM as soon as the page offers it. Reports each phase of it, and then its
 * JSON or its error.
 */
const DRIVE = `
  const find = (id) => document.getElementById(id)
  const report = (body) => fetch('/report', { method: 'POST', body })
  const watch = (onChange) => {
    const observer = new MutationObserver(() => onChange() && observer.disconnect())
    const all = { subtree: true, attributes: true, childList: true, characterData: true }
    observer.observe(document, all)
    onChange()
  }
  await new Promise((resolve) => watch(() => !find('start').disabled && (resolve(), true)))
  find('device').value = 'wasm'
  find('effort').value = 'short'
  find('start').click()
  let phase = ''
  watch(() => {
    if (find('phase').textContent !== phase) report((phase = find('phase').textContent))
    if (!find('problem').hidden) return report(find('problem').textContent)
    if (!find('report').hidden) return report(find('json').textContent)
  })
`

/** Milliseconds for the benchmark, which takes about 20 s on an idle machine. */
const BENCHMARK_TIMEOUT_MS = 280_000

test.skipIf(!firefox)(
  'Firefox: the benchmark page runs to its end',
  { tags: ['slow', 'firefox'] },
  async () => {
    const page = readFileSync('dist-demo/bench.html', 'utf8')
    const script = '<script type="module" src="./drive.js"></script></body>'
    const server = await serveStatic({
      folders: { '/': 'dist-demo' },
      pages: { '/bench.html': page.replace('</body>', script), '/drive.js': DRIVE },
    })
    const closeBrowser = launch(firefox ?? '', argsFor, `${server.url}/bench.html`)
    try {
      const isOver = () => /^(?:\{|The benchmark failed)/.test(server.reports.at(-1) ?? '')
      await expect
        .poll(isOver, { timeout: BENCHMARK_TIMEOUT_MS })
        .toBe(true)
        .catch(() => expect.fail(`The benchmark stopped at: ${server.reports.join('; ')}`))
      expect(server.reports.at(-1)).toMatch(/^\{/)
      const result = JSON.parse(server.reports.at(-1) ?? '') as BenchResult
      expect(result).toMatchObject({
        environment: { browser: 'Firefox', crossOriginIsolated: true, wasm: { threads: true } },
        implementation: { device: 'wasm' },
        predict: { device: 'wasm' },
      })
      expect(result.firstToken.secondTurnCachedTokens).toBeGreaterThan(0)
    } finally {
      await closeBrowser()
      await server.close()
    }
  },
)
