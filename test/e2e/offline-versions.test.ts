/** Another version of `inorigin/` replaces the kept one as a whole, and damaged copies are not used. */
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import {
  builtFile,
  damageKept,
  keysIn,
  listenIn,
  openFollower,
  SCRIPTS,
  untilKept,
  useAll,
  versionOf,
} from '../support/offline.ts'
import { fetchIn } from '../support/requests.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const SLOW = { tags: ['slow'] }
const RUNTIME = 'ort/ort-wasm-simd-threaded.wasm'

let site: Site

afterEach(() => site?.close())

const both = (version: number) => SCRIPTS.map((name) => `${name} ${version}`).toSorted()

/**
 * Opens a site of version 1 and a tab that has used it. `now` resolves with the scripts that ran since
 * the last call, once each.
 */
async function openFirst(): Promise<{ page: Page; now: () => Promise<string[]> }> {
  site = await openSite({ pages: { ...versionOf(1), '/listen.html': '<!doctype html>' } })
  const ran = await listenIn(await site.open('/listen.html'))
  const page = await openFollower(site)
  await expectVersion(page, 1)
  await untilKept(site, page)
  let seen = 0
  const now = async () => {
    const all = await ran()
    const later = new Set(all.slice(seen))
    seen = all.length
    return [...later].toSorted()
  }
  expect(await now()).toEqual(both(1))
  return { page, now }
}

/** Expects that the catalog is that of the version, and uses its model. */
async function expectVersion(page: Page, version: number): Promise<void> {
  expect((await useAll(page, `@inorigin/guide${version}`)).chat).toBe(200)
}

async function reload(page: Page): Promise<void> {
  await page.reload()
  await serveIn(page, { device: 'wasm' })
}

/** Files of the next version, or some of them, are served from now on. */
function deploy(version: number, names?: readonly string[]): void {
  const pages = Object.entries(versionOf(version))
  const some = pages.filter(([path]) => names?.includes(path.slice('/inorigin/'.length)) ?? true)
  Object.assign(site.pages, Object.fromEntries(some))
}

const fetchesOf = (name: string) => site.requests.filter((line) => line.endsWith(name)).length

test('a new version is noticed at the next start, and replaces the old one', SLOW, async () => {
  const { page, now } = await openFirst()
  await reload(page)
  await now()
  deploy(2)
  // The host that runs stays in its version: the model worker starts from what is kept.
  await expectVersion(page, 1)
  expect(await now()).toEqual(['model-worker.js 1'])
  await reload(page)
  await expectVersion(page, 2)
  expect(await now()).toEqual(both(2))
  await untilKept(site, page)
  // The files of the old version are removed after those of the new one are complete.
  for (const name of [...SCRIPTS, 'models/catalog.json']) {
    const kept = async () => (await keysIn(site, page)).filter((key) => key.startsWith(name))
    await expect.poll(kept).toHaveLength(1)
  }
  // The runtime is the same in both versions, and was not fetched again.
  expect(fetchesOf(RUNTIME)).toBe(1)

  const other = await openFollower(site)
  await site.endServer()
  await page.close()
  await expectVersion(other, 2)
  expect(await now()).toEqual(both(2))
})

test('a folder that is half replaced on the server is not used', SLOW, async () => {
  const { page, now } = await openFirst()
  deploy(2, ['files.json', 'model-worker.js'])
  await reload(page)
  await expectVersion(page, 1)
  expect(await now()).toEqual(both(1))
  deploy(2)
  await reload(page)
  await expectVersion(page, 2)
  expect(await now()).toEqual(both(2))
})

test('a version that is not kept as a whole does not start without the server', SLOW, async () => {
  const { page, now } = await openFirst()
  // One file of the next version is missing on the server.
  const list = JSON.parse(versionOf(2)['/inorigin/files.json'] ?? '')
  list.files.push({ name: 'chunks/lost.js', sha256: '0'.repeat(64), precache: true })
  deploy(2)
  site.pages['/inorigin/files.json'] = JSON.stringify(list)
  await reload(page)
  await expectVersion(page, 2)
  expect(await now()).toEqual(both(2))
  const other = await openFollower(site)
  await site.endServer()
  await page.close()
  await expectVersion(other, 1)
  expect(await now()).toEqual(both(1))
})

test('a new version runs at the first start after the server was down', SLOW, async () => {
  const { page, now } = await openFirst()
  site.answerAll({ status: 503, html: '<!doctype html><title>Down</title>' })
  // The service worker notices that the server is down.
  await fetchIn(page, '/inorigin/worker.js')
  site.answerAll(null)
  deploy(2)
  await reload(page)
  await expectVersion(page, 2)
  expect(await now()).toEqual(both(2))
})

test('a new version that the server sends too late for a start is kept', SLOW, async () => {
  const { page, now } = await openFirst()
  const [other, next] = [await openFollower(site), await openFollower(site)]
  let release = (): void => {}
  site.answerAll(new Promise<void>((resolve) => (release = resolve)))
  deploy(2)
  await page.close()
  // The host that runs stays in its version, also in what it starts later.
  expect((await fetchIn(other, '/v1/models')).status).toBe(200)
  release()
  site.answerAll(null)
  await untilKept(site, other)
  await expectVersion(other, 1)
  expect(await now()).toEqual(both(1))
  await site.endServer()
  await other.close()
  await expectVersion(next, 2)
  expect(await now()).toEqual(both(2))
})

test('a file that was changed by hand is used at once', SLOW, async () => {
  const { page, now } = await openFirst()
  deploy(3, SCRIPTS)
  await reload(page)
  await expectVersion(page, 1)
  expect(await now()).toEqual(both(3))
})

test('the copy that is kept of a runtime answers its first request, too', async () => {
  const name = `/inorigin/${RUNTIME}`
  // Only the kept copy has the right type.
  const headers = (path: string): Record<string, string> =>
    path === name ? { 'content-type': 'application/octet-stream' } : {}
  site = await openSite({ headers, pages: versionOf(1) })
  const page = await openFollower(site)
  const type = await page.evaluate(
    async (path) => (await fetch(path, { cache: 'no-cache' })).headers.get('content-type'),
    name,
  )
  expect(type).toBe('application/wasm')
  expect(fetchesOf(name)).toBe(1)
})

test(
  'a kept file that is cut off is fetched again, and a tampered one does not run',
  SLOW,
  async () => {
    const { page, now } = await openFirst()
    expect(fetchesOf(RUNTIME)).toBe(1)
    await reload(page)
    await expectVersion(page, 1)
    expect(fetchesOf(RUNTIME)).toBe(1)
    await damageKept(site, page, `${RUNTIME}?`, 'cut')
    await reload(page)
    await expectVersion(page, 1)
    expect(fetchesOf(RUNTIME)).toBe(2)
    await untilKept(site, page)

    await damageKept(site, page, '/worker.js?', 'replace')
    const other = await openFollower(site)
    await site.endServer()
    await page.close()
    expect((await fetchIn(other, '/v1/models')).status).toBe(503)
    expect(await now()).not.toContain('tampered')
    expect((await keysIn(site, other)).filter((key) => key.startsWith('worker.js'))).toEqual([])
    expect(builtFile('worker.js')).not.toContain('tampered')
  },
)
