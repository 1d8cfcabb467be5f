/**
 * The benchmark page: built, in a real browser, with nothing cached.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { buffer } from 'node:stream/consumers'
import type { Page } from 'playwright'
import { afterEach, describe, expect, inject, test } from 'vitest'
import type { BenchResult } from '../../demo/bench/result.ts'
import {
  download,
  openTab,
  overflowOf,
  PHONE,
  usePlayground,
  type Playground,
  type PlaygroundOptions,
} from '../support/playground.ts'
import { openSite, type Site } from '../support/site.ts'

const MODEL = '/inorigin/models/guide/onnx/model.onnx'

let site: Site | undefined

afterEach(async () => {
  await site?.close()
  site = undefined
})

const openAt = usePlayground()

async function open(
  url = inject('demo'),
  options?: PlaygroundOptions,
): Promise<Playground & { requests: OpenRequests }> {
  const opened = await openAt(`${url}bench.html`, options)
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

test('runs to its end, and its JSON has the documented fields with sane values', async () => {
  const permissions = ['clipboard-read', 'clipboard-write']
  const { page, faults, requests } = await open(inject('demo'), { ...PHONE, permissions })
  expect(await overflowOf(page)).toBe(0)
  await start(page, 'wasm')
  expect(await overflowOf(page)).toBe(0)
  const result = await readResult(page)
  expect(await overflowOf(page)).toBe(0)
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
  // WASM has no drafts.
  for (const { tokensPerSecond, ...rest } of Object.values(decode))
    expect(rest).toMatchObject({
      tokensPerSecondWithoutDrafts: tokensPerSecond,
      acceptedDraftTokens: 0,
      rejectedDraftTokens: 0,
    })
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

  // The JSON and a picture of the table can be saved and copied.
  await page.getByText('JSON', { exact: true }).tap()
  expect(await overflowOf(page)).toBe(0)
  const json = await page.locator('#json').textContent()
  const file = await download(page, page.getByRole('button', { name: 'Save JSON' }))
  expect(file.name).toMatch(/^inorigin-bench-[a-z]+-\d+\.json$/)
  expect(file.text).toBe(json)
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
test('uses the selected device only', async () => {
  site = await openSite({ gpu: 'none' })
  const page = await site.open('/bench.html')
  await page.waitForFunction(() => crossOriginIsolated)
  await start(page, 'webgpu')
  const problem = page.getByRole('alert')
  await problem.waitFor()
  expect(await problem.innerText()).toContain('fp32-webgpu: this browser offers no WebGPU here')
})

describe('Cancel', () => {
  test('stops a run with its requests, and another one can begin', async () => {
    const { page, faults } = await openAt()
    await openTab(page, 'Settings')
    await page.getByRole('link', { name: 'Measure how fast this device is' }).click()
    await page.getByRole('heading', { name: 'Benchmark' }).waitFor()
    await expect.poll(() => page.getByLabel('Model').inputValue()).toBe('@inorigin/guide')
    const requests = followRequests(page)
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

  test('stops a download', async () => {
    let isReleased = false
    site = await openSite({ slow: { [MODEL]: () => isReleased } })
    const { page } = await open(`${site.url}/`)
    await start(page, 'wasm')
    await page.getByText(/^Downloading the model, .* of 6.5 MB$/).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The benchmark was canceled.').waitFor()
    isReleased = true
    const downloads = () => site?.requests.filter((request) => request.endsWith(MODEL)).length
    const before = downloads() ?? 0
    expect(await page.evaluate(async () => (await fetch('/v1/models')).status)).toBe(200)
    expect(downloads()).toBe(before)
    await start(page, 'wasm')
    expect((await readResult(page)).load.downloadMs).toBeGreaterThan(0)
  })
})

test('shows the error of a model, and can be started again', async () => {
  site = await openSite({ pages: { [MODEL]: 'This is not a model.' } })
  const { page } = await open(`${site.url}/`)
  await start(page, 'wasm')
  const problem = page.getByRole('alert')
  await problem.waitFor()
  expect(await problem.innerText()).toMatch(/^The benchmark failed\. .*onnx\/model\.onnx/)
  expect(await page.getByRole('button', { name: 'Start' }).isEnabled()).toBe(true)
  expect(await page.locator('#phase').isVisible()).toBe(false)
  delete site.pages[MODEL]
  await start(page, 'auto')
  await readResult(page)
  expect(await problem.isVisible()).toBe(false)
})
