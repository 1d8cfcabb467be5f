/** Workers that end, as they do when memory runs out, while their page lives on or crashes. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import type { Page } from 'playwright'
import type { LoadOptions, PredictorEntry, Server, ServeOptions } from '../../src/index.ts'
import { crash, endWorker, workersOf, type WorkerScript } from '../support/dying.ts'
import { openTokenFault } from '../support/fault-at-token.ts'
import {
  askBriefly,
  beginEndless,
  beginStream,
  ENDLESS,
  errorOf,
  fetchIn,
  GUIDE,
  readEndless,
  streamEnd,
  textOf,
} from '../support/requests.ts'
import { openSite, serveIn, type Site, type SiteOptions } from '../support/site.ts'

const SLOW = { tags: ['slow'] }

interface InPage {
  server: Server
}

let site: Site

afterEach(() => site?.close())

async function open(options?: SiteOptions, serve?: ServeOptions): Promise<Page> {
  site = await openSite(options)
  const page = await site.open()
  await serveIn(page, serve)
  return page
}

const end = (page: Page, script: WorkerScript): Promise<void> =>
  endWorker(workersOf(page, script)[0]!)

const countStarts = (script: WorkerScript) =>
  site.requests.filter((request) => request.endsWith(` /inorigin/${script}`)).length

/** Recognizes a digit, and resolves with the number of outputs. */
const predict = (page: Page): Promise<number> =>
  page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const { outputs } = await server.predict('@inorigin/digits', { image: new ImageData(28, 28) })
    return Object.keys(outputs).length
  })

async function expectAnswer(page: Page): Promise<void> {
  const { status, text } = await askBriefly(page)
  expect([status, JSON.parse(text).type]).toEqual([200, 'message'])
}

test('the host worker of a lone tab ends: its stream goes on', SLOW, async () => {
  const page = await open()
  await beginEndless(page, 'open')
  await end(page, 'worker.js')
  await expectAnswer(page)
  expect(textOf(await streamEnd(page, 'open'))).toBe(await readEndless(page))
})

test('a page without service worker starts its host worker again too', SLOW, async () => {
  site = await openSite()
  const context = await site.browser.newContext()
  await context.addInitScript(() => {
    const refusal = new DOMException('The operation is insecure.', 'SecurityError')
    ServiceWorkerContainer.prototype.register = () => Promise.reject(refusal)
  })
  const page = await site.open('/blank.html', context)
  await serveIn(page)
  await end(page, 'worker.js')
  const status = async () =>
    (await fetchIn(page, '/v1/models', undefined, {}, 'server.fetch')).status
  await expect.poll(status).toBe(200)
})

test(
  'a host worker that ends at once is not started for ever, and starts again later',
  SLOW,
  async () => {
    const page = await open()
    // Nobody holds the lock that it names, which is how a death looks.
    site.pages['/inorigin/worker.js'] =
      "postMessage({ type: 'started', protocol: 1, life: 'nobody' })"
    const [before, since] = [countStarts('worker.js'), Date.now()]
    await end(page, 'worker.js')
    await expect.poll(() => countStarts('worker.js')).toBeGreaterThan(before)
    expect((await fetchIn(page, '/v1/models')).status).toBe(503)
    // Twice whenever it stands, which is every 10 s.
    const most = 2 + 2 * Math.ceil((Date.now() - since) / 10_000)
    expect(countStarts('worker.js') - before).toBeLessThanOrEqual(most)
    delete site.pages['/inorigin/worker.js']
    const status = async () => (await fetchIn(page, '/v1/models')).status
    await expect.poll(status, { timeout: 120_000, interval: 500 }).toBe(200)
  },
)

test(
  'a model worker ends: another is opened at once, in which its stream goes on',
  SLOW,
  async () => {
    const page = await open()
    await beginEndless(page, 'open')
    await end(page, 'model-worker.js')
    expect(textOf(await streamEnd(page, 'open'))).toBe(await readEndless(page))
    expect(workersOf(page, 'model-worker.js')).toHaveLength(1)
  },
)

test('a predictor worker that pages ask directly ends: the next one is opened', SLOW, async () => {
  const page = await open()
  // From the second on the page asks the worker itself.
  for (let count = 0; count < 3; count += 1) expect(await predict(page)).toBeGreaterThan(0)
  await end(page, 'model-worker.js')
  expect(await predict(page)).toBeGreaterThan(0)
})

test('the host is closed while it loads a predictor: the next one computes', SLOW, async () => {
  const file = '/inorigin/models/digits/model.onnx'
  let isReleased = false
  const options = { device: 'wasm' } as const
  const host = await open({ slow: { [file]: () => isReleased } }, options)
  const page = await site.open()
  await serveIn(page, options)
  const predicted = predict(page)
  await expect.poll(() => site.requests.some((one) => one.endsWith(` ${file}`))).toBe(true)
  await host.close()
  isReleased = true
  expect(await predicted).toBeGreaterThan(0)
})

test.each(['worker.js', 'model-worker.js'] as const)(
  'a worker that ends before it has started is replaced: %s',
  SLOW,
  async (script) => {
    const page = await open()
    const before = countStarts(script)
    site.pages[`/inorigin/${script}`] = 'self.close()'
    if (script === 'worker.js') await end(page, script)
    await beginStream(page, 'open', GUIDE)
    await expect.poll(() => countStarts(script)).toBeGreaterThan(before)
    delete site.pages[`/inorigin/${script}`]
    const status = async () => (await askBriefly(page)).status
    await expect.poll(status, { timeout: 120_000, interval: 500 }).toBe(200)
  },
)

test(
  'a stream whose model workers keep ending fails with their error',
  SLOW,
  async ({ onTestFinished }) => {
    const fault = await openTokenFault()
    onTestFinished(() => fault.close())
    const page = await open({ pages: { '/inorigin/model-worker.js': fault.script } })
    let reached = fault.at(5)
    await beginStream(page, 'open', GUIDE, ENDLESS)
    // Each ends some tokens after the one before. A worker that ends while it loads would count as a crash
    // of the load.
    for (let workers = 1; workers <= 4; workers += 1) {
      await reached
      if (workers < 4) reached = fault.at(5 * (workers + 1))
      fault.endWorker()
    }
    // A host that found it out by silence would say so instead.
    expect(errorOf(await streamEnd(page, 'open'))?.message).toMatch(
      /^The worker of @inorigin\/guide ended .*Try again/,
    )
    await expectAnswer(page)
    expect(workersOf(page, 'model-worker.js')).toHaveLength(1)
  },
)

describe('a load that ends its page or its worker twice', SLOW, () => {
  const TAG = '@me/pair'
  const RUNTIME = /\/inorigin\/ort\/.*\.wasm$/
  let isReleased: boolean

  /** The digits in two implementations, of which the first claims to need more memory. */
  function createCatalog(): ServeOptions['catalog'] {
    const { entries } = JSON.parse(
      readFileSync('dist-demo/inorigin/models/catalog.json', 'utf8'),
    ) as { entries: PredictorEntry[] }
    const digits = entries.find(({ tag }) => tag === '@inorigin/digits')!
    const wasm = digits.implementations.find(({ id }) => id === 'fp32-wasm')!
    const resources = wasm.resources.map((one) => ({ ...one, url: `/inorigin/models/${one.url}` }))
    const { owner: _, ...entry } = digits as PredictorEntry & { owner?: unknown }
    const implementations = [
      { ...wasm, id: 'large', resources, requires: { memory: 2e6 } },
      { ...wasm, id: 'small', resources, requires: { memory: 1e6 } },
    ]
    return { version: 1, entries: [{ ...entry, tag: TAG, implementations }] }
  }

  async function openTab(): Promise<Page> {
    const page = await site.open()
    await serveIn(page, { catalog: createCatalog(), device: 'wasm' })
    return page
  }

  /** Opens a site whose runtime does not arrive until the test releases it. */
  async function openSlow(): Promise<void> {
    isReleased = false
    const files = ['', '.jspi', '.asyncify'].map(
      (build) => `/inorigin/ort/ort-wasm-simd-threaded${build}.wasm`,
    )
    const slow = Object.fromEntries(files.map((path) => [path, () => isReleased]))
    site = await openSite({ slow, ownBrowser: true })
  }

  /** Begins a load that waits for the runtime, and resolves when its record is written. */
  async function beginLoad(page: Page): Promise<void> {
    const before = site.requests.length
    await page.evaluate((tag) => {
      ;(globalThis as unknown as InPage).server.models.load(tag).catch(() => undefined)
    }, TAG)
    await expect.poll(() => site.requests.slice(before).some((one) => RUNTIME.test(one))).toBe(true)
  }

  const load = (page: Page, options?: LoadOptions): Promise<string | null> =>
    page.evaluate(
      ([tag, given]) =>
        (globalThis as unknown as InPage).server.models.load(tag, given).then(
          () => null,
          (error: { code: string }) => error.code,
        ),
      [TAG, options] as const,
    )

  const explain = (page: Page) =>
    page.evaluate((tag) => (globalThis as unknown as InPage).server.explain(tag), TAG)

  test('takes the smaller implementation the next time', async () => {
    await openSlow()
    // Tabs that are closed, or loaded anew, in the middle of a load are no crashes.
    for (let count = 0; count < 2; count += 1) {
      const page = await openTab()
      await beginLoad(page)
      if (count === 0) await page.reload()
      await page.close()
    }
    for (let count = 0; count < 2; count += 1) {
      const page = await openTab()
      expect((await explain(page)).chosen).toBe('large')
      await beginLoad(page)
      await crash(page)
      await page.close()
    }
    const page = await openTab()
    const { chosen, reasons } = await explain(page)
    expect(chosen).toBe('small')
    expect(reasons[0]?.why).toMatch(/^its load ended this page or its worker twice.*retryCrashed/)
    isReleased = true
    expect(await load(page)).toBeNull()
    expect(await load(page, { retryCrashed: true })).toBeNull()
    expect((await explain(page)).reasons[0]?.why).not.toMatch(/twice/)
  })

  test('is refused if there is nothing smaller', async () => {
    await openSlow()
    const page = await openTab()
    for (const id of ['large', 'large', 'small', 'small']) {
      expect((await explain(page)).chosen).toBe(id)
      await beginLoad(page)
      const [worker] = workersOf(page, 'model-worker.js')
      await endWorker(worker!)
      await expect.poll(() => page.workers()).not.toContain(worker)
    }
    await expect.poll(async () => (await explain(page)).chosen).toBeNull()
    expect(await load(page)).toBe('load_crashed')
    isReleased = true
    expect(await load(page, { retryCrashed: true })).toBeNull()
  })
})
