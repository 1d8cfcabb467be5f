/** The sandbox in which the playground runs code of models. */
import { readFileSync } from 'node:fs'
import { transformWithOxc } from 'vite'
import { describe, expect, test } from 'vitest'
import type { runSandboxed } from '../../demo/tools/sandbox.ts'
import { appPage } from '../support/isolation.ts'
import { AGENT, type Tab } from '../support/tabs.ts'
import { ENGINES, useEngine } from './setting.ts'

interface InPage {
  runSandboxed: typeof runSandboxed
}

const PLAIN = '/plain.html'
const ISOLATED = '/isolated.html'
const SOURCE = 'demo/tools/sandbox.ts'
const { code: SCRIPT } = await transformWithOxc(readFileSync(SOURCE, 'utf8'), SOURCE)

const LOADER = `<!doctype html><meta charset="utf-8"><title>sandbox</title>
<script type="module">
  import { runSandboxed } from './run-sandboxed.js'
  globalThis.runSandboxed = runSandboxed
</script>`

const PAGES = {
  [PLAIN]: LOADER + AGENT,
  [ISOLATED]: LOADER + appPage({ isolate: true }) + AGENT,
  '/run-sandboxed.js': SCRIPT,
}

/** Runs code as the tool does. Resolves with its text or with the error that its card shows. */
const run = (tab: Tab, code: string, deadline = 5_000): Promise<string> =>
  tab.evaluate(
    (task) =>
      (globalThis as unknown as InPage)
        .runSandboxed(task.code, { x: 7 }, { deadline: task.deadline })
        .catch(String),
    { code, deadline },
  )

describe.each(ENGINES)('$name', (engine) => {
  const { open, openSite } = useEngine(engine)

  /** Opens the page, and waits until it can run code, isolated if it asks for it. */
  async function openReady(path: string): Promise<Tab> {
    const tab = await open(path)
    const isReady = () =>
      tab
        .evaluate(
          (given) => 'runSandboxed' in globalThis && 'server' in globalThis === given,
          path === ISOLATED,
        )
        .catch(() => false)
    await expect.poll(isReady).toBe(true)
    expect(await tab.evaluate(() => crossOriginIsolated)).toBe(path === ISOLATED)
    return tab
  }

  test('code runs without a network, the page and its storage', async () => {
    const site = await openSite({ pages: PAGES })
    const tab = await openReady(PLAIN)
    await tab.evaluate(() => {
      document.cookie = 'secret=1'
      localStorage.setItem('secret', '1')
      return caches.open('secret').then(() => undefined)
    })
    expect(await run(tab, '[1, 2, 3].map((n) => n * args.x)')).toBe('[7,14,21]')
    expect(await run(tab, 'const n = await Promise.resolve(6)\nreturn n * args.x')).toBe('42')
    expect(await run(tab, 'null.x')).toMatch(/TypeError/)
    const names = ['document', 'parent', 'localStorage', 'cookieStore']
    const types = names.map((name) => `typeof ${name}`).join(' + " " + ')
    expect(await run(tab, `self.origin + " " + ${types}`)).toMatch(
      /^null undefined undefined undefined (undefined|object)$/,
    )
    const url = `${site.url}/reached.txt`
    const request = `const request = new XMLHttpRequest()
      request.open('GET', '${url}', false)
      request.send()`
    const opened = `await new Promise((resolve, reject) => Object.assign(indexedDB.open('x'), {
      onsuccess: resolve, onerror: () => reject(new Error('refused')) }))`
    const tries = [
      `await fetch('${url}')`,
      `importScripts('${url}')`,
      request,
      opened,
      'await cookieStore.getAll()',
    ]
    for (const code of tries) {
      expect(await run(tab, `${code}\nreturn 'reached'`), code).toMatch(/Error/)
    }
    // WebKit gives the document caches of its own.
    expect(await run(tab, 'return (await caches.keys()).length')).toMatch(/^0$|Error/)
    expect(site.requests).not.toContain('GET /reached.txt')
  })

  test('code that does not end is ended', async () => {
    await openSite({ pages: PAGES })
    const tab = await openReady(PLAIN)
    expect(await run(tab, 'for (;;) {}', 500)).toBe('Error: The code did not end within 0.5 s.')
    expect(await tab.evaluate(() => document.querySelector('iframe'))).toBeNull()
    expect(await run(tab, '6 * args.x')).toBe('42')
  })

  test('in an isolated page, code runs if the document is sent with its headers', async () => {
    const sent: Record<string, string> = {
      'cross-origin-embedder-policy': 'require-corp',
      'cross-origin-resource-policy': 'cross-origin',
    }
    await openSite({ pages: PAGES, headers: (path) => (path === '/sandbox.html' ? sent : {}) })
    const result = await run(await openReady(ISOLATED), '6 * args.x')
    if (engine.name !== 'WebKitGTK') expect(result).toBe('42')
    else expect(result).toBe('Error: This browser runs no code in a sandbox of this page.')
  })

  test('in an isolated page, it is said that the document needs its headers', async () => {
    await openSite({ pages: PAGES })
    const result = await run(await openReady(ISOLATED), '6 * args.x')
    if (engine.name === 'Chromium') expect(result).toBe('42')
    else expect(result).toMatch(/did not load.*"Cross-Origin-Resource-Policy: cross-origin"\.$/)
  })
})
