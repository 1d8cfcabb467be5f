/**
 * The write side of a resource. Every download takes a new `writer` name; a chunk that comes under
 * an older one is refused, so a tab that was frozen, replaced and thawed cannot spoil the work of
 * another.
 */
import type { IDBPObjectStore } from 'idb'
import { InoriginError } from '../error.ts'
import type { ResourceRecord, Schema, WantedResource } from './db.ts'
import { committed, type Database } from './open.ts'
import { chunksOf } from './resources.ts'

/** The right to write one resource, until another download takes it. */
export interface Turn {
  sha256: string
  writer: string
}

/**
 * Takes the right to write. The record that comes back tells what is here already: whole chunks of
 * an earlier, unfinished download when they were cut the same way, nothing otherwise.
 */
export function beginWriting(
  database: Database,
  wanted: WantedResource,
  chunkBytes: number,
): Promise<ResourceRecord & Turn> {
  const { sha256, type, name, url, bytes } = wanted
  const writer = crypto.randomUUID()
  return write(database, async (resources, chunks) => {
    const before = await resources.get(sha256)
    const goesOn =
      before && !before.verified && before.bytes === bytes && before.chunkBytes === chunkBytes
    if (!goesOn) await chunks.delete(chunksOf(sha256))
    const record = {
      sha256, type, name, url, bytes, chunkBytes, writer,
      // Tags of two servers say nothing about each other.
      etag: goesOn && before.url === url ? before.etag : null,
      chunks: goesOn ? before.chunks : 0,
      verified: false,
      lastUsed: Date.now(),
      pinned: before?.pinned ?? false,
    }
    await resources.put(record)
    return record
  })
}

/**
 * Adds the next whole chunk. Falls back to an `ArrayBuffer` where the browser cannot store the
 * Blob.
 */
export async function putChunk(
  database: Database,
  turn: Turn,
  index: number,
  chunk: Blob,
): Promise<void> {
  try {
    await put(database, turn, index, chunk)
  } catch (thrown) {
    if (!cannotKeepBlobs(thrown)) throw thrown
    await put(database, turn, index, await chunk.arrayBuffer())
  }
}

function put(
  database: Database,
  turn: Turn,
  index: number,
  chunk: Blob | ArrayBuffer,
): Promise<void> {
  return write(database, async (resources, chunks) => {
    const record = ownRecord(await resources.get(turn.sha256), turn)
    // This very chunk was stored just before the connection was lost.
    if (record.chunks === index + 1) return
    if (record.chunks !== index) {
      throw new InoriginError('internal', `Chunk ${index} of ${record.name} came out of order.`)
    }
    await chunks.put(chunk, [turn.sha256, index])
    await resources.put({ ...record, chunks: index + 1 })
  })
}

/** One stored chunk, of an unfinished resource too. */
export function readChunk(
  database: Database,
  sha256: string,
  index: number,
): Promise<Blob | ArrayBuffer | undefined> {
  return database.use((connection) => connection.get('chunks', [sha256, index]))
}

/** Remembers the server's tag of the version being downloaded. */
export function rememberEtag(database: Database, turn: Turn, etag: string | null): Promise<void> {
  return write(database, async (resources) => {
    const record = ownRecord(await resources.get(turn.sha256), turn)
    await resources.put({ ...record, etag })
  })
}

/** Throws away every chunk; the turn stays. */
export function discardChunks(database: Database, turn: Turn): Promise<void> {
  return write(database, async (resources, chunks) => {
    const record = ownRecord(await resources.get(turn.sha256), turn)
    await resources.put({ ...record, chunks: 0, etag: null })
    await chunks.delete(chunksOf(turn.sha256))
  })
}

/** Makes the resource readable: its whole hash is right. Ends the turn. */
export function finishWriting(database: Database, turn: Turn): Promise<void> {
  return write(database, async (resources) => {
    const record = await resources.get(turn.sha256)
    // Done by this very turn, just before the connection was lost.
    if (record?.verified) return
    await resources.put({ ...ownRecord(record, turn), verified: true, writer: null })
  })
}

type Stores = ['resources', 'chunks']
type Store<Name extends Stores[number]> = IDBPObjectStore<Schema, Stores, Name, 'readwrite'>

function write<T>(
  database: Database,
  work: (resources: Store<'resources'>, chunks: Store<'chunks'>) => Promise<T>,
): Promise<T> {
  return database.use((connection) => {
    const stores: Stores = ['resources', 'chunks']
    // A chunk that a power cut takes is downloaded again: no need to wait for the disk.
    const transaction = connection.transaction(stores, 'readwrite', { durability: 'relaxed' })
    return committed(transaction, () =>
      work(transaction.objectStore('resources'), transaction.objectStore('chunks')),
    )
  })
}

function ownRecord(record: ResourceRecord | undefined, turn: Turn): ResourceRecord {
  if (record?.writer === turn.writer) return record
  throw new InoriginError(
    'aborted',
    record
      ? `Another tab has taken over the download of ${record.name}.`
      : `The resource ${turn.sha256} was removed while it was being downloaded.`,
    { code: 'download_replaced' },
  )
}

/**
 * Safari refuses Blobs now and then ("Error preparing Blob/File data"), private windows always did.
 */
function cannotKeepBlobs(thrown: unknown): boolean {
  return (
    thrown instanceof DOMException &&
    (thrown.name === 'UnknownError' || thrown.name === 'DataCloneError')
  )
}
