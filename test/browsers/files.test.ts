/** Downloads, predictors and isolation. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Catalog, Server } from '../../src/index.ts'
import { fetchIn } from '../support/requests.ts'
import { fileOn } from '../support/content.ts'
import { type FaultServer, openFaults } from '../support/faults.ts'
import { APP, appPage, reportingWorker } from '../support/isolation.ts'
import { serveIn } from '../support/site.ts'
import { CHUNK, digest, entryOf, load, MIB, storage } from '../support/stored.ts'
import { AGENT, type Tab } from '../support/tabs.ts'
import { ENGINES, GUIDE, useEngine } from './setting.ts'

const FILES = {
  config: 'mlc-chat-config.json',
  tokenizer: 'tokenizer.json',
  mlc: 'tensor-cache.json',
  wasm: 'library.wasm',
}

interface InPage {
  server: Server
  loadedBytes: number
}

/** A model of WebLLM. Its files are not there, because it is refused before it asks for them. */
const COMPILED: Catalog['entries'][number] = {
  type: 'model',
  tag: '@me/compiled',
  name: 'Compiled',
  created: '2026-01-01T00:00:00Z',
  maxInputTokens: 128,
  maxOutputTokens: 64,
  implementations: [
    {
      id: 'mlc',
      engine: 'mlc',
      device: 'webgpu',
      resources: (['config', 'tokenizer', 'mlc', 'wasm'] as const).map((type, index) => ({
        type,
        name: FILES[type],
        url: `nowhere/${FILES[type]}`,
        bytes: 8,
        sha256: `${index}`.repeat(64),
      })),
    },
  ],
}

let faults: FaultServer

beforeAll(async () => {
  faults = await openFaults()
})

afterAll(() => faults?.close())

/** Draws a one, and resolves with what the digits predictor reads. */
const predictOne = (page: Tab): Promise<unknown> =>
  page.evaluate(async () => {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 64
    const context = canvas.getContext('2d')!
    context.fillStyle = 'white'
    context.fillRect(0, 0, 64, 64)
    context.fillStyle = 'rgb(0 0 90)'
    context.fillRect(29, 10, 6, 44)
    const { server } = globalThis as unknown as InPage
    const { outputs } = await server.predict('@inorigin/digits', { image: canvas, ink: 'dark' })
    return outputs['digit']
  })

describe.each(ENGINES)('$name', (engine) => {
  const { open, openSite, serve } = useEngine(engine)

  test('a download that breaks off twice, and with its page, goes on where it was', async () => {
    // A browser may drop what came before the cut. Whatever it keeps, the second response goes beyond two
    // chunks, and then stalls until the page is reloaded.
    const cuts = [{ cut: 20 * MIB }, { stall: 40 * MIB }]
    const file = await fileOn(faults.url, { bytes: 64 * MIB, piece: MIB / 4, faults: cuts })
    const catalog = { version: 1 as const, entries: [entryOf('@me/one', file)] }
    const page = await serve({ catalog })
    await page.evaluate(() => {
      const shared = globalThis as unknown as InPage
      const onProgress = ({ loadedBytes }: { loadedBytes: number }) =>
        (shared.loadedBytes = loadedBytes)
      shared.server.models.load('@me/one', { onProgress }).catch(() => undefined)
    })
    const least = 2 * CHUNK
    await page.waitForFunction(
      (bytes) => (globalThis as unknown as InPage).loadedBytes >= bytes,
      least,
    )
    await page.reload()
    await serveIn(page, { device: 'wasm', catalog })
    // What it holds is no model.
    expect(await load(page, '@me/one')).toBe('model_unusable')
    const { sha256, bytes } = file.resource
    expect(await digest(page, sha256)).toBe(sha256)
    expect(await storage(page, 'list')).toMatchObject([{ status: 'stored', bytes }])
    const ranges = (await file.seen()).map(({ range }) => range)
    expect(ranges[0]).toBeNull()
    const starts = ranges.slice(1).map((range) => Number(/^bytes=(\d+)-/.exec(range ?? '')?.[1]))
    expect(starts.at(-1)).toBeGreaterThanOrEqual(least)
  })

  test('a predictor runs in the page, and over HTTP', async () => {
    const page = await serve()
    // From the second time on, the page asks the predictor's worker itself.
    for (let count = 0; count < 3; count += 1) expect(await predictOne(page)).toBe('one')
    const image = await page.evaluate(() => document.createElement('canvas').toDataURL())
    const inputs = { image: { data: image, dtype: 'image' } }
    const body = { tag: '@inorigin/digits', inputs, acceleration: 'remote_auto' }
    const { status, text } = await fetchIn(page, '/v1/predictions/remote', body)
    expect([status, JSON.parse(text)]).toMatchObject([200, { error: null, results: [{}, {}, {}] }])
  })

  test('isolation: the first visit is reloaded once, and WASM uses threads where there are any', async () => {
    const page = appPage({ isolate: true }) + AGENT
    const site = await openSite({ pages: { [APP]: page, ...reportingWorker() } })
    const tab = await open(APP)
    await expect
      .poll(() => tab.evaluate(() => 'server' in globalThis).catch(() => false))
      .toBe(true)
    expect(await tab.evaluate(() => crossOriginIsolated)).toBe(true)
    expect(site.requests.filter((request) => request === `GET ${APP}`)).toHaveLength(2)
    await tab.evaluate((tag) => (globalThis as unknown as InPage).server.models.load(tag), GUIDE)
    const hasThreads = await tab.evaluate(() => typeof SharedArrayBuffer === 'function')
    // WebKitGTK 2.50 has no shared memory in pages that it isolates.
    expect(hasThreads).toBe(engine.name !== 'WebKitGTK')
    expect(site.reports.includes('thread')).toBe(hasThreads)
  })

  test('WebGPU is refused by name where the browser has none', async () => {
    const page = await serve({ device: 'webgpu', catalog: { version: 1, entries: [COMPILED] } })
    const refusals = await page.evaluate(
      async (tags) => {
        const { server } = globalThis as unknown as InPage
        const adapter = await navigator.gpu?.requestAdapter()
        if (adapter) return null
        const refuse = ({ code, message }: { code: string; message: string }) => [code, message]
        return Promise.all(tags.map((tag) => server.models.load(tag).then(() => 'loaded', refuse)))
      },
      [GUIDE, COMPILED.tag],
    )
    const refused = ['no_implementation', expect.stringContaining('this browser offers no WebGPU')]
    expect(refusals).toEqual(engine.name === 'Chromium' ? null : [refused, refused])
  })
})
