/** What the store's tests share: a database of their own each, and a quick way of failing. */
import { inject, onTestFinished } from 'vitest'
import type { ResourceRecord } from '../../../src/store/db.ts'
import type { DownloadTuning } from '../../../src/store/download.ts'
import { openDatabase, type Database } from '../../../src/store/database.ts'
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

/** Tuning for servers that fall silent. A healthy response that is late is only requested again. */
export const IMPATIENT: DownloadTuning = { ...QUICK, stallTimeoutMs: 800, maxAttempts: 20 }

/** A database nobody else uses; deleted when the test is over. */
export function freshDatabase(): Database {
  const database = openDatabase(`test:${crypto.randomUUID()}`)
  onTestFinished(() => {
    database.close()
    indexedDB.deleteDatabase(database.name)
  })
  return database
}

/** A file of the fault server. */
export function fileOn(options: Parameters<typeof fileOnServer>[1]) {
  return fileOnServer(inject('faults'), options)
}

/** Every verified resource, the least recently used first. */
export function listResources(database: Database): Promise<ResourceRecord[]> {
  return database.use(async (connection) => {
    const records = await connection.getAllFromIndex('resources', 'lastUsed')
    return records.filter((record) => record.verified)
  })
}

/** Bytes of all chunks, those of unfinished downloads included. */
export function storedBytes(database: Database): Promise<number> {
  return database.use(async (connection) => {
    const records = await connection.getAll('resources')
    return records.reduce((sum, record) => sum + countStoredBytes(record), 0)
  })
}

export const never = (): AbortSignal => new AbortController().signal

export async function bytesOf(blob: Blob | undefined): Promise<Uint8Array> {
  if (!blob) throw new Error('There is no Blob.')
  return new Uint8Array(await blob.arrayBuffer())
}

/** Whether two contents are the same; a matcher would print megabytes. */
export function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index])
}
