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
  /** The stored resource, with the right to write it. */
  readonly #record: LeasedResource
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
    record: LeasedResource,
    hash: IHasher,
  ) {
    this.#database = database
    this.#wanted = wanted
    this.#signal = signal
    this.#record = record
    this.#hash = hash
    this.#hashState = hash.init().save()
    this.joined = record.chunks.some((chunk) => chunk !== null)
    this.isRepair = record.knownDigests.length > 0
  }

  /**
   * Opens an assembly that resumes an earlier download of the resource. `chunkBytes` is the length
   * of every chunk except the last one; `tag` is the tag that the resource is stored for.
   */
  static async open(
    database: Database,
    wanted: WantedResource,
    { chunkBytes, signal, tag }: { chunkBytes: number; signal: AbortSignal; tag?: Tag | undefined },
  ): Promise<Assembly> {
    const hash = await createSHA256()
    const record = await acquireWriteLease(database, wanted, chunkBytes, { tag, signal })
    const assembly = new Assembly(database, wanted, signal, record, hash)
    await assembly.#hashStoredChunks()
    return assembly
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

  /** Marks that the next bytes come from another response than the present ones. */
  join(): void {
    this.joined = true
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
    const database = this.#database
    const record = this.#record
    const remove = () => deleteAllChunks(database, record)
    await trackDeletion(database, countStoredBytes(record), remove)
    record.chunks.fill(null)
    this.#hashState = this.#hash.init().save()
    this.#index = 0
    this.#dropPieces()
    this.joined = false
    this.isRepair = false
    record.etag = etag
    if (etag !== null) await setEtag(database, record, etag)
  }

  /**
   * Makes the resource readable if the hash of the whole is right. Otherwise resolves with the
   * mismatch and changes nothing.
   */
  async finish(): Promise<DigestMismatch | null> {
    const record = this.#record
    const got = this.#hash.digest()
    if (got !== record.sha256) return { expected: record.sha256, got }
    await markVerified(this.#database, record, record.chunks)
    return null
  }

  /** Hashes the stored chunks up to the next missing one. */
  async #hashStoredChunks(): Promise<void> {
    const { chunks } = this.#record
    for (; (chunks[this.#index] ?? null) !== null; this.#index++) {
      this.#signal.throwIfAborted()
      const content = await this.#readIntactChunk()
      if (!content) {
        await deleteChunk(this.#database, this.#record, this.#index)
        chunks[this.#index] = null
        return
      }
      this.#hashState = this.#hash.update(content).save()
    }
  }

  /** Resolves with the content of the stored chunk at `#index`, or with `null` if it is damaged. */
  async #readIntactChunk(): Promise<Uint8Array<ArrayBuffer> | null> {
    const [record, index] = [this.#record, this.#index]
    const content = await readChunk(this.#database, record.sha256, index)
    if (content?.byteLength !== getChunkLength(record, index)) return null
    const expected = this.#wanted.chunks?.[index] ?? record.chunks[index]
    const got = await computeDigest('SHA-256', content)
    if (expected !== UNKNOWN_DIGEST && expected !== got) return null
    record.chunks[index] = got
    return new Uint8Array(content)
  }

  async #storeChunk(): Promise<DigestMismatch | null> {
    const [record, index] = [this.#record, this.#index]
    const chunk = new Blob(this.#pieces)
    const got = await computeDigest('SHA-256', await chunk.arrayBuffer())
    const expected = this.#wanted.chunks?.[index] || record.knownDigests[index] || got
    if (got !== expected) {
      this.#dropPieces()
      return { index, expected, got }
    }
    await putChunk(this.#database, record, index, chunk, got)
    record.chunks[index] = got
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

// Writes resources. Every download takes a new `writer` id, and a chunk with an older id is
/** Right to write one resource, until another download takes it. */
export interface WriteLease {
  sha256: string
  writer: string
}

/** Record that {@link acquireWriteLease} found or created. */
interface LeasedResource extends Omit<ResourceRecord, 'writer'>, WriteLease {
  /** The hashes of all chunks if the resource was verified before; otherwise empty. */
  knownDigests: readonly (string | null)[]
}

/**
 * Acquires the lease to write the resource. Resolves with a record of the stored chunks. Chunks of
 * an earlier download are reused if they have the same size; otherwise they are deleted. Rejects
 * with the reason of the signal, as an `InoriginError`, if it has aborted, so that nothing is stored
 * after a deletion that follows it.
 */
export function acquireWriteLease(
  database: Database,
  wanted: WantedResource,
  chunkBytes: number,
  { tag, signal }: { tag?: Tag | undefined; signal?: AbortSignal } = {},
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

const createMissingChunks = (bytes: number, chunkBytes: number): null[] =>
  Array.from({ length: Math.ceil(bytes / chunkBytes) }, () => null)

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

const putChunkContent = (
  database: Database,
  lease: WriteLease,
  index: number,
  chunk: Blob | ArrayBuffer,
  hash: string,
): Promise<void> =>
  updateLeased(
    database,
    lease,
    (record) => ({ chunks: record.chunks.with(index, hash) }),
    (chunks) => chunks.put(chunk, [lease.sha256, index]),
  )

/** Deletes one damaged chunk. The writer keeps its lease. */
export const deleteChunk = (database: Database, lease: WriteLease, index: number): Promise<void> =>
  updateLeased(
    database,
    lease,
    (record) => ({ chunks: record.chunks.with(index, null) }),
    (chunks) => chunks.delete([lease.sha256, index]),
  )

/** Records the ETag of the version being downloaded. */
export const setEtag = (
  database: Database,
  lease: WriteLease,
  etag: string | null,
): Promise<void> => updateLeased(database, lease, () => ({ etag }))

/** Deletes every chunk. The writer keeps its lease. */
export const deleteAllChunks = (database: Database, lease: WriteLease): Promise<void> =>
  updateLeased(
    database,
    lease,
    (record) => ({ chunks: record.chunks.map(() => null), etag: null }),
    (chunks) => chunks.delete(toChunkKeyRange(lease.sha256)),
  )

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
const updateLeased = (
  database: Database,
  lease: WriteLease,
  update: (record: ResourceRecord) => Partial<ResourceRecord>,
  changeChunks?: (chunks: Store<'chunks'>) => Promise<unknown>,
): Promise<void> =>
  writeResource(database, async (resources, chunks) => {
    const record = assertLeased(await resources.get(lease.sha256), lease)
    await changeChunks?.(chunks)
    await resources.put({ ...record, ...update(record) })
  })

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

/**
 * Reads the stored chunks of these resources and deletes every chunk that is unreadable or changed.
 * A resource with a deleted chunk is not readable; the next download fetches that chunk alone.
 * Resolves with the number of bytes deleted. Calls `onBytes` with the bytes read, chunk by chunk.
 */
export async function deleteDamagedChunks(
  database: Database,
  digests: Iterable<string>,
  signal: AbortSignal,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<number> {
  let bytes = 0
  for (const sha256 of new Set(digests)) {
    const record = await findResourceRecord(database, sha256)
    if (!record?.verified) continue
    for (const [index, digest] of record.chunks.entries()) {
      signal.throwIfAborted()
      const content = await readChunk(database, sha256, index)
      const isWhole = content?.byteLength === getChunkLength(record, index)
      onBytes(getChunkLength(record, index))
      const isSame =
        isWhole &&
        (digest === UNKNOWN_DIGEST || (await computeDigest('SHA-256', content)) === digest)
      if (isSame) continue
      await deleteChunkData(database, sha256, index)
      bytes += getChunkLength(record, index)
    }
  }
  return bytes
}

/**
 * Resolves with the content of a stored chunk, whose resource may be unfinished; `null` if it is
 * missing, if its file is lost, or if the record is something else.
 */
async function readChunk(database: Database, sha256: string, index: number) {
  const chunk: unknown = await database.use((connection) =>
    connection.get('chunks', [sha256, index]),
  )
  if (chunk instanceof ArrayBuffer) return chunk
  return chunk instanceof Blob ? chunk.arrayBuffer().catch(() => null) : null
}

/** Deletes a chunk. Its recorded hash stays, and the chunk that replaces it must match. */
const deleteChunkData = (database: Database, sha256: string, index: number): Promise<void> =>
  runWrite(database, ['chunks'], (transaction) =>
    transaction.objectStore('chunks').delete([sha256, index]),
  )
