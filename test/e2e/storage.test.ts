/** What is stored: shared, kept within bounds, paused and resumed, looked after. */
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { LoadProgress, Server, StoredTag } from '../../src/index.ts'
import { chromiumLaunch } from '../setup/chromium.ts'
import { fileOn, type FileOptions, type ServedFile } from '../support/content.ts'
import { openFaults, type FaultServer } from '../support/faults.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { CHUNK, digest, entryOf, load, MIB, storage } from '../support/stored.ts'

let faults: FaultServer
let site: Site
let profile: string | undefined

beforeAll(async () => {
  faults = await openFaults()
})

afterEach(async () => {
  await site?.close()
  if (profile) rmSync(profile, { recursive: true, force: true })
  profile = undefined
})

afterAll(() => faults?.close())

interface InPage {
  server: Server
  steps: LoadProgress[]
  pause: AbortController
  ended: Promise<string>
}

const file = (options: FileOptions) => fileOn(faults.url, { piece: 256 * 1024, ...options })

const serveTags = (page: Page, tags: Record<string, ServedFile[]>) =>
  serveIn(page, {
    device: 'wasm',
    catalog: {
      version: 1,
      entries: Object.entries(tags).map(([tag, files]) => entryOf(tag, ...files)),
    },
  })

const sent = async ({ seen }: ServedFile) =>
  (await seen()).reduce((sum, request) => sum + request.sent, 0)

/** Begins to load; `ended` then tells how it ended. */
const begin = (page: Page, tag: string) =>
  page.evaluate((name) => {
    const shared = globalThis as unknown as InPage
    shared.steps = []
    shared.pause = new AbortController()
    const options = {
      signal: shared.pause.signal,
      onProgress: (step: LoadProgress) => shared.steps.push(step),
    }
    shared.ended = shared.server.models.load(name, options).then(
      () => 'loaded',
      (error: { code?: string; kind: string }) => error.code ?? error.kind,
    )
  }, tag)

const ended = (page: Page) => page.evaluate(() => (globalThis as unknown as InPage).ended)

const untilLoaded = (page: Page, bytes: number) =>
  page.waitForFunction(
    (least) => ((globalThis as unknown as InPage).steps.at(-1)?.loadedBytes ?? 0) >= least,
    bytes,
    { polling: 20 },
  )

test(
  'a download is paused, resumed after a reload, and cancelled',
  { tags: ['slow'] },
  async () => {
    site = await openSite()
    const page = await site.open()
    // It stops in the second chunk, however late the abort arrives.
    const stalled = [{ slow: 30, stall: 24 * MIB }, { slow: 8 }]
    const weights = await file({ bytes: 40 * MIB, faults: stalled })
    const other = await file({ bytes: 40 * MIB, faults: stalled })
    const tags = { '@me/one': [weights], '@me/two': [other] }
    await serveTags(page, tags)

    await begin(page, '@me/one')
    await untilLoaded(page, 20 * MIB)
    await page.evaluate(() => (globalThis as unknown as InPage).pause.abort())
    expect(await ended(page)).toBe('aborted')
    const steps = await page.evaluate(() => (globalThis as unknown as InPage).steps)
    const timed = steps.filter(({ remainingSeconds }) => remainingSeconds !== null)
    for (const { remainingSeconds, loadedBytes, totalBytes, bytesPerSecond } of timed) {
      expect(remainingSeconds).toBeCloseTo((totalBytes - loadedBytes) / bytesPerSecond, 3)
    }
    expect(timed.length).toBeGreaterThan(3)
    const partial = { tag: '@me/one', status: 'partial', bytes: CHUNK, pinned: false, inUse: false }
    expect(await storage(page, 'list')).toMatchObject([partial])
    expect(await storage(page, 'usage')).toMatchObject({ bytes: CHUNK })

    await page.reload()
    await serveTags(page, tags)
    expect(await load(page, '@me/one')).toBe('model_unusable')
    const [, second] = await weights.seen()
    expect(second).toMatchObject({ range: `bytes=${CHUNK}-`, sent: 24 * MIB })
    expect(await storage(page, 'list')).toMatchObject([{ status: 'stored', bytes: 40 * MIB }])
    expect(await digest(page, weights.resource.sha256)).toBe(weights.resource.sha256)

    await begin(page, '@me/two')
    await untilLoaded(page, 20 * MIB)
    expect(await storage(page, 'list')).toMatchObject([{}, { tag: '@me/two', inUse: true }])
    await storage(page, 'remove', '@me/two')
    expect(await ended(page)).toMatch(/unloaded|download_replaced/)
    expect((await storage(page, 'list')).map(({ tag }) => tag)).toEqual(['@me/one'])
    await storage(page, 'clear')
    expect(await storage(page, 'resources')).toEqual([])
  },
)

test(
  'tabs that ask for the same at once have it downloaded once, with a service worker or without',
  { tags: ['slow'] },
  async () => {
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
      for (const page of pages) await serveTags(page, { '@me/one': [weights] })
      const { sha256 } = weights.resource
      const got = await Promise.all(pages.map((page) => digest(page, sha256)))
      expect(got).toEqual([sha256, sha256])
      expect((await weights.seen()).map(({ range }) => range)).toEqual([null])
      expect(await sent(weights)).toBe(bytes)
      await context.close()
    }
  },
)

test(
  'room is made by what was not used for longest, never by what is pinned; else it is refused',
  { tags: ['slow'] },
  async () => {
    profile = mkdtempSync(join(tmpdir(), 'inorigin-'))
    site = await openSite({ profile })
    const page = await site.open()
    const cdp = await site.context.newCDPSession(page)
    const { origin } = new URL(site.url)
    await cdp.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 100e6 })
    const names = ['one', 'two', 'three', 'four']
    const files = await Promise.all(names.map(() => file({ bytes: 30 * MIB })))
    const huge = await file({ bytes: 1, name: 'huge.onnx' })
    const tags = Object.fromEntries(names.map((name, index) => [`@me/${name}`, [files[index]!]]))
    const hugeFile = { ...huge, resource: { ...huge.resource, bytes: 300 * MIB } }
    await serveTags(page, { ...tags, '@me/huge': [hugeFile] })
    const tagsHere = async () =>
      (await storage(page, 'list')).map(({ tag }: StoredTag) => tag.slice('@me/'.length)).toSorted()

    for (const name of ['one', 'two', 'three']) await load(page, `@me/${name}`)
    expect(await tagsHere()).toEqual(['one', 'three', 'two'])
    await storage(page, 'pin', '@me/one')
    // The first would go; it is pinned, so the second does.
    await load(page, '@me/four')
    expect(await tagsHere()).toEqual(['four', 'one', 'three'])

    const refused = await page.evaluate(async () => {
      const { server } = globalThis as unknown as InPage
      const error = await server.models.load('@me/huge').catch((thrown) => thrown)
      return { code: error.code, message: error.message, details: error.details }
    })
    expect(refused.code).toBe('storage_full')
    expect(refused.details.neededBytes).toBe(300 * MIB)
    const { freeBytes, missingBytes } = refused.details
    expect(freeBytes + missingBytes).toBe(300 * MIB)
    expect(freeBytes).toBeLessThan(10e6)
    const removable = refused.details.removable as StoredTag[]
    expect(removable.map(({ tag, bytes, pinned }) => [tag, bytes, pinned])).toEqual([
      ['@me/three', 30 * MIB, false],
      ['@me/four', 30 * MIB, false],
      ['@me/one', 30 * MIB, true],
    ])
    expect(refused.message).toMatch(
      /MB are missing.*@me\/three \(31 MB\), .*@me\/one \(31 MB, pinned\)/,
    )
    expect(await huge.seen()).toEqual([])
    // Nothing went for what would not have fitted all the same.
    expect(await tagsHere()).toEqual(['four', 'one', 'three'])

    await storage(page, 'unpin', '@me/one')
    await load(page, '@me/two')
    expect(await tagsHere()).toEqual(['four', 'three', 'two'])
  },
)

test('what a disk loses is fetched again, and nothing else', { tags: ['slow'] }, async () => {
  profile = mkdtempSync(join(tmpdir(), 'inorigin-'))
  site = await openSite({ profile })
  const weights = await file({ bytes: 3 * CHUNK + 1000 })
  const { sha256 } = weights.resource
  const first = await site.open()
  await serveTags(first, { '@me/one': [weights] })
  expect(await digest(first, sha256)).toBe(sha256)
  await site.context.close()

  const [gone, short, zeros] = blobFiles(profile)
  rmSync(gone!)
  truncateSync(short!, 1000)
  writeFileSync(zeros!, Buffer.alloc(CHUNK))
  const again = await chromium.launchPersistentContext(profile, chromiumLaunch())
  const page = await site.open('/blank.html', again)
  await serveTags(page, { '@me/one': [weights] })
  // The zeros are as long as they should be, but what is broken beside them has all of it looked at.
  expect(await digest(page, sha256)).toBe(sha256)
  expect(await sent(weights)).toBe(weights.resource.bytes + 3 * CHUNK)
  await again.close()

  writeFileSync(blobFiles(profile)[1]!, Buffer.alloc(CHUNK))
  const last = await chromium.launchPersistentContext(profile, chromiumLaunch())
  const looked = await site.open('/blank.html', last)
  await serveTags(looked, { '@me/one': [weights] })
  // A load that fails on it repairs it by itself; here it fails for good, after one more try.
  expect(await load(looked, '@me/one')).toBe('model_unusable')
  expect(await sent(weights)).toBe(weights.resource.bytes + 4 * CHUNK)
  expect(await storage(looked, 'repair', '@me/one')).toBe(0)
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
