/** What is stored: shared, paused and resumed by any tab, and looked after. */
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { LoadProgress, Server, TraceEvent } from '../../src/index.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { fileOn, type FileOptions, type ServedFile } from '../support/content.ts'
import { openFaults, type FaultServer } from '../support/faults.ts'
import { killDownloads } from '../support/kills.ts'
import { askGuide } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { CHUNK, digest, entryOf, load, MIB, storage } from '../support/stored.ts'

const TAG = '@me/one'
const SECRET = 4711.25
const EVERYDAY = { tags: ['everyday'] }
const SLOW = { tags: ['slow'] }

let faults: FaultServer
let site: Site

beforeAll(async () => {
  faults = await openFaults()
})

afterEach(() => site?.close())

afterAll(() => faults?.close())

interface InPage {
  server: Server
  events: TraceEvent[]
  steps: LoadProgress[]
  answer: Promise<Answer>
}

interface Answer {
  status: number
  retry: string | null
  error: { code?: string } | string | undefined
}

const file = (options: FileOptions) => fileOn(faults.url, { piece: 256 * 1024, ...options })

const serveFile = (page: Page, weights: ServedFile) =>
  serveIn(page, { device: 'wasm', catalog: { version: 1, entries: [entryOf(TAG, weights)] } })

const sent = async ({ seen }: ServedFile) =>
  (await seen()).reduce((sum, request) => sum + request.sent, 0)

/** Opens two tabs, of which the first hosts. The first download stalls in its second chunk. */
async function openTabs(): Promise<{ host: Page; other: Page; weights: ServedFile }> {
  site = await openSite()
  const weights = await file({ bytes: 40 * MIB, faults: [{ stall: 24 * MIB }] })
  const [host, other] = [await site.open(), await site.open()]
  for (const page of [host, other]) await serveFile(page, weights)
  await follow(other)
  return { host, other, weights }
}

/** Collects the trace of the host and the progress of loads in that page. */
async function follow(page: Page): Promise<void> {
  await page.evaluate(() => {
    const shared = globalThis as unknown as InPage
    Object.assign(shared, { events: [], steps: [] })
    void (async () => {
      for await (const event of shared.server.trace()) shared.events.push(event)
    })()
    void (async () => {
      for await (const step of shared.server.models.progress()) shared.steps.push(step)
    })()
  })
  // The host reports itself to whoever begins to follow. What came before is in no trace.
  await traced(page, 'host')
}

/** Waits until the trace has an event of that type, and returns all events but those of hosts. */
async function traced(page: Page, type: TraceEvent['type']): Promise<TraceEvent[]> {
  await page.waitForFunction(
    (wanted) => (globalThis as unknown as InPage).events.some((event) => event.type === wanted),
    type,
  )
  const events = await page.evaluate(() => (globalThis as unknown as InPage).events)
  return events.filter((event) => event.type !== 'host')
}

/** Starts a prediction over HTTP, which loads the predictor. Its input is a secret. */
const request = (page: Page) =>
  page.evaluate(
    ([tag, x]) => {
      const shared = globalThis as unknown as InPage
      const ask = async () => {
        const response = await fetch('/v1/predictions/remote', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ tag, inputs: { x } }),
        })
        const { error } = (await response.json()) as Pick<Answer, 'error'>
        return { status: response.status, retry: response.headers.get('x-should-retry'), error }
      }
      shared.answer = ask()
    },
    [TAG, SECRET] as const,
  )

/** Expects that the request failed because its load was paused. */
async function expectPaused(page: Page): Promise<void> {
  const answer = await page.evaluate(() => (globalThis as unknown as InPage).answer)
  // A machine that needs 5 s for the first chunk has sent the status by then.
  if (answer.status === 200) expect(answer.error).toMatch(/paused/)
  else expect(answer).toMatchObject({ status: 503, retry: 'false', error: { code: 'load_paused' } })
}

/** Waits until more than the first chunk arrived. The bytes of the second are not stored yet. */
const untilStalled = (page: Page) =>
  page.waitForFunction(
    (least) => ((globalThis as unknown as InPage).steps.at(-1)?.loadedBytes ?? 0) > least,
    20 * MIB,
  )

const call = (page: Page, method: 'pause' | 'cancel') =>
  page.evaluate(([name, tag]) => (globalThis as unknown as InPage).server.models[name](tag), [
    method,
    TAG,
  ] as const)

test(
  'another tab pauses the load of a request, and a later load resumes it',
  EVERYDAY,
  async () => {
    const { host, other, weights } = await openTabs()
    await request(host)
    await untilStalled(other)
    await call(other, 'pause')
    await expectPaused(host)
    const partial = { tag: TAG, status: 'partial', bytes: CHUNK, pinned: false, inUse: false }
    expect(await storage(other, 'list')).toMatchObject([partial])
    const steps = await other.evaluate(() => (globalThis as unknown as InPage).steps)
    for (const { remainingSeconds, loadedBytes, totalBytes, bytesPerSecond } of steps) {
      if (remainingSeconds === null) continue
      expect(remainingSeconds).toBeCloseTo((totalBytes - loadedBytes) / bytesPerSecond, 3)
    }

    const events = await traced(other, 'failure')
    const failure = { kind: 'unavailable', code: 'load_paused' }
    const chosen = { tag: TAG, implementation: 'wasm', device: 'wasm' }
    const asked = { tag: TAG, operation: 'createRemotePrediction' }
    expect(events).toMatchObject([
      { type: 'request', ...asked },
      { type: 'choice', ...chosen },
      { type: 'load', status: 'started', ...chosen },
      { type: 'load', status: 'ended', error: failure, ...chosen },
      { type: 'failure', error: failure, milliseconds: expect.any(Number), ...asked },
    ])
    expect(JSON.stringify(events)).not.toContain(String(SECRET))

    // The file is no model, so the load fails after the rest has arrived.
    await other.reload()
    await serveFile(other, weights)
    expect(await load(other, TAG)).toBe('model_unusable')
    expect((await weights.seen())[1]).toMatchObject({ range: `bytes=${CHUNK}-`, sent: 24 * MIB })
    expect(await digest(other, weights.resource.sha256)).toBe(weights.resource.sha256)
    expect(await storage(other, 'list')).toMatchObject([{ status: 'stored', bytes: 40 * MIB }])
    await storage(other, 'clear')
    expect(await storage(other, 'resources')).toEqual([])
  },
)

test('another tab cancels a load or removes its tag, and its bytes are deleted', SLOW, async () => {
  const { host, other } = await openTabs()
  await request(host)
  await untilStalled(other)
  await call(other, 'cancel')
  await expectPaused(host)
  expect(await storage(other, 'list')).toEqual([])
  expect(await storage(other, 'usage')).toMatchObject({ bytes: 0 })

  const loading = load(host, TAG)
  await expect.poll(async () => (await storage(other, 'list'))[0]?.inUse).toBe(true)
  await storage(other, 'remove', TAG)
  expect(await loading).toMatch(/unloaded|download_replaced|model_unusable/)
  expect(await storage(other, 'list')).toEqual([])
})

test('the trace of a chat has its load and its time, and no prompt', SLOW, async () => {
  site = await openSite()
  const page = await site.open()
  await serveIn(page)
  await follow(page)
  const text = await askGuide(page)
  const events = await traced(page, 'response')
  const names = events.map((event) =>
    event.type === 'load' ? `${event.type} ${event.status}` : event.type,
  )
  expect(names).toEqual(['request', 'choice', 'load started', 'load ready', 'response'])
  expect(events.at(-1)).toMatchObject({ operation: 'generate', tag: '@inorigin/guide' })
  expect(JSON.stringify(events)).not.toContain('What is')
  expect(JSON.stringify(events)).not.toContain(text)
})

test('tabs download a file once, with a service worker or without', SLOW, async () => {
  site = await openSite()
  const alone = await site.browser.newContext()
  // As in a private window of some browsers: each tab is a host of its own, with the same database.
  await alone.addInitScript(() => {
    Object.defineProperty(Navigator.prototype, 'serviceWorker', { get: () => undefined })
  })
  for (const [context, bytes] of [
    [site.context, 200 * MIB],
    [alone, 40 * MIB],
  ] as const) {
    const weights = await file({ bytes, piece: 4 * MIB })
    const pages = await Promise.all([1, 2].map(() => site.open('/blank.html', context)))
    for (const page of pages) await serveFile(page, weights)
    const { sha256 } = weights.resource
    const got = await Promise.all(pages.map((page) => digest(page, sha256)))
    expect(got).toEqual([sha256, sha256])
    expect((await weights.seen()).map(({ range }) => range)).toEqual([null])
    expect(await sent(weights)).toBe(bytes)
    await context.close()
  }
})

test('what a disk loses is fetched again, and nothing else', SLOW, async ({ onTestFinished }) => {
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-'))
  onTestFinished(() => rmSync(profile, { recursive: true, force: true }))
  site = await openSite({ profile })
  const weights = await file({ bytes: 3 * CHUNK + 1000 })
  const { sha256 } = weights.resource
  const first = await site.open()
  await serveFile(first, weights)
  expect(await digest(first, sha256)).toBe(sha256)
  await site.context.close()

  const [gone, short, zeros] = blobFiles(profile)
  rmSync(gone!)
  truncateSync(short!, 1000)
  writeFileSync(zeros!, Buffer.alloc(CHUNK))
  const again = await chromium.launchPersistentContext(profile, chromiumLaunch())
  const page = await site.open('/blank.html', again)
  await serveFile(page, weights)
  // The zeros are as long as they should be, but what is broken beside them has all of it looked at.
  expect(await digest(page, sha256)).toBe(sha256)
  expect(await sent(weights)).toBe(weights.resource.bytes + 3 * CHUNK)
  await again.close()

  writeFileSync(blobFiles(profile)[1]!, Buffer.alloc(CHUNK))
  const last = await chromium.launchPersistentContext(profile, chromiumLaunch())
  const looked = await site.open('/blank.html', last)
  await serveFile(looked, weights)
  // A load that fails on it repairs it by itself; here it fails for good, after one more try.
  expect(await load(looked, TAG)).toBe('model_unusable')
  expect(await sent(weights)).toBe(weights.resource.bytes + 4 * CHUNK)
  expect(await storage(looked, 'repair', TAG)).toBe(0)
  expect(await digest(looked, sha256)).toBe(sha256)
  await last.close()
})

/** The files in which the browser keeps whole chunks. */
function blobFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.includes('.indexeddb.blob'))
    .map((path) => join(folder, path))
    .filter((path) => statSync(path).isFile() && statSync(path).size === CHUNK)
    .toSorted()
}

// `npm run test:long` kills more of them.
test('a page or browser that ends during a download loses one chunk at most', SLOW, async () => {
  const { losses, right } = await killDownloads(3, 1)
  for (const { way, told, kept } of losses) {
    expect(kept % CHUNK).toBe(0)
    expect(told - kept, way).toBeLessThanOrEqual(CHUNK)
  }
  expect(right).not.toContain(false)
})
