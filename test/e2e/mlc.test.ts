/**
 * Models that MLC compiled, by the names that WebLLM knows, up to a library that can run, of which there is none here.
 *
 * @module-tag slow
 */
import { join } from 'node:path'
import { chromium, type Browser, type Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Catalog, LoadProgress, Server } from '../../src/index.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { CliApp } from '../support/cli-app.ts'
import { askModel, openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { LIBRARY, mlcFiles } from '../support/mlc.ts'
import { fetchIn } from '../support/requests.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'

const GUIDE = join(import.meta.dirname, '../../demo/models/guide')
const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/catalog.json' })
</script>`
const ID = 'SmolLM2-360M-Instruct-q4f16_1-MLC'
const WIDER = 'SmolLM2-360M-Instruct-q4f32_1-MLC'

/** No model's library, however well it is downloaded. */
const FILES: Readonly<Record<string, Uint8Array>> = {
  ...mlcFiles({ context_window_size: 128 }),
  'library.wasm': LIBRARY,
}
const BYTES = Object.values(FILES).reduce((sum, { length }) => sum + length, 0)

function catalog(host: string): Catalog {
  const own = { model_id: 'own-q4f32_1', model: './mlc/', model_lib: './mlc/library.wasm' }
  return {
    version: 1,
    entries: [
      { tag: '@me/listed', mlc: ID, host },
      { tag: '@me/halves', mlc: [ID], host },
      { tag: '@me/own', mlc: own, maxInputTokens: 128 },
      { tag: '@me/onnx', mlc: [ID], huggingface: 'me/guide', host },
    ],
  }
}

interface InPage {
  server: Server
}

let app: CliApp
let hub: Hub
let site: StaticServer
let browser: Browser

beforeAll(async () => {
  app = new CliApp()
  app.init('--no-guide')
  for (const [name, content] of Object.entries(FILES)) app.put(`mlc/${name}`, content)
  const { files, commit } = repositoryOf(app.path('mlc'), 'a'.repeat(40))
  const { 'library.wasm': _library, ...weights } = files
  hub = await openHub({
    [`mlc-ai/${WIDER}`]: { files: weights, commit },
    'me/guide': repositoryOf(GUIDE, 'b'.repeat(40)),
  })
  site = await serveStatic({
    folders: { '/mlc/': app.path('mlc'), '/': app.path('public') },
    pages: { '/app.html': PAGE, '/catalog.json': JSON.stringify(catalog(hub.url)) },
  })
  browser = await openBrowser()
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  await hub?.close()
  app?.remove()
})

/** Opens a tab of the app. A route answers what it fetches of the library's own server. */
async function openIn(where: Browser): Promise<Page> {
  const context = await where.newContext()
  await context.route('https://raw.githubusercontent.com/**', (route) =>
    route.fulfill({
      status: route.request().url().endsWith('SmolLM2-360M-Instruct-q4f32_1_cs1k-webgpu.wasm')
        ? 200
        : 404,
      headers: { 'access-control-allow-origin': '*', 'accept-ranges': 'none' },
      contentType: 'application/wasm',
      body: Buffer.from(LIBRARY),
    }),
  )
  const page = makePatient(await context.newPage())
  await page.goto(`${site.url}/app.html`)
  await page.waitForFunction(() => 'server' in globalThis)
  return page
}

const explain = (page: Page, tag: string) =>
  page.evaluate((name) => (globalThis as unknown as InPage).server.explain(name), tag)

const stateOf = (page: Page, tag: string) =>
  page.evaluate(async (name) => {
    const { server } = globalThis as unknown as InPage
    const [models, stored] = [await server.models.list(), await server.storage.list()]
    return {
      model: models.find((one) => one.tag === name),
      stored: stored.find((one) => one.tag === name),
    }
  }, tag)

/** Loads a model. Resolves with its progress and its error. */
const load = (page: Page, tag: string) =>
  page.evaluate(async (name) => {
    const { server } = globalThis as unknown as InPage
    const seen: LoadProgress[] = []
    const onProgress = (progress: LoadProgress) => void seen.push(progress)
    const error = await server.models.load(name, { onProgress }).then(() => null, String)
    return { error, seen }
  }, tag)

// What is in the library cannot run, which is found when everything is here.
const UNUSABLE = /The model cannot be used: /

test('an app without the engine answers by another implementation, or names the command', async () => {
  const page = await openIn(browser)
  const engines = () => site.requests.filter((path) => path.includes('/chunks/mlc-'))
  expect(await askModel(page, '@me/onnx')).toEqual([200, expect.stringMatching(/\w/)])
  expect(engines()).toEqual([])
  expect(await askModel(page, '@me/own')).toEqual([
    503,
    expect.stringMatching(/engine_missing: .*inorigin init <public folder> --mlc/),
  ])
  app.init('--no-guide', '--mlc')
  await page.reload()
  await page.waitForFunction(() => 'server' in globalThis)
  // Not by a request, whose status is gone where that takes a second to be found out.
  expect((await load(page, '@me/own')).error).toMatch(UNUSABLE)
  expect(engines().length).toBeGreaterThan(0)
  await page.context().close()
  hub.asked.length = 0
})

describe('an entry by a name of WebLLM', () => {
  let page: Page

  beforeAll(async () => {
    page = await openIn(browser)
  })

  test('chooses the variant of 32-bit floats without shader-f16, and asks nobody for that', async () => {
    const { chosen, reasons } = await explain(page, '@me/listed')
    expect(chosen).toBe(WIDER)
    expect(reasons).toMatchObject([
      { id: ID, chosen: false, why: 'the GPU has no shader-f16', bytes: null },
      { id: WIDER, chosen: true, bytes: null },
    ])
    expect((await stateOf(page, '@me/listed')).model).toMatchObject({
      status: 'remote',
      bytes: null,
      device: 'webgpu',
    })
    expect(await askModel(page, '@me/halves')).toEqual([
      503,
      expect.stringMatching(
        /no_implementation: .*SmolLM2-360M-Instruct-q4f16_1-MLC: the GPU has no shader-f16/,
      ),
    ])
    expect(hub.asked).toEqual([])
  })

  test('loads files of its commit at the hub and its library from elsewhere, with sizes', async () => {
    const { error, seen } = await load(page, '@me/listed')
    expect(error).toMatch(UNUSABLE)
    expect(seen.at(-1)).toMatchObject({ phase: 'compile', loadedBytes: BYTES, totalBytes: BYTES })
    expect(hub.asked.filter((path) => !path.includes(WIDER))).toEqual([])
    const files = hub.asked.filter((path) => path.includes('/resolve/'))
    expect(files.filter((path) => !path.includes(`/resolve/${'a'.repeat(40)}/`))).toEqual([])
    expect(await stateOf(page, '@me/listed')).toMatchObject({
      model: { status: 'stored', bytes: BYTES },
      stored: { status: 'stored', bytes: BYTES, ownBytes: BYTES },
    })
    const { reasons } = await explain(page, '@me/listed')
    expect(reasons.map(({ bytes }) => bytes)).toEqual([null, BYTES])
    const body = { tag: '@me/listed', clientId: 'test' }
    const { resources } = JSON.parse((await fetchIn(page, '/v1/predictions', body)).text)
    const types = ['config', 'tokenizer', 'tokenizer', 'wasm', 'mlc', 'mlc', 'mlc']
    expect(resources.map(({ type }: { type: string }) => type)).toEqual(types)
  })

  test('needs no hub after its lookup, and can be removed', async () => {
    hub.refuseWith = 500
    hub.asked.length = 0
    await page.reload()
    await page.waitForFunction(() => 'server' in globalThis)
    expect((await stateOf(page, '@me/listed')).model).toMatchObject({
      status: 'stored',
      bytes: BYTES,
    })
    expect((await load(page, '@me/listed')).error).toMatch(UNUSABLE)
    expect(hub.asked).toEqual([])
    hub.refuseWith = 0
    const usage = await page.evaluate(async () => {
      const { server } = globalThis as unknown as InPage
      await server.models.remove('@me/listed')
      return server.storage.usage()
    })
    expect(usage).toMatchObject({ bytes: 0 })
    expect(await stateOf(page, '@me/listed')).toMatchObject({
      model: { status: 'remote' },
      stored: undefined,
    })
  })

  test('refuses a file that is not the one of the lookup, and does not store it', async () => {
    hub.damaged = 'params_shard_1.bin'
    expect((await load(page, '@me/listed')).error).toMatch(/params_shard_1\.bin .+ is not the file/)
    // It may be a newer one: what was looked up counts no more.
    expect((await stateOf(page, '@me/listed')).model).toMatchObject({
      status: 'remote',
      bytes: null,
    })
    hub.damaged = null
    expect((await load(page, '@me/listed')).error).toMatch(UNUSABLE)
  })

  test('looks up a record of its own by its files, on a server that is no hub', async () => {
    site.requests.length = 0
    const { error, seen } = await load(page, '@me/own')
    expect(error).toMatch(UNUSABLE)
    expect(seen.at(-1)).toMatchObject({ loadedBytes: BYTES, totalBytes: BYTES })
    const { stored } = await stateOf(page, '@me/own')
    expect(stored).toMatchObject({ status: 'stored', bytes: BYTES })
    // What was read to be hashed is what is stored: nothing comes twice.
    const sent = site.requests.filter((request) => request.startsWith('GET /mlc/'))
    expect(sent).toEqual([...new Set(sent)])
    expect(sent).toContain('GET /mlc/params_shard_1.bin')
  })

  test('falls back to the repository without WebGPU, and fails with a 503 if there is none', async () => {
    const bare = await chromium.launch(chromiumLaunch('none'))
    try {
      const tab = await openIn(bare)
      expect(await tab.evaluate(() => navigator.gpu?.requestAdapter() ?? null)).toBeNull()
      expect((await explain(tab, '@me/listed')).chosen).toBeNull()
      expect(await askModel(tab, '@me/listed')).toEqual([
        503,
        expect.stringMatching(
          /no_implementation: .*q4f32_1-MLC: this browser offers no WebGPU here/,
        ),
      ])
      expect(await askModel(tab, '@me/onnx')).toEqual([200, expect.stringMatching(/\w/)])
      const { chosen, reasons } = await explain(tab, '@me/onnx')
      expect(chosen).toBe('fp32-wasm')
      expect(reasons[0]).toMatchObject({ id: ID, why: 'this browser offers no WebGPU here' })
    } finally {
      await bare.close()
    }
  })
})
