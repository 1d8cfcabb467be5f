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
  readonly here: number
  /** ETag of the version that is being assembled. */
  readonly etag: string | null
  /** `true` if the bytes came in several responses, and so perhaps from different versions. */
  readonly joined: boolean
  /** `true` if the resource was verified before, so that only lost chunks are missing. */
  readonly repairs: boolean
  /**
   * Adds the next bytes and stores each chunk that they complete. The piece must not reach past
   * `end`. If the hash of a chunk is wrong, drops the chunk, resolves with the damage, and moves
   * `position` back to its start.
   */
  write(piece: Uint8Array<ArrayBuffer>): Promise<DigestMismatch | null>
  /** Marks that the next bytes come from another response than the present ones. */
  join(): void
  /** Discards everything and starts over, for the version with that ETag. */
  restart(etag: string | null): Promise<void>
  /**
   * Makes the resource readable if the hash of the whole is right. Otherwise resolves with the
   * damage and changes nothing.
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
  const turn = await acquireWriteLease(database, wanted, chunkBytes, tag)
  /** The sha256 of each stored chunk. */
  let chunks = turn.chunks
  const { known } = turn
  let { etag } = turn
  let repairs = known.length > 0
  /** State of the hash at the end of the last complete chunk. */
  let hashed = hash.init().save()
  let index = 0
  let pieces: Uint8Array<ArrayBuffer>[] = []
  let filled = 0
  let joined = chunks.some((chunk) => chunk !== null)

  const startOf = (chunk: number) => Math.min(chunk * chunkBytes, bytes)
  const lengthOf = (chunk: number) => startOf(chunk + 1) - startOf(chunk)

  function dropPieces(): void {
    hash.load(hashed)
    pieces = []
    filled = 0
  }

  /** Returns the content of a stored chunk, or `null` if it is damaged. */
  async function stored(at: number): Promise<Uint8Array<ArrayBuffer> | null> {
    const content = await readChunkContent(await getChunk(database, sha256, at))
    if (content?.byteLength !== lengthOf(at)) return null
    const noted = wanted.chunks?.[at] ?? chunks[at]
    const got = await computeDigest('SHA-256', content)
    if (noted !== UNKNOWN_DIGEST && noted !== got) return null
    chunks = chunks.with(at, got)
    return new Uint8Array(content)
  }

  /** Hashes the stored chunks up to the next missing one. */
  async function pass(): Promise<void> {
    for (; index < chunks.length && chunks[index] !== null; index++) {
      signal.throwIfAborted()
      const content = await stored(index)
      if (!content) {
        await deleteChunk(database, turn, index)
        chunks = chunks.with(index, null)
        return
      }
      hashed = hash.update(content).save()
    }
  }

  async function restart(newTag: string | null): Promise<void> {
    const leaving = countStoredBytes({ bytes, chunkBytes, chunks })
    await trackDeletion(database, leaving, () => deleteAllChunks(database, turn))
    chunks = chunks.map(() => null)
    hashed = hash.init().save()
    index = 0
    dropPieces()
    joined = false
    repairs = false
    etag = newTag
    if (etag !== null) await setEtag(database, turn, etag)
  }

  async function storeChunk(): Promise<DigestMismatch | null> {
    const chunk = new Blob(pieces)
    const got = await computeDigest('SHA-256', await chunk.arrayBuffer())
    const expected = wanted.chunks?.[index] || known[index] || got
    if (got !== expected) {
      const damage = { index, expected, got }
      dropPieces()
      return damage
    }
    await putChunk(database, turn, index, chunk, got)
    chunks = chunks.with(index, got)
    hashed = hash.save()
    index++
    dropPieces()
    await pass()
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
      const damage = filled === lengthOf(index) ? await storeChunk() : null
      if (damage) return damage
    }
    return null
  }

  async function finish(): Promise<DigestMismatch | null> {
    const got = hash.digest()
    if (got !== sha256) return { expected: sha256, got }
    await markVerified(database, turn, chunks)
    return null
  }

  await pass()

  return {
    get position() {
      return startOf(index) + filled
    },
    get end() {
      const next = chunks.findIndex((chunk, at) => at > index && chunk !== null)
      return next === -1 ? bytes : startOf(next)
    },
    get here() {
      return countStoredBytes({ bytes, chunkBytes, chunks }) + filled
    },
    get etag() {
      return etag
    },
    get joined() {
      return joined
    },
    get repairs() {
      return repairs
    },
    join() {
      joined = true
    },
    write,
    restart,
    finish,
  }
}
