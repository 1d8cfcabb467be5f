/** Disks and browsers that take less than they said they would. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ensureResources } from '../../../src/store/ensure.ts'
import { importFiles, type FileMatch } from '../../../src/store/import.ts'
import { importFile } from '../../../src/store/import-file.ts'
import { removeTag, setPin, type CatalogIndex } from '../../../src/store/inventory.ts'
import type { Database } from '../../../src/store/database.ts'
import { trackDeletion, countPendingDeletion } from '../../../src/store/pending-deletions.ts'
import { measureFreeBytes } from '../../../src/store/free-space.ts'
import { hasResource, removeResource, findResourceRecord } from '../../../src/store/resources.ts'
import { fileOn, freshDatabase, KIB, never, QUICK, storedBytes } from './fixture.ts'

const options = { signal: never(), tuning: QUICK }

beforeEach(() => {
  vi.spyOn(navigator.storage, 'estimate').mockResolvedValue({ quota: 1e9, usage: 0 })
})

afterEach(() => {
  vi.restoreAllMocks()
})

/**
 * A disk of that many bytes, which a browser counts as it should; `late` milliseconds after something is
 * deleted its room is there again. Quota is what the browser says there is.
 */
function limitDisk(bytes: number, { late = 0, quota = 1e9 } = {}): void {
  const sizes = new Map<string, number>()
  let leaving = 0
  const used = () => [...sizes.values()].reduce((sum, each) => sum + each, leaving)
  vi.mocked(navigator.storage.estimate).mockImplementation(async () => ({ quota, usage: used() }))
  const { put, delete: remove } = IDBObjectStore.prototype
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (
    this: IDBObjectStore,
    value: unknown,
    key,
  ) {
    if (this.name === 'chunks') {
      const size = value instanceof Blob ? value.size : (value as ArrayBuffer).byteLength
      const before = sizes.get(String(key)) ?? 0
      if (used() - before + size > bytes) throw new DOMException('No space.', 'QuotaExceededError')
      sizes.set(String(key), size)
    }
    return key === undefined ? put.call(this, value) : put.call(this, value, key)
  })
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

/** Files of 40 KiB if not told, the first stored first, each for a tag of its own. */
async function storeTags(database: Database, tags: readonly string[], bytes = 40 * KIB) {
  const files = await Promise.all(tags.map((name) => fileOn({ bytes, name, piece: 256 * KIB })))
  for (const [index, { resource }] of files.entries()) {
    await ensureResources(database, [resource], {
      ...options,
      tag: tags[index] as `@${string}/${string}`,
    })
  }
  return {
    here: async () => {
      const all = await Promise.all(
        files.map(({ resource }) => hasResource(database, resource.sha256)),
      )
      return tags.filter((_, index) => all[index])
    },
  }
}

test('a disk that is full in the middle takes what was not used for longest, and goes on', async () => {
  const database = freshDatabase()
  limitDisk(140 * KIB)
  const { here } = await storeTags(database, ['@a/pinned', '@a/old', '@a/new'])
  await setPin(database, '@a/pinned', true)
  const file = await fileOn({ bytes: 70 * KIB })
  const found = await ensureResources(database, [file.resource], options)
  expect(found.get('model.onnx')?.size).toBe(70 * KIB)
  expect(await here()).toEqual(['@a/pinned'])
  // The chunk that was there is not fetched again.
  expect((await file.seen()).map(({ range }) => range)).toEqual([null, `bytes=${16 * KIB}-`])
})

test('what several downloads are refused at once makes room once', async () => {
  const database = freshDatabase()
  limitDisk(200 * KIB)
  const tags = ['@a/one', '@a/two', '@a/three', '@a/four', '@a/five']
  const { here } = await storeTags(database, tags)
  const files = await Promise.all(['x', 'y', 'z'].map((name) => fileOn({ bytes: 20 * KIB, name })))
  const found = await ensureResources(
    database,
    files.map(({ resource }) => resource),
    options,
  )
  expect(found.size).toBe(3)
  expect(await here()).toEqual(['@a/three', '@a/four', '@a/five'])
})

describe('a browser that is slow to give room back', { tags: ['slow'] }, () => {
  const MIB = 2 ** 20
  const slow = { late: 3500, quota: 1e9 }
  const tuned = { signal: never(), tuning: { ...QUICK, chunkBytes: MIB } }

  test('is waited for: no second one goes for what the first leaves', async () => {
    const database = freshDatabase()
    limitDisk(7 * MIB, { ...slow, quota: 7 * MIB })
    const { here } = await storeTags(database, ['@a/one', '@a/two', '@a/three'], 2 * MIB)
    const file = await fileOn({ bytes: 2 * MIB, piece: MIB })
    await ensureResources(database, [file.resource], tuned)
    expect(await here()).toEqual(['@a/two', '@a/three'])
    // Nothing was fetched for a place that was not there yet.
    expect((await file.seen()).map(({ range }) => range)).toEqual([null])
  })

  test('is waited for where it said that there was room, and writes are refused', async () => {
    const database = freshDatabase()
    limitDisk(7 * MIB, slow)
    const { here } = await storeTags(database, ['@a/one', '@a/two', '@a/three'], 2 * MIB)
    const files = await Promise.all(
      ['x', 'y'].map((name) => fileOn({ bytes: MIB, name, piece: MIB })),
    )
    await Promise.all(files.map(({ resource }) => ensureResources(database, [resource], tuned)))
    expect(await here()).toEqual(['@a/two', '@a/three'])
  })

  test('is waited for after the user made the room', async () => {
    const database = freshDatabase()
    limitDisk(7 * MIB, { ...slow, quota: 7 * MIB })
    const { here } = await storeTags(database, ['@a/one', '@a/two', '@a/three'], 2 * MIB)
    await removeTag(database, '@a/three')
    const file = await fileOn({ bytes: 2 * MIB, piece: MIB })
    await ensureResources(database, [file.resource], tuned)
    expect(await here()).toEqual(['@a/one', '@a/two'])
  })

  test('is not waited for without end, and nothing more goes for it', async () => {
    const database = freshDatabase()
    limitDisk(7 * MIB, { late: 1e6, quota: 7 * MIB })
    const { here } = await storeTags(database, ['@a/one', '@a/two', '@a/three'], 2 * MIB)
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

  test('owes what went at once, though one began when another had just gone', async () => {
    const database = freshDatabase()
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

  test('owes what was taken in of a file that proved to be another', async () => {
    const database = freshDatabase()
    limitDisk(20 * MIB, { late: 1e6 })
    const { resource, content } = await fileOn({ bytes: 2 * MIB })
    const other = new Blob([content.slice(0, -1), 'x'])
    const how = { tag: '@me/model', signal: never(), onBytes: () => undefined } as const
    expect(await importFile(database, resource, other, how)).toBe(false)
    expect(await countPendingDeletion(database)).toBe(2 * MIB)
  })

  test('can be left waiting', async () => {
    const database = freshDatabase()
    limitDisk(7 * MIB, { late: 1e6, quota: 7 * MIB })
    const { here } = await storeTags(database, ['@a/one', '@a/two', '@a/three'], 2 * MIB)
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

test('a disk that is full says what is missing and could be removed, and nothing goes for it', async () => {
  const database = freshDatabase()
  limitDisk(100 * KIB)
  const { here } = await storeTags(database, ['@a/pinned', '@a/old'])
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

test('a refusal does not suggest to remove a model that is in use', async () => {
  const database = freshDatabase()
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
  await storeTags(database, ['@a/old'], 10 * KIB)
  expect(await refuse()).toMatchObject({
    message: expect.stringMatching(/server\.storage\.remove\(\): @a\/old \(0\.0 MB\)\.$/),
  })
})

test('files of the user make room as downloads do', async () => {
  const database = freshDatabase()
  limitDisk(100 * KIB)
  const { here } = await storeTags(database, ['@a/old', '@a/new'])
  const { resource, content } = await fileOn({ bytes: 30 * KIB })
  const match: FileMatch = { path: 'model.onnx', file: new Blob([content]), resource }
  const how = { tag: '@me/model', signal: never(), onProgress: () => undefined } as const
  await importFiles(database, [match], how)
  expect(await hasResource(database, resource.sha256)).toBe(true)
  expect(await here()).toEqual(['@a/new'])
})

test('what was stored before tags were noted is pinned by what the catalog knows of it', async () => {
  const database = freshDatabase()
  const [pinned, other] = await Promise.all(
    ['pinned', 'other'].map((name) => fileOn({ bytes: 40 * KIB, name })),
  )
  for (const file of [pinned, other]) await ensureResources(database, [file!.resource], options)
  await setPin(database, '@a/pinned', true)
  vi.mocked(navigator.storage.estimate).mockImplementation(async () => ({
    quota: 100 * KIB,
    usage: await storedBytes(database),
  }))
  const catalogIndex = async (): Promise<CatalogIndex> => ({
    tagsOf: (sha256) => (sha256 === pinned!.resource.sha256 ? ['@a/pinned'] : []),
    needs: () => undefined,
    isComplete: () => undefined,
  })
  const file = await fileOn({ bytes: 50 * KIB })
  await ensureResources(database, [file.resource], { ...options, catalogIndex })
  expect(await hasResource(database, pinned!.resource.sha256)).toBe(true)
  expect(await hasResource(database, other!.resource.sha256)).toBe(false)
})

test('files that a pinned tag had before its catalog changed make way', async () => {
  const database = freshDatabase()
  const [before, now] = await Promise.all(
    ['before', 'now'].map((name) => fileOn({ bytes: 40 * KIB, name })),
  )
  for (const { resource } of [now!, before!]) {
    await ensureResources(database, [resource], { ...options, tag: '@a/pinned' })
  }
  await setPin(database, '@a/pinned', true)
  vi.mocked(navigator.storage.estimate).mockImplementation(async () => ({
    quota: 100 * KIB,
    usage: await storedBytes(database),
  }))
  const catalogIndex = async (): Promise<CatalogIndex> => ({
    tagsOf: () => [],
    needs: (_, sha256) => sha256 === now!.resource.sha256,
    isComplete: () => undefined,
  })
  const file = await fileOn({ bytes: 50 * KIB })
  await expect(ensureResources(database, [file.resource], options)).rejects.toMatchObject({
    code: 'storage_full',
  })
  await ensureResources(database, [file.resource], { ...options, catalogIndex })
  expect(await hasResource(database, now!.resource.sha256)).toBe(true)
  expect(await hasResource(database, before!.resource.sha256)).toBe(false)
})

test('a browser that never says how much there is really room for is not waited for', async () => {
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
