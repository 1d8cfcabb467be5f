import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { ensureResources } from '../../../src/store/ensure.ts'
import type { TransferProgress } from '../../../src/store/transfer-rate.ts'
import {
  countStoredBytes,
  hasResource,
  readResource,
  findResourceRecord,
} from '../../../src/store/resources.ts'
import { bytesOf, fileOn, freshDatabase, KIB, never, QUICK, same } from './fixture.ts'
import type { Job } from './worker.ts'

const options = { signal: never(), tuning: QUICK }

afterEach(() => {
  vi.restoreAllMocks()
})

test('brings all files by name, and again from the store alone', async () => {
  const database = freshDatabase()
  const files = await Promise.all(
    [10, 200, 3000, 40_000, 50_000].map((bytes, index) => fileOn({ bytes, name: `file ${index}` })),
  )
  const wanted = files.map(({ resource }) => resource)
  for (const _ of [1, 2]) {
    const found = await ensureResources(database, wanted, options)
    expect([...found.keys()]).toEqual(wanted.map(({ name }) => name))
    for (const { resource, content } of files) {
      expect(same(await bytesOf(found.get(resource.name)), content)).toBe(true)
    }
  }
  for (const { seen } of files) expect(await seen()).toHaveLength(1)
})

test('downloads a file once that has two names', async () => {
  const database = freshDatabase()
  const { resource, seen, content } = await fileOn({ bytes: 5000, name: 'one' })
  const found = await ensureResources(database, [resource, { ...resource, name: 'two' }], options)
  expect(same(await bytesOf(found.get('one')), content)).toBe(true)
  expect(same(await bytesOf(found.get('two')), content)).toBe(true)
  expect(await seen()).toHaveLength(1)
})

test('tells how far it is, in bytes over all files', async () => {
  const database = freshDatabase()
  const slow = [{ slow: 20 }]
  const first = await fileOn({ bytes: 80 * KIB, name: 'one', faults: slow })
  const second = await fileOn({ bytes: 60 * KIB, name: 'two', faults: slow })
  const here = await fileOn({ bytes: 30 * KIB, name: 'three' })
  await ensureResources(database, [here.resource], options)

  const told: TransferProgress[] = []
  const wanted = [first.resource, second.resource, here.resource]
  await ensureResources(database, wanted, {
    ...options,
    onProgress: (progress) => told.push(progress),
  })
  expect(told.length).toBeGreaterThan(2)
  expect(new Set(told.map(({ totalBytes }) => totalBytes))).toEqual(new Set([170 * KIB]))
  expect(told[0]?.loadedBytes).toBe(30 * KIB)
  expect(told.at(-1)?.loadedBytes).toBe(170 * KIB)
  const loaded = told.map(({ loadedBytes }) => loadedBytes)
  expect(loaded).toEqual(loaded.toSorted((a, b) => a - b))
  expect(told[1]?.bytesPerSecond).toBeGreaterThan(10 * KIB)
})

test('ends the others when one cannot be had, and says which', async () => {
  const database = freshDatabase()
  const good = await fileOn({ bytes: 200 * KIB, name: 'good', faults: [{ stall: 100 * KIB }] })
  const bad = await fileOn({ bytes: 5000, name: 'bad', faults: [{ end: 0 }, { status: 404 }] })
  // The good one never ends by itself.
  const both = ensureResources(database, [good.resource, bad.resource], options)
  await expect(both).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining(bad.resource.url),
  })
  expect(await hasResource(database, good.resource.sha256)).toBe(false)
})

test('ends when it is aborted, and keeps whole chunks', async () => {
  const database = freshDatabase()
  const { resource } = await fileOn({ bytes: 100 * KIB, faults: [{ stall: 70 * KIB }] })
  const leaving = new AbortController()
  const asked = ensureResources(database, [resource], {
    signal: leaving.signal,
    tuning: { ...QUICK, stallTimeoutMs: 60_000 },
    onProgress: ({ loadedBytes }) => loadedBytes >= 64 * KIB && leaving.abort(),
  })
  await expect(asked).rejects.toMatchObject({ kind: 'aborted' })
  expect(countStoredBytes((await findResourceRecord(database, resource.sha256))!)).toBe(64 * KIB)
})

test('asks for room before the first byte and says how much is missing', async () => {
  const database = freshDatabase()
  const room = { quota: 50_000_000, usage: 30_000_000 }
  vi.spyOn(navigator.storage, 'estimate').mockResolvedValue(room)
  const { resource, seen } = await fileOn({ bytes: 1000 })
  const huge = { ...resource, bytes: 120_000_000 }
  await expect(ensureResources(database, [huge], options)).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'storage_full',
    message: expect.stringContaining('100 MB are missing'),
    details: { neededBytes: 120_000_000, freeBytes: 20_000_000, missingBytes: 100_000_000 },
  })
  expect(await seen()).toEqual([])
})

test('counts what is there already when it asks for room', async () => {
  const database = freshDatabase()
  const { resource } = await fileOn({ bytes: 100 * KIB, faults: [{ stall: 70 * KIB }] })
  const leaving = new AbortController()
  const asked = ensureResources(database, [resource], {
    signal: leaving.signal,
    tuning: { ...QUICK, stallTimeoutMs: 60_000 },
    onProgress: ({ loadedBytes }) => loadedBytes >= 64 * KIB && leaving.abort(),
  })
  await asked.catch(() => undefined)
  vi.spyOn(navigator.storage, 'estimate').mockResolvedValue({ quota: 40 * KIB, usage: 0 })
  const found = await ensureResources(database, [resource], options)
  expect(found.get(resource.name)?.size).toBe(100 * KIB)
})

test('two workers that ask for the same download it once', async () => {
  const database = freshDatabase()
  const files = await Promise.all(
    ['one', 'two'].map((name) => fileOn({ bytes: 60 * KIB, name, faults: [{ slow: 10 }] })),
  )
  const job: Job = {
    database: database.name,
    wanted: files.map(({ resource }) => resource),
    tuning: QUICK,
  }
  const answers = await Promise.all([askWorker(job), askWorker(job)])
  for (const answer of answers) {
    for (const { resource, content } of files) {
      expect(same(await bytesOf(answer.get(resource.name)), content)).toBe(true)
    }
  }
  for (const { seen } of files) {
    expect((await seen()).map(({ sent }) => sent)).toEqual([60 * KIB])
  }
})

test('a worker that ends in the middle leaves its chunks to the next', async () => {
  const database = freshDatabase()
  const faults = [{ stall: 70 * KIB }]
  const { resource, content, seen } = await fileOn({ bytes: 100 * KIB, faults })
  const worker = startWorker()
  const tuning = { ...QUICK, stallTimeoutMs: 60_000 }
  worker.postMessage({ database: database.name, wanted: [resource], tuning } satisfies Job)
  await vi.waitUntil(async () => {
    const record = await findResourceRecord(database, resource.sha256)
    return record && countStoredBytes(record) === 64 * KIB
  }, 20_000)
  worker.terminate()

  const found = await ensureResources(database, [resource], options)
  expect(same(await bytesOf(found.get(resource.name)), content)).toBe(true)
  expect((await seen())[1]).toMatchObject({ range: `bytes=${64 * KIB}-`, sent: 36 * KIB })
  expect(await readResource(database, resource.sha256)).toBeDefined()
})

function startWorker(): Worker {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
  onTestFinished(() => worker.terminate())
  return worker
}

function askWorker(job: Job): Promise<Map<string, Blob>> {
  const worker = startWorker()
  return new Promise((resolve, reject) => {
    worker.addEventListener('error', (event) => reject(new Error(event.message)))
    worker.addEventListener('message', ({ data: { files, error } }) => {
      if (files) resolve(files)
      else reject(InoriginError.fromRecord(error))
    })
    worker.postMessage(job)
  })
}
