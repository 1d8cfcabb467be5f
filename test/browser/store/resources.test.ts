/** Resources in chunks: how they are written, read, removed, and downloaded as a set. */
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { Database } from '../../../src/store/database.ts'
import type { ResourceRecord, WantedResource } from '../../../src/store/db.ts'
import { ensureResources } from '../../../src/store/ensure.ts'
import { WriteLease } from '../../../src/store/assembly.ts'
import {
  countStoredBytes,
  findResourceRecord,
  hasResource,
  readResource,
  removeResource,
  touchResources,
} from '../../../src/store/resources.ts'
import type { TransferProgress } from '../../../src/store/transfer-rate.ts'
import { contentOf } from '../../support/content.ts'
import {
  expectContent,
  fileOn,
  freshDatabase,
  KIB,
  never,
  QUICK,
  spyOnPut,
  storedBytes,
} from './fixture.ts'
import type { Job } from './worker.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const CHUNK = 1000
const content = contentOf(7, 2500)
const chunks = [0, 1, 2].map(
  (index) => new Blob([content.slice(index * CHUNK, (index + 1) * CHUNK)]),
)

const wantedOf = (sha256: string, changes: Partial<WantedResource> = {}): WantedResource => ({
  type: 'onnx',
  url: 'https://a.test/m',
  name: 'm',
  bytes: 2500,
  sha256,
  ...changes,
})

/** Returns what stands for the hash of a chunk. */
const hash = (index: number) => `hash ${index}`

const write = (lease: WriteLease, index: number, chunk = chunks[index]!) =>
  lease.putChunk(index, chunk, hash(index))

async function store(database: Database, sha256: string): Promise<void> {
  const lease = await WriteLease.acquire(database, wantedOf(sha256), CHUNK)
  for (const index of chunks.keys()) await write(lease, index)
  await lease.markVerified()
}

/** Resolves with a database and a lease on the resource `a`. */
async function lend() {
  const database = freshDatabase()
  return { database, lease: await WriteLease.acquire(database, wantedOf('a'), CHUNK) }
}

/** Lists the verified resources, the least recently used first. */
async function listVerified(database: Database): Promise<string[]> {
  const records: ResourceRecord[] = await database.use((connection) =>
    connection.getAllFromIndex('resources', 'lastUsed'),
  )
  return records.filter(({ verified }) => verified).map(({ sha256 }) => sha256)
}

test('a resource can be read as one Blob once it is verified', async () => {
  const { database, lease } = await lend()
  for (const index of chunks.keys()) {
    await write(lease, index)
    expect(await readResource(database, 'a')).toBeUndefined()
    expect(await hasResource(database, 'a')).toBe(false)
    expect(await listVerified(database)).toEqual([])
  }
  await lease.markVerified()
  expect(await hasResource(database, 'a')).toBe(true)
  const blob = await readResource(database, 'a')
  await expectContent(blob, content)
  await expectContent(blob?.slice(990, 2010), content.subarray(990, 2010))
})

test('resources are removed, listed and counted', async () => {
  const { database, lease } = await lend()
  await write(lease, 0)
  await store(database, 'b')
  await store(database, 'c')
  expect(await listVerified(database)).toEqual(['b', 'c'])
  expect(await storedBytes(database)).toBe(1000 + 2 * 2500)
  await removeResource(database, 'b')
  expect(await hasResource(database, 'b')).toBe(false)
  expect(await storedBytes(database)).toBe(1000 + 2500)
  const keys = await database.use((connection) => connection.getAllKeys('chunks'))
  expect(keys.map(([sha256]) => sha256)).toEqual(['a', 'c', 'c', 'c'])
})

test('a use moves a resource to the end of the list', async () => {
  const database = freshDatabase()
  const now = vi.spyOn(Date, 'now')
  for (const [time, sha256] of ['a', 'b', 'c'].entries()) {
    now.mockReturnValue(1000 + time)
    await store(database, sha256)
  }
  now.mockReturnValue(2000)
  await touchResources(database, ['a', 'unknown'])
  expect(await listVerified(database)).toEqual(['b', 'c', 'a'])
})

describe('a later lease', () => {
  test('continues with the stored chunks', async () => {
    const { database, lease } = await lend()
    await write(lease, 0)
    const second = await WriteLease.acquire(database, wantedOf('a'), CHUNK)
    expect(second.record.chunks).toEqual([hash(0), null, null])
    for (const index of [1, 2]) await write(second, index)
    await second.markVerified()
    await expectContent(await readResource(database, 'a'), content)
  })

  test('starts over if the size of chunks or of the resource is another', async () => {
    const { database, lease } = await lend()
    await write(lease, 0)
    const larger = await WriteLease.acquire(database, wantedOf('a'), 2 * CHUNK)
    expect(larger.record.chunks).toEqual([null, null])
    expect(await database.use((connection) => connection.getAllKeys('chunks'))).toEqual([])
    const shorter = await WriteLease.acquire(database, wantedOf('a', { bytes: 9 }), CHUNK)
    expect(shorter.record.chunks).toEqual([null])
  })

  test.each<[string, (lease: WriteLease) => Promise<void>]>([
    ['write a chunk', (lease) => write(lease, 1, new Blob([content]))],
    ['delete chunks', (lease) => lease.restart(null)],
    ['verify the resource', (lease) => lease.markVerified()],
  ])('keeps the earlier one from its right to %s', async (_, attempt) => {
    const { database, lease } = await lend()
    await write(lease, 0)
    await WriteLease.acquire(database, wantedOf('a'), CHUNK)
    await expect(attempt(lease)).rejects.toMatchObject({
      kind: 'aborted',
      code: 'download_replaced',
    })
    const unchanged = { chunks: [hash(0), null, null], verified: false }
    expect(await findResourceRecord(database, 'a')).toMatchObject(unchanged)
  })
})

test('chunks can come in any order, again, and after they were deleted', async () => {
  const { database, lease } = await lend()
  for (const index of [1, 0, 0, 2]) await write(lease, index)
  await lease.deleteChunk(1)
  expect(await findResourceRecord(database, 'a')).toMatchObject({
    chunks: [hash(0), null, hash(2)],
  })
  expect(await storedBytes(database)).toBe(1500)
  await write(lease, 1)
  await lease.markVerified()
  await expectContent(await readResource(database, 'a'), content)
})

test('a resource has the tags that use it', async () => {
  const database = freshDatabase()
  await WriteLease.acquire(database, wantedOf('a'), CHUNK, { tag: '@a/one' })
  await WriteLease.acquire(database, wantedOf('a'), CHUNK, { tag: '@a/two' })
  await touchResources(database, ['a'], '@a/three')
  await touchResources(database, ['a'], '@a/one')
  const tags = ['@a/one', '@a/two', '@a/three']
  expect(await findResourceRecord(database, 'a')).toMatchObject({ tags })
})

test('a write to a resource that was removed is rejected', async () => {
  const { database, lease } = await lend()
  await removeResource(database, 'a')
  await expect(write(lease, 0)).rejects.toThrow('was removed while it was being downloaded')
  expect(await storedBytes(database)).toBe(0)
})

// Safari refuses Blobs now and then.
test.each(['DataCloneError', 'UnknownError'])(
  'where Blobs are refused with %s, chunks are ArrayBuffers',
  async (name) => {
    const database = freshDatabase()
    spyOnPut((_store, value) => {
      if (value instanceof Blob) throw new DOMException('Error preparing Blob/File data', name)
    })
    await store(database, 'a')
    const stored = await database.use((connection) => connection.getAll('chunks'))
    expect(stored.every((chunk) => chunk instanceof ArrayBuffer)).toBe(true)
    await expectContent(await readResource(database, 'a'), content)
  },
)

describe('a set of resources', () => {
  const options = { signal: never(), tuning: QUICK }

  test('is downloaded once, and is by name', async () => {
    const database = freshDatabase()
    const files = await Promise.all(
      [10, 3000, 40_000, 50_000].map((bytes, index) => fileOn({ bytes, name: `file ${index}` })),
    )
    const wanted = files.map(({ resource }) => resource)
    const twin = { ...wanted[1]!, name: 'another name' }
    for (const _ of [1, 2]) {
      const found = await ensureResources(database, [...wanted, twin], options)
      expect([...found.keys()]).toEqual([...wanted, twin].map(({ name }) => name))
      for (const { resource, content: bytes } of files) {
        await expectContent(found.get(resource.name), bytes)
      }
      await expectContent(found.get(twin.name), files[1]!.content)
    }
    for (const { seen } of files) expect(await seen()).toHaveLength(1)
  })

  test('reports its progress in bytes of all files', async () => {
    const database = freshDatabase()
    const faults = [{ slow: 20 }]
    const [first, second, stored] = await Promise.all([
      fileOn({ bytes: 80 * KIB, name: 'one', faults }),
      fileOn({ bytes: 60 * KIB, name: 'two', faults }),
      fileOn({ bytes: 30 * KIB, name: 'three' }),
    ])
    await ensureResources(database, [stored.resource], options)
    const steps: TransferProgress[] = []
    const onProgress = (progress: TransferProgress) => steps.push(progress)
    const wanted = [first.resource, second.resource, stored.resource]
    await ensureResources(database, wanted, { ...options, onProgress })
    expect(steps.length).toBeGreaterThan(2)
    expect(new Set(steps.map(({ totalBytes }) => totalBytes))).toEqual(new Set([170 * KIB]))
    const loaded = steps.map(({ loadedBytes }) => loadedBytes)
    expect([loaded[0], loaded.at(-1)]).toEqual([30 * KIB, 170 * KIB])
    expect(loaded).toEqual(loaded.toSorted((a, b) => a - b))
    expect(steps[1]?.bytesPerSecond).toBeGreaterThan(10 * KIB)
  })

  test('ends when one file cannot be downloaded, which the error names', async () => {
    const database = freshDatabase()
    // This one never ends by itself.
    const good = await fileOn({ bytes: 200 * KIB, name: 'good', faults: [{ stall: 100 * KIB }] })
    const bad = await fileOn({ bytes: 5000, name: 'bad', faults: [{ end: 0 }, { status: 404 }] })
    const both = ensureResources(database, [good.resource, bad.resource], options)
    await expect(both).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining(bad.resource.url),
    })
    expect(await hasResource(database, good.resource.sha256)).toBe(false)
  })

  test('leaves whole chunks when it is aborted, which need no space later', async () => {
    const database = freshDatabase()
    const { resource } = await fileOn({ bytes: 100 * KIB, faults: [{ stall: 70 * KIB }] })
    const leaving = new AbortController()
    const aborted = ensureResources(database, [resource], {
      signal: leaving.signal,
      tuning: { ...QUICK, stallTimeoutMs: 60_000 },
      onProgress: ({ loadedBytes }) => loadedBytes >= 64 * KIB && leaving.abort(),
    })
    await expect(aborted).rejects.toMatchObject({ kind: 'aborted' })
    expect(countStoredBytes((await findResourceRecord(database, resource.sha256))!)).toBe(64 * KIB)
    vi.spyOn(navigator.storage, 'estimate').mockResolvedValue({ quota: 40 * KIB, usage: 0 })
    const found = await ensureResources(database, [resource], options)
    expect(found.get(resource.name)?.size).toBe(100 * KIB)
  })

  test('requests nothing if the space is too small, and reports how much is missing', async () => {
    const space = { quota: 50_000_000, usage: 30_000_000 }
    vi.spyOn(navigator.storage, 'estimate').mockResolvedValue(space)
    const { resource, seen } = await fileOn({ bytes: 1000 })
    const huge = { ...resource, bytes: 120_000_000 }
    await expect(ensureResources(freshDatabase(), [huge], options)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'storage_full',
      message: expect.stringContaining('100 MB are missing'),
      details: { neededBytes: 120_000_000, freeBytes: 20_000_000, missingBytes: 100_000_000 },
    })
    expect(await seen()).toEqual([])
  })

  test('is downloaded once by two workers', async () => {
    const { name: database } = freshDatabase()
    const files = await Promise.all(
      ['one', 'two'].map((name) => fileOn({ bytes: 60 * KIB, name, faults: [{ slow: 10 }] })),
    )
    const wanted = files.map(({ resource }) => resource)
    const run = (worker: Worker): Promise<Map<string, Blob>> =>
      new Promise((resolve, reject) => {
        worker.addEventListener('error', (event) => reject(new Error(event.message)))
        worker.addEventListener('message', ({ data: { files: found, error } }) => {
          if (found) resolve(found)
          else reject(InoriginError.fromRecord(error))
        })
        worker.postMessage({ database, wanted, tuning: QUICK } satisfies Job)
      })
    for (const found of await Promise.all([run(startWorker()), run(startWorker())])) {
      for (const { resource, content: bytes } of files) {
        await expectContent(found.get(resource.name), bytes)
      }
    }
    for (const { seen } of files) {
      expect((await seen()).map(({ sent }) => sent)).toEqual([60 * KIB])
    }
  })

  test('continues with the chunks of a worker that ended', async () => {
    const database = freshDatabase()
    const faults = [{ stall: 70 * KIB }]
    const { resource, content: bytes, seen } = await fileOn({ bytes: 100 * KIB, faults })
    const worker = startWorker()
    const tuning = { ...QUICK, stallTimeoutMs: 60_000 }
    worker.postMessage({ database: database.name, wanted: [resource], tuning } satisfies Job)
    await vi.waitUntil(async () => {
      const record = await findResourceRecord(database, resource.sha256)
      return record && countStoredBytes(record) === 64 * KIB
    }, 20_000)
    worker.terminate()
    const found = await ensureResources(database, [resource], options)
    await expectContent(found.get(resource.name), bytes)
    expect((await seen())[1]).toMatchObject({ range: `bytes=${64 * KIB}-`, sent: 36 * KIB })
  })
})

function startWorker(): Worker {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
  onTestFinished(() => worker.terminate())
  return worker
}
