/** Another version of `inorigin/` replaces the kept one as a whole, and damaged copies are not used. */
import type { Page } from 'playwright'
import { afterEach, expect, test } from 'vitest'
import {
  builtFile,
  damageKept,
  keysIn,
  listenIn,
  untilKept,
  useAll,
  versionOf,
} from '../support/offline.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

let site: Site

afterEach(() => site?.close())

/** Opens a site of version 1, a tab that has used it, and one that hears which scripts run. */
async function openFirst(): Promise<{ page: Page; ran: () => Promise<string[]> }> {
  site = await openSite({ pages: { ...versionOf(1), '/listen.html': '<!doctype html>' } })
  const ran = await listenIn(await site.open('/listen.html'))
  const page = await site.open()
  await serveIn(page, { device: 'wasm' })
  expect((await useAll(page, '@inorigin/guide1')).chat).toBe(200)
  await untilKept(site, page)
  return { page, ran }
}

async function reload(page: Page): Promise<void> {
  await page.reload()
  await serveIn(page, { device: 'wasm' })
}

/** What ran since the last call, once each. */
function since(ran: () => Promise<string[]>): () => Promise<string[]> {
  let seen = 0
  return async () => {
    const all = await ran()
    const later = new Set(all.slice(seen))
    seen = all.length
    return [...later].toSorted()
  }
}

const both = (version: number) => [`model-worker.js ${version}`, `worker.js ${version}`]

test('a new version is noticed at the next start, and replaces the old one', async () => {
  const { page, ran } = await openFirst()
  const now = since(ran)
  expect(await now()).toEqual(both(1))
  Object.assign(site.pages, versionOf(2))
  await reload(page)
  expect((await useAll(page, '@inorigin/guide2')).chat).toBe(200)
  expect(await now()).toEqual(both(2))
  await untilKept(site, page)
  // The files of the old version are removed after those of the new one are complete.
  for (const name of ['worker.js', 'model-worker.js', 'models/catalog.json']) {
    const kept = async () => (await keysIn(site, page)).filter((key) => key.startsWith(name))
    await expect.poll(kept).toHaveLength(1)
  }
  // The runtime is the same in both versions, and was not fetched again.
  const fetched = site.requests.filter((request) => request.endsWith('simd-threaded.wasm'))
  expect(fetched).toHaveLength(1)

  const other = await site.open()
  await serveIn(other, { device: 'wasm' })
  await site.endServer()
  await page.close()
  expect((await useAll(other, '@inorigin/guide2')).chat).toBe(200)
  expect(await now()).toEqual(both(2))
})

test(
  'a host that runs goes on in its version while the server has another',
  { tags: ['slow'] },
  async () => {
    const { page, ran } = await openFirst()
    await reload(page)
    const now = since(ran)
    await now()
    Object.assign(site.pages, versionOf(2))
    // The model worker starts now, from what is kept.
    expect((await useAll(page, '@inorigin/guide1')).chat).toBe(200)
    expect(await now()).toEqual(['model-worker.js 1'])
    await reload(page)
    expect((await useAll(page, '@inorigin/guide2')).chat).toBe(200)
    expect(await now()).toEqual(both(2))
  },
)

test('a folder that is half replaced on the server is not used', async () => {
  const { page, ran } = await openFirst()
  const now = since(ran)
  await now()
  const next = versionOf(2)
  for (const name of ['files.json', 'model-worker.js']) {
    site.pages[`/inorigin/${name}`] = next[`/inorigin/${name}`] ?? ''
  }
  await reload(page)
  expect((await useAll(page, '@inorigin/guide1')).chat).toBe(200)
  expect(await now()).toEqual(both(1))
  Object.assign(site.pages, next)
  await reload(page)
  expect((await useAll(page, '@inorigin/guide2')).chat).toBe(200)
  expect(await now()).toEqual(both(2))
})

test(
  'a version that was not kept as a whole does not start without the server',
  { tags: ['slow'] },
  async () => {
    const { page, ran } = await openFirst()
    const now = since(ran)
    await now()
    // One file of the next version is missing on the server.
    const list = JSON.parse(versionOf(2)['/inorigin/files.json'] ?? '')
    list.files.push({ name: 'chunks/lost.js', sha256: '0'.repeat(64), precache: true })
    Object.assign(site.pages, versionOf(2), { '/inorigin/files.json': JSON.stringify(list) })
    await reload(page)
    expect((await useAll(page, '@inorigin/guide2')).chat).toBe(200)
    expect(await now()).toEqual(both(2))
    const other = await site.open()
    await serveIn(other, { device: 'wasm' })
    await site.endServer()
    await page.close()
    expect((await useAll(other, '@inorigin/guide1')).chat).toBe(200)
    expect(await now()).toEqual(both(1))
  },
)

test('a file that was changed by hand is used at once', { tags: ['slow'] }, async () => {
  const { page, ran } = await openFirst()
  const now = since(ran)
  await now()
  for (const name of ['worker.js', 'model-worker.js']) {
    site.pages[`/inorigin/${name}`] = versionOf(3)[`/inorigin/${name}`] ?? ''
  }
  await reload(page)
  expect((await useAll(page, '@inorigin/guide1')).chat).toBe(200)
  expect(await now()).toEqual(both(3))
})

test('the copy that is kept of a runtime answers its first request, too', async () => {
  const name = '/inorigin/ort/ort-wasm-simd-threaded.wasm'
  // Only the kept copy has the right type.
  const headers = (path: string): Record<string, string> =>
    path === name ? { 'content-type': 'application/octet-stream' } : {}
  site = await openSite({ headers, pages: versionOf(1) })
  const page = await site.open()
  await serveIn(page, { device: 'wasm' })
  const type = await page.evaluate(
    async (path) => (await fetch(path, { cache: 'no-cache' })).headers.get('content-type'),
    name,
  )
  expect(type).toBe('application/wasm')
  expect(site.requests.filter((request) => request.endsWith(name))).toHaveLength(1)
})

test('a kept runtime that is cut off is fetched again', { tags: ['slow'] }, async () => {
  const { page } = await openFirst()
  const name = 'ort/ort-wasm-simd-threaded.wasm'
  const fetched = () => site.requests.filter((request) => request.endsWith(name)).length
  expect(fetched()).toBe(1)
  await reload(page)
  expect((await useAll(page, '@inorigin/guide1')).chat).toBe(200)
  expect(fetched()).toBe(1)
  await damageKept(site, page, `${name}?`, 'cut')
  await reload(page)
  expect((await useAll(page, '@inorigin/guide1')).chat).toBe(200)
  expect(fetched()).toBe(2)
  await untilKept(site, page)
})

test('a kept script that was tampered with does not run', async () => {
  const { page, ran } = await openFirst()
  await damageKept(site, page, '/worker.js?', 'replace')
  const other = await site.open()
  await serveIn(other, { device: 'wasm' })
  await site.endServer()
  await page.close()
  const status = await other.evaluate(async () => (await fetch('/v1/models')).status)
  expect(status).toBe(503)
  expect(await ran()).not.toContain('tampered')
  expect((await keysIn(site, other)).filter((key) => key.startsWith('worker.js'))).toEqual([])
  expect(builtFile('worker.js')).not.toContain('tampered')
})
