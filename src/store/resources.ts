/**
 * The verified resources of the store. Nothing here tells of one that is still being downloaded.
 */
import type { Tag } from '../types/index.ts'
import type { ResourceRecord } from './db.ts'
import { committed, type Database } from './open.ts'

/** Milliseconds for a byte of a stored chunk to be read; see {@link areSound}. */
const PATIENCE = 10_000

/** Whether the resource is here whole and verified. */
export async function hasResource(database: Database, sha256: string): Promise<boolean> {
  const record = await resourceRecord(database, sha256)
  return record !== undefined && isWhole(record)
}

/** What is known of a resource, verified or not; chunks that were lost are `null`. */
export function resourceRecord(
  database: Database,
  sha256: string,
): Promise<ResourceRecord | undefined> {
  return database.use(async (connection) => {
    const record = await connection.get('resources', sha256)
    if (!record) return undefined
    const keys = await connection.getAllKeys('chunks', chunksOf(sha256))
    return { ...record, chunks: stillHere(record.chunks, keys) }
  })
}

/** Verified once, and nothing was lost since. */
export function isWhole({ verified, chunks }: ResourceRecord): boolean {
  return verified && !chunks.includes(null)
}

/** The hashes that were noted of chunks, `null` for those that are not among the stored `keys`. */
export function stillHere(
  chunks: readonly (string | null)[],
  keys: readonly [sha256: string, index: number][],
): (string | null)[] {
  const here = new Set(keys.map(([, index]) => index))
  return chunks.map((hash, index) => (here.has(index) ? hash : null))
}

/**
 * The bytes of a resource, as one Blob made of the stored ones: nothing is copied, and a slice
 * reads only itself. `undefined` when it is not here, not verified, or the browser lost a part of
 * it.
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
      // One at a time: where chunks are ArrayBuffers, only this one is in memory.
      const part = chunk instanceof ArrayBuffer ? new Blob([chunk]) : chunk
      if (part?.size !== chunkLength(record, index)) return undefined
      parts.push(part)
    }
    return parts
  })
  if (!stored || !(await areSound(stored))) return undefined
  return new Blob(stored, { type: 'application/octet-stream' })
}

/** Bytes of that chunk: every one is as long as the others, but for the last. */
export function chunkLength(
  { bytes, chunkBytes }: Pick<ResourceRecord, 'bytes' | 'chunkBytes'>,
  index: number,
): number {
  return Math.min(chunkBytes, bytes - index * chunkBytes)
}

/** Bytes of a resource that are stored. */
export function bytesHere(record: Pick<ResourceRecord, 'bytes' | 'chunkBytes' | 'chunks'>): number {
  return record.chunks.reduce(
    (sum, chunk, index) => (chunk === null ? sum : sum + chunkLength(record, index)),
    0,
  )
}

/** Notes that resources were used now, for that tag. */
export function touchResources(
  database: Database,
  hashes: Iterable<string>,
  tag?: Tag,
): Promise<void> {
  const now = Date.now()
  return database.use((connection) => {
    const transaction = connection.transaction('resources', 'readwrite', { durability: 'relaxed' })
    return committed(transaction, async () => {
      for (const sha256 of hashes) {
        const record = await transaction.store.get(sha256)
        if (!record) continue
        const tags = withTag(record.tags, tag)
        await transaction.store.put({ ...record, tags, lastUsed: now })
      }
    })
  })
}

/** The tags a resource is used by, that one among them. */
export function withTag(tags: readonly Tag[], tag: Tag | undefined): Tag[] {
  return tag === undefined ? [...tags] : [...new Set([...tags, tag])]
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

/**
 * Whether the files behind the Blobs are there and as long as they should be: a Blob knows its size
 * from the database, whatever became of its file. Chromium refuses to read a file that is gone, and
 * never answers for a byte behind the end of one that was cut short.
 */
async function areSound(parts: readonly Blob[]): Promise<boolean> {
  const read = Promise.all(parts.map((part) => part.slice(-1).arrayBuffer()))
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), PATIENCE)
  })
  const last = await Promise.race([read.catch(() => null), silence])
  clearTimeout(timer)
  return last !== null && last.every((byte) => byte.byteLength === 1)
}
