/** The library's own files in Cache Storage, where a model needs their space. */
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Database } from '../../../src/store/database.ts'
import { ensureResources } from '../../../src/store/ensure.ts'
import { hasResource } from '../../../src/store/resources.ts'
import {
  countAssetBytes,
  listAssets,
  openAssetCache,
  removeAssets,
  toAssetKey,
  toStoredResponse,
} from '../../../src/values/asset-cache.ts'
import { fileOn, freshDatabase, KIB, never, QUICK, storedBytes } from './fixture.ts'

const options = { signal: never(), tuning: QUICK }
const MIB = 1024 * KIB
const URL_OF_FILE = `${location.origin}/inorigin/worker.js`

let database: Database

async function keep(bytes: number): Promise<void> {
  const cache = await openAssetCache(database.name)
  await cache.put(toAssetKey(URL_OF_FILE, 'a'), toStoredResponse(new ArrayBuffer(bytes)))
}

beforeEach(() => {
  database = freshDatabase()
  const { name } = database
  onTestFinished(() => removeAssets(name))
})

test('are counted and listed without the parameter of their key', async () => {
  expect([await listAssets(database.name), await countAssetBytes(database.name)]).toEqual([[], 0])
  // Listing creates nothing.
  expect(await caches.has(`${database.name}:assets`)).toBe(false)
  await keep(40 * KIB)
  expect(await listAssets(database.name)).toEqual([{ url: URL_OF_FILE, bytes: 40 * KIB }])
  await removeAssets(database.name)
  expect(await countAssetBytes(database.name)).toBe(0)
})

test('free their space at once, also after they were listed', async () => {
  const usage = async () => (await navigator.storage.estimate()).usage ?? 0
  const cache = await openAssetCache(database.name)
  const before = await usage()
  await keep(8 * MIB)
  expect(await usage()).toBeGreaterThan(before + 7 * MIB)
  expect(await countAssetBytes(database.name)).toBe(8 * MIB)
  await removeAssets(database.name)
  expect(await usage()).toBeLessThan(before + MIB)
  // Another thread may hold the cache for as long as it runs.
  expect(await cache.keys()).toEqual([])
})

describe('with 40 KiB of them, two models of 40 KiB and 30 KiB of free space,', () => {
  /** Stores the models, then downloads a file of that size. Resolves with what is there then. */
  async function download(kibibytes: number) {
    vi.spyOn(navigator.storage, 'estimate').mockImplementation(async () => ({
      quota: 150 * KIB,
      usage: (await storedBytes(database)) + (await countAssetBytes(database.name)),
    }))
    onTestFinished(() => void vi.restoreAllMocks())
    const models = await Promise.all(
      ['old', 'new'].map((name) => fileOn({ bytes: 40 * KIB, name })),
    )
    for (const { resource } of models) await ensureResources(database, [resource], options)
    await keep(40 * KIB)
    const { resource } = await fileOn({ bytes: kibibytes * KIB })
    const result = await ensureResources(database, [resource], options).then(
      () => 'stored',
      (error: { code: string }) => error.code,
    )
    const here = await Promise.all(
      models.map((model) => hasResource(database, model.resource.sha256)),
    )
    return { result, here, kept: (await countAssetBytes(database.name)) / KIB }
  }

  test.for([
    ['they go alone if they suffice', 60, { result: 'stored', here: [true, true], kept: 0 }],
    ['they stay if only models suffice', 110, { result: 'stored', here: [false, false], kept: 40 }],
    [
      'they go with the models if all is needed',
      140,
      { result: 'stored', here: [false, false], kept: 0 },
    ],
    [
      'all stay if even that is not enough',
      200,
      { result: 'storage_full', here: [true, true], kept: 40 },
    ],
  ] as const)('%s', async ([, kibibytes, expected]) => {
    expect(await download(kibibytes)).toEqual(expected)
  })
})

test('they go before any model if a write is refused, though there seemed to be space', async () => {
  const { resource: stored } = await fileOn({ bytes: 40 * KIB, name: 'stored' })
  await ensureResources(database, [stored], options)
  await keep(40 * KIB)
  let isFull = true
  const { put } = IDBObjectStore.prototype
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (
    this: IDBObjectStore,
    value: unknown,
    key,
  ) {
    if (this.name === 'chunks' && isFull) throw new DOMException('No space.', 'QuotaExceededError')
    return key === undefined ? put.call(this, value) : put.call(this, value, key)
  })
  const remove = caches.delete.bind(caches)
  vi.spyOn(caches, 'delete').mockImplementation(async (name) => {
    isFull = false
    return remove(name)
  })
  onTestFinished(() => void vi.restoreAllMocks())
  const { resource } = await fileOn({ bytes: 20 * KIB })
  await ensureResources(database, [resource], options)
  expect(await hasResource(database, stored.sha256)).toBe(true)
  expect(await countAssetBytes(database.name)).toBe(0)
})
