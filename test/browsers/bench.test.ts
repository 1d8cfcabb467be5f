/** The benchmark page, which people run in browsers that nobody here has. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { BenchResult } from '../../demo/bench/result.ts'
import { firefox } from '../support/engines.ts'
import { useEngine } from './setting.ts'

/**
 * Starts a short benchmark on WASM as soon as the page offers it. Reports each phase of it, and then its
 * JSON or its error. It is a script of the site, since the page's policy allows no other.
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

describe.each([firefox])('$name', (engine) => {
  const { open, openSite } = useEngine(engine)

  test('the benchmark page runs to its end', async () => {
    const page = readFileSync('dist-demo/bench.html', 'utf8')
    const script = '<script type="module" src="./drive.js"></script></body>'
    const site = await openSite({
      pages: { '/bench.html': page.replace('</body>', script), '/drive.js': DRIVE },
    })
    const tab = await open()
    await tab.evaluate(() => void window.open('/bench.html'))
    const isOver = () => /^(?:\{|The benchmark failed)/.test(site.reports.at(-1) ?? '')
    await expect
      .poll(isOver, { timeout: BENCHMARK_TIMEOUT_MS })
      .toBe(true)
      .catch(() => expect.fail(`The benchmark stopped at: ${site.reports.join('; ')}`))
    expect(site.reports.at(-1)).toMatch(/^\{/)
    const result = JSON.parse(site.reports.at(-1) ?? '') as BenchResult
    expect(result).toMatchObject({
      environment: { browser: 'Firefox', crossOriginIsolated: true, wasm: { threads: true } },
      implementation: { device: 'wasm' },
      predict: { device: 'wasm' },
    })
    expect(result.firstToken.secondTurnCachedTokens).toBeGreaterThan(0)
  })
})
