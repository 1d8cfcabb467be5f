/**
 * Writes resources. Every download takes a new `writer` id, and a chunk with an older id is
 * rejected. So a tab that was frozen, replaced and thawed cannot damage the work of another one.
 */
import type { IDBPObjectStore } from 'idb'
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import type { ResourceRecord, StoreSchema, WantedResource } from './db.ts'
import { runWrite, type Database } from './database.ts'
import { toChunkKeyRange, withoutLostChunks, mergeTag } from './resources.ts'

/** Right to write one resource, until another download takes it. */
export interface WriteLease {
  sha256: string
  writer: string
}

/** Record that {@link acquireWriteLease} found or created. */
export interface LeasedResource extends Omit<ResourceRecord, 'writer'>, WriteLease {
  /** The hashes of all chunks if the resource was verified before; otherwise empty. */
  knownDigests: readonly (string | null)[]
}

/** Download or import that acquires a lease. */
export interface LeaseOptions {
  /** Tag that the resource is for. */
  tag?: Tag | undefined
  /** Signal that forbids the lease, so that nothing is stored after a deletion that follows it. */
  signal?: AbortSignal
}

/**
 * Acquires the lease to write the resource. Resolves with a record of the stored chunks. Chunks of
 * an earlier download are reused if they have the same size; otherwise they are deleted. Rejects
 * with the reason of the signal, as an `InoriginError`, if it has aborted.
 */
export function acquireWriteLease(
  database: Database,
  wanted: WantedResource,
  chunkBytes: number,
  { tag, signal }: LeaseOptions = {},
): Promise<LeasedResource> {
  const { sha256, type, name, url, bytes } = wanted
  const writer = crypto.randomUUID()
  return writeResource(database, async (resources, chunks) => {
    // A deletion that follows the abort begins its transaction after this one, and sees the record.
    if (signal?.aborted) throw InoriginError.from(signal.reason)
    const before = await resources.get(sha256)
    const isResumable = before && before.bytes === bytes && before.chunkBytes === chunkBytes
    if (!isResumable) await chunks.delete(toChunkKeyRange(sha256))
    const keys = await chunks.getAllKeys(toChunkKeyRange(sha256))
    const digests = isResumable ? before.chunks : createMissingChunks(bytes, chunkBytes)
    const record = {
      sha256,
      type,
      name,
      url,
      bytes,
      chunkBytes,
      writer,
      // ETags of two servers cannot be compared.
      etag: isResumable && before.url === url ? before.etag : null,
      chunks: withoutLostChunks(digests, keys),
      verified: false,
      lastUsed: Date.now(),
      tags: mergeTag(before?.tags ?? [], tag),
    }
    await resources.put(record)
    return { ...record, knownDigests: isResumable && before.verified ? digests : [] }
  })
}

function createMissingChunks(bytes: number, chunkBytes: number): null[] {
  return Array.from({ length: Math.ceil(bytes / chunkBytes) }, () => null)
}

/** Stores a complete chunk. Uses an `ArrayBuffer` where the browser cannot store the Blob. */
export async function putChunk(
  database: Database,
  lease: WriteLease,
  index: number,
  chunk: Blob,
  hash: string,
): Promise<void> {
  try {
    await putChunkContent(database, lease, index, chunk, hash)
  } catch (thrown) {
    if (!isBlobStorageError(thrown)) throw thrown
    await putChunkContent(database, lease, index, await chunk.arrayBuffer(), hash)
  }
}

function putChunkContent(
  database: Database,
  lease: WriteLease,
  index: number,
  chunk: Blob | ArrayBuffer,
  hash: string,
): Promise<void> {
  return updateLeased(
    database,
    lease,
    (record) => ({ chunks: record.chunks.with(index, hash) }),
    (chunks) => chunks.put(chunk, [lease.sha256, index]),
  )
}

/** Deletes one damaged chunk. The writer keeps its lease. */
export function deleteChunk(database: Database, lease: WriteLease, index: number): Promise<void> {
  return updateLeased(
    database,
    lease,
    (record) => ({ chunks: record.chunks.with(index, null) }),
    (chunks) => chunks.delete([lease.sha256, index]),
  )
}

/** Resolves with one stored chunk. The resource may be unfinished. */
export function getChunk(
  database: Database,
  sha256: string,
  index: number,
): Promise<Blob | ArrayBuffer | undefined> {
  return database.use((connection) => connection.get('chunks', [sha256, index]))
}

/** Records the ETag of the version being downloaded. */
export function setEtag(database: Database, lease: WriteLease, etag: string | null): Promise<void> {
  return updateLeased(database, lease, () => ({ etag }))
}

/** Deletes every chunk. The writer keeps its lease. */
export function deleteAllChunks(database: Database, lease: WriteLease): Promise<void> {
  return updateLeased(
    database,
    lease,
    (record) => ({ chunks: record.chunks.map(() => null), etag: null }),
    (chunks) => chunks.delete(toChunkKeyRange(lease.sha256)),
  )
}

/** Makes the resource readable after its hash was verified, and ends the lease. */
export function markVerified(
  database: Database,
  lease: WriteLease,
  chunks: (string | null)[],
): Promise<void> {
  return writeResource(database, async (resources) => {
    const record = await resources.get(lease.sha256)
    // This writer finished it just before the connection was lost, and now runs again.
    if (record?.verified) return
    await resources.put({ ...assertLeased(record, lease), chunks, verified: true, writer: null })
  })
}

type Stores = ['resources', 'chunks']
type Store<Name extends Stores[number]> = IDBPObjectStore<StoreSchema, Stores, Name, 'readwrite'>

function writeResource<T>(
  database: Database,
  work: (resources: Store<'resources'>, chunks: Store<'chunks'>) => Promise<T>,
): Promise<T> {
  const stores: Stores = ['resources', 'chunks']
  return runWrite(
    database,
    stores,
    (transaction) => work(transaction.objectStore('resources'), transaction.objectStore('chunks')),
    // A record must not survive a power failure without the chunk that it lists.
    { durability: 'strict' },
  )
}

/** Changes the record of a leased resource, and its chunks, in one transaction. */
function updateLeased(
  database: Database,
  lease: WriteLease,
  update: (record: ResourceRecord) => Partial<ResourceRecord>,
  changeChunks?: (chunks: Store<'chunks'>) => Promise<unknown>,
): Promise<void> {
  return writeResource(database, async (resources, chunks) => {
    const record = assertLeased(await resources.get(lease.sha256), lease)
    await changeChunks?.(chunks)
    await resources.put({ ...record, ...update(record) })
  })
}

function assertLeased(record: ResourceRecord | undefined, lease: WriteLease): ResourceRecord {
  if (record?.writer === lease.writer) return record
  throw new InoriginError(
    'aborted',
    record
      ? `Another tab has taken over the download of ${record.name}.`
      : `The resource ${lease.sha256} was removed while it was being downloaded.`,
    { code: 'download_replaced' },
  )
}

/**
 * Returns `true` if the browser cannot store Blobs. Safari rejects them at times ("Error preparing
 * Blob/File data"), and old private windows always do.
 */
function isBlobStorageError(thrown: unknown): boolean {
  const { name } = ((thrown instanceof InoriginError && thrown.cause) || thrown) as {
    name?: unknown
  }
  return name === 'UnknownError' || name === 'DataCloneError'
}
