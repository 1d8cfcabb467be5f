/**
 * Assembles received bytes into chunks in the database and computes the hash of the whole file.
 * The hash is computed incrementally and in order, since `crypto.subtle` needs all bytes in memory.
 * Stored chunks are read on the way; a chunk that changed counts as missing.
 */
import { createSHA256 } from 'hash-wasm'
import type { Tag } from '../types/index.ts'
import { UNKNOWN_DIGEST, type WantedResource } from './db.ts'
import { computeDigest } from './digest.ts'
import { readChunkContent } from './damaged-chunks.ts'
import type { Database } from './database.ts'
import { trackDeletion } from './pending-deletions.ts'
import { countStoredBytes } from './resources.ts'
import {
  acquireWriteLease,
  deleteAllChunks,
  deleteChunk,
  markVerified,
  putChunk,
  getChunk,
  setEtag,
} from './resource-writer.ts'

/** Mismatch between a hash and the catalog's. `index` is the chunk's; absent for the whole file. */
export interface DigestMismatch {
  index?: number
  expected: string
  got: string
}

/** Resource that is being written to the store. */
export interface Assembly {
  /** Offset of the first missing byte, or the resource's length if none is missing. */
  readonly position: number
  /** Offset after `position` where stored bytes begin again, or the resource's length. */
  readonly end: number
  /** Number of bytes received or stored, including those of the unfinished chunk. */
  readonly storedBytes: number
  /** ETag of the version that is being assembled. */
  readonly etag: string | null
  /** `true` if the bytes came in several responses, and so perhaps from different versions. */
  readonly joined: boolean
  /** `true` if the resource was verified before, so that only lost chunks are missing. */
  readonly isRepair: boolean
  /**
   * Adds the next bytes and stores each chunk that they complete. The piece must not reach past
   * `end`. If the hash of a chunk is wrong, drops the chunk, resolves with the mismatch, and moves
   * `position` back to its start.
   */
  write(piece: Uint8Array<ArrayBuffer>): Promise<DigestMismatch | null>
  /** Marks that the next bytes come from another response than the present ones. */
  join(): void
  /** Discards everything and starts over, for the version with that ETag. */
  restart(etag: string | null): Promise<void>
  /**
   * Makes the resource readable if the hash of the whole is right. Otherwise resolves with the
   * mismatch and changes nothing.
   */
  finish(): Promise<DigestMismatch | null>
}

export interface AssemblyOptions {
  /** Number of bytes of every chunk except the last one. */
  chunkBytes: number
  signal: AbortSignal
  /** Tag that the resource is stored for. */
  tag?: Tag | undefined
}

/** Opens an assembly that resumes an earlier download of the resource. */
export async function openAssembly(
  database: Database,
  wanted: WantedResource,
  { chunkBytes, signal, tag }: AssemblyOptions,
): Promise<Assembly> {
  const { sha256, bytes } = wanted
  const hash = await createSHA256()
  const lease = await acquireWriteLease(database, wanted, chunkBytes, tag)
  /** The sha256 of each stored chunk. */
  let chunks = lease.chunks
  const { knownDigests } = lease
  let { etag } = lease
  let isRepair = knownDigests.length > 0
  /** State of the hash at the end of the last complete chunk. */
  let hashState = hash.init().save()
  let index = 0
  let pieces: Uint8Array<ArrayBuffer>[] = []
  let filled = 0
  let joined = chunks.some((chunk) => chunk !== null)

  const startOf = (chunk: number) => Math.min(chunk * chunkBytes, bytes)
  const lengthOf = (chunk: number) => startOf(chunk + 1) - startOf(chunk)

  function dropPieces(): void {
    hash.load(hashState)
    pieces = []
    filled = 0
  }

  /** Returns the content of a stored chunk, or `null` if it is damaged. */
  async function readIntactChunk(at: number): Promise<Uint8Array<ArrayBuffer> | null> {
    const content = await readChunkContent(await getChunk(database, sha256, at))
    if (content?.byteLength !== lengthOf(at)) return null
    const expected = wanted.chunks?.[at] ?? chunks[at]
    const got = await computeDigest('SHA-256', content)
    if (expected !== UNKNOWN_DIGEST && expected !== got) return null
    chunks = chunks.with(at, got)
    return new Uint8Array(content)
  }

  /** Hashes the stored chunks up to the next missing one. */
  async function hashStoredChunks(): Promise<void> {
    for (; index < chunks.length && chunks[index] !== null; index++) {
      signal.throwIfAborted()
      const content = await readIntactChunk(index)
      if (!content) {
        await deleteChunk(database, lease, index)
        chunks = chunks.with(index, null)
        return
      }
      hashState = hash.update(content).save()
    }
  }

  async function restart(newEtag: string | null): Promise<void> {
    const discardedBytes = countStoredBytes({ bytes, chunkBytes, chunks })
    await trackDeletion(database, discardedBytes, () => deleteAllChunks(database, lease))
    chunks = chunks.map(() => null)
    hashState = hash.init().save()
    index = 0
    dropPieces()
    joined = false
    isRepair = false
    etag = newEtag
    if (etag !== null) await setEtag(database, lease, etag)
  }

  async function storeChunk(): Promise<DigestMismatch | null> {
    const chunk = new Blob(pieces)
    const got = await computeDigest('SHA-256', await chunk.arrayBuffer())
    const expected = wanted.chunks?.[index] || knownDigests[index] || got
    if (got !== expected) {
      const mismatch = { index, expected, got }
      dropPieces()
      return mismatch
    }
    await putChunk(database, lease, index, chunk, got)
    chunks = chunks.with(index, got)
    hashState = hash.save()
    index++
    dropPieces()
    await hashStoredChunks()
    return null
  }

  async function write(piece: Uint8Array<ArrayBuffer>): Promise<DigestMismatch | null> {
    for (let rest = piece; rest.length > 0;) {
      const part = rest.subarray(0, lengthOf(index) - filled)
      if (part.length === 0) throw new RangeError('More bytes than the resource has.')
      pieces.push(part)
      filled += part.length
      hash.update(part)
      rest = rest.subarray(part.length)
      const mismatch = filled === lengthOf(index) ? await storeChunk() : null
      if (mismatch) return mismatch
    }
    return null
  }

  async function finish(): Promise<DigestMismatch | null> {
    const got = hash.digest()
    if (got !== sha256) return { expected: sha256, got }
    await markVerified(database, lease, chunks)
    return null
  }

  await hashStoredChunks()

  return {
    get position() {
      return startOf(index) + filled
    },
    get end() {
      const next = chunks.findIndex((chunk, at) => at > index && chunk !== null)
      return next === -1 ? bytes : startOf(next)
    },
    get storedBytes() {
      return countStoredBytes({ bytes, chunkBytes, chunks }) + filled
    },
    get etag() {
      return etag
    },
    get joined() {
      return joined
    },
    get isRepair() {
      return isRepair
    },
    join() {
      joined = true
    },
    write,
    restart,
    finish,
  }
}
