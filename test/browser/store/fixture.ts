/** A database for each test, files of the fault server, and downloads that fail quickly. */
import { expect, inject, onTestFinished, vi, type TestContext } from 'vitest'
import { openDatabase, type Database } from '../../../src/store/database.ts'
import type { DownloadTuning } from '../../../src/store/download.ts'
import { countStoredBytes } from '../../../src/store/resources.ts'
import { fileOn as fileOnServer } from '../../support/content.ts'

export const KIB = 1024

/** Small chunks and few attempts. A healthy response is never silent for `stallTimeoutMs`. */
export const QUICK: DownloadTuning = {
  chunkBytes: 16 * KIB,
  maxAttempts: 4,
  backoffMs: 5,
  stallTimeoutMs: 20_000,
}

/** Opens a database that no other test uses, until the test ends. Concurrent tests pass their own `onEnd`. */
export function freshDatabase(onEnd: TestContext['onTestFinished'] = onTestFinished): Database {
  const database = openDatabase(`test:${crypto.randomUUID()}`)
  onEnd(() => {
    database.close()
    indexedDB.deleteDatabase(database.name)
  })
  return database
}

/** A file of the fault server. */
export function fileOn(options: Parameters<typeof fileOnServer>[1]) {
  return fileOnServer(inject('faults'), options)
}

/** Bytes of all chunks, those of unfinished downloads included. */
export function storedBytes(database: Database): Promise<number> {
  return database.use(async (connection) => {
    const records = await connection.getAll('resources')
    return records.reduce((sum, record) => sum + countStoredBytes(record), 0)
  })
}

export const never = (): AbortSignal => new AbortController().signal

/** Expects these bytes. A matcher would print megabytes. */
export async function expectContent(blob: Blob | undefined, content: Uint8Array): Promise<void> {
  const bytes = new Uint8Array((await blob?.arrayBuffer()) ?? [])
  expect(bytes).toHaveLength(content.length)
  expect(bytes.findIndex((byte, index) => byte !== content[index])).toBe(-1)
}

/** Calls `check` before each write to an object store, until mocks are restored. The write fails if `check` throws. */
export function spyOnPut(
  check: (store: IDBObjectStore, value: unknown, key?: IDBValidKey) => void,
): void {
  const { put } = IDBObjectStore.prototype
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (
    this: IDBObjectStore,
    value: unknown,
    key,
  ) {
    check(this, value, key)
    return key === undefined ? put.call(this, value) : put.call(this, value, key)
  })
}
