/** Where models run, what is in memory and in the store, and pages without a service worker. */
import { chromium, type Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import type { Catalog, Explanation, LoadProgress, Server } from '../../src/index.ts'
import { ensureChromium } from '../setup/chromium.ts'
import { REAL, wear, type Mask } from '../support/masks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
}

function greedy(page: Page, content: string, max_tokens: number): Promise<string> {
  return page.evaluate(
    async ([question, limit]) => {
      const { server } = globalThis as unknown as InPage
      const response = await server.fetch('/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          model: '@inorigin/guide', temperature: 0, max_tokens: limit,
          messages: [{ role: 'user', content: question }],
        }),
      })
      const body = await response.json()
      return response.ok ? String(body.choices[0].message.content) : `${response.status} ${body.error.message}`
    },
    [content, max_tokens] as const,
  )
}

function list(page: Page): Promise<[string, string, string | null][]> {
  return page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const states = await server.models.list()
    return states.map(({ tag, status, device }) => [tag, status, device] as [string, string, string | null])
  })
}

test('the same greedy text on webgpu and on wasm; auto ranks a software adapter below wasm', async () => {
  site = await openSite()
  const pages: Record<string, Page> = {}
  for (const device of ['auto', 'wasm', 'webgpu'] as const) {
    const page = await site.open('/blank.html', await site.browser.newContext())
    await serveIn(page, { device })
    pages[device] = page
  }
  const [auto, wasm, webgpu] = ['auto', 'wasm', 'webgpu'].map((device) => pages[device]!)
  expect((await list(auto!))[0]).toEqual(['@inorigin/guide', 'remote', 'wasm'])
  expect((await list(webgpu!))[0]).toEqual(['@inorigin/guide', 'remote', 'webgpu'])
  for (const question of ['What is inorigin?', 'What is 3 + 4?', 'Hello']) {
    const text = await greedy(wasm!, question, 12)
    expect(text).not.toMatch(/^\d{3} /)
    expect(await greedy(webgpu!, question, 12)).toBe(text)
  }
  expect((await list(webgpu!))[0]?.[1]).toBe('loaded')
})

test('load tells bytes and phases; unload and remove give back memory and disk', async () => {
  site = await openSite({ slow: { '/inorigin/models/guide/onnx/model.onnx': 1_500 } })
  const page = await site.open()
  await serveIn(page)
  const told = await page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const seen: LoadProgress[] = []
    await server.models.load('@inorigin/guide', { onProgress: (progress) => seen.push(progress) })
    return seen
  })
  const bytes = told.map((progress) => progress.loadedBytes)
  expect(bytes).toEqual([...bytes].sort((one, other) => one - other))
  expect(bytes.filter((count, index) => count !== bytes[index - 1]).length).toBeGreaterThan(3)
  expect(Math.max(...told.map((progress) => progress.bytesPerSecond))).toBeGreaterThan(100_000)
  expect([...new Set(told.map((progress) => progress.phase))]).toEqual(['download', 'compile', 'warm', 'ready'])
  expect(told.at(-1)?.loadedBytes).toBe(told.at(-1)?.totalBytes)

  const act = (what: 'unload' | 'remove') =>
    page.evaluate(async (name) => {
      const { server } = globalThis as unknown as InPage
      await server.models[name]('@inorigin/guide')
    }, what)
  const workers = () => page.workers().filter((worker) => worker.url().endsWith('model-worker.js')).length
  expect((await list(page))[0]?.[1]).toBe('loaded')
  expect(workers()).toBe(1)
  await act('unload')
  expect((await list(page))[0]?.[1]).toBe('stored')
  await expect.poll(workers).toBe(0)
  expect(await greedy(page, 'Hello', 3)).not.toMatch(/^\d{3} /)
  await act('remove')
  expect((await list(page))[0]?.[1]).toBe('remote')
})

test('a load that is aborted stops downloading and can be taken up again', async () => {
  site = await openSite({ slow: { '/inorigin/models/guide/onnx/model.onnx': 6_000 } })
  const page = await site.open()
  await serveIn(page)
  const seen = await page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const giveUp = new AbortController()
    const start = performance.now()
    const error = await server.models
      .load('@inorigin/guide', {
        signal: giveUp.signal,
        onProgress: ({ loadedBytes }) => loadedBytes > 500_000 && giveUp.abort(),
      })
      .catch((thrown: { kind: string }) => thrown.kind)
    return { error, milliseconds: performance.now() - start }
  })
  expect(seen.error).toBe('aborted')
  expect(seen.milliseconds).toBeLessThan(5_000)
  await expect.poll(async () => (await list(page))[0]?.[1]).toBe('remote')
  expect(await greedy(page, 'Hello', 3)).not.toMatch(/^\d{3} /)
})

test('no WebGPU: wasm by itself, and 503 with the reason when webgpu is asked for', async () => {
  site = await openSite()
  const args = ['--no-sandbox', '--disable-background-networking', '--disable-features=WebGPU', '--disable-gpu']
  const plain = await chromium.launch({ executablePath: ensureChromium(), args })
  try {
    const auto = await site.open('/blank.html', await plain.newContext())
    await serveIn(auto)
    expect((await list(auto))[0]?.[2]).toBe('wasm')
    const asked = await site.open('/blank.html', await plain.newContext())
    await serveIn(asked, { device: 'webgpu' })
    expect((await list(asked))[0]?.[2]).toBeNull()
    expect(await greedy(asked, 'Hello', 3)).toMatch(/^503 .*WebGPU/)
  } finally {
    await plain.close()
  }
})

test('a page without a service worker is its own host and says so', async () => {
  site = await openSite()
  const context = await site.browser.newContext()
  await context.addInitScript(() => {
    // What Firefox does in windows that may keep nothing.
    ServiceWorkerContainer.prototype.register = () =>
      Promise.reject(new DOMException('The operation is insecure.', 'SecurityError'))
  })
  const page = await site.open('/blank.html', context)
  const warnings: string[] = []
  page.on('console', (message) => message.type() === 'warning' && warnings.push(message.text()))
  await serveIn(page)
  const controlled = await page.evaluate(() => (globalThis as unknown as InPage).server.controlled)
  expect(controlled).toBe(false)
  expect(warnings.join()).toContain('Use server.fetch')
  expect(await greedy(page, 'Hello', 3)).not.toMatch(/^\d{3} /)
})

const GIB = 2 ** 30
const DIGITS = '@inorigin/digits'

/** The digits again, with what their implementations need stated otherwise. */
async function demanding(page: Page): Promise<Catalog> {
  const { version, entries } = await page.evaluate(
    async (): Promise<Catalog> => (await fetch('/inorigin/models/catalog.json')).json(),
  )
  const entry = entries.find(({ tag }) => tag === DIGITS)
  const [, full, wasm] = entry?.implementations ?? []
  if (!entry || !full || !wasm) throw new Error('The catalog has no such digits.')
  const resources = full.resources.map((file) => ({ ...file, url: `/inorigin/models/${file.url}` }))
  const implementations = [
    { ...full, id: 'large', resources, requires: { limits: { maxBufferSize: 2 * GIB }, memory: 3 * GIB } },
    { ...full, id: 'small', resources, requires: { limits: { maxBufferSize: GIB } } },
    { ...wasm, id: 'threaded', resources, requires: { features: ['threads'] } },
    { ...wasm, id: 'plain', resources },
  ]
  return { version, entries: [{ ...entry, tag: '@me/digits', implementations } as Catalog['entries'][number]] }
}

const explain = (page: Page, tag = DIGITS): Promise<Explanation> =>
  page.evaluate((name) => (globalThis as unknown as InPage).server.explain(name), tag)

/** `id: why` of the one that is chosen and of the others. */
const reasonsOf = ({ reasons }: Explanation): Record<string, string> =>
  Object.fromEntries(reasons.map(({ id, why }) => [id, why]))

test('each device has its implementation, and explain says why not another', async () => {
  site = await openSite()
  const half = { gpu: REAL, features: ['shader-f16'] }
  const cases: [Mask, chosen: string | null, Record<string, RegExp>][] = [
    [{}, 'fp32-wasm', { 'fp32-wasm': /faster than the software GPU/, 'fp32-webgpu': /made of software/, 'fp16-webgpu': /no shader-f16/ }],
    [half, 'fp16-webgpu', { 'fp16-webgpu': /acme one/, 'fp32-webgpu': /comes first/, 'fp32-wasm': /faster kind/ }],
    [{ gpu: REAL, features: [] }, 'fp32-webgpu', { 'fp16-webgpu': /no shader-f16/ }],
    [{ ...half, gpu: { ...REAL, isFallbackAdapter: true } }, 'fp32-wasm', { 'fp16-webgpu': /made of software/ }],
    [{ gpu: null }, 'fp32-wasm', { 'fp16-webgpu': /offers no WebGPU/, 'fp32-webgpu': /offers no WebGPU/ }],
    [{ simd: false }, null, { 'fp32-wasm': /no WebAssembly SIMD/ }],
  ]
  for (const [mask, chosen, whys] of cases) {
    wear(site, mask)
    const page = await site.open('/blank.html', await site.browser.newContext())
    await serveIn(page)
    const told = await explain(page)
    expect({ mask, chosen: told.chosen }).toEqual({ mask, chosen })
    expect(told.reasons.filter((reason) => reason.chosen).map(({ id }) => id)).toEqual(chosen ? [chosen] : [])
    expect(told.device.gpu === null).toBe(mask.gpu === null)
    for (const [id, why] of Object.entries(whys)) expect(reasonsOf(told)[id]).toMatch(why)
    const states = await list(page)
    expect(states.find(([tag]) => tag === DIGITS)?.[2]).toBe(chosen?.split('-')[1] ?? null)
    await page.context().close()
  }
})

test('limits and memory decide too, and a prediction hands out what was chosen', async () => {
  site = await openSite()
  const catalog = await demanding(await site.open())
  const at = (limit: number, memory = 8): Mask => ({ gpu: REAL, limits: { maxBufferSize: limit }, memory })
  const cases: [Mask, string, Record<string, RegExp>][] = [
    [at(2 * GIB), 'large', { threaded: /no threads/, plain: /faster kind/ }],
    [at(2 * GIB - 1), 'small', { large: /needs maxBufferSize of 2147483648 and the GPU has 2147483647/ }],
    [at(2 * GIB, 2), 'small', { large: /needs 3 GiB of memory and the device has 2 GiB/ }],
    [at(GIB / 2), 'plain', { small: /needs maxBufferSize/ }],
  ]
  for (const [mask, chosen, whys] of cases) {
    wear(site, mask)
    const page = await site.open('/blank.html', await site.browser.newContext())
    await serveIn(page, { catalog })
    const told = await explain(page, '@me/digits')
    expect({ mask, chosen: told.chosen }).toEqual({ mask, chosen })
    for (const [id, why] of Object.entries(whys)) expect(reasonsOf(told)[id]).toMatch(why)
    await page.context().close()
  }
  // A tab with other options has what the host has; a wrong tag is told as everywhere.
  wear(site, {})
  const page = await site.open('/blank.html', await site.browser.newContext())
  await serveIn(page)
  await expect(explain(page, '@me/none')).rejects.toThrow('There is no "@me/none" here')
})

test('what is fastest here is found out once, after the first answer, and remembered', async () => {
  site = await openSite()
  wear(site, { gpu: REAL, features: [] })
  const page = await site.open()
  await serveIn(page)
  const predict = () =>
    page.evaluate(async (tag) => {
      const { server } = globalThis as unknown as InPage
      return (await server.predict(tag, { image: new ImageData(64, 64) })).device
    }, DIGITS)

  expect((await explain(page)).reasons.map(({ milliseconds }) => milliseconds)).toEqual([null, null, null])
  expect(await predict()).toBe('webgpu')
  // The GPU is one of software in disguise, so that WASM has to win.
  const found = await explain(page)
  expect(found.chosen).toBe('fp32-wasm')
  const { 'fp32-wasm': winner, 'fp32-webgpu': loser } = reasonsOf(found)
  expect(winner).toMatch(/nothing here is faster than its [\d.]+ ms a run/)
  expect(loser).toMatch(/slower here: it takes \d+ ms a run, and fp32-wasm takes [\d.]+ ms/)
  expect(await predict()).toBe('wasm')
  expect((await list(page)).find(([tag]) => tag === DIGITS)).toEqual([DIGITS, 'loaded', 'wasm'])

  await page.reload()
  await serveIn(page)
  expect(reasonsOf(await explain(page))).toEqual(reasonsOf(found))
  // Another browser, or another adapter, is another matter.
  wear(site, { gpu: { ...REAL, architecture: 'two' }, features: [] })
  await page.reload()
  await serveIn(page)
  expect((await explain(page)).chosen).toBe('fp32-webgpu')
})

test('a predictor is not run on a GPU that computes wrong numbers either', async () => {
  site = await openSite()
  wear(site, { gpu: REAL, features: [], wrong: true })
  const page = await site.open()
  await serveIn(page)
  const device = await page.evaluate(async (tag) => {
    const { server } = globalThis as unknown as InPage
    return (await server.predict(tag, { image: new ImageData(64, 64) })).device
  }, DIGITS)
  expect(device).toBe('wasm')
  const told = await explain(page)
  expect([told.chosen, told.device.gpu]).toEqual(['fp32-wasm', null])
  expect(reasonsOf(told)['fp32-webgpu']).toBe('the GPU here computes wrong numbers')
})
