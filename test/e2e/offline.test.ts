/** An app starts and answers, once it was used, although its web server or its disk fails. */
import type { Page } from 'playwright'
import { afterEach, describe, expect, test } from 'vitest'
import type { Server, ServeOptions } from '../../src/index.ts'
import type { ServedFile } from '../support/content.ts'
import { threadsOf } from '../support/dying.ts'
import { APP, appPage } from '../support/isolation.ts'
import {
  builtFile,
  isKept,
  keysIn,
  markIn,
  openFollower,
  untilKept,
  useAll,
} from '../support/offline.ts'
import { askGuide, CHAT, fetchIn, GUIDE } from '../support/requests.ts'
import { openSite, serveIn, type Site, type SiteOptions } from '../support/site.ts'
import type { Outage } from '../support/static.ts'
import { entryOf, load, MIB } from '../support/stored.ts'

const SLOW = { tags: ['slow'] }

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
}

/** Opens a site in which one tab has used everything, so that it is kept. */
async function openUsed(siteOptions: SiteOptions = {}, options: ServeOptions = {}) {
  site = await openSite(siteOptions)
  const page = await openFollower(site, options)
  const used = await useAll(page)
  expect([used.models, used.chat]).toEqual([200, 200])
  await untilKept(site, page)
  return { page, used }
}

const limitStorage = async (page: Page, bytes: number) => {
  const session = await site.context.newCDPSession(page)
  await session.send('Storage.overrideQuotaForOrigin', { origin: site.url, quotaSize: bytes })
}

const storageOf = (page: Page) =>
  page.evaluate(async () => {
    const { storage: calls } = (globalThis as unknown as InPage).server
    return { assets: await calls.assets(), usage: await calls.usage() }
  })

const LOGIN = '<!doctype html><title>Log in</title><p>Log in to use this network.</p>'

test(
  'without its web server, another tab becomes the host, and all endpoints answer',
  { tags: ['everyday'] },
  async () => {
    const { page, used } = await openUsed()
    const other = await openFollower(site)
    await site.endServer()
    await page.close()
    expect(await useAll(other)).toEqual(used)
    expect(threadsOf(other)).toContain('/inorigin/worker.js')
    // A feature that was not used yet has its script.
    const schema = { type: 'object', properties: {}, additionalProperties: false }
    const { status, text } = await fetchIn(other, CHAT, {
      model: GUIDE,
      messages: [{ role: 'user', content: 'Is it warm?' }],
      response_format: { type: 'json_schema', json_schema: { name: 'warm', schema } },
      max_tokens: 20,
    })
    expect(status, text).toBe(200)
    expect(JSON.parse(JSON.parse(text).choices[0].message.content)).toEqual({})
    expect((await fetchIn(other, '/v1/models', undefined, {}, 'server.fetch')).status).toBe(200)
  },
)

/** Site, and what becomes of its web server; by default, it ends. */
interface Case {
  site?: SiteOptions
  serve?: ServeOptions
  outage?: () => Outage
}

let isWhole = true
const CATALOG = {
  site: { pages: { '/own.json': '{"version": 1, "entries": []}' } },
  serve: { catalog: '/own.json' },
}
const CASES: Readonly<Record<string, Case>> = {
  'sends its own page for everything': { outage: () => ({ status: 200, html: LOGIN }) },
  'has lost all files': { outage: () => ({ status: 404, html: LOGIN }) },
  'is behind a proxy that does not reach it': { outage: () => ({ status: 502, html: LOGIN }) },
  'never answers': { outage: () => new Promise(() => {}) },
  "ended, and had the app's catalog": CATALOG,
  "sends its own page for the app's catalog": {
    ...CATALOG,
    outage: () => ({ status: 200, html: LOGIN }),
  },
  'ended, and redirected a script': {
    site: {
      redirects: { '/inorigin/worker.js': '/moved/worker.js' },
      folders: { '/moved/': 'dist-demo/inorigin' },
    },
  },
}

describe('another tab becomes the host although the server', SLOW, () => {
  test.each(Object.entries(CASES))('%s', async (_name, { site: options, serve, outage }) => {
    const { page, used } = await openUsed(options, serve)
    const other = await openFollower(site, serve)
    if (outage) site.answerAll(outage())
    else await site.endServer()
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })

  test('stops in the middle of the script', async () => {
    isWhole = true
    const { page, used } = await openUsed({ slow: { '/inorigin/worker.js': () => isWhole } })
    const other = await openFollower(site)
    isWhole = false
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })

  test('ended, after a response that clears the HTTP cache', async () => {
    const headers = (path: string): Record<string, string> =>
      path === '/logout' ? { 'clear-site-data': '"cache"' } : {}
    const { page, used } = await openUsed({ headers, pages: { '/logout': 'Bye.' } })
    const other = await openFollower(site)
    const before = await keysIn(site, page)
    await fetchIn(other, '/logout')
    expect(await keysIn(site, page)).toEqual(before)
    await site.endServer()
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })

  test('ended, and the app is below the root', async () => {
    site = await openSite({ base: '/app/' })
    const options = { worker: '/app/sw.js' }
    const page = await openFollower(site, options)
    const contentOf = async (tab: Page) => {
      const messages = [{ role: 'user', content: 'Hello' }]
      const body = { model: GUIDE, temperature: 0, max_tokens: 8, messages }
      const { text } = await fetchIn(tab, `/app${CHAT}`, body)
      return JSON.parse(text).choices[0].message.content
    }
    const content = await contentOf(page)
    await expect.poll(() => isKept(page, `${site.url}/app/`)).toBe(true)
    const other = await openFollower(site, options)
    await site.endServer()
    await page.close()
    expect(await contentOf(other)).toBe(content)
  })

  test('ended, and the assets are elsewhere in the scope', async () => {
    const assets = { assets: '/library/' }
    site = await openSite({ folders: { '/library/': 'dist-demo/inorigin' } })
    const page = await openFollower(site, assets)
    const used = await useAll(page)
    await expect.poll(() => isKept(page, `${site.url}/`)).toBe(true)
    expect((await storageOf(page)).assets.map(({ url }) => url)).toContain(
      `${site.url}/library/model-worker.js`,
    )
    const other = await openFollower(site, assets)
    // The page's own modules are not below the assets, so the tab loads them while the server runs.
    expect(await useAll(other)).toEqual(used)
    await site.endServer()
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })
})

describe('pages that a service worker keeps start', SLOW, () => {
  test("an app's own, isolated by its headers", async () => {
    // Firefox and Safari need a header on scripts of workers; Chromium honors their policy, too.
    const own = `import { attach } from '/package/sw/index.js'
      Object.defineProperty(navigator, 'userAgentData', { value: undefined })
      Object.defineProperty(navigator, 'userAgent', { value: 'Firefox/153.0' })
      attach()
      addEventListener('install', (event) =>
        event.waitUntil(caches.open('mine').then((cache) => cache.add('${APP}'))))
      addEventListener('activate', (event) => event.waitUntil(clients.claim()))`
    const options = { worker: '/own.js', workerType: 'module', isolate: true }
    site = await openSite({
      folders: { '/package/': 'dist' },
      pages: { '/own.js': own, [APP]: appPage(options) },
    })
    const page = await site.open(APP)
    const started = () => page.waitForFunction(() => 'server' in globalThis && crossOriginIsolated)
    await started()
    const used = await useAll(page)
    await untilKept(site, page)
    await site.endServer()
    await page.reload()
    await started()
    expect(await useAll(page)).toEqual(used)
  })

  test('that of the playground, also if the server hangs or has ended', async () => {
    site = await openSite()
    const page = await site.open('/?device=wasm')
    const started = () =>
      page.waitForFunction(() => crossOriginIsolated && 'inorigin' in globalThis)
    const ask = async () => {
      await page.getByLabel('Your question').fill('Who are you?')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.locator('.turn > .meta').first().waitFor()
      return page.locator('.answer').last().innerText()
    }
    await started()
    const text = await ask()
    await untilKept(site, page)
    expect(await markIn(site, page, 'latest')).toBe(await markIn(site, page, 'complete'))
    site.answerAll(new Promise(() => {}))
    await page.reload({ waitUntil: 'commit' })
    await started()
    await site.endServer()
    await page.reload()
    await started()
    expect(await ask()).toBe(text)
  })
})

describe('models come first:', SLOW, () => {
  test('kept files make space for a model', async () => {
    site = await openSite()
    const page = await site.open()
    await limitStorage(page, 8_500_000)
    await serveIn(page, { device: 'wasm' })
    // The scripts of 2.2 MB and the guide of 6.5 MB do not fit together.
    await untilKept(site, page)
    expect((await storageOf(page)).usage.assetBytes).toBeGreaterThan(2_000_000)
    expect(await askGuide(page)).not.toMatch(/^\d{3} /)
    const stored = await page.evaluate(async () => {
      const { storage } = (globalThis as unknown as InPage).server
      return (await storage.list()).map(({ tag, status: state }) => `${tag} ${state}`)
    })
    expect(stored).toEqual(['@inorigin/guide stored'])
  })

  test('kept files stay if the model is refused all the same', async () => {
    const url = 'http://localhost/huge.onnx'
    const resource = { url, name: 'huge.onnx', bytes: 300 * MIB, sha256: '0'.repeat(64) }
    const entry = entryOf('@me/huge', { resource } as ServedFile)
    site = await openSite()
    const page = await openFollower(site, { catalog: { version: 1, entries: [entry] } })
    await untilKept(site, page)
    const { assetBytes } = (await storageOf(page)).usage
    await limitStorage(page, 30_000_000)
    expect(await load(page, '@me/huge')).toBe('storage_full')
    expect((await storageOf(page)).usage.assetBytes).toBe(assetBytes)
  })

  test('a runtime that does not fit is not kept, and breaks nothing', async () => {
    site = await openSite()
    const page = await site.open()
    // The embedded model and the scripts fit, the runtime of 14 MB beside them does not.
    await limitStorage(page, 12_000_000)
    await serveIn(page, { device: 'wasm' })
    expect(await useAll(page)).toMatchObject({ models: 200, chat: 200 })
    const keys = await keysIn(site, page)
    expect(keys.filter((key) => key.includes('.wasm?'))).toEqual([])
    expect(keys.filter((key) => key.startsWith('worker.js'))).toHaveLength(1)
  })
})

test(
  'storage lists what is kept and removes it; the app goes on, and keeps it again',
  SLOW,
  async () => {
    const headers = (path: string): Record<string, string> =>
      path.endsWith('.wasm') ? { 'content-type': 'text/plain' } : {}
    const { page, used } = await openUsed({ headers })
    const { assets, usage } = await storageOf(page)
    const names = assets.map(({ url }) => url.replace(`${site.url}/inorigin/`, ''))
    expect(names).toEqual(
      expect.arrayContaining(['worker.js', 'models/catalog.json', 'files.json']),
    )
    // Of the three builds of the runtime, this device needs one; constraints have theirs.
    expect(names.filter((name) => name.endsWith('.wasm')).toSorted()).toEqual([
      'llguidance.wasm',
      'ort/ort-wasm-simd-threaded.wasm',
    ])
    expect(names.filter((name) => name.startsWith('models/'))).toEqual(['models/catalog.json'])
    const worker = assets.find(({ url }) => url.endsWith('/inorigin/worker.js'))
    expect(worker?.bytes).toBe(Buffer.byteLength(builtFile('worker.js')))
    expect(usage.assetBytes).toBe(assets.reduce((sum, { bytes }) => sum + bytes, 0))
    // The server sends the runtime with a wrong type.
    const type = await page.evaluate(async (name) => {
      const cache = await caches.open(name)
      const [key] = (await cache.keys()).filter(({ url }) => url.includes('.wasm?'))
      return (await cache.match(key!))?.headers.get('content-type')
    }, `inorigin:1:${site.url}/:assets`)
    expect(type).toBe('application/wasm')

    const removed = () =>
      page.evaluate(async () => {
        const { storage: calls } = (globalThis as unknown as InPage).server
        await calls.removeAssets()
        return calls.assets()
      })
    expect(await removed()).toEqual([])
    expect(await useAll(page)).toEqual(used)
    await page.reload()
    await serveIn(page, { device: 'wasm' })
    await untilKept(site, page)
    await page.evaluate(() => (globalThis as unknown as InPage).server.storage.clear())
    expect((await storageOf(page)).usage).toMatchObject({ bytes: 0, assetBytes: 0 })
  },
)

test('offline: false keeps nothing, and deletes what was kept', SLOW, async () => {
  const { page } = await openUsed()
  await page.reload()
  await serveIn(page, { device: 'wasm', offline: false })
  const cacheNames = () => page.evaluate(() => caches.keys())
  // The other script takes over when no request is open.
  await expect.poll(cacheNames).toEqual([])
  await page.reload()
  await serveIn(page, { device: 'wasm', offline: false })
  expect((await useAll(page)).chat).toBe(200)
  expect(await cacheNames()).toEqual([])
})

test('without a list, as on a development server, nothing is kept', SLOW, async () => {
  site = await openSite({ pages: { '/inorigin/files.json': '<!doctype html>' } })
  const page = await openFollower(site)
  expect((await useAll(page)).chat).toBe(200)
  expect(await keysIn(site, page)).toEqual([])
})

test('a model that was half downloaded fails without the server, and says why', SLOW, async () => {
  const weights = '/inorigin/models/guide/onnx/model.onnx'
  site = await openSite({ slow: { [weights]: () => false } })
  const page = await openFollower(site)
  await untilKept(site, page)
  const asking = askGuide(page)
  await expect.poll(() => site.requests).toContain(`GET ${weights}`)
  await site.endServer()
  expect(await asking).toMatch(/^(503|200) .*download_failed/s)
  expect((await fetchIn(page, '/v1/models')).status).toBe(200)
  expect(await load(page, GUIDE)).toBe('download_failed')
})
