/**
 * The write side of a resource. Every download takes a new `writer` name; a chunk that comes under
 * an older one is refused, so a tab that was frozen, replaced and thawed cannot spoil the work of
 * another.
 */
import type { IDBPObjectStore } from 'idb'
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import type { ResourceRecord, Schema, WantedResource } from './db.ts'
import { committed, type Database } from './open.ts'
import { chunksOf, stillHere, withTag } from './resources.ts'

/** The right to write one resource, until another download takes it. */
export interface Turn {
  sha256: string
  writer: string
}

/** What {@link beginWriting} found. */
export interface Begun extends Omit<ResourceRecord, 'writer'>, Turn {
  /** The hashes of all chunks, where it was whole and verified once; else nothing. */
  known: readonly (string | null)[]
}

/**
 * Takes the right to write, for that tag. The record that comes back tells what is here already: whole
 * chunks of an earlier, unfinished download when they were cut the same way, nothing otherwise.
 */
export function beginWriting(
  database: Database,
  wanted: WantedResource,
  chunkBytes: number,
  tag?: Tag,
): Promise<Begun> {
  const { sha256, type, name, url, bytes } = wanted
  const writer = crypto.randomUUID()
  return write(database, async (resources, chunks) => {
    const before = await resources.get(sha256)
    const goesOn = before && before.bytes === bytes && before.chunkBytes === chunkBytes
    if (!goesOn) await chunks.delete(chunksOf(sha256))
    const keys = await chunks.getAllKeys(chunksOf(sha256))
    const noted = goesOn ? before.chunks : noChunks(bytes, chunkBytes)
    const record = {
      sha256,
      type,
      name,
      url,
      bytes,
      chunkBytes,
      writer,
      // Tags of two servers say nothing about each other.
      etag: goesOn && before.url === url ? before.etag : null,
      chunks: stillHere(noted, keys),
      verified: false,
      lastUsed: Date.now(),
      tags: withTag(before?.tags ?? [], tag),
    }
    await resources.put(record)
    return { ...record, known: before?.verified ? noted : [] }
  })
}

function noChunks(bytes: number, chunkBytes: number): null[] {
  return Array.from({ length: Math.ceil(bytes / chunkBytes) }, () => null)
}

/**
 * Adds a whole chunk with that hash. Falls back to an `ArrayBuffer` where the browser cannot store the
 * Blob.
 */
export async function putChunk(
  database: Database,
  turn: Turn,
  index: number,
  chunk: Blob,
  hash: string,
): Promise<void> {
  try {
    await put(database, turn, index, chunk, hash)
  } catch (thrown) {
    if (!cannotKeepBlobs(thrown)) throw thrown
    await put(database, turn, index, await chunk.arrayBuffer(), hash)
  }
}

function put(
  database: Database,
  turn: Turn,
  index: number,
  chunk: Blob | ArrayBuffer,
  hash: string,
): Promise<void> {
  return write(database, async (resources, chunks) => {
    const record = ownRecord(await resources.get(turn.sha256), turn)
    await chunks.put(chunk, [turn.sha256, index])
    await resources.put({ ...record, chunks: record.chunks.with(index, hash) })
  })
}

/** Throws away one chunk that is not what it should be; the turn stays. */
export function dropChunk(database: Database, turn: Turn, index: number): Promise<void> {
  return write(database, async (resources, chunks) => {
    const record = ownRecord(await resources.get(turn.sha256), turn)
    await chunks.delete([turn.sha256, index])
    await resources.put({ ...record, chunks: record.chunks.with(index, null) })
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
    await resources.put({ ...record, chunks: record.chunks.map(() => null), etag: null })
    await chunks.delete(chunksOf(turn.sha256))
  })
}

/** Makes the resource of those chunks readable: its whole hash is right. Ends the turn. */
export function finishWriting(
  database: Database,
  turn: Turn,
  chunks: (string | null)[],
): Promise<void> {
  return write(database, async (resources) => {
    const record = await resources.get(turn.sha256)
    // Done by this very turn, just before the connection was lost.
    if (record?.verified) return
    await resources.put({ ...ownRecord(record, turn), chunks, verified: true, writer: null })
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
    // A record must not outlive the chunk it tells of, not even when the power is cut.
    const transaction = connection.transaction(stores, 'readwrite', { durability: 'strict' })
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
  const { name } = ((thrown instanceof InoriginError && thrown.cause) || thrown) as {
    name?: unknown
  }
  return name === 'UnknownError' || name === 'DataCloneError'
}
