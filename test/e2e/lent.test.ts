/**
 * Predictions that go from a page straight to the predictor's worker, and what may come between.
 *
 * @module-tag slow
 */
import type { Page } from 'playwright'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { workersOf } from '../support/dying.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { MIXED, SLOW, VALUES, valuesCatalog } from '../support/values.ts'

let site: Site

beforeAll(async () => {
  const pages = { '/catalog.json': JSON.stringify(valuesCatalog(MIXED, SLOW)) }
  site = await openSite({ folders: VALUES, pages })
})

afterEach(async () => {
  for (const tab of site.context.pages()) await tab.close()
})

afterAll(() => site?.close())

/** What the pages of this test find in `globalThis`. */
interface Globals {
  server: Server
  /** Ports that this page has passed to its dedicated worker: one for each request to the host. */
  passed: number
  slow(): Promise<string>
  running: Promise<string[]>
  /** The first of those to be answered. */
  first: Promise<string>
}

/** A tab that counts what it asks of the host, and to which the slow predictor has been lent. */
async function openTab(): Promise<Page> {
  const tab = await site.open()
  await tab.evaluate(() => {
    const post = Worker.prototype.postMessage
    Object.assign(globalThis, { passed: 0 })
    Worker.prototype.postMessage = function (this: Worker, ...given: unknown[]) {
      if (Array.isArray(given[1])) (globalThis as unknown as Globals).passed += given[1].length
      Reflect.apply(post, this, given)
    }
  })
  await serveIn(tab, { catalog: '/catalog.json', device: 'wasm' })
  await tab.evaluate(async () => {
    const globals = globalThis as unknown as Globals
    const predict = () =>
      globals.server.predict('@values/slow', { picture: new ImageData(224, 224) })
    const slow = () =>
      predict().then(
        () => 'answered',
        (error: { code?: string }) => `${error.code}`,
      )
    Object.assign(globals, { slow })
  })
  await borrow(tab)
  return tab
}

/** Predicts until that tab has a way to the worker. */
async function borrow(tab: Page): Promise<void> {
  expect(await tab.evaluate(() => (globalThis as unknown as Globals).slow())).toBe('answered')
  await expect.poll(() => asked(tab, 1)).toBe(0)
}

/** Begins that many predictions at once, which the next one does not wait for. */
const begin = (tab: Page, count: number): Promise<void> =>
  tab.evaluate((many) => {
    const globals = globalThis as unknown as Globals
    const runs = Array.from({ length: many }, () => globals.slow())
    globals.first = Promise.race(runs)
    globals.running = Promise.all(runs)
  }, count)

/** How those ended, each way once. */
const endings = (tab: Page): Promise<string[]> =>
  tab.evaluate(async () =>
    [...new Set(await (globalThis as unknown as Globals).running)].toSorted(),
  )

/** What one of them at a time takes, run after run, asks of the host. */
const asked = (tab: Page, count: number): Promise<number> =>
  tab.evaluate(async (many) => {
    const globals = globalThis as unknown as Globals
    const before = globals.passed
    for (let index = 0; index < many; index += 1) await globals.slow()
    return globals.passed - before
  }, count)

const modelWorkers = (tab: Page) => workersOf(tab, 'model-worker.js')

test('the host is not asked while it lasts; an unloaded predictor is loaded again by whoever asks', async () => {
  const tab = await openTab()
  expect(await asked(tab, 5)).toBe(0)
  const answers = await tab.evaluate(async () => {
    const { server, slow } = globalThis as unknown as Globals
    const seen: string[] = []
    for (let round = 0; round < 3; round += 1) {
      await server.models.unload('@values/slow')
      seen.push(await slow(), await slow())
    }
    return [...new Set(seen)]
  })
  expect(answers).toEqual(['answered'])
  await borrow(tab)
  expect(await asked(tab, 3)).toBe(0)
})

test('unloading ends what is under way, and clearing brings nothing back', async () => {
  const tab = await openTab()
  await begin(tab, 60)
  // The first of them has been answered, so that the others are under way.
  await tab.evaluate(() => (globalThis as unknown as Globals).first)
  await tab.evaluate(() => (globalThis as unknown as Globals).server.storage.clear())
  expect(await endings(tab)).toContain('unloaded')
})

test('a worker that fails, fails nobody', async () => {
  const tab = await openTab()
  await begin(tab, 20)
  const [worker] = modelWorkers(tab)
  await worker?.evaluate(
    () => void setTimeout(() => Promise.reject(new Error('Fails on purpose.')), 0),
  )
  expect(await endings(tab)).toEqual(['answered'])
})

test('one that is used stays when others need room', async () => {
  const tab = await openTab()
  const seen = await tab.evaluate(async () => {
    const { server, slow } = globalThis as unknown as Globals
    const blank = new ImageData(32, 32)
    const use = async (state: { isOver: boolean }) => {
      const answers = new Set<string>()
      while (!state.isOver) answers.add((await Promise.all([slow(), slow()])).join())
      return [...answers]
    }
    const others = async () => {
      await server.predict('@inorigin/digits', { image: blank })
      await server.predict('@inorigin/edges', { image: blank })
      await server.predict('@inorigin/embed', { text: 'Hello' })
      await server.predict('@values/mixed', { matrix: [[1, 2, 3]], count: 1, texts: 'a' })
    }
    const state = { isOver: false }
    const using = use(state)
    await others()
    const list = await server.models.list()
    state.isOver = true
    return { answers: await using, status: list.find(({ tag }) => tag === '@values/slow')?.status }
  })
  expect(seen).toEqual({ answers: ['answered,answered'], status: 'loaded' })
})

test('tabs share the worker; those that leave leave nothing running, and a lost host is replaced', async () => {
  const host = await openTab()
  const [two, three] = [await openTab(), await openTab()]
  expect([modelWorkers(host).length, modelWorkers(two).length]).toEqual([1, 0])
  const timed = async (work: () => Promise<unknown>) => {
    const start = performance.now()
    await work()
    return performance.now() - start
  }
  const four = () => Promise.all([asked(host, 2), asked(two, 2)])
  const alone = await timed(four)
  await begin(three, 400)
  await three.goto('about:blank')
  const after = await timed(four)
  // Its four hundred would take a hundred times as long as these four, also where others hold the CPU.
  expect(after).toBeLessThan(Math.max(alone, await timed(four)) * 50)
  await begin(two, 20)
  await host.close()
  expect(await endings(two)).toEqual(['answered'])
  expect(modelWorkers(two)).toHaveLength(1)
  await borrow(two)
  expect(await asked(two, 3)).toBe(0)
})
