/** Which implementation a device is given, and what it is told about that. */
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import type { Catalog, Explanation, Server, ServeOptions } from '../../src/index.ts'
import { fetchIn } from '../support/requests.ts'
import { REAL, wear, type Mask } from '../support/masks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const SLOW = { tags: ['slow'] }

let site: Site

afterEach(() => site?.close())

interface InPage {
  server: Server
}

const stateOf = (page: Page, tag: string) =>
  page.evaluate(async (name) => {
    const { server } = globalThis as unknown as InPage
    const state = (await server.models.list()).find((one) => one.tag === name)
    return [state?.status, state?.device ?? null]
  }, tag)

const catalogOf = (page: Page): Promise<Catalog> =>
  page.evaluate(async () => (await fetch('/inorigin/models/catalog.json')).json())

const GIB = 2 ** 30
const DIGITS = '@inorigin/digits'

/** The digits again, with what their implementations need stated otherwise. */
async function demanding(page: Page): Promise<Catalog> {
  const { version, entries } = await catalogOf(page)
  const entry = entries.find(({ tag }) => tag === DIGITS)
  const [, full, wasm] = entry?.implementations ?? []
  if (!entry || !full || !wasm) throw new Error('The catalog has no such digits.')
  const resources = full.resources.map((file) => ({ ...file, url: `/inorigin/models/${file.url}` }))
  const implementations = [
    {
      ...full,
      id: 'large',
      resources,
      requires: { limits: { maxBufferSize: 2 * GIB }, memory: 3 * GIB },
    },
    { ...full, id: 'small', resources, requires: { limits: { maxBufferSize: GIB } } },
    { ...wasm, id: 'threaded', resources, requires: { features: ['threads'] } },
    { ...wasm, id: 'plain', resources },
  ]
  return {
    version,
    entries: [{ ...entry, tag: '@me/digits', implementations } as Catalog['entries'][number]],
  }
}

const explain = (page: Page, tag = DIGITS): Promise<Explanation> =>
  page.evaluate((name) => (globalThis as unknown as InPage).server.explain(name), tag)

/** `id: why` of the one that is chosen and of the others. */
const reasonsOf = ({ reasons }: Explanation): Record<string, string> =>
  Object.fromEntries(reasons.map(({ id, why }) => [id, why]))

test('each device has its implementation, and explain says why not another', SLOW, async () => {
  site = await openSite()
  const half = { gpu: REAL, features: ['shader-f16'] }
  const cases: [Mask, chosen: string | null, Record<string, RegExp>, ServeOptions?][] = [
    [
      {},
      'fp32-wasm',
      {
        'fp32-wasm': /faster than the software GPU/,
        'fp32-webgpu': /is a software GPU/,
        'fp16-webgpu': /no shader-f16/,
      },
    ],
    [
      half,
      'fp16-webgpu',
      { 'fp16-webgpu': /acme one/, 'fp32-webgpu': /comes first/, 'fp32-wasm': /faster kind/ },
    ],
    [{ gpu: REAL, features: [] }, 'fp32-webgpu', { 'fp16-webgpu': /no shader-f16/ }],
    [
      { ...half, gpu: { ...REAL, isFallbackAdapter: true } },
      'fp32-wasm',
      { 'fp16-webgpu': /is a software GPU/ },
    ],
    [
      { gpu: null },
      'fp32-wasm',
      { 'fp16-webgpu': /offers no WebGPU/, 'fp32-webgpu': /offers no WebGPU/ },
    ],
    [{ simd: false }, null, { 'fp32-wasm': /no WebAssembly SIMD/ }],
    // The app may ask for a device.
    [{}, 'fp32-webgpu', { 'fp32-wasm': /webgpu/i }, { device: 'webgpu' }],
    [{ gpu: null }, null, { 'fp32-webgpu': /offers no WebGPU/ }, { device: 'webgpu' }],
  ]
  for (const [mask, chosen, whys, options] of cases) {
    wear(site, mask)
    const page = await site.open('/blank.html', await site.browser.newContext())
    await serveIn(page, options)
    const told = await explain(page)
    expect({ mask, options, chosen: told.chosen }).toEqual({ mask, options, chosen })
    expect(told.reasons.filter((reason) => reason.chosen).map(({ id }) => id)).toEqual(
      chosen ? [chosen] : [],
    )
    expect(told.device.gpu === null).toBe(mask.gpu === null)
    for (const [id, why] of Object.entries(whys)) expect(reasonsOf(told)[id]).toMatch(why)
    expect((await stateOf(page, DIGITS))[1]).toBe(chosen?.split('-')[1] ?? null)
    await page.context().close()
  }
})

test('limits and memory decide too, and a prediction hands out what was chosen', SLOW, async () => {
  site = await openSite()
  const catalog = await demanding(await site.open())
  const at = (limit: number, memory = 8): Mask => ({
    gpu: REAL,
    limits: { maxBufferSize: limit },
    memory,
  })
  const cases: [Mask, string, Record<string, RegExp>][] = [
    [at(2 * GIB), 'large', { threaded: /no threads/, plain: /faster kind/ }],
    [
      at(2 * GIB - 1),
      'small',
      { large: /needs maxBufferSize of 2147483648 and the GPU has 2147483647/ },
    ],
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
  await expect(explain(page, '@me/none')).rejects.toThrow('Unknown tag "@me/none"')
})

// A software GPU compiles the shaders of its trial for seconds, on a busy machine for many.
test(
  'what is fastest here is found out once, after the first answer, and remembered',
  { tags: ['slow'], timeout: 300_000 },
  async () => {
    site = await openSite()
    wear(site, { gpu: REAL, features: [] })
    const page = await site.open()
    await serveIn(page)
    const predict = () =>
      page.evaluate(async (tag) => {
        const { server } = globalThis as unknown as InPage
        return (await server.predict(tag, { image: new ImageData(64, 64) })).device
      }, DIGITS)

    expect((await explain(page)).reasons.map(({ milliseconds }) => milliseconds)).toEqual([
      null,
      null,
      null,
    ])
    expect(await predict()).toBe('webgpu')
    // The GPU is one of software in disguise, so that WASM has to win.
    const found = await explain(page)
    expect(found.chosen).toBe('fp32-wasm')
    const { 'fp32-wasm': winner, 'fp32-webgpu': loser } = reasonsOf(found)
    expect(winner).toMatch(/nothing is faster than its [\d.]+ ms per run/)
    expect(loser).toMatch(/slower here: it takes [\d.]+ ms per run, and fp32-wasm takes [\d.]+ ms/)
    expect(await predict()).toBe('wasm')
    expect(await stateOf(page, DIGITS)).toEqual(['loaded', 'wasm'])

    await page.reload()
    await serveIn(page)
    expect(reasonsOf(await explain(page))).toEqual(reasonsOf(found))
    // Another browser, or another adapter, is another matter.
    wear(site, { gpu: { ...REAL, architecture: 'two' }, features: [] })
    await page.reload()
    await serveIn(page)
    expect((await explain(page)).chosen).toBe('fp32-webgpu')
  },
)

test(
  'a predictor is not run on a GPU that computes wrong numbers either',
  { tags: ['slow'], timeout: 300_000 },
  async () => {
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
  },
)

test(
  'language models are compared too, by a token; a prediction waits for that',
  SLOW,
  async () => {
    site = await openSite()
    const page = await site.open()
    const { version, entries } = await catalogOf(page)
    const entry = entries.find(({ tag }) => tag === '@inorigin/guide')
    const wasm = entry?.implementations?.find(({ device }) => device === 'wasm')
    if (!entry || !wasm) throw new Error('The catalog has no guide for WASM.')
    const resources = wasm.resources.map((file) => ({
      ...file,
      url: `/inorigin/models/${file.url}`,
    }))
    const implementations = ['one', 'two'].map((id) => ({ ...wasm, id, resources }))
    const twice = { ...entry, tag: '@me/guide', implementations } as Catalog['entries'][number]
    await serveIn(page, { catalog: { version, entries: [twice] } })

    const body = { tag: '@me/guide', clientId: 'test' }
    const { status, text } = await fetchIn(page, '/v1/predictions', body)
    expect(status).toBe(200)
    const told = await explain(page, '@me/guide')
    for (const { milliseconds } of told.reasons) {
      expect(milliseconds).toBeGreaterThan(0)
    }
    expect(['one', 'two']).toContain(told.chosen)
    // Files that are the same are downloaded once, and the same asker is told the same.
    const asked = site.requests.filter((request) => request.endsWith('/guide/onnx/model.onnx'))
    expect(asked).toHaveLength(1)
    expect((await fetchIn(page, '/v1/predictions', body)).text).toBe(text)
  },
)
