/** Isolation by the service worker, on a web server that sends no headers for it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterEach, describe, expect, test } from 'vitest'
import type { Server, ServeOptions } from '../../src/index.ts'
import { makePatient } from '../support/browser.ts'
import { createDeferred } from '../support/deferred.ts'
import { APP, appPage, reportingWorker } from '../support/isolation.ts'
import { askGuide } from '../support/requests.ts'
import { openSite, type Site, type SiteOptions } from '../support/site.ts'
import { serveStatic } from '../support/static.ts'

const EVERYDAY = { tags: ['everyday'] }
const SLOW = { tags: ['slow'] }

let site: Site

afterEach(() => site?.close())

interface InPage {
  serve(options?: ServeOptions): Promise<Server>
  server: Server
  /** `true` once another script was found. */
  isReplaced?: boolean
}

/** Opens a site whose page calls `serve({ isolate: true })`. */
async function openApp({ pages, ...options }: SiteOptions = {}): Promise<void> {
  site = await openSite({ pages: { [APP]: appPage({ isolate: true }), ...pages }, ...options })
}

/** Waits until `serve()` has resolved, and returns whether the page is isolated. */
async function isIsolated(page: Page): Promise<boolean> {
  await page.waitForFunction(() => 'server' in globalThis)
  return page.evaluate(() => crossOriginIsolated)
}

/** How often the page was requested. */
const loads = () => site.requests.filter((request) => request === `GET ${APP}`).length

test(
  'the first visit is reloaded, later ones are not, and WASM uses threads',
  EVERYDAY,
  async () => {
    await openApp({ pages: reportingWorker() })
    const page = await site.open(APP)
    expect(await isIsolated(page)).toBe(true)
    expect(loads()).toBe(2)
    expect(await askGuide(page)).not.toMatch(/^\d{3} /)
    expect(site.reports).toContain('thread')

    const later = await site.open(APP)
    expect(await isIsolated(later)).toBe(true)
    expect(loads()).toBe(3)
  },
)

test('a page in use is not reloaded, also if its reload is under way', EVERYDAY, async () => {
  for (const isUnderWay of [false, true]) {
    let isReleased = false
    await openApp({ slow: { '/sw.js': () => isReleased } })
    const page = await site.open(APP)
    await expect.poll(() => site.requests).toContain('GET /sw.js')
    const outage = createDeferred()
    if (isUnderWay) site.answerAll(outage.promise)
    else await page.keyboard.press('a')
    isReleased = true
    if (isUnderWay) {
      await expect.poll(loads).toBe(2)
      await page.keyboard.press('a')
      outage.resolve()
      site.answerAll(null)
    }
    expect(await isIsolated(page)).toBe(false)
    expect(loads()).toBe(isUnderWay ? 2 : 1)
    await page.reload()
    expect(await isIsolated(page)).toBe(true)
    await site.close()
  }
})

/** Returns the stored number of WASM threads that was fastest, or `undefined`. */
async function readFastestThreads(): Promise<number | undefined> {
  const [{ name = '' } = {}] = await indexedDB.databases()
  const opening = indexedDB.open(name)
  await new Promise((resolve) => (opening.onsuccess = resolve))
  const reading = opening.result.transaction('device').objectStore('device').get('threads')
  await new Promise((resolve) => (reading.onsuccess = resolve))
  opening.result.close()
  return reading.result?.threads
}

test('the fastest number of threads is measured after a model was used', SLOW, async () => {
  await openApp()
  const page = await site.open(APP)
  await isIsolated(page)
  await page.evaluate(async () => {
    await (globalThis as unknown as InPage).server.models.load('@inorigin/guide')
  })
  const cores = await page.evaluate(() => navigator.hardwareConcurrency)
  const counts = [1, 2, 4, 8, cores].filter((count) => count <= cores)
  await expect
    .poll(() => page.evaluate(readFastestThreads), { timeout: 120_000 })
    .toSatisfy((threads) => counts.includes(threads))
})

test('two tabs at once are reloaded once each at most', SLOW, async () => {
  await openApp()
  const pages = await Promise.all([site.open(APP), site.open(APP)])
  const isolated = await Promise.all(pages.map(isIsolated))
  expect(isolated).toContain(true)
  expect(loads()).toBeLessThanOrEqual(4)
})

test('a pop-up keeps its opener, and a frame of another site loads', SLOW, async () => {
  await openApp()
  const page = await site.open(APP)
  expect(await isIsolated(page)).toBe(true)
  const other = await serveStatic({
    folders: {},
    pages: {
      '/popup.html': `<script>opener.postMessage('from the pop-up', '*'); close()</script>`,
      '/frame.html': `<script>parent.postMessage('from the frame', '*')</script>`,
    },
  })
  const heard = await page.evaluate(
    async (url) => {
      const next = () =>
        new Promise((resolve) =>
          addEventListener('message', ({ data }) => resolve(data), { once: true }),
        )
      const popup = next()
      open(`${url}/popup.html`)
      const first = await popup
      const frame = document.createElement('iframe')
      frame.src = `${url}/frame.html`
      const framed = next()
      document.body.append(frame)
      return [first, await framed]
      // Another site than localhost.
    },
    other.url.replace('localhost', '127.0.0.1'),
  )
  await other.close()
  expect(heard).toEqual(['from the pop-up', 'from the frame'])
})

test('a model of another origin is downloaded', SLOW, async () => {
  const { entries } = JSON.parse(readFileSync('demo/models/catalog.json', 'utf8'))
  const guide = entries.find(({ tag }: { tag: string }) => tag === '@inorigin/guide')
  const other = await serveStatic({
    folders: { '/': 'demo/models' },
    pages: { '/own.json': JSON.stringify({ version: 1, entries: [{ ...guide, tag: '@me/far' }] }) },
    headers: { 'access-control-allow-origin': '*' },
  })
  await openApp({ pages: { [APP]: appPage({ isolate: true, catalog: `${other.url}/own.json` }) } })
  const page = await site.open(APP)
  expect(await isIsolated(page)).toBe(true)
  await page.evaluate(() => (globalThis as unknown as InPage).server.models.load('@me/far'))
  await other.close()
  expect(other.requests.filter((request) => request.includes('model.onnx'))).not.toEqual([])
})

test('a page that cannot be isolated is reloaded once, and not on later visits', SLOW, async () => {
  // The web server decides, so the service worker leaves the page as it is.
  await openApp({ headers: { 'cross-origin-embedder-policy': 'unsafe-none' } })
  const page = await site.open(APP)
  expect(await isIsolated(page)).toBe(false)
  expect(loads()).toBe(2)
  expect(await isIsolated(await site.open(APP))).toBe(false)
  expect(loads()).toBe(3)
})

test('a page that bypasses the service worker each time is reloaded once', SLOW, async () => {
  await openApp()
  const page = makePatient(await site.context.newPage())
  const session = await site.context.newCDPSession(page)
  // As "Bypass for network" of the developer tools does.
  await session.send('Network.enable')
  await session.send('Network.setBypassServiceWorker', { bypass: true })
  await page.goto(`${site.url}${APP}`)
  expect(await isIsolated(page)).toBe(false)
  expect(loads()).toBe(2)
  await page.goto(`${site.url}/missing.html`)
  await page.goto(`${site.url}${APP}`)
  expect(await isIsolated(page)).toBe(false)
  expect(loads()).toBe(3)
})

test('a hard reload is not reloaded again, and the next load is isolated', SLOW, async () => {
  await openApp()
  const page = await site.open(APP)
  await isIsolated(page)
  const session = await site.context.newCDPSession(page)
  await Promise.all([page.waitForEvent('load'), session.send('Page.reload', { ignoreCache: true })])
  expect(await isIsolated(page)).toBe(false)
  expect(loads()).toBe(3)
  await page.reload()
  expect(await isIsolated(page)).toBe(true)
  expect(loads()).toBe(4)
})

test('a page that its web server isolates is neither reloaded nor changed', SLOW, async () => {
  const headers = {
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-embedder-policy': 'require-corp',
  }
  await openApp({ headers })
  const page = await site.open(APP)
  expect(await isIsolated(page)).toBe(true)
  expect(loads()).toBe(1)
  const response = await page.reload()
  expect(await response?.allHeaders()).toMatchObject(headers)
  expect(await response?.allHeaders()).not.toHaveProperty('document-isolation-policy')
})

test('without the option, navigations do not pass through the service worker', SLOW, async () => {
  await openApp({ pages: { [APP]: appPage({}) } })
  const page = await site.open(APP)
  expect(await isIsolated(page)).toBe(false)
  expect(loads()).toBe(1)
  const response = await page.reload()
  expect(response?.fromServiceWorker()).toBe(false)
  expect(await isIsolated(page)).toBe(false)
})

test('errors and redirects of the web server stay as they are', SLOW, async () => {
  await openApp({ redirects: { '/old.html': APP } })
  const page = await site.open(APP)
  await isIsolated(page)
  const missing = await page.goto(`${site.url}/missing.html`)
  expect([missing?.fromServiceWorker(), missing?.status()]).toEqual([true, 404])
  expect(await page.innerText('body')).toBe('404')

  await page.goto(`${site.url}/old.html`)
  expect(new URL(page.url()).pathname).toBe(APP)
  expect(await isIsolated(page)).toBe(true)

  await site.context.setOffline(true)
  await expect(page.goto(`${site.url}${APP}`)).rejects.toThrow(/net::ERR_/)
})

test('a streamed document is not buffered', SLOW, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-'))
  const first = `<!doctype html><script>fetch('/report', { method: 'POST', body: 'seen' })</script>`
  writeFileSync(join(folder, 'page.html'), `${first}<!--${'.'.repeat(20_000)}--><p>last</p>`)
  await openApp({
    folders: { '/late/': folder },
    slow: { '/late/page.html': () => site.reports.length > 0 },
  })
  const page = await site.open(APP)
  await isIsolated(page)
  const response = await page.goto(`${site.url}/late/page.html`)
  expect(response?.fromServiceWorker()).toBe(true)
  expect(await page.innerText('p')).toBe('last')
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
  rmSync(folder, { recursive: true })
})

describe("an app's own service worker", () => {
  /** Opens a site with a module service worker, and returns how its page calls `serve()`. */
  async function openOwn(attach: string, options: ServeOptions): Promise<Page> {
    await openApp({
      folders: { '/package/': 'dist' },
      pages: {
        '/own.js': `import { attach } from '/package/sw/index.js'
          ${attach}
          addEventListener('activate', (event) =>
            event.waitUntil(registration.navigationPreload.enable().then(() => clients.claim())))`,
        [APP]: appPage({ worker: '/own.js', workerType: 'module', ...options }),
      },
    })
    return site.open(APP)
  }

  test.each(['attach()', 'attach({ isolate: true })'])(
    '%s isolates, and takes a navigation preload',
    async (attach) => {
      const page = await openOwn(attach, { isolate: true })
      expect(await isIsolated(page)).toBe(true)
      expect(loads()).toBe(2)
    },
  )

  test('attach({ isolate: true }) alone isolates from the second visit on', SLOW, async () => {
    const page = await openOwn('attach({ isolate: true })', {})
    expect(await isIsolated(page)).toBe(false)
    expect(loads()).toBe(1)
    await page.goto(`${site.url}${APP}`)
    expect(await isIsolated(page)).toBe(true)
    expect(loads()).toBe(2)
  })

  test('attach({ isolate: false }) never isolates, so there is no reload', SLOW, async () => {
    const page = await openOwn('attach({ isolate: false })', { isolate: true })
    expect(await isIsolated(page)).toBe(false)
    expect(loads()).toBe(1)
    expect((await page.reload())?.fromServiceWorker()).toBe(false)
  })

  test('attach() throws for another value', SLOW, async () => {
    const report = `try { attach({ isolate: 'yes' }) } catch (error) {
      fetch('/report', { method: 'POST', body: String(error) })
    }`
    await openOwn(report, {})
    await expect
      .poll(() => site.reports)
      .toContain('InoriginError: isolate must be true or false, not string.')
  })
})

/** Waits until the page is controlled and no other script is about to take over. */
async function untilSettled(page: Page): Promise<void> {
  const isSettled = () =>
    page.evaluate(async () => {
      const registration = await navigator.serviceWorker.getRegistration()
      const { server } = globalThis as unknown as InPage
      return server.controlled && !registration?.installing && !registration?.waiting
    })
  await expect.poll(isSettled).toBe(true)
}

test('pages that disagree on the option keep their control', SLOW, async () => {
  await openApp({ pages: { '/plain.html': appPage({}) } })
  const page = await site.open(APP)
  await isIsolated(page)
  const plain = await site.open('/plain.html')
  await isIsolated(plain)
  // The other script takes over when no request is open. A page that lost control meanwhile registers its own again.
  for (const each of [page, plain]) await untilSettled(each)
  const scripts = site.requests.filter((request) => request === 'GET /sw.js')
  expect(scripts.length).toBeGreaterThan(1)
  await page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready
    registration.onupdatefound = () => ((globalThis as unknown as InPage).isReplaced = true)
  })
  for (const each of [page, plain]) {
    expect(await each.evaluate(async () => (await fetch('/v1/models')).status)).toBe(200)
    expect(await each.evaluate(() => (globalThis as unknown as InPage).server.controlled)).toBe(
      true,
    )
  }
  expect(await page.evaluate(() => (globalThis as unknown as InPage).isReplaced)).toBeUndefined()
  expect(loads()).toBe(2)
})
