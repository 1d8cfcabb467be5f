/** Reads the verified resources of the store. Unfinished downloads are not visible here. */
import type { IDBPTransaction } from 'idb'
import type { Tag } from '../types/index.ts'
import { withTimeout } from '../values/promises.ts'
import type { ResourceRecord, StoreSchema } from './db.ts'
import { runWrite, type Database } from './database.ts'

/** Timeout in milliseconds for reading one byte of each stored chunk; see {@link areReadable}. */
const BLOB_READ_TIMEOUT_MS = 10_000

/** Resolves with `true` if the resource is stored completely and verified. */
export async function hasResource(database: Database, sha256: string): Promise<boolean> {
  const record = await findResourceRecord(database, sha256)
  return record !== undefined && isComplete(record)
}

/** Resolves with `true` if all of these resources are stored completely and verified. */
export const areStored = async (
  database: Database,
  { resources }: { resources: readonly { sha256: string }[] },
): Promise<boolean> =>
  (await Promise.all(resources.map((one) => hasResource(database, one.sha256)))).every(Boolean)

/** Resolves with the metadata of all resources, least recently used first. Lost chunks are `null`. */
export const listResourceRecords = (database: Database): Promise<ResourceRecord[]> =>
  database.use(async (connection) => {
    const transaction = connection.transaction(['resources', 'chunks'])
    const records = await transaction.objectStore('resources').index('lastUsed').getAll()
    const chunks = transaction.objectStore('chunks')
    return Promise.all(
      records.map(async (record) => {
        const keys = await chunks.getAllKeys(toChunkKeyRange(record.sha256))
        return { ...record, chunks: withoutLostChunks(record.chunks, keys) }
      }),
    )
  })

/** Resolves with the metadata of a resource, verified or not. Lost chunks are `null`. */
export const findResourceRecord = (
  database: Database,
  sha256: string,
): Promise<ResourceRecord | undefined> =>
  database.use(async (connection) => {
    const record = await connection.get('resources', sha256)
    if (!record) return undefined
    const keys = await connection.getAllKeys('chunks', toChunkKeyRange(sha256))
    return { ...record, chunks: withoutLostChunks(record.chunks, keys) }
  })

/** Returns `true` if the resource was verified and no chunk was lost since. */
export const isComplete = ({ verified, chunks }: ResourceRecord): boolean =>
  verified && !chunks.includes(null)

/** Returns the recorded hashes, with `null` for each chunk that is not among the stored `keys`. */
export function withoutLostChunks(
  chunks: readonly (string | null)[],
  keys: readonly [sha256: string, index: number][],
): (string | null)[] {
  const present = new Set(keys.map(([, index]) => index))
  return chunks.map((hash, index) => (present.has(index) ? hash : null))
}

/**
 * Resolves with the bytes of a resource as one Blob composed of the stored ones. Nothing is copied,
 * and a slice reads only its own range. Resolves with `undefined` if the resource is not stored or
 * not verified, or if the browser lost a part of it.
 */
export async function readResource(database: Database, sha256: string): Promise<Blob | undefined> {
  const stored = await database.use(async (connection) => {
    const transaction = connection.transaction(['resources', 'chunks'])
    const record = await transaction.objectStore('resources').get(sha256)
    if (!record?.verified) return undefined
    const store = transaction.objectStore('chunks')
    const parts: Blob[] = []
    for (let index = 0; index < record.chunks.length; index++) {
      const chunk = await store.get([sha256, index])
      // Chunks are read one at a time, so that only one ArrayBuffer is in memory.
      const part = chunk instanceof ArrayBuffer ? new Blob([chunk]) : chunk
      const isWhole = part instanceof Blob && part.size === getChunkLength(record, index)
      if (!isWhole) return undefined
      parts.push(part)
    }
    return parts
  })
  if (!stored || !(await areReadable(stored))) return undefined
  return new Blob(stored, { type: 'application/octet-stream' })
}

/** Returns the length in bytes of that chunk. All chunks have the same length except the last. */
export const getChunkLength = ({ bytes, chunkBytes }: ResourceRecord, index: number): number =>
  Math.min(chunkBytes, bytes - index * chunkBytes)

/** Returns the number of bytes of a resource that are stored. */
export const countStoredBytes = (record: ResourceRecord): number =>
  record.chunks.reduce(
    (sum, chunk, index) => (chunk === null ? sum : sum + getChunkLength(record, index)),
    0,
  )

/** Returns the number of bytes of all these resources that are stored. */
export const sumStoredBytes = (records: readonly ResourceRecord[]): number =>
  records.reduce((sum, record) => sum + countStoredBytes(record), 0)

/** Records that the resources are used now, by `tag` if given. */
export function touchResources(
  database: Database,
  hashes: Iterable<string>,
  tag?: Tag,
): Promise<void> {
  const now = Date.now()
  const touch = async (transaction: IDBPTransaction<StoreSchema, ['resources'], 'readwrite'>) => {
    const store = transaction.objectStore('resources')
    for (const sha256 of hashes) {
      const record = await store.get(sha256)
      if (record) await store.put({ ...record, tags: mergeTag(record.tags, tag), lastUsed: now })
    }
  }
  return runWrite(database, ['resources'], touch, { durability: 'relaxed' })
}

/** Returns `tags` with `tag` added. */
export const mergeTag = (tags: readonly Tag[], tag: Tag | undefined): Tag[] =>
  tag === undefined ? [...tags] : [...new Set([...tags, tag])]

/** Deletes a resource, complete or not. A download of it in progress fails. */
export const removeResource = (database: Database, sha256: string): Promise<void> =>
  runWrite(database, ['resources', 'chunks'], async (transaction) => {
    await transaction.objectStore('resources').delete(sha256)
    await transaction.objectStore('chunks').delete(toChunkKeyRange(sha256))
  })

/** Stores that hold something of a model or predictor. */
export const MODEL_STORES: ['resources', 'chunks', 'pins', 'entries'] = [
  'resources',
  'chunks',
  'pins',
  'entries',
]

/** Records which tags use a resource. Deletes the resource if there are none. */
export async function keepForTags(
  transaction: IDBPTransaction<StoreSchema, typeof MODEL_STORES, 'readwrite'>,
  record: ResourceRecord,
  tags: Tag[],
): Promise<void> {
  const resources = transaction.objectStore('resources')
  if (tags.length > 0) return void (await resources.put({ ...record, tags }))
  await resources.delete(record.sha256)
  await transaction.objectStore('chunks').delete(toChunkKeyRange(record.sha256))
}

/** Returns the key range of all chunks of a resource. */
export const toChunkKeyRange = (sha256: string): IDBKeyRange =>
  IDBKeyRange.bound([sha256, 0], [sha256, Number.MAX_SAFE_INTEGER])

/**
 * Resolves with `true` if the files of the Blobs exist in full length. A Blob reports the size from
 * the database even if its file is gone. Chromium rejects a read of a missing file, and never
 * settles a read past the end of a truncated one.
 */
async function areReadable(parts: readonly Blob[]): Promise<boolean> {
  const read = Promise.all(parts.map((part) => part.slice(-1).arrayBuffer()))
  const last = await withTimeout(BLOB_READ_TIMEOUT_MS, read, []).catch(() => [])
  return last.length === parts.length && last.every(({ byteLength }) => byteLength === 1)
}
