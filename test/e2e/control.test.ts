/** Control over a page that is lost while it is open, and which frames have it. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import type { Server, ServeOptions } from '../../src/index.ts'
import { askGuide, fetchIn } from '../support/requests.ts'
import { openSite, type Site } from '../support/site.ts'

const SLOW = { tags: ['slow'] }

let site: Site

afterEach(() => site?.close())

interface InPage {
  serve(options?: ServeOptions): Promise<Server>
  server: Server
  /** What `onControlChange` was called with, and what `controlled` said then. */
  changes: Array<[told: boolean, read: boolean]>
}

const LOGOUT = '/logout'
const PROBE = '/v1/inorigin-probe'

/** A site on which a request to one path clears what is stored, as a logout may. */
function openForgetfulSite(): Promise<Site> {
  return openSite({
    pages: { [LOGOUT]: '' },
    headers: (pathname): Record<string, string> =>
      pathname === LOGOUT ? { 'clear-site-data': '"storage"' } : {},
  })
}

async function serveIn(page: Page): Promise<void> {
  await page.waitForFunction(() => 'serve' in globalThis)
  await page.evaluate(async () => {
    const inPage = globalThis as unknown as InPage
    inPage.changes = []
    inPage.server = await inPage.serve({
      onControlChange: (told) => inPage.changes.push([told, inPage.server.controlled]),
    })
  })
}

const logOut = (page: Page) => page.evaluate(async (path) => (await fetch(path)).status, LOGOUT)

/** Resolves once `onControlChange` was called that often in that page. */
async function changesOf(page: Page, count: number): Promise<InPage['changes']> {
  await page.waitForFunction(
    (least) => (globalThis as unknown as InPage).changes.length >= least,
    count,
  )
  return page.evaluate(() => (globalThis as unknown as InPage).changes)
}

const statusOf = async (page: Page) => (await fetchIn(page, '/v1/models')).status

/** Requests to /v1 that reached the web server. */
const leaked = () => site.requests.filter((request) => request.includes('/v1'))

test('each tab takes its control back when data are cleared, whichever hosts', SLOW, async () => {
  site = await openForgetfulSite()
  const [host, follower] = [await site.open(), await site.open()]
  for (const page of [host, follower]) await serveIn(page)
  const text = await askGuide(host)
  const listStored = () =>
    host.evaluate(async () => (globalThis as unknown as InPage).server.storage.list())
  expect(await listStored()).not.toEqual([])
  for (const [round, page] of [follower, host].entries()) {
    expect(await logOut(page)).toBe(200)
    for (const each of [host, follower]) {
      expect((await changesOf(each, 2 * (round + 1))).slice(-2)).toEqual([
        [false, false],
        [true, true],
      ])
    }
    expect([await askGuide(host), await askGuide(follower)]).toEqual([text, text])
  }
  expect(leaked()).toEqual([])

  // A tab that is opened later has the same host.
  const later = await site.open()
  await serveIn(later)
  expect(await askGuide(later)).toBe(text)
  // Both earlier tabs ask for the place at once when data are cleared, and either may get it.
  const hosting = [host, follower].filter((each) => each.workers().length > 0)
  expect([hosting.length, later.workers().length]).toEqual([1, 0])

  // What was stored is gone; the database is opened anew.
  await host.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    await server.models.unload('@inorigin/guide')
    await server.models.load('@inorigin/guide')
  })
  expect((await listStored()).map(({ tag }) => tag)).toContain('@inorigin/guide')
})

test('a closed server does not take control back; another one does', SLOW, async () => {
  site = await openForgetfulSite()
  const page = await site.open()
  await serveIn(page)
  await page.evaluate(() => {
    const lost = new Promise((resolve) =>
      navigator.serviceWorker.addEventListener('controllerchange', resolve),
    )
    Object.assign(globalThis, { lost })
    ;(globalThis as unknown as InPage).server.close()
  })
  await logOut(page)
  await page.evaluate(() => (globalThis as unknown as { lost: Promise<Event> }).lost)
  const seen = await page.evaluate(() => {
    const { changes, server } = globalThis as unknown as InPage
    return { changes, controlled: server.controlled }
  })
  expect(seen).toEqual({ changes: [], controlled: false })

  // The next login finds a page that has the locks of before.
  await serveIn(page)
  expect(await askGuide(page)).not.toMatch(/^\d{3} /)
})

test(
  'an update after which requests pass by the worker: the page retakes control',
  SLOW,
  async () => {
    site = await openSite()
    const [page, other] = [await site.open(), await site.open()]
    for (const each of [page, other]) await serveIn(each)
    // Chromium has such a state of its own, but no command that brings it about.
    const session = await site.context.newCDPSession(page)
    await session.send('Network.enable')
    await session.send('Network.setBypassServiceWorker', { bypass: true })
    site.pages['/sw.js'] = `${readFileSync('dist-demo/sw.js', 'utf8')}\n// a later build`
    await page.evaluate(async () => {
      const registration = await navigator.serviceWorker.ready
      await registration.update()
    })
    expect(await changesOf(page, 1)).toEqual([[false, false]])
    // Another script of the same content takes over.
    const retaken = () =>
      page.waitForFunction(() =>
        navigator.serviceWorker.controller?.scriptURL.endsWith('?retake=true'),
      )
    await retaken()
    await session.send('Network.setBypassServiceWorker', { bypass: false })
    expect(await changesOf(page, 2)).toEqual([
      [false, false],
      [true, true],
    ])
    expect(await statusOf(page)).toBe(200)
    // The other tab was never without the worker.
    expect(await other.evaluate(() => (globalThis as unknown as InPage).changes)).toEqual([])
    expect(await statusOf(other)).toBe(200)
    // The page reached the web server only to find out that it does.
    expect(new Set(leaked())).toEqual(new Set([`GET ${PROBE}`]))

    // The next visit registers the script by its own URL again.
    await page.reload()
    await serveIn(page)
    await page.waitForFunction(() =>
      navigator.serviceWorker.controller?.scriptURL.endsWith('/sw.js'),
    )
    expect(await statusOf(page)).toBe(200)
  },
)

test('an update that requests disturb takes over all the same', SLOW, async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page)
  site.pages['/sw.js'] = `${readFileSync('dist-demo/sw.js', 'utf8')}\n// a later build`
  // Chromium starts the old worker again for a request that reaches it while it ends, and then lets the new one wait.
  await page.evaluate(async (probe) => {
    const registration = await navigator.serviceWorker.ready
    await registration.update()
    const later = registration.installing ?? registration.waiting
    if (later?.state === 'installing') {
      await new Promise((resolve) => later.addEventListener('statechange', resolve))
    }
    later?.postMessage({ type: 'inorigin:update' })
    for (let sent = 0; sent < 50; sent += 1) {
      await fetch(probe).catch(() => undefined)
    }
  }, PROBE)
  const isWaiting = () =>
    page.evaluate(async () => (await navigator.serviceWorker.ready).waiting !== null)
  await expect.poll(isWaiting).toBe(false)
  expect(await statusOf(page)).toBe(200)
  expect(leaked()).toEqual([])
})

test('frames of this origin without an address of their own', SLOW, async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page)
  const seen = await page.evaluate(async () => {
    const script = `<script>
      fetch(new URL('/v1/models', ORIGIN)).then(({ status }) => status, String)
        .then((status) => parent.postMessage({ status, controlled: Boolean(navigator.serviceWorker.controller) }, '*'))
    </${'script'}>`.replace('ORIGIN', JSON.stringify(location.origin))
    const blob = URL.createObjectURL(new Blob([script], { type: 'text/html' }))
    const answers: Record<string, unknown> = {}
    for (const [name, attribute, value] of [
      ['blob', 'src', blob],
      ['srcdoc', 'srcdoc', script],
    ] as const) {
      const heard = new Promise((resolve) =>
        addEventListener('message', ({ data }) => resolve(data), { once: true }),
      )
      const frame = document.createElement('iframe')
      frame.setAttribute(attribute, value)
      document.body.append(frame)
      answers[name] = await heard
    }
    return answers
  })
  // A frame of a blob has no controller in Chromium, and its request goes out: README.md says so.
  expect(seen).toEqual({
    blob: { status: 404, controlled: false },
    srcdoc: { status: 200, controlled: true },
  })
})
