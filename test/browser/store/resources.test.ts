import { afterEach, describe, expect, test, vi } from 'vitest'
import type { WantedResource } from '../../../src/store/db.ts'
import {
  hasResource,
  readResource,
  removeResource,
  findResourceRecord,
  touchResources,
} from '../../../src/store/resources.ts'
import {
  acquireWriteLease,
  deleteAllChunks,
  deleteChunk,
  markVerified,
  putChunk,
  type WriteLease,
} from '../../../src/store/resource-writer.ts'
import type { Database } from '../../../src/store/database.ts'
import { contentOf } from '../../support/content.ts'
import { bytesOf, freshDatabase, listResources, same, storedBytes } from './fixture.ts'

const CHUNK = 1000
const content = contentOf(7, 2500)
const pieces = [content.slice(0, 1000), content.slice(1000, 2000), content.slice(2000)]

function wantedOf(sha256: string, changes: Partial<WantedResource> = {}): WantedResource {
  return { type: 'onnx', url: 'https://a.test/m', name: 'm', bytes: 2500, sha256, ...changes }
}

/** What stands for the hash of a chunk. */
const hash = (index: number) => `hash ${index}`

const write = (database: Database, lease: WriteLease, index: number, chunk: Blob) =>
  putChunk(database, lease, index, chunk, hash(index))

const finish = (database: Database, lease: WriteLease) =>
  markVerified(database, lease, [0, 1, 2].map(hash))

async function store(database: Database, sha256: string): Promise<void> {
  const lease = await acquireWriteLease(database, wantedOf(sha256), CHUNK)
  for (const [index, piece] of pieces.entries()) {
    await write(database, lease, index, new Blob([piece]))
  }
  await finish(database, lease)
}

afterEach(() => {
  vi.restoreAllMocks()
})

test('reads what was written, as one Blob', async () => {
  const database = freshDatabase()
  await store(database, 'a')
  const blob = await readResource(database, 'a')
  expect(same(await bytesOf(blob), content)).toBe(true)
  expect(same(await bytesOf(blob?.slice(990, 2010)), content.subarray(990, 2010))).toBe(true)
})

test('reads nothing before it is verified', async () => {
  const database = freshDatabase()
  const lease = await acquireWriteLease(database, wantedOf('a'), CHUNK)
  for (const [index, piece] of pieces.entries()) {
    await write(database, lease, index, new Blob([piece]))
    expect(await readResource(database, 'a')).toBeUndefined()
    expect(await hasResource(database, 'a')).toBe(false)
    expect(await listResources(database)).toEqual([])
  }
  await finish(database, lease)
  expect(await hasResource(database, 'a')).toBe(true)
})

test('removes, lists, and counts what is stored', async () => {
  const database = freshDatabase()
  await store(database, 'a')
  await store(database, 'b')
  const lease = await acquireWriteLease(database, wantedOf('c'), CHUNK)
  await write(database, lease, 0, new Blob([pieces[0]!]))
  expect((await listResources(database)).map(({ sha256 }) => sha256)).toEqual(['a', 'b'])
  expect(await storedBytes(database)).toBe(2 * 2500 + 1000)

  await removeResource(database, 'a')
  expect(await hasResource(database, 'a')).toBe(false)
  expect(await storedBytes(database)).toBe(2500 + 1000)
  const keys = await database.use((connection) => connection.getAllKeys('chunks'))
  expect(keys.map(([sha256]) => sha256)).toEqual(['b', 'b', 'b', 'c'])
})

test('lists the least recently used first', async () => {
  const database = freshDatabase()
  const now = vi.spyOn(Date, 'now')
  for (const [time, sha256] of ['a', 'b', 'c'].entries()) {
    now.mockReturnValue(1000 + time)
    await store(database, sha256)
  }
  now.mockReturnValue(2000)
  await touchResources(database, ['a', 'unknown'])
  expect((await listResources(database)).map(({ sha256 }) => sha256)).toEqual(['b', 'c', 'a'])
})

describe('a later download', () => {
  test('goes on with the chunks of one that ended', async () => {
    const database = freshDatabase()
    const first = await acquireWriteLease(database, wantedOf('a'), CHUNK)
    await write(database, first, 0, new Blob([pieces[0]!]))
    const second = await acquireWriteLease(database, wantedOf('a'), CHUNK)
    expect(second.chunks).toEqual([hash(0), null, null])
    await write(database, second, 1, new Blob([pieces[1]!]))
    await write(database, second, 2, new Blob([pieces[2]!]))
    await finish(database, second)
    expect(same(await bytesOf(await readResource(database, 'a')), content)).toBe(true)
  })

  test('starts over when the chunks are of another size, or of another length in all', async () => {
    const database = freshDatabase()
    const first = await acquireWriteLease(database, wantedOf('a'), CHUNK)
    await write(database, first, 0, new Blob([pieces[0]!]))
    expect(await acquireWriteLease(database, wantedOf('a'), 2 * CHUNK)).toMatchObject({
      chunks: [null, null],
    })
    const keys = await database.use((connection) => connection.getAllKeys('chunks'))
    expect(keys).toEqual([])
    const shorter = wantedOf('a', { bytes: 9 })
    expect(await acquireWriteLease(database, shorter, CHUNK)).toMatchObject({ chunks: [null] })
  })

  test('takes over: the earlier one can write nothing any more', async () => {
    const database = freshDatabase()
    const first = await acquireWriteLease(database, wantedOf('a'), CHUNK)
    await write(database, first, 0, new Blob([pieces[0]!]))
    await acquireWriteLease(database, wantedOf('a'), CHUNK)
    const wrong = new Blob([new Uint8Array(1000)])
    const attempts: ((lease: WriteLease) => Promise<void>)[] = [
      (lease) => write(database, lease, 1, wrong),
      (lease) => deleteAllChunks(database, lease),
      (lease) => finish(database, lease),
    ]
    for (const attempt of attempts) {
      const replaced = { kind: 'aborted', code: 'download_replaced' }
      await expect(attempt(first)).rejects.toMatchObject(replaced)
    }
    expect(await findResourceRecord(database, 'a')).toMatchObject({
      chunks: [hash(0), null, null],
      verified: false,
    })
  })
})

test('takes chunks in any order, and the same one twice', async () => {
  const database = freshDatabase()
  const lease = await acquireWriteLease(database, wantedOf('a'), CHUNK)
  for (const index of [1, 0, 0, 2]) await write(database, lease, index, new Blob([pieces[index]!]))
  await deleteChunk(database, lease, 1)
  expect(await findResourceRecord(database, 'a')).toMatchObject({
    chunks: [hash(0), null, hash(2)],
  })
  expect(await storedBytes(database)).toBe(1500)
  await write(database, lease, 1, new Blob([pieces[1]!]))
  await finish(database, lease)
  expect(same(await bytesOf(await readResource(database, 'a')), content)).toBe(true)
})

test('notes for which tags it is', async () => {
  const database = freshDatabase()
  await acquireWriteLease(database, wantedOf('a'), CHUNK, { tag: '@a/one' })
  await acquireWriteLease(database, wantedOf('a'), CHUNK, { tag: '@a/two' })
  await touchResources(database, ['a'], '@a/three')
  await touchResources(database, ['a'], '@a/one')
  const tags = ['@a/one', '@a/two', '@a/three']
  expect(await findResourceRecord(database, 'a')).toMatchObject({ tags })
})

test('a download whose resource is removed under it fails', async () => {
  const database = freshDatabase()
  const lease = await acquireWriteLease(database, wantedOf('a'), CHUNK)
  await removeResource(database, 'a')
  const late = write(database, lease, 0, new Blob([pieces[0]!]))
  await expect(late).rejects.toThrow('was removed while it was being downloaded')
  expect(await storedBytes(database)).toBe(0)
})

test('says that storage is full when the browser does', async () => {
  const database = freshDatabase()
  const lease = await acquireWriteLease(database, wantedOf('a'), CHUNK)
  refuseBlobs('QuotaExceededError')
  await expect(write(database, lease, 0, new Blob([pieces[0]!]))).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'storage_full',
  })
})

describe.each(['DataCloneError', 'UnknownError'])('where Blobs are refused with %s', (name) => {
  test('keeps ArrayBuffers and reads them as a Blob', async () => {
    const database = freshDatabase()
    refuseBlobs(name)
    await store(database, 'a')
    const kept = await database.use((connection) => connection.getAll('chunks'))
    expect(kept.every((chunk) => chunk instanceof ArrayBuffer)).toBe(true)
    expect(same(await bytesOf(await readResource(database, 'a')), content)).toBe(true)
  })
})

/** Makes IndexedDB refuse Blobs, as Safari does now and then. */
function refuseBlobs(name: string): void {
  const put = IDBObjectStore.prototype.put
  const refuse: typeof put = function (this: IDBObjectStore, value, key) {
    if (value instanceof Blob) throw new DOMException('Error preparing Blob/File data', name)
    return key === undefined ? put.call(this, value) : put.call(this, value, key)
  }
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(refuse)
}
