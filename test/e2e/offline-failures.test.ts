/** Servers and disks that fail in other ways than being down, and what is kept meanwhile. */
import type { Page } from 'playwright'
import { afterEach, describe, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { fetchIn } from '../support/answers.ts'
import {
  keysIn,
  listenIn,
  markIn,
  openFollower,
  SCRIPTS,
  untilKept,
  useAll,
  versionOf,
} from '../support/offline.ts'
import type { ServedFile } from '../support/content.ts'
import { openSite, serveIn, type Site, type SiteOptions } from '../support/site.ts'
import { entryOf, load, MIB } from '../support/stored.ts'

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
}

/** Opens a site in which one tab has used everything, so that it is kept. */
async function openUsed(options: SiteOptions = {}, model?: string) {
  site = await openSite(options)
  const page = await site.open()
  await serveIn(page, { device: 'wasm' })
  const used = await useAll(page, model)
  expect([used.models, used.chat]).toEqual([200, 200])
  await untilKept(site, page)
  return { page, used }
}

const GUIDE = { model: '@inorigin/guide', messages: [{ role: 'user', content: 'Hello' }] }

const limitStorage = async (page: Page, bytes: number) => {
  const session = await site.context.newCDPSession(page)
  await session.send('Storage.overrideQuotaForOrigin', { origin: site.url, quotaSize: bytes })
}

const assetBytes = (page: Page) =>
  page.evaluate(async () => {
    const { storage } = (globalThis as unknown as InPage).server
    return (await storage.usage()).assetBytes
  })

const LOGIN = '<!doctype html><title>Log in</title><p>Log in to use this network.</p>'

describe('another tab becomes the host although the server', () => {
  const outages = [
    ['sends its own page for everything', { status: 200, html: LOGIN }],
    ['has lost all files', { status: 404, html: LOGIN }],
    ['is behind a proxy that does not reach it', { status: 502, html: LOGIN }],
  ] as const
  test.for(outages)('%s', async ([, outage]) => {
    const { page, used } = await openUsed()
    const other = await openFollower(site)
    site.answerAll(outage)
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })

  test('stops in the middle of the script', { tags: ['slow'] }, async () => {
    let isWhole = true
    const { page, used } = await openUsed({ slow: { '/inorigin/worker.js': () => isWhole } })
    const other = await openFollower(site)
    isWhole = false
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })

  test("sends its own page for the app's catalog", { tags: ['slow'] }, async () => {
    const pages = { '/own.json': '{"version": 1, "entries": []}' }
    site = await openSite({ pages })
    const page = await openFollower(site, { catalog: '/own.json' })
    const used = await useAll(page)
    await untilKept(site, page)
    const other = await openFollower(site, { catalog: '/own.json' })
    site.answerAll({ status: 200, html: LOGIN })
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })
})

describe('a new version', () => {
  const both = (version: number) => SCRIPTS.map((name) => `${name} ${version}`).toSorted()

  async function openFirst() {
    site = await openSite({ pages: { ...versionOf(1), '/listen.html': '<!doctype html>' } })
    const ran = await listenIn(await site.open('/listen.html'))
    const page = await openFollower(site)
    expect((await useAll(page, '@inorigin/guide1')).chat).toBe(200)
    await untilKept(site, page)
    return { page, ran: async () => [...new Set(await ran())].toSorted() }
  }

  test('runs at the first start after the server was down', { tags: ['slow'] }, async () => {
    const { page, ran } = await openFirst()
    site.answerAll({ status: 503, html: LOGIN })
    // The service worker notices that the server is down.
    await page.evaluate(() => fetch('/inorigin/worker.js'))
    site.answerAll(null)
    Object.assign(site.pages, versionOf(2))
    await page.reload()
    await serveIn(page, { device: 'wasm' })
    expect((await useAll(page, '@inorigin/guide2')).chat).toBe(200)
    expect(await ran()).toEqual([...both(1), ...both(2)].toSorted())
  })

  test(
    'is kept although the server sends it too late for this start',
    { tags: ['slow'] },
    async () => {
      const { page, ran } = await openFirst()
      const other = await openFollower(site)
      const next = await openFollower(site)
      let release = (): void => {}
      site.answerAll(new Promise<void>((resolve) => (release = resolve)))
      Object.assign(site.pages, versionOf(2))
      await page.close()
      // The host that runs stays in its version, also in what it starts later.
      expect((await fetchIn(other, '/v1/models')).status).toBe(200)
      release()
      site.answerAll(null)
      await untilKept(site, other)
      expect((await useAll(other, '@inorigin/guide1')).chat).toBe(200)
      expect(await ran()).toEqual(both(1))
      await site.endServer()
      await other.close()
      expect((await useAll(next, '@inorigin/guide2')).chat).toBe(200)
      expect(await ran()).toEqual([...both(1), ...both(2)].toSorted())
    },
  )
})

describe('models come first:', () => {
  test('kept files make space for a model', { tags: ['slow'] }, async () => {
    site = await openSite()
    const page = await site.open()
    await limitStorage(page, 8_500_000)
    await serveIn(page, { device: 'wasm' })
    // The scripts of 2.2 MB and the guide of 6.5 MB do not fit together.
    await untilKept(site, page)
    expect(await assetBytes(page)).toBeGreaterThan(2_000_000)
    const { status, text } = await fetchIn(page, '/v1/chat/completions', GUIDE)
    expect(status, text).toBe(200)
    expect(text).not.toContain('"error"')
    const stored = await page.evaluate(async () => {
      const { storage } = (globalThis as unknown as InPage).server
      return (await storage.list()).map(({ tag, status: state }) => `${tag} ${state}`)
    })
    expect(stored).toEqual(['@inorigin/guide stored'])
  })

  test('kept files stay if the model is refused all the same', { tags: ['slow'] }, async () => {
    const url = 'http://localhost/huge.onnx'
    const resource = { url, name: 'huge.onnx', bytes: 300 * MIB, sha256: '0'.repeat(64) }
    const entry = entryOf('@me/huge', { resource } as ServedFile)
    site = await openSite()
    const page = await openFollower(site, { catalog: { version: 1, entries: [entry] } })
    await untilKept(site, page)
    const before = await assetBytes(page)
    await limitStorage(page, 30_000_000)
    expect(await load(page, '@me/huge')).toBe('storage_full')
    expect(await assetBytes(page)).toBe(before)
  })
})

test(
  'a model that was half downloaded fails without the server, and says why',
  { tags: ['slow'] },
  async () => {
    const weights = '/inorigin/models/guide/onnx/model.onnx'
    site = await openSite({ slow: { [weights]: () => false } })
    const page = await openFollower(site)
    await untilKept(site, page)
    const asking = fetchIn(page, '/v1/chat/completions', GUIDE).catch((error: Error) => ({
      text: error.message,
    }))
    await expect.poll(() => site.requests).toContain(`GET ${weights}`)
    await site.endServer()
    expect((await asking).text).not.toContain('"content"')
    const { status, text } = await fetchIn(page, '/v1/models')
    expect(status, text).toBe(200)
    expect(await load(page, '@inorigin/guide')).toBe('download_failed')
  },
)

test('a file with a wrong type is kept with the right one', { tags: ['slow'] }, async () => {
  const headers = (path: string): Record<string, string> =>
    path.endsWith('.wasm') ? { 'content-type': 'text/plain' } : {}
  const { page } = await openUsed({ headers })
  const types = await page.evaluate(async (name) => {
    const cache = await caches.open(name)
    const [key] = (await cache.keys()).filter(({ url }) => url.includes('.wasm?'))
    return (await cache.match(key!))?.headers.get('content-type')
  }, `inorigin:1:${site.url}/:assets`)
  expect(types).toBe('application/wasm')
})

test('a redirected script is kept', { tags: ['slow'] }, async () => {
  const redirects = { '/inorigin/worker.js': '/moved/worker.js' }
  const { page, used } = await openUsed({ redirects, folders: { '/moved/': 'dist-demo/inorigin' } })
  const other = await openFollower(site)
  await site.endServer()
  await page.close()
  expect(await useAll(other)).toEqual(used)
})

test('a response that clears the HTTP cache leaves what is kept', { tags: ['slow'] }, async () => {
  const headers = (path: string): Record<string, string> =>
    path === '/logout' ? { 'clear-site-data': '"cache"' } : {}
  const { page, used } = await openUsed({ headers, pages: { '/logout': 'Bye.' } })
  const other = await openFollower(site)
  const before = await keysIn(site, page)
  await other.evaluate(() => fetch('/logout').then((response) => response.text()))
  expect(await keysIn(site, page)).toEqual(before)
  await site.endServer()
  await page.close()
  expect(await useAll(other)).toEqual(used)
})

test('a scope below the root starts without the server, too', { tags: ['slow'] }, async () => {
  site = await openSite({ base: '/app/' })
  const options = { worker: '/app/sw.js' }
  const page = await openFollower(site, options)
  const ask = (tab: Page) => fetchIn(tab, '/app/v1/chat/completions', { ...GUIDE, temperature: 0 })
  const first = await ask(page)
  expect(first.status).toBe(200)
  const cacheName = `inorigin:1:${site.url}/app/:assets`
  await expect
    .poll(() =>
      page.evaluate(async (name) => {
        const keys = await (await caches.open(name)).keys()
        return keys.some(({ url }) => url.endsWith('inorigin=complete'))
      }, cacheName),
    )
    .toBe(true)
  const other = await openFollower(site, options)
  await site.endServer()
  await page.close()
  const contentOf = (text: string) => JSON.parse(text).choices[0].message.content
  expect(contentOf((await ask(other)).text)).toBe(contentOf(first.text))
})

test(
  'the playground starts although the server hangs, and comes from the server while it can',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = await site.open('/?device=wasm')
    await page.waitForFunction(() => crossOriginIsolated && 'inorigin' in globalThis)
    await untilKept(site, page)
    expect(await markIn(site, page, 'latest')).toBe(await markIn(site, page, 'complete'))
    site.answerAll(new Promise(() => {}))
    await page.reload({ waitUntil: 'commit' })
    await page.waitForFunction(() => crossOriginIsolated && 'inorigin' in globalThis)
  },
)
