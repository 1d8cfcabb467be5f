/**
 * The verified resources of the store. Nothing here tells of one that is still being downloaded.
 */
import type { ResourceRecord } from './db.ts'
import { committed, type Database } from './open.ts'

/** Whether the resource is here whole and verified. */
export function hasResource(database: Database, sha256: string): Promise<boolean> {
  return database.use(async (connection) => {
    const record = await connection.get('resources', sha256)
    return record?.verified ?? false
  })
}

/** What is known of a resource, verified or not. */
export function resourceRecord(
  database: Database,
  sha256: string,
): Promise<ResourceRecord | undefined> {
  return database.use((connection) => connection.get('resources', sha256))
}

/**
 * The bytes of a resource, as one Blob made of the stored ones: nothing is copied, and a slice
 * reads only itself. `undefined` when it is not here, not verified, or the browser lost a part of
 * it.
 */
export function readResource(database: Database, sha256: string): Promise<Blob | undefined> {
  return database.use(async (connection) => {
    const transaction = connection.transaction(['resources', 'chunks'])
    const record = await transaction.objectStore('resources').get(sha256)
    if (!record?.verified) return undefined
    const store = transaction.objectStore('chunks')
    const parts: Blob[] = []
    for (let index = 0; index < record.chunks; index++) {
      const chunk = await store.get([sha256, index])
      if (!chunk) return undefined
      // One at a time: where chunks are ArrayBuffers, only this one is in memory.
      parts.push(chunk instanceof Blob ? chunk : new Blob([chunk]))
    }
    const blob = new Blob(parts, { type: 'application/octet-stream' })
    return blob.size === record.bytes ? blob : undefined
  })
}

/** Bytes of a resource that are stored. */
export function bytesHere(record: ResourceRecord): number {
  return Math.min(record.chunks * record.chunkBytes, record.bytes)
}

/** Notes that resources were used now. */
export function touchResources(database: Database, hashes: Iterable<string>): Promise<void> {
  const now = Date.now()
  return database.use((connection) => {
    const transaction = connection.transaction('resources', 'readwrite', { durability: 'relaxed' })
    return committed(transaction, async () => {
      for (const sha256 of hashes) {
        const record = await transaction.store.get(sha256)
        if (record) await transaction.store.put({ ...record, lastUsed: now })
      }
    })
  })
}

/** Deletes a resource, finished or not. A download of it that is under way fails. */
export function removeResource(database: Database, sha256: string): Promise<void> {
  return database.use((connection) => {
    const transaction = connection.transaction(['resources', 'chunks'], 'readwrite')
    return committed(transaction, async () => {
      await transaction.objectStore('resources').delete(sha256)
      await transaction.objectStore('chunks').delete(chunksOf(sha256))
    })
  })
}

/** The keys of all chunks of a resource. */
export function chunksOf(sha256: string): IDBKeyRange {
  return IDBKeyRange.bound([sha256, 0], [sha256, Number.MAX_SAFE_INTEGER])
}

