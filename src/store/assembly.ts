/**
 * Assembles received bytes into chunks in the database and computes the hash of the whole file.
 * The hash is computed incrementally and in order, since `crypto.subtle` needs all bytes in memory.
 * Stored chunks are read on the way; a chunk that changed counts as missing.
 */
import { createSHA256, type IHasher } from 'hash-wasm'
import type { IDBPObjectStore } from 'idb'
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { computeDigest } from '../values/text.ts'
import { type Database, runWrite } from './database.ts'
import { type ResourceRecord, type StoreSchema, UNKNOWN_DIGEST, type WantedResource } from './db.ts'
import { trackDeletion } from './pending-deletions.ts'
import {
  countStoredBytes,
  findResourceRecord,
  getChunkLength,
  mergeTag,
  toChunkKeyRange,
  withoutLostChunks,
} from './resources.ts'

/** Mismatch between a hash and the catalog's. `index` is the chunk's; absent for the whole file. */
export interface DigestMismatch {
  index?: number
  expected: string
  got: string
}

/** Resource that is being written to the store. */
export class Assembly {
  /** `true` if the bytes came in several responses, and so perhaps from different versions. */
  joined: boolean
  /** `true` if the resource was verified before, so that only lost chunks are missing. */
  isRepair: boolean
  readonly #database: Database
  readonly #wanted: WantedResource
  readonly #signal: AbortSignal
  readonly #lease: WriteLease
  /** Hash of all bytes before `position`. */
  readonly #hash: IHasher
  /** State of the hash at the end of the last complete chunk. */
  #hashState: Uint8Array
  /** Index of the chunk that is being received. */
  #index = 0
  #pieces: Uint8Array<ArrayBuffer>[] = []
  #filled = 0

  private constructor(
    database: Database,
    wanted: WantedResource,
    signal: AbortSignal,
    lease: WriteLease,
    hash: IHasher,
  ) {
    this.#database = database
    this.#wanted = wanted
    this.#signal = signal
    this.#lease = lease
    this.#hash = hash
    this.#hashState = hash.init().save()
    this.joined = lease.record.chunks.some((chunk) => chunk !== null)
    this.isRepair = lease.knownDigests.length > 0
  }

  /**
   * Opens an assembly that resumes an earlier download of the resource. `chunkBytes` is the length
   * of every chunk except the last one; `tag` is the tag that the resource is stored for.
   */
  static async open(
    database: Database,
    wanted: WantedResource,
    { chunkBytes, ...options }: { chunkBytes: number; signal: AbortSignal; tag?: Tag | undefined },
  ): Promise<Assembly> {
    const hash = await createSHA256()
    const lease = await WriteLease.acquire(database, wanted, chunkBytes, options)
    const assembly = new Assembly(database, wanted, options.signal, lease, hash)
    await assembly.#hashStoredChunks()
    return assembly
  }

  get #record(): ResourceRecord {
    return this.#lease.record
  }

  /** Offset of the first missing byte, or the resource's length if none is missing. */
  get position(): number {
    const { bytes, chunkBytes } = this.#record
    return Math.min(this.#index * chunkBytes, bytes) + this.#filled
  }

  /** Offset after `position` where stored bytes begin again, or the resource's length. */
  get end(): number {
    const { bytes, chunkBytes, chunks } = this.#record
    const next = chunks.findIndex((chunk, at) => at > this.#index && chunk !== null)
    return next === -1 ? bytes : next * chunkBytes
  }

  /** Number of bytes received or stored, including those of the unfinished chunk. */
  get storedBytes(): number {
    return countStoredBytes(this.#record) + this.#filled
  }

  get etag(): string | null {
    return this.#record.etag
  }

  /**
   * Adds the next bytes and stores each chunk that they complete. The piece must not reach past
   * `end`. If the hash of a chunk is wrong, drops the chunk, resolves with the mismatch, and moves
   * `position` back to its start.
   */
  async write(piece: Uint8Array<ArrayBuffer>): Promise<DigestMismatch | null> {
    for (let rest = piece; rest.length > 0;) {
      if (this.#index === this.#record.chunks.length)
        throw new RangeError('More bytes than the resource has.')
      const length = getChunkLength(this.#record, this.#index)
      const part = rest.subarray(0, length - this.#filled)
      this.#pieces.push(part)
      this.#filled += part.length
      this.#hash.update(part)
      rest = rest.subarray(part.length)
      const mismatch = this.#filled === length ? await this.#storeChunk() : null
      if (mismatch) return mismatch
    }
    return null
  }

  /** Discards everything and starts over, for the version with that ETag. */
  async restart(etag: string | null): Promise<void> {
    const bytes = countStoredBytes(this.#record)
    await trackDeletion(this.#database, bytes, () => this.#lease.restart(etag))
    this.#hashState = this.#hash.init().save()
    this.#index = 0
    this.#dropPieces()
    this.joined = false
    this.isRepair = false
  }

  /**
   * Makes the resource readable if the hash of the whole is right. Otherwise resolves with the
   * mismatch and changes nothing.
   */
  async finish(): Promise<DigestMismatch | null> {
    const expected = this.#record.sha256
    const got = this.#hash.digest()
    if (got !== expected) return { expected, got }
    await this.#lease.markVerified()
    return null
  }

  /** Hashes the stored chunks up to the next missing one. A damaged one becomes missing. */
  async #hashStoredChunks(): Promise<void> {
    const { chunks } = this.#record
    for (; (chunks[this.#index] ?? null) !== null; this.#index++) {
      this.#signal.throwIfAborted()
      const expected = this.#wanted.chunks?.[this.#index]
      const intact = await readIntactChunk(this.#database, this.#record, this.#index, expected)
      if (!intact) return this.#lease.deleteChunk(this.#index)
      chunks[this.#index] = intact.hash
      this.#hashState = this.#hash.update(new Uint8Array(intact.content)).save()
    }
  }

  async #storeChunk(): Promise<DigestMismatch | null> {
    const index = this.#index
    const chunk = new Blob(this.#pieces)
    const got = await computeDigest('SHA-256', await chunk.arrayBuffer())
    const expected = this.#wanted.chunks?.[index] || this.#lease.knownDigests[index] || got
    if (got !== expected) {
      this.#dropPieces()
      return { index, expected, got }
    }
    await this.#lease.putChunk(index, chunk, got)
    this.#hashState = this.#hash.save()
    this.#index++
    this.#dropPieces()
    await this.#hashStoredChunks()
    return null
  }

  #dropPieces(): void {
    this.#hash.load(this.#hashState)
    this.#pieces = []
    this.#filled = 0
  }
}

/** Right to write one resource, until another download takes it. */
export class WriteLease {
  /** The resource as this writer has stored it. */
  readonly record: ResourceRecord
  /** The hashes of all chunks if the resource was verified before; otherwise empty. */
  readonly knownDigests: readonly (string | null)[]
  readonly #database: Database

  constructor(
    database: Database,
    record: ResourceRecord,
    knownDigests: readonly (string | null)[] = [],
  ) {
    this.#database = database
    this.record = record
    this.knownDigests = knownDigests
  }

  /**
   * Acquires the lease to write the resource. Chunks of an earlier download are reused if they have
   * the same size; otherwise they are deleted. Rejects with the reason of the signal, as an
   * `InoriginError`, if it has aborted, so that nothing is stored after a deletion that follows it.
   */
  static acquire(
    database: Database,
    { sha256, type, name, url, bytes }: WantedResource,
    chunkBytes: number,
    { tag, signal }: { tag?: Tag | undefined; signal?: AbortSignal } = {},
  ): Promise<WriteLease> {
    const writer = crypto.randomUUID()
    return writeResource(database, async (resources, chunks) => {
      // A deletion that follows the abort begins its transaction after this one, and sees the record.
      if (signal?.aborted) throw InoriginError.from(signal.reason)
      const before = await resources.get(sha256)
      const isResumable = before && before.bytes === bytes && before.chunkBytes === chunkBytes
      if (!isResumable) await chunks.delete(toChunkKeyRange(sha256))
      const keys = await chunks.getAllKeys(toChunkKeyRange(sha256))
      const count = Math.ceil(bytes / chunkBytes)
      const digests = isResumable ? before.chunks : Array.from({ length: count }, () => null)
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
      return new WriteLease(database, record, isResumable && before.verified ? digests : [])
    })
  }

  /** Stores a complete chunk. Uses an `ArrayBuffer` where the browser cannot store the Blob. */
  async putChunk(index: number, chunk: Blob, hash: string): Promise<void> {
    const put = (content: Blob | ArrayBuffer) =>
      this.#update({ chunks: this.record.chunks.with(index, hash) }, (chunks) =>
        chunks.put(content, [this.record.sha256, index]),
      )
    try {
      await put(chunk)
    } catch (thrown) {
      if (!isBlobStorageError(thrown)) throw thrown
      await put(await chunk.arrayBuffer())
    }
  }

  /** Deletes one damaged chunk. */
  deleteChunk(index: number): Promise<void> {
    const { sha256, chunks } = this.record
    return this.#update({ chunks: chunks.with(index, null) }, (stored) =>
      stored.delete([sha256, index]),
    )
  }

  /** Deletes every chunk, and records the ETag of the version to download. */
  restart(etag: string | null): Promise<void> {
    const { sha256, chunks } = this.record
    return this.#update({ chunks: chunks.map(() => null), etag }, (stored) =>
      stored.delete(toChunkKeyRange(sha256)),
    )
  }

  /** Makes the resource readable after its hash was verified, and ends the lease. */
  markVerified(): Promise<void> {
    const { sha256, chunks } = this.record
    return writeResource(this.#database, async (resources) => {
      const stored = await resources.get(sha256)
      // This writer finished it just before the connection was lost, and now runs again.
      if (stored?.verified) return
      await resources.put({ ...this.#assertHeld(stored), chunks, verified: true, writer: null })
    })
  }

  /** Changes the record and the chunks in one transaction. */
  async #update(
    change: Partial<ResourceRecord>,
    changeChunks: (chunks: Store<'chunks'>) => Promise<unknown>,
  ): Promise<void> {
    await writeResource(this.#database, async (resources, chunks) => {
      const stored = this.#assertHeld(await resources.get(this.record.sha256))
      await changeChunks(chunks)
      await resources.put({ ...stored, ...change })
    })
    Object.assign(this.record, change)
  }

  #assertHeld(stored: ResourceRecord | undefined): ResourceRecord {
    if (stored?.writer === this.record.writer) return stored
    const what = stored
      ? `Another tab has taken over the download of ${stored.name}.`
      : `The resource ${this.record.sha256} was removed while it was being downloaded.`
    throw new InoriginError('aborted', what, { code: 'download_replaced' })
  }
}

type Stores = ['resources', 'chunks']
type Store<Name extends Stores[number]> = IDBPObjectStore<StoreSchema, Stores, Name, 'readwrite'>

const writeResource = <T>(
  database: Database,
  work: (resources: Store<'resources'>, chunks: Store<'chunks'>) => Promise<T>,
): Promise<T> =>
  runWrite<Stores, T>(
    database,
    ['resources', 'chunks'],
    (transaction) => work(transaction.objectStore('resources'), transaction.objectStore('chunks')),
    // A record must not survive a power failure without the chunk that it lists.
    { durability: 'strict' },
  )

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

/**
 * Reads the stored chunks of these resources and deletes every chunk that is unreadable or changed.
 * A resource with a deleted chunk is not readable; the next download fetches that chunk alone, and
 * it must match the recorded hash. Resolves with the number of bytes deleted. Calls `onBytes` with
 * the bytes read, chunk by chunk.
 */
export async function deleteDamagedChunks(
  database: Database,
  digests: Iterable<string>,
  signal: AbortSignal,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<number> {
  let deletedBytes = 0
  for (const sha256 of new Set(digests)) {
    const record = await findResourceRecord(database, sha256)
    if (!record?.verified) continue
    for (const index of record.chunks.keys()) {
      signal.throwIfAborted()
      const intact = await readIntactChunk(database, record, index)
      const bytes = getChunkLength(record, index)
      onBytes(bytes)
      if (intact) continue
      await runWrite(database, ['chunks'], (transaction) =>
        transaction.objectStore('chunks').delete([sha256, index]),
      )
      deletedBytes += bytes
    }
  }
  return deletedBytes
}

/**
 * Resolves with a stored chunk and its hash; with `null` if it is missing, if its file is lost, or
 * if its length or hash is wrong. The resource may be unfinished.
 */
async function readIntactChunk(
  database: Database,
  record: ResourceRecord,
  index: number,
  expected = record.chunks[index],
) {
  const chunk: unknown = await database.use((connection) =>
    connection.get('chunks', [record.sha256, index]),
  )
  const content = chunk instanceof Blob ? await chunk.arrayBuffer().catch(() => null) : chunk
  const isWhole =
    content instanceof ArrayBuffer && content.byteLength === getChunkLength(record, index)
  if (!isWhole) return null
  const hash = await computeDigest('SHA-256', content)
  return expected === UNKNOWN_DIGEST || hash === expected ? { content, hash } : null
}
