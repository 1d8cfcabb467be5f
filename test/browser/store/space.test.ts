/** Space for models: disks and browsers that take less than they said, and what makes way. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Database } from '../../../src/store/database.ts'
import { ensureResources } from '../../../src/store/ensure.ts'
import { measureFreeBytes } from '../../../src/store/eviction.ts'
import { type FileMatch, importFile, importFiles } from '../../../src/store/import-file.ts'
import { removeTag, setPin, type CatalogIndex } from '../../../src/store/inventory.ts'
import { countPendingDeletion, trackDeletion } from '../../../src/store/pending-deletions.ts'
import { findResourceRecord, hasResource, removeResource } from '../../../src/store/resources.ts'
import type { Tag } from '../../../src/types/index.ts'
import {
  countAssetBytes,
  listAssets,
  openAssetCache,
  removeAssets,
  toAssetKey,
  toStoredResponse,
} from '../../../src/values/asset-cache.ts'
import { fileOn, freshDatabase, KIB, never, QUICK, spyOnPut, storedBytes } from './fixture.ts'

const MIB = 1024 * KIB
const options = { signal: never(), tuning: QUICK }

let database: Database

beforeEach(() => {
  database = freshDatabase()
  vi.spyOn(navigator.storage, 'estimate').mockResolvedValue({ quota: 1e9, usage: 0 })
})

afterEach(() => {
  vi.restoreAllMocks()
})

/** Gives the browser that quota, of which `countUsed` bytes are used. */
const setQuota = (quota: number, countUsed: () => number | Promise<number>) =>
  vi
    .mocked(navigator.storage.estimate)
    .mockImplementation(async () => ({ quota, usage: await countUsed() }))

/**
 * Makes a disk of that many bytes, which a browser counts as it should; `late` milliseconds after something is
 * deleted its space is free again.
 */
function limitDisk(bytes: number, { late = 0, quota = 1e9 } = {}): void {
  const sizes = new Map<string, number>()
  let leaving = 0
  const used = () => [...sizes.values()].reduce((sum, each) => sum + each, leaving)
  setQuota(quota, used)
  spyOnPut(({ name }, value, key) => {
    if (name !== 'chunks') return
    const size = value instanceof Blob ? value.size : (value as ArrayBuffer).byteLength
    const before = sizes.get(String(key)) ?? 0
    if (used() - before + size > bytes) throw new DOMException('No space.', 'QuotaExceededError')
    sizes.set(String(key), size)
  })
  const { delete: remove } = IDBObjectStore.prototype
  vi.spyOn(IDBObjectStore.prototype, 'delete').mockImplementation(function (
    this: IDBObjectStore,
    key,
  ) {
    const first = String(key instanceof IDBKeyRange ? (key.lower as unknown[])[0] : key)
    for (const [one, size] of sizes) {
      if (!one.startsWith(first)) continue
      sizes.delete(one)
      if (late === 0) continue
      leaving += size
      setTimeout(() => (leaving -= size), late)
    }
    return remove.call(this, key)
  })
}

/** Stores files of 40 KiB unless `bytes` says otherwise, in that order, each for a tag of its own. */
async function storeTags(tags: readonly Tag[], bytes = 40 * KIB) {
  const files = await Promise.all(tags.map((name) => fileOn({ bytes, name, piece: 256 * KIB })))
  for (const [index, { resource }] of files.entries()) {
    await ensureResources(database, [resource], { ...options, tag: tags[index] })
  }
  const isStored = (index: number) => hasResource(database, files[index]!.resource.sha256)
  return {
    files,
    /** Resolves with the tags that are still stored. */
    here: async () => {
      const stored = await Promise.all(tags.map((_, index) => isStored(index)))
      return tags.filter((_, index) => stored[index])
    },
  }
}

test('a download on a full disk evicts what was least recently used, and continues', async () => {
  limitDisk(140 * KIB)
  const { here } = await storeTags(['@a/pinned', '@a/old', '@a/new'])
  await setPin(database, '@a/pinned', true)
  const file = await fileOn({ bytes: 70 * KIB })
  const found = await ensureResources(database, [file.resource], options)
  expect(found.get('model.onnx')?.size).toBe(70 * KIB)
  expect(await here()).toEqual(['@a/pinned'])
  // The chunk that was there is not fetched again.
  expect((await file.seen()).map(({ range }) => range)).toEqual([null, `bytes=${16 * KIB}-`])
})

test('several downloads that are refused at once evict once', async () => {
  limitDisk(200 * KIB)
  const { here } = await storeTags(['@a/one', '@a/two', '@a/three', '@a/four', '@a/five'])
  const files = await Promise.all(['x', 'y', 'z'].map((name) => fileOn({ bytes: 20 * KIB, name })))
  const found = await ensureResources(
    database,
    files.map(({ resource }) => resource),
    options,
  )
  expect(found.size).toBe(3)
  expect(await here()).toEqual(['@a/three', '@a/four', '@a/five'])
})

describe('a browser that is slow to free space', { tags: ['slow'] }, () => {
  const slow = { late: 3500, quota: 1e9 }
  const tuned = { signal: never(), tuning: { ...QUICK, chunkBytes: MIB } }
  const storeThree = () => storeTags(['@a/one', '@a/two', '@a/three'], 2 * MIB)

  test('is waited for: no second model goes in place of the first', async () => {
    limitDisk(7 * MIB, { ...slow, quota: 7 * MIB })
    const { here } = await storeThree()
    const file = await fileOn({ bytes: 2 * MIB, piece: MIB })
    await ensureResources(database, [file.resource], tuned)
    expect(await here()).toEqual(['@a/two', '@a/three'])
    // Nothing was fetched for a place that was not there yet.
    expect((await file.seen()).map(({ range }) => range)).toEqual([null])
  })

  test('is waited for if it reports space and refuses writes', async () => {
    limitDisk(7 * MIB, slow)
    const { here } = await storeThree()
    const files = await Promise.all(
      ['x', 'y'].map((name) => fileOn({ bytes: MIB, name, piece: MIB })),
    )
    await Promise.all(files.map(({ resource }) => ensureResources(database, [resource], tuned)))
    expect(await here()).toEqual(['@a/two', '@a/three'])
  })

  test('is waited for after the user removed a model', async () => {
    limitDisk(7 * MIB, { ...slow, quota: 7 * MIB })
    const { here } = await storeThree()
    await removeTag(database, '@a/three')
    const file = await fileOn({ bytes: 2 * MIB, piece: MIB })
    await ensureResources(database, [file.resource], tuned)
    expect(await here()).toEqual(['@a/one', '@a/two'])
  })

  test('is waited for with a limit, and nothing more is evicted', async () => {
    limitDisk(7 * MIB, { late: 1e6, quota: 7 * MIB })
    const { here } = await storeThree()
    const file = await fileOn({ bytes: 2 * MIB, piece: MIB })
    // A minute takes a second and a half.
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() * 40)
    await expect(ensureResources(database, [file.resource], tuned)).rejects.toMatchObject({
      code: 'storage_full',
      message: expect.stringContaining('The browser has not given back 2.1 MB of what was removed'),
      retryAfter: 60,
      details: { neededBytes: 2 * MIB, missingBytes: MIB, freeBytes: MIB },
    })
    expect(await here()).toEqual(['@a/two', '@a/three'])
    expect(await file.seen()).toEqual([])
  })

  test('has pending deletions that began within each other', async () => {
    limitDisk(20 * MIB, { late: 1e6 })
    const tags = ['one', 'two'].map((name) => fileOn({ bytes: 2 * MIB, name, piece: MIB }))
    const [one, two] = (await Promise.all(tags)).map(({ resource }) => resource)
    await ensureResources(database, [one!, two!], tuned)
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    let second: Promise<void> | undefined
    const first = trackDeletion(database, 2 * MIB, async () => {
      await removeResource(database, one!.sha256)
      second = trackDeletion(database, 2 * MIB, async () => {
        begin()
        await first
        await removeResource(database, two!.sha256)
      })
      await begun
    })
    await first
    await second
    expect(await countPendingDeletion(database)).toBe(4 * MIB)
  })

  test('has a pending deletion of a file that proved to be another', async () => {
    limitDisk(20 * MIB, { late: 1e6 })
    const { resource, content } = await fileOn({ bytes: 2 * MIB })
    const other = new Blob([content.slice(0, -1), 'x'])
    const how = { tag: '@me/model', signal: never(), onBytes: () => undefined } as const
    expect(await importFile(database, resource, other, how)).toBe(false)
    expect(await countPendingDeletion(database)).toBe(2 * MIB)
  })

  test('does not hold a request that is aborted', async () => {
    limitDisk(7 * MIB, { late: 1e6, quota: 7 * MIB })
    const { here } = await storeThree()
    const file = await fileOn({ bytes: 2 * MIB, piece: MIB })
    const leaving = new AbortController()
    const load = ensureResources(database, [file.resource], { ...tuned, signal: leaving.signal })
    await vi.waitFor(async () => expect(await here()).toHaveLength(2), 20_000)
    leaving.abort()
    await expect(load).rejects.toMatchObject({ name: 'AbortError' })
    // Who comes next waits for the same.
    const next = new AbortController()
    const again = ensureResources(database, [file.resource], { ...tuned, signal: next.signal })
    again.catch(() => undefined)
    const { calls } = vi.mocked(navigator.storage.estimate).mock
    const looks = calls.length
    await vi.waitFor(() => expect(calls.length).toBeGreaterThan(looks + 2), 20_000)
    next.abort()
    await expect(again).rejects.toMatchObject({ name: 'AbortError' })
    expect(await here()).toEqual(['@a/two', '@a/three'])
  })
})

test('a file that does not fit evicts nothing, and the error names what could be removed', async () => {
  limitDisk(100 * KIB)
  const { here } = await storeTags(['@a/pinned', '@a/old'])
  await setPin(database, '@a/pinned', true)
  const file = await fileOn({ bytes: 90 * KIB })
  const error: unknown = await ensureResources(database, [file.resource], options).catch(
    (thrown) => thrown,
  )
  expect(error).toMatchObject({
    kind: 'unavailable',
    code: 'storage_full',
    message: expect.stringMatching(
      /are missing\..* @a\/old \(0\.0 MB\), @a\/pinned \(0\.0 MB, pinned\)/,
    ),
    details: { freeBytes: 0, removable: [{ tag: '@a/old' }, { tag: '@a/pinned', pinned: true }] },
  })
  expect(await here()).toEqual(['@a/pinned', '@a/old'])
  const record = await findResourceRecord(database, file.resource.sha256)
  expect(record?.chunks.filter((chunk) => chunk !== null)).toHaveLength(1)
})

test('the error does not suggest to remove a model that is in use', async () => {
  const closing = new AbortController()
  onTestFinished(() => closing.abort())
  const used = await fileOn({ bytes: 40 * KIB, name: 'used' })
  const inUse = { ...options, tag: '@a/used', inUse: closing.signal } as const
  await ensureResources(database, [used.resource], inUse)
  limitDisk(50 * KIB)
  const refuse = async () => {
    const file = await fileOn({ bytes: 900 * KIB })
    const thrown: unknown = await ensureResources(database, [file.resource], options).catch(
      (error) => error,
    )
    return thrown
  }
  expect(await refuse()).toMatchObject({
    code: 'storage_full',
    message: expect.stringMatching(/No model is stored that is not in use\./),
    details: { removable: [{ tag: '@a/used', inUse: true }] },
  })
  await storeTags(['@a/old'], 10 * KIB)
  expect(await refuse()).toMatchObject({
    message: expect.stringMatching(/server\.storage\.remove\(\): @a\/old \(0\.0 MB\)\.$/),
  })
})

test('an import evicts as a download does', async () => {
  limitDisk(100 * KIB)
  const { here } = await storeTags(['@a/old', '@a/new'])
  const { resource, content } = await fileOn({ bytes: 30 * KIB })
  const match: FileMatch = { path: 'model.onnx', file: new Blob([content]), resource }
  const how = { tag: '@me/model', signal: never(), onProgress: () => undefined } as const
  await importFiles(database, [match], how)
  expect(await hasResource(database, resource.sha256)).toBe(true)
  expect(await here()).toEqual(['@a/new'])
})

test('files without tags are pinned by what the catalog knows of them', async () => {
  const files = await Promise.all(
    ['pinned', 'other'].map((name) => fileOn({ bytes: 40 * KIB, name })),
  )
  const [pinned, other] = files.map(({ resource }) => resource)
  for (const resource of [pinned!, other!]) await ensureResources(database, [resource], options)
  await setPin(database, '@a/pinned', true)
  setQuota(100 * KIB, () => storedBytes(database))
  const catalogIndex = async (): Promise<CatalogIndex> => ({
    tagsOf: (sha256) => (sha256 === pinned!.sha256 ? ['@a/pinned'] : []),
    needs: () => undefined,
    isComplete: () => undefined,
  })
  const file = await fileOn({ bytes: 50 * KIB })
  await ensureResources(database, [file.resource], { ...options, catalogIndex })
  expect(await hasResource(database, pinned!.sha256)).toBe(true)
  expect(await hasResource(database, other!.sha256)).toBe(false)
})

test('files that a pinned tag had before its catalog changed make way', async () => {
  const { files } = await storeTags(['@a/pinned', '@a/pinned'])
  const [now, before] = files.map(({ resource }) => resource)
  await setPin(database, '@a/pinned', true)
  setQuota(100 * KIB, () => storedBytes(database))
  const catalogIndex = async (): Promise<CatalogIndex> => ({
    tagsOf: () => [],
    needs: (_, sha256) => sha256 === now!.sha256,
    isComplete: () => undefined,
  })
  const { resource } = await fileOn({ bytes: 50 * KIB })
  await expect(ensureResources(database, [resource], options)).rejects.toMatchObject({
    code: 'storage_full',
  })
  await ensureResources(database, [resource], { ...options, catalogIndex })
  expect(await hasResource(database, now!.sha256)).toBe(true)
  expect(await hasResource(database, before!.sha256)).toBe(false)
})

test('a browser that never measures its free space is not waited for', async () => {
  // Pages have no such files, workers do.
  Object.assign(FileSystemFileHandle.prototype, { createSyncAccessHandle: () => undefined })
  onTestFinished(() => {
    Reflect.deleteProperty(FileSystemFileHandle.prototype, 'createSyncAccessHandle')
  })
  const asked = vi
    .spyOn(navigator.storage, 'getDirectory')
    .mockReturnValue(new Promise(() => undefined))
  expect(await measureFreeBytes(1e6, 50)).toBe(1e9)
  // One that did not answer is not asked again.
  expect(await measureFreeBytes(1e6)).toBe(1e9)
  expect(asked).toHaveBeenCalledOnce()
})

describe("the library's own files in Cache Storage", () => {
  const URL_OF_FILE = `${location.origin}/inorigin/worker.js`

  async function keep(bytes: number): Promise<void> {
    const cache = await openAssetCache(database.name)
    await cache.put(toAssetKey(URL_OF_FILE, 'a'), toStoredResponse(new ArrayBuffer(bytes)))
  }

  beforeEach(() => {
    const { name } = database
    onTestFinished(() => removeAssets(name))
  })

  test('are counted and listed without the parameter of their key', async () => {
    expect([await listAssets(database.name), await countAssetBytes(database.name)]).toEqual([[], 0])
    // A list creates nothing.
    expect(await caches.has(`${database.name}:assets`)).toBe(false)
    await keep(40 * KIB)
    expect(await listAssets(database.name)).toEqual([{ url: URL_OF_FILE, bytes: 40 * KIB }])
    await removeAssets(database.name)
    expect(await countAssetBytes(database.name)).toBe(0)
  })

  test('free their space at once, also after they were listed', async () => {
    vi.restoreAllMocks()
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

  // There are 40 KiB of them, two models of 40 KiB, and 30 KiB of free space.
  test.for([
    ['go alone if they suffice', 60, { result: 'stored', models: 2, kept: 0 }],
    ['stay if only models suffice', 110, { result: 'stored', models: 0, kept: 40 }],
    ['go with the models if all is needed', 140, { result: 'stored', models: 0, kept: 0 }],
    ['stay if even that is not enough', 200, { result: 'storage_full', models: 2, kept: 40 }],
  ] as const)('%s', async ([, kibibytes, expected]) => {
    setQuota(
      150 * KIB,
      async () => (await storedBytes(database)) + (await countAssetBytes(database.name)),
    )
    const { here } = await storeTags(['@a/old', '@a/new'])
    await keep(40 * KIB)
    const { resource } = await fileOn({ bytes: kibibytes * KIB })
    const result = await ensureResources(database, [resource], options).then(
      () => 'stored',
      (error: { code: string }) => error.code,
    )
    const kept = (await countAssetBytes(database.name)) / KIB
    expect({ result, models: (await here()).length, kept }).toEqual(expected)
  })

  test('go before any model if a write is refused, though there seemed to be space', async () => {
    const { here } = await storeTags(['@a/stored'])
    await keep(40 * KIB)
    let isFull = true
    spyOnPut(({ name }) => {
      if (name === 'chunks' && isFull) throw new DOMException('No space.', 'QuotaExceededError')
    })
    const remove = caches.delete.bind(caches)
    vi.spyOn(caches, 'delete').mockImplementation(async (name) => {
      isFull = false
      return remove(name)
    })
    const { resource } = await fileOn({ bytes: 20 * KIB })
    await ensureResources(database, [resource], options)
    expect(await here()).toEqual(['@a/stored'])
    expect(await countAssetBytes(database.name)).toBe(0)
  })
})
