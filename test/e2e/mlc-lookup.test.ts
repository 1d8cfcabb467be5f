/**
 * Models by what WebLLM knows them by: chosen for the device, looked up, stored and removed.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { chromium, type Browser, type Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Catalog, LoadProgress, Server } from '../../src/index.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { fetchIn } from '../support/answers.ts'
import { openHub, repositoryOf, type Hub } from '../support/hub.ts'
import { LIBRARY, mlcFiles } from '../support/mlc.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'

const ROOT = join(import.meta.dirname, '../..')
const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/catalog.json' })
</script>`
const ID = 'SmolLM2-360M-Instruct-q4f16_1-MLC'
const WIDER = 'SmolLM2-360M-Instruct-q4f32_1-MLC'
/** Of every file that the wider one is made of. */
const BYTES = Object.values(mlcFiles()).reduce((sum, { length }) => sum + length, LIBRARY.length)

interface InPage {
  server: Server
}

let folder: string
let hub: Hub
let site: StaticServer
let browser: Browser
let page: Page

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inorigin-lookup-'))
  write('wide', mlcFiles())
  write('own', { ...mlcFiles(), 'library.wasm': LIBRARY })
  writeFileSync(join(folder, 'package.json'), '{}\n')
  const init = ['init', 'public', '--no-guide', '--mlc']
  spawnSync(process.execPath, [join(ROOT, 'dist/cli.js'), ...init], { cwd: folder })
  hub = await openHub({
    [`mlc-ai/${WIDER}`]: repositoryOf(join(folder, 'wide'), 'a'.repeat(40)),
    'me/guide': repositoryOf(join(ROOT, 'demo/models/guide'), 'b'.repeat(40)),
  })
  site = await serveStatic({
    folders: { '/own/': join(folder, 'own'), '/': join(folder, 'public') },
    pages: { '/app.html': PAGE, '/catalog.json': JSON.stringify(catalog()) },
  })
  browser = await openBrowser()
  page = await openIn(browser)
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  await hub?.close()
  rmSync(folder, { recursive: true, force: true })
})

function write(name: string, files: Readonly<Record<string, Uint8Array>>): void {
  for (const [path, content] of Object.entries(files)) {
    const to = join(folder, name, path)
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, content)
  }
}

function catalog(): Catalog {
  const host = hub.url
  const own = { model_id: 'own-q4f32_1', model: './own/', model_lib: './own/library.wasm' }
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

/** A tab of the app; what it would fetch of the library's own server is answered here. */
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
  const tab = makePatient(await context.newPage())
  await tab.goto(`${site.url}/app.html`)
  await tab.waitForFunction(() => 'server' in globalThis)
  return tab
}

const explain = (tab: Page, tag: string) =>
  tab.evaluate((name) => (globalThis as unknown as InPage).server.explain(name), tag)

const stateOf = (tab: Page, tag: string) =>
  tab.evaluate(async (name) => {
    const { server } = globalThis as unknown as InPage
    const [models, stored] = [await server.models.list(), await server.storage.list()]
    return {
      model: models.find((one) => one.tag === name),
      stored: stored.find((one) => one.tag === name),
    }
  }, tag)

/** Loads it; what was told on the way, and how it ended. */
const load = (tab: Page, tag: string) =>
  tab.evaluate(async (name) => {
    const { server } = globalThis as unknown as InPage
    const seen: LoadProgress[] = []
    const onProgress = (progress: LoadProgress) => void seen.push(progress)
    const error = await server.models.load(name, { onProgress }).then(() => null, String)
    return { error, seen }
  }, tag)

async function ask(tab: Page, model: string): Promise<[status: number, text: string]> {
  const { status, text } = await fetchIn(tab, '/v1/chat/completions', {
    model,
    max_tokens: 4,
    messages: [{ role: 'user', content: 'Hello' }],
  })
  const body = JSON.parse(text)
  return [
    status,
    body.error ? `${body.error.code}: ${body.error.message}` : body.choices[0].message.content,
  ]
}

test('without shader-f16 the one of 32-bit floats is chosen, and nobody is asked for that', async () => {
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
  expect(await ask(page, '@me/halves')).toEqual([
    503,
    expect.stringMatching(
      /no_implementation: .*SmolLM2-360M-Instruct-q4f16_1-MLC: the GPU has no shader-f16/,
    ),
  ])
  expect(hub.asked).toEqual([])
})

test('its files come from its commit at the hub and its library from where that lies, told in bytes', async () => {
  const { error, seen } = await load(page, '@me/listed')
  // What is in the library cannot run, which is found when everything is here.
  expect(error).toMatch(/The model cannot be used: /)
  expect(seen.at(-1)).toMatchObject({ phase: 'compile', loadedBytes: BYTES, totalBytes: BYTES })
  expect(hub.asked.filter((path) => !path.includes(WIDER))).toEqual([])
  const files = hub.asked.filter((path) => path.includes('/resolve/'))
  expect(files.filter((path) => !path.includes(`/resolve/${'a'.repeat(40)}/`))).toEqual([])
  expect(await stateOf(page, '@me/listed')).toMatchObject({
    model: { status: 'stored', bytes: BYTES },
    stored: { status: 'stored', bytes: BYTES, ownBytes: BYTES },
  })
  expect((await explain(page, '@me/listed')).reasons.map(({ bytes }) => bytes)).toEqual([
    null,
    BYTES,
  ])
  const prediction = await fetchIn(page, '/v1/predictions', { tag: '@me/listed', clientId: 'test' })
  expect(JSON.parse(prediction.text).resources.map(({ type }: { type: string }) => type)).toEqual([
    'config',
    'tokenizer',
    'tokenizer',
    'wasm',
    'mlc',
    'mlc',
    'mlc',
  ])
})

test('what was looked up and stored needs no hub, and can be removed', async () => {
  hub.refuseWith = 500
  hub.asked.length = 0
  await page.reload()
  await page.waitForFunction(() => 'server' in globalThis)
  expect((await stateOf(page, '@me/listed')).model).toMatchObject({
    status: 'stored',
    bytes: BYTES,
  })
  expect((await load(page, '@me/listed')).error).toMatch(/The model cannot be used: /)
  expect(hub.asked).toEqual([])
  hub.refuseWith = 0
  await page.evaluate(() => (globalThis as unknown as InPage).server.models.remove('@me/listed'))
  expect(await stateOf(page, '@me/listed')).toMatchObject({
    model: { status: 'remote' },
    stored: undefined,
  })
  expect(
    await page.evaluate(() => (globalThis as unknown as InPage).server.storage.usage()),
  ).toMatchObject({ bytes: 0 })
})

test('a file that is not the one that was looked up is refused, and not kept', async () => {
  hub.damaged = 'params_shard_1.bin'
  expect((await load(page, '@me/listed')).error).toMatch(/params_shard_1\.bin .+ is not the file/)
  // It may be a newer one: what was looked up counts no more.
  expect((await stateOf(page, '@me/listed')).model).toMatchObject({ status: 'remote', bytes: null })
  hub.damaged = null
  expect((await load(page, '@me/listed')).error).toMatch(/The model cannot be used: /)
})

test('a record of its own, on a server that is no hub, is looked up by its files', async () => {
  site.requests.length = 0
  const { error, seen } = await load(page, '@me/own')
  expect(error).toMatch(/The model cannot be used: /)
  expect(seen.at(-1)).toMatchObject({ loadedBytes: BYTES, totalBytes: BYTES })
  expect((await stateOf(page, '@me/own')).stored).toMatchObject({ status: 'stored', bytes: BYTES })
  // What was read to be hashed is what is stored: nothing comes twice.
  const sent = site.requests.filter((request) => request.startsWith('GET /own/'))
  expect(sent).toEqual([...new Set(sent)])
  expect(sent).toContain('GET /own/params_shard_1.bin')
})

test('where there is no WebGPU, the same model of a repository answers; where there is none, a 503 says so', async () => {
  const bare = await chromium.launch(chromiumLaunch('none'))
  try {
    const tab = await openIn(bare)
    expect(await tab.evaluate(() => navigator.gpu?.requestAdapter() ?? null)).toBeNull()
    expect((await explain(tab, '@me/listed')).chosen).toBeNull()
    expect(await ask(tab, '@me/listed')).toEqual([
      503,
      expect.stringMatching(/no_implementation: .*q4f32_1-MLC: this browser offers no WebGPU here/),
    ])
    expect(await ask(tab, '@me/onnx')).toEqual([200, expect.stringMatching(/\w/)])
    const { chosen, reasons } = await explain(tab, '@me/onnx')
    expect(chosen).toBe('fp32-wasm')
    expect(reasons[0]).toMatchObject({ id: ID, why: 'this browser offers no WebGPU here' })
  } finally {
    await bare.close()
  }
})
