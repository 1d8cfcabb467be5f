/**
 * Models whose loads end their page or their worker again and again, as those do that need more
 * memory than there is.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import type { Page } from 'playwright'
import type { LoadOptions, PredictorEntry, ServeOptions, Server } from '../../src/index.ts'
import { crash, endWorker, workersOf } from '../support/dying.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const TAG = '@me/pair'
const RUNTIME = /\/inorigin\/ort\/.*\.wasm$/

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
}

/** The digits in two implementations, of which the first claims to need more memory. */
function catalogOf(): ServeOptions['catalog'] {
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
  await serveIn(page, { catalog: catalogOf(), device: 'wasm' })
  return page
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

/** A site whose runtime does not arrive until the test reports that the loads may go on. */
async function openSlow(): Promise<void> {
  const files = ['', '.jspi', '.asyncify'].map(
    (build) => `/inorigin/ort/ort-wasm-simd-threaded${build}.wasm`,
  )
  const slow = Object.fromEntries(files.map((path) => [path, () => site.reports.length > 0]))
  site = await openSite({ slow, ownBrowser: true })
}

const goOn = (page: Page) =>
  page.evaluate(() => fetch('/report', { method: 'POST', body: 'go on' }).then(() => undefined))

test('a load that crashes its page twice takes the smaller implementation the next time', async () => {
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
  await goOn(page)
  expect(await load(page)).toBeNull()
  expect(await load(page, { retryCrashed: true })).toBeNull()
  expect((await explain(page)).reasons[0]?.why).not.toMatch(/twice/)
})

test('a load that ends its worker twice is refused if there is nothing smaller', async () => {
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
  await goOn(page)
  expect(await load(page, { retryCrashed: true })).toBeNull()
})
