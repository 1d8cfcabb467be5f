/** Workers that end by themselves, as they do when memory runs out, while their page lives on. */
import { afterEach, expect, test } from 'vitest'
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { askBriefly, fetchIn } from '../support/answers.ts'
import { makePatient } from '../support/browser.ts'
import { endWorker, workersOf, type WorkerScript } from '../support/dying.ts'
import { openTokenFault } from '../support/fault-at-token.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import {
  beginEndless,
  beginStream,
  ENDLESS,
  errorOf,
  readEndless,
  streamEnd,
  textOf,
} from '../support/streamed.ts'

const GUIDE = '@inorigin/guide'
let site: Site

afterEach(() => site?.close())

const end = (page: Page, script: WorkerScript): Promise<void> =>
  endWorker(workersOf(page, script)[0]!)

/** Recognizes a digit, and resolves with the number of outputs. */
const predict = (page: Page): Promise<number> =>
  page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const { outputs } = await server.predict('@inorigin/digits', { image: new ImageData(28, 28) })
    return Object.keys(outputs).length
  })

test('the host worker of a lone tab ends: its stream goes on and the next request is answered', async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page)
  await beginEndless(page, 'open')
  await end(page, 'worker.js')
  const next = await askBriefly(page)
  expect([next.status, JSON.parse(next.text).type]).toEqual([200, 'message'])
  expect(textOf(await streamEnd(page, 'open'))).toBe(await readEndless(page))
})

test(
  'a page without service worker starts its host worker again too',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = makePatient(await site.context.newPage())
    await page.addInitScript(() => {
      const refusal = new DOMException('The operation is insecure.', 'SecurityError')
      navigator.serviceWorker.register = () => Promise.reject(refusal)
    })
    await page.goto(`${site.url}/blank.html`)
    await serveIn(page)
    await end(page, 'worker.js')
    const status = () =>
      page.evaluate(async () => {
        const { server } = globalThis as unknown as { server: Server }
        return (await server.fetch('/v1/models')).status
      })
    await expect.poll(status).toBe(200)
  },
)

test(
  'a host worker that ends at once is not started for ever, and the tab stands again later',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = await site.open()
    await serveIn(page)
    // Nobody holds the lock that it names, which is how a death looks.
    site.pages['/inorigin/worker.js'] =
      "postMessage({ type: 'started', protocol: 1, life: 'nobody' })"
    const starts = () =>
      site.requests.filter((request) => request.endsWith(' /inorigin/worker.js')).length
    const [before, since] = [starts(), Date.now()]
    await end(page, 'worker.js')
    await expect.poll(starts).toBeGreaterThan(before)
    const refused = await fetchIn(page, '/v1/models')
    expect(refused.status).toBe(503)
    // Twice whenever it stands, which is every 10 s.
    expect(starts() - before).toBeLessThanOrEqual(2 + 2 * Math.ceil((Date.now() - since) / 10_000))
    delete site.pages['/inorigin/worker.js']
    const status = async () => (await fetchIn(page, '/v1/models')).status
    await expect.poll(status, { timeout: 120_000, interval: 500 }).toBe(200)
  },
)

test(
  'a model worker ends: another is opened at once, in which its stream goes on',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = await site.open()
    await serveIn(page)
    await beginEndless(page, 'open')
    await end(page, 'model-worker.js')
    expect(textOf(await streamEnd(page, 'open'))).toBe(await readEndless(page))
    expect(workersOf(page, 'model-worker.js')).toHaveLength(1)
  },
)

test(
  'a stream whose model workers keep ending fails with their error',
  { tags: ['slow'] },
  async ({ onTestFinished }) => {
    const fault = await openTokenFault()
    onTestFinished(() => fault.close())
    site = await openSite({ pages: { '/inorigin/model-worker.js': fault.script } })
    const page = await site.open()
    await serveIn(page)
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
    const next = await askBriefly(page)
    expect([next.status, JSON.parse(next.text).type]).toEqual([200, 'message'])
    expect(workersOf(page, 'model-worker.js')).toHaveLength(1)
  },
)

test(
  'a predictor worker that pages ask directly ends: the next prediction opens another',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = await site.open()
    await serveIn(page)
    // From the second on the page asks the worker itself.
    for (let count = 0; count < 3; count += 1) expect(await predict(page)).toBeGreaterThan(0)
    await end(page, 'model-worker.js')
    expect(await predict(page)).toBeGreaterThan(0)
  },
)

test(
  'the host is closed while it loads a predictor: the next one computes the prediction',
  { tags: ['slow'] },
  async () => {
    const file = '/inorigin/models/digits/model.onnx'
    site = await openSite({ slow: { [file]: () => site.reports.length > 0 } })
    const host = await site.open()
    await serveIn(host, { device: 'wasm' })
    const page = await site.open()
    await serveIn(page, { device: 'wasm' })
    const predicted = predict(page)
    await expect.poll(() => site.requests.some((one) => one.endsWith(` ${file}`))).toBe(true)
    await host.close()
    await page.evaluate(() => fetch('/report', { method: 'POST', body: 'go on' }))
    expect(await predicted).toBeGreaterThan(0)
  },
)

test.each(['worker.js', 'model-worker.js'] as const)(
  'a worker that ends before it has started is replaced: %s',
  { tags: ['slow'] },
  async (script) => {
    const path = `/inorigin/${script}`
    site = await openSite()
    const page = await site.open()
    await serveIn(page)
    const starts = () => site.requests.filter((one) => one.endsWith(` ${path}`)).length
    const before = starts()
    site.pages[path] = 'self.close()'
    if (script === 'worker.js') await end(page, script)
    await beginStream(page, 'open', GUIDE)
    await expect.poll(starts).toBeGreaterThan(before)
    delete site.pages[path]
    const status = async () => (await askBriefly(page)).status
    await expect.poll(status, { timeout: 120_000, interval: 500 }).toBe(200)
  },
)
