/** Small parts of the store: writes, outdated files, and waits. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createCatalogIndex } from '../../../src/host/library/entries.ts'
import type { ResourceRecord } from '../../../src/store/db.ts'
import { listStoredTags } from '../../../src/store/inventory.ts'
import { computeBackoffMs, sleep } from '../../../src/values/promises.ts'
import { Rate } from '../../../src/store/transfer-rate.ts'
import { HASH, model } from '../catalog/entries.ts'

const SOURCE = join(import.meta.dirname, '../../../src')

/** A write without `runWrite`: by a shortcut of the connection, or in a transaction opened elsewhere. */
const UNFENCED = /connection\s*\.(put|add|delete|clear)\(|\.transaction\([^)]*'readwrite'/

test('only database.ts, which checks the epoch, opens a transaction that writes', () => {
  const writers = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .filter((path) => UNFENCED.test(readFileSync(join(SOURCE, path), 'utf8')))
  expect(writers).toEqual(['store/database.ts'])
})

/** A file, complete unless it has no chunk. */
const record = (sha256: string, chunk: string | null = HASH, tag = '@acme/tiny') =>
  ({
    sha256,
    type: 'onnx',
    name: 'onnx/model.onnx',
    url: 'https://acme.example/m.onnx',
    bytes: 10,
    chunkBytes: 10,
    etag: null,
    chunks: [chunk],
    verified: chunk !== null,
    writer: null,
    lastUsed: 0,
    tags: [tag],
  }) as ResourceRecord

const OLD = 'b'.repeat(64)
test.each<[boolean, string, ResourceRecord[]]>([
  [true, 'only files of an earlier version', [record(OLD)]],
  [true, 'incomplete files beside those', [record(OLD), record(HASH, null)]],
  [false, 'complete files', [record(HASH)]],
  [false, 'complete files beside those of an earlier version', [record(HASH), record(OLD)]],
  [false, 'a download that is not complete', [record(HASH, null)]],
  [false, 'files that no catalog lists', [record(OLD, HASH, '@me/unlisted')]],
])('a tag is outdated: %s, with %s', async (expected, _, records) => {
  const catalog = await createCatalogIndex({ all: async () => [model()] })
  const inventory = { records, pins: new Set<string>(), inUse: new Set<string>() }
  expect(listStoredTags(inventory, catalog)[0]?.outdated).toBe(expected)
})

test.each([
  [1, 500],
  [2, 1000],
  [3, 2000],
  [9, 15_000],
])('a retry after %i failures waits about %i ms, and never in step', (failures, middle) => {
  const waits = Array.from({ length: 200 }, () => computeBackoffMs(failures, 500))
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(middle * 0.75)
  expect(Math.max(...waits)).toBeLessThanOrEqual(middle * 1.25)
  expect(new Set(waits).size).toBeGreaterThan(100)
})

test('a sleep ends at once when it is aborted', async () => {
  const leaving = new AbortController()
  const long = sleep(60_000, leaving.signal)
  leaving.abort(new Error('enough'))
  await expect(long).rejects.toThrow('enough')
  await expect(sleep(1, leaving.signal)).rejects.toThrow('enough')
  await sleep(1, new AbortController().signal)
})

test('the transfer rate is measured over the last seconds', () => {
  let time = 0
  const rate = new Rate(() => time, 4000)
  expect(rate.perSecond).toBe(0)
  for (time = 100; time <= 2000; time += 10) rate.add(1000)
  expect(rate.perSecond).toBeGreaterThan(90_000)
  expect(rate.perSecond).toBeLessThan(105_000)
  time = 4000
  expect(rate.perSecond).toBeCloseTo(191_000 / 4, -2)
  time = 6200
  expect(rate.perSecond).toBe(0)
})
