/** The benchmark page: built, in a real browser, with nothing cached. */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { buffer, text } from 'node:stream/consumers'
import type { Browser, BrowserContextOptions, Page } from 'playwright'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import type { BenchResult } from '../../demo/bench/result.ts'
import { openBrowser } from '../support/browser.ts'
import { openPlayground, type Playground } from '../support/playground.ts'
import { openSite, type Site } from '../support/site.ts'

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

let browser: Browser
let opened: Playground | undefined
let site: Site | undefined

beforeAll(async () => {
  browser = await openBrowser()
})

afterAll(() => browser?.close())

afterEach(async () => {
  await opened?.close()
  await site?.close()
  opened = site = undefined
})

async function open(
  url = inject('demo'),
  options?: BrowserContextOptions,
): Promise<Playground & { requests: OpenRequests }> {
  opened = await openPlayground(browser, `${url}bench.html`, options)
  return { ...opened, requests: followRequests(opened.page) }
}

interface OpenRequests {
  /** URLs of all requests. */
  urls: string[]
  /** Requests to `/v1` whose body is still awaited. */
  open: Set<unknown>
}

function followRequests(page: Page): OpenRequests {
  const requests: OpenRequests = { urls: [], open: new Set() }
  page.context().on('request', (request) => {
    requests.urls.push(request.url())
    if (new URL(request.url()).pathname.startsWith('/v1/')) requests.open.add(request)
  })
  page.context().on('requestfinished', (request) => requests.open.delete(request))
  page.context().on('requestfailed', (request) => requests.open.delete(request))
  return requests
}

async function start(page: Page, device: string, effort = 'short'): Promise<void> {
  await page.getByLabel('Device').selectOption(device)
  await page.getByLabel('Length').selectOption(effort)
  await page.getByRole('button', { name: 'Start' }).click()
}

async function readResult(page: Page): Promise<BenchResult> {
  await page.getByRole('heading', { name: 'Result' }).waitFor({ timeout: 240_000 })
  return JSON.parse((await page.locator('#json').textContent()) ?? '') as BenchResult
}

/** Returns the paths of all values that are not objects, such as `load.storedMs`. */
function pathsOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path]
  return Object.entries(value).flatMap(([name, inner]) =>
    pathsOf(inner, path === '' ? name : `${path}.${name}`),
  )
}

/** Returns the fields that docs/bench.md lists. */
function documentedFields(): string[] {
  const [, table = ''] = readFileSync('docs/bench.md', 'utf8').split('## Fields of the JSON')
  return [...table.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, name = '']) => name)
}

test(
  'runs to its end, and its JSON has the documented fields with sane values',
  { tags: ['slow'] },
  async () => {
    const { page, faults, requests } = await open()
    await start(page, 'wasm')
    const result = await readResult(page)
    const fields = documentedFields()
    const paths = pathsOf(result)
    expect(paths.filter((path) => !fields.includes(path))).toEqual([])
    const parents = fields.filter((field) => fields.some((other) => other.startsWith(`${field}.`)))
    expect(parents).toEqual(['environment.adapter', 'predict'])
    expect(fields.filter((field) => !paths.includes(field))).toEqual(parents)

    const { settings, environment, implementation, load, firstToken, decode, concurrent } = result
    expect(settings).toMatchObject({ tag: '@inorigin/guide', device: 'wasm', effort: 'short' })
    expect(environment).toMatchObject({
      browserVersion: expect.stringMatching(/^\d+/),
      crossOriginIsolated: true,
      wasm: { simd: true, threads: true, threadCount: expect.any(Number) },
      adapter: { software: true },
    })
    expect(environment.wasm.threadCount).toBeGreaterThanOrEqual(1)
    expect(environment.wasm.threadCount).toBeLessThanOrEqual(availableParallelism())
    expect(implementation).toMatchObject({ id: 'fp32-wasm', device: 'wasm', bytes: 6_475_960 })
    expect(result.version).toMatch(/^\d+\.\d+\.\d+/)
    expect(result.answerTokens).toBeGreaterThanOrEqual(16)
    for (const milliseconds of [load.downloadMs, load.storedMs, firstToken.coldMs]) {
      expect(milliseconds).toBeGreaterThan(1)
      expect(milliseconds).toBeLessThan(1_000 * result.seconds)
    }
    // The prompts are about as long as they are wanted.
    expect(firstToken.promptTokens).toBeGreaterThan(0.8 * settings.promptTokens)
    expect(firstToken.promptTokens).toBeLessThan(1.2 * settings.promptTokens)
    expect(decode.long.contextTokens).toBeGreaterThan(0.8 * settings.longContextTokens)
    const middle = decode.middle.contextTokens / decode.long.contextTokens
    expect(middle).toBeGreaterThan(0.4)
    expect(middle).toBeLessThan(0.6)
    // The second turn reuses the first one, and the first one nothing.
    expect(firstToken.secondTurnCachedTokens).toBeGreaterThan(0.9 * firstToken.promptTokens)
    expect(result.prefillTokensPerSecond).toBeCloseTo(
      (1_000 * firstToken.promptTokens) / firstToken.coldMs,
      0,
    )
    expect(decode.short.contextTokens).toBeLessThan(100)
    expect(concurrent.streams).toBe(4)
    expect(concurrent.aloneTokensPerSecond).toBeGreaterThan(0)
    expect(concurrent.ratio).toBeCloseTo(
      concurrent.togetherTokensPerSecond / concurrent.aloneTokensPerSecond,
      1,
    )
    expect(result.overheadMs).toBeGreaterThan(0)
    expect(result.overheadMs).toBeLessThan(firstToken.coldMs)
    expect(environment.selfTest).toMatch(/^not run: .*WASM was requested/)
    expect(result.predict).toMatchObject({ tag: '@inorigin/digits', device: 'wasm' })

    // The table shows the same, and everything came from the page's own origin.
    const table = await page.getByRole('table').innerText()
    expect(table).toContain(`(${firstToken.promptTokens} tokens)`)
    expect(new Set(requests.urls.map((url) => new URL(url).origin))).toEqual(
      new Set([new URL(page.url()).origin]),
    )
    expect(faults).toEqual([])
  },
)

test('saves and copies the JSON that it shows, and fits a phone', { tags: ['slow'] }, async () => {
  const { page } = await open(inject('demo'), {
    ...PHONE,
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const overflow = () =>
    page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
  expect(await overflow()).toBe(0)
  await start(page, 'auto')
  expect(await overflow()).toBe(0)
  await readResult(page)
  expect(await overflow()).toBe(0)
  await page.getByText('JSON', { exact: true }).tap()
  expect(await overflow()).toBe(0)
  const json = await page.locator('#json').textContent()
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save JSON' }).tap()
  const file = await download
  expect(file.suggestedFilename()).toMatch(/^inorigin-bench-[a-z]+-\d+\.json$/)
  expect(await text(await file.createReadStream())).toBe(json)
  const drawn = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save picture' }).tap()
  const picture = await drawn
  expect(picture.suggestedFilename()).toMatch(/^inorigin-bench-[a-z]+-\d+\.png$/)
  const png = await buffer(await picture.createReadStream())
  expect(png.subarray(1, 4).toString()).toBe('PNG')
  // Its width, and a height for every row of the table.
  const rows = await page.getByRole('row').count()
  expect(png.readUInt32BE(16)).toBe(1_200)
  expect(png.readUInt32BE(20)).toBeGreaterThan(30 * rows)
  await page.getByRole('button', { name: 'Copy JSON' }).tap()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(json)
})

// A run on a software adapter would take minutes.
test('uses the selected device only', { tags: ['slow'] }, async () => {
  site = await openSite({ gpu: 'none' })
  const page = await site.open('/bench.html')
  await page.waitForFunction(() => crossOriginIsolated)
  await start(page, 'webgpu')
  const problem = page.getByRole('alert')
  await problem.waitFor()
  expect(await problem.innerText()).toContain('fp32-webgpu: this browser offers no WebGPU here')
})

describe('Cancel', () => {
  test('stops a run with its requests, and another one can begin', { tags: ['slow'] }, async () => {
    const { page, faults, requests } = await open()
    await start(page, 'wasm', 'thorough')
    await page.getByText(/^Decoding after a short prompt/).waitFor()
    await expect.poll(() => requests.open.size).toBeGreaterThan(0)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The benchmark was canceled.').waitFor()
    expect(await page.getByRole('heading', { name: 'Result' }).isVisible()).toBe(false)
    expect(await page.locator('#phase').isVisible()).toBe(false)
    await expect.poll(() => requests.open.size).toBe(0)
    const count = requests.urls.length
    expect(await page.evaluate(async () => (await fetch('/v1/models')).status)).toBe(200)
    expect(requests.urls.slice(count).map((url) => new URL(url).pathname)).toEqual(['/v1/models'])
    await start(page, 'wasm')
    await page.getByText(/^Loading from the store/).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The benchmark was canceled.').waitFor()
    expect(faults).toEqual([])
  })

  test('stops a download', { tags: ['slow'] }, async () => {
    let isReleased = false
    const file = '/inorigin/models/guide/onnx/model.onnx'
    site = await openSite({ slow: { [file]: () => isReleased } })
    const { page } = await open(`${site.url}/`)
    await start(page, 'wasm')
    await page.getByText(/^Downloading the model, .* of 6.5 MB$/).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The benchmark was canceled.').waitFor()
    isReleased = true
    const downloads = () => site?.requests.filter((request) => request.endsWith(file)).length
    const before = downloads() ?? 0
    expect(await page.evaluate(async () => (await fetch('/v1/models')).status)).toBe(200)
    expect(downloads()).toBe(before)
    await start(page, 'wasm')
    expect((await readResult(page)).load.downloadMs).toBeGreaterThan(0)
  })
})

test('shows the error of a model, and can be started again', { tags: ['slow'] }, async () => {
  const file = '/inorigin/models/guide/onnx/model.onnx'
  site = await openSite({ pages: { [file]: 'This is not a model.' } })
  const { page } = await open(`${site.url}/`)
  await start(page, 'wasm')
  const problem = page.getByRole('alert')
  await problem.waitFor()
  expect(await problem.innerText()).toMatch(/^The benchmark failed\. .*onnx\/model\.onnx/)
  expect(await page.getByRole('button', { name: 'Start' }).isEnabled()).toBe(true)
  expect(await page.locator('#phase').isVisible()).toBe(false)
  delete site.pages[file]
  await start(page, 'wasm')
  await readResult(page)
  expect(await problem.isVisible()).toBe(false)
})

test('is linked from the settings of the playground', { tags: ['slow'] }, async () => {
  opened = await openPlayground(browser, inject('demo'))
  const { page } = opened
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByRole('link', { name: 'Measure how fast this device is' }).click()
  await page.getByRole('heading', { name: 'Benchmark' }).waitFor()
  await expect.poll(() => page.getByLabel('Model').inputValue()).toBe('@inorigin/guide')
})
