/** An app whose web server is down starts and answers, once it was used. */
import type { Page } from 'playwright'
import { afterEach, describe, expect, test } from 'vitest'
import type { Server, ServeOptions } from '../../src/index.ts'
import { fetchIn } from '../support/answers.ts'
import { threadsOf } from '../support/dying.ts'
import { APP, appPage } from '../support/isolation.ts'
import { builtFile, keysIn, untilKept, useAll } from '../support/offline.ts'
import { openSite, serveIn, type Site, type SiteOptions } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
}

/** Opens a site in which one tab has used everything, so that it is kept. */
async function openUsed(options: ServeOptions = {}, siteOptions: SiteOptions = {}) {
  site = await openSite(siteOptions)
  const page = await site.open()
  await serveIn(page, { device: 'wasm', ...options })
  const used = await useAll(page)
  expect([used.models, used.chat]).toEqual([200, 200])
  await untilKept(site, page)
  return { page, used }
}

const storage = (page: Page) =>
  page.evaluate(async () => {
    const { storage: calls } = (globalThis as unknown as InPage).server
    return { assets: await calls.assets(), usage: await calls.usage() }
  })

describe('the server is down:', () => {
  test('another tab becomes the host, and all endpoints answer', async () => {
    const { page, used } = await openUsed()
    const other = await site.open()
    await serveIn(other, { device: 'wasm' })
    await site.endServer()
    await page.close()
    expect(await useAll(other)).toEqual(used)
    expect(threadsOf(other)).toContain('/inorigin/worker.js')
  })

  test('a feature that was not used yet has its script', async () => {
    const { page } = await openUsed()
    await site.endServer()
    const body = {
      model: '@inorigin/guide',
      messages: [{ role: 'user', content: 'Is it warm?' }],
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'warm',
          schema: { type: 'object', properties: {}, additionalProperties: false },
        },
      },
      max_tokens: 20,
    }
    const { status, text } = await fetchIn(page, '/v1/chat/completions', body)
    expect(status, text).toBe(200)
    expect(JSON.parse(JSON.parse(text).choices[0].message.content)).toEqual({})
    expect(
      await page.evaluate(async () => {
        const { server } = globalThis as unknown as InPage
        return (await server.fetch('/v1/models')).status
      }),
    ).toBe(200)
  })

  test(
    'an app whose own service worker keeps the page starts, isolated by its headers',
    { tags: ['slow'] },
    async () => {
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
      const started = () =>
        page.waitForFunction(() => 'server' in globalThis && crossOriginIsolated)
      await started()
      const used = await useAll(page)
      await untilKept(site, page)
      await site.endServer()
      await page.reload()
      await started()
      expect(await useAll(page)).toEqual(used)
    },
  )

  test('the playground starts after one visit', { tags: ['slow'] }, async () => {
    site = await openSite()
    const page = await site.open('/?device=wasm')
    const ask = async () => {
      await page.getByLabel('Your question').fill('Who are you?')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.locator('.turn > .meta').first().waitFor()
      return page.locator('.answer').last().innerText()
    }
    await page.waitForFunction(() => crossOriginIsolated)
    const text = await ask()
    await untilKept(site, page)
    await site.endServer()
    await page.reload()
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
    expect(await ask()).toBe(text)
  })

  test("the app's own catalog is there", { tags: ['slow'] }, async () => {
    const pages = { '/own.json': '{"version": 1, "entries": []}' }
    const { page, used } = await openUsed({ catalog: '/own.json' }, { pages })
    const other = await site.open()
    await serveIn(other, { device: 'wasm', catalog: '/own.json' })
    await site.endServer()
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })

  test('a server that never answers is not waited for', { tags: ['slow'] }, async () => {
    const { page, used } = await openUsed()
    const other = await site.open()
    await serveIn(other, { device: 'wasm' })
    site.answerAll(new Promise(() => {}))
    await page.close()
    expect(await useAll(other)).toEqual(used)
  })
})

test(
  'storage lists what is kept and removes it; the app goes on, and keeps it again',
  { tags: ['slow'] },
  async () => {
    const { page, used } = await openUsed()
    const { assets, usage } = await storage(page)
    const names = assets.map(({ url }) => url.replace(`${site.url}/inorigin/`, ''))
    expect(names).toEqual(
      expect.arrayContaining(['worker.js', 'models/catalog.json', 'files.json']),
    )
    // Of the three builds of the runtime, this device needs one.
    expect(names.filter((name) => name.endsWith('.wasm'))).toEqual([
      'ort/ort-wasm-simd-threaded.wasm',
    ])
    expect(names.filter((name) => name.startsWith('models/'))).toEqual(['models/catalog.json'])
    const worker = assets.find(({ url }) => url.endsWith('/inorigin/worker.js'))
    expect(worker?.bytes).toBe(Buffer.byteLength(builtFile('worker.js')))
    expect(usage.assetBytes).toBe(assets.reduce((sum, { bytes }) => sum + bytes, 0))

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
    expect((await storage(page)).usage).toMatchObject({ bytes: 0, assetBytes: 0 })
  },
)

test('offline: false keeps nothing, and deletes what was kept', { tags: ['slow'] }, async () => {
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

test(
  'a runtime that does not fit is not kept, and breaks nothing',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = await site.open()
    const session = await site.context.newCDPSession(page)
    // The embedded model and the scripts fit, the runtime of 14 MB beside them does not.
    await session.send('Storage.overrideQuotaForOrigin', {
      origin: site.url,
      quotaSize: 12_000_000,
    })
    await serveIn(page, { device: 'wasm' })
    const used = await useAll(page)
    expect([used.models, used.chat]).toEqual([200, 200])
    const keys = await keysIn(site, page)
    expect(keys.filter((key) => key.includes('.wasm?'))).toEqual([])
    expect(keys.filter((key) => key.startsWith('worker.js'))).toHaveLength(1)
  },
)

test(
  'without a list, as on a development server, nothing is kept',
  { tags: ['slow'] },
  async () => {
    site = await openSite({ pages: { '/inorigin/files.json': '<!doctype html>' } })
    const page = await site.open()
    await serveIn(page, { device: 'wasm' })
    expect((await useAll(page)).chat).toBe(200)
    expect(await keysIn(site, page)).toEqual([])
  },
)

test('assets elsewhere in the scope are kept, too', { tags: ['slow'] }, async () => {
  site = await openSite({ folders: { '/library/': 'dist-demo/inorigin' } })
  const page = await site.open()
  const options: ServeOptions = { device: 'wasm', assets: '/library/' }
  await serveIn(page, options)
  const used = await useAll(page)
  await expect
    .poll(() => storage(page).then(({ assets }) => assets.map(({ url }) => url)))
    .toEqual(expect.arrayContaining([`${site.url}/library/model-worker.js`]))
  const other = await site.open()
  await serveIn(other, options)
  await expect
    .poll(async () => (await keysIn(site, page)).some((key) => key.includes('inorigin=complete')))
    .toBe(true)
  await site.endServer()
  await page.close()
  expect(await useAll(other)).toEqual(used)
})
