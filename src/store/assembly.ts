/**
 * Assembles received bytes into chunks in the database and computes the hash of the whole file.
 * The hash is computed incrementally and in order, since `crypto.subtle` needs all bytes in memory.
 * Stored chunks are read on the way; a chunk that changed counts as missing.
 */
import { createSHA256, type IHasher } from 'hash-wasm'
import type { Tag } from '../types/index.ts'
import { UNKNOWN_DIGEST, type WantedResource } from './db.ts'
import { computeDigest } from '../values/digest.ts'
import { readChunkContent } from './damaged-chunks.ts'
import type { Database } from './database.ts'
import { trackDeletion } from './pending-deletions.ts'
import { countStoredBytes, getChunkLength } from './resources.ts'
import {
  acquireWriteLease,
  deleteAllChunks,
  deleteChunk,
  type LeasedResource,
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

interface AssemblyState {
  readonly signal: AbortSignal
  readonly database: Database
  readonly wanted: WantedResource
  /** The stored resource, with the right to write it. */
  readonly record: LeasedResource
  /** Hash of all bytes before `position`. */
  readonly hash: IHasher
  /** State of the hash at the end of the last complete chunk. */
  hashState: Uint8Array
  /** Index of the chunk that is being received. */
  index: number
  pieces: Uint8Array<ArrayBuffer>[]
  /** Number of bytes in `pieces`. */
  filled: number
  joined: boolean
  isRepair: boolean
}

/** Opens an assembly that resumes an earlier download of the resource. */
export async function openAssembly(
  database: Database,
  wanted: WantedResource,
  { chunkBytes, signal, tag }: AssemblyOptions,
): Promise<Assembly> {
  const hash = await createSHA256()
  const record = await acquireWriteLease(database, wanted, chunkBytes, { tag, signal })
  const { bytes, chunks, knownDigests } = record
  const state: AssemblyState = {
    database,
    wanted,
    signal,
    record,
    hash,
    hashState: hash.init().save(),
    index: 0,
    pieces: [],
    filled: 0,
    joined: chunks.some((chunk) => chunk !== null),
    isRepair: knownDigests.length > 0,
  }
  await hashStoredChunks(state)

  return {
    get position() {
      return Math.min(state.index * chunkBytes, bytes) + state.filled
    },
    get end() {
      const next = chunks.findIndex((chunk, at) => at > state.index && chunk !== null)
      return next === -1 ? bytes : next * chunkBytes
    },
    get storedBytes() {
      return countStoredBytes(record) + state.filled
    },
    get etag() {
      return record.etag
    },
    get joined() {
      return state.joined
    },
    get isRepair() {
      return state.isRepair
    },
    join() {
      state.joined = true
    },
    write: (piece) => write(state, piece),
    restart: (etag) => restart(state, etag),
    finish: () => finish(state),
  }
}

/** Hashes the stored chunks up to the next missing one. */
async function hashStoredChunks(state: AssemblyState): Promise<void> {
  const { database, record, hash, signal } = state
  for (; (record.chunks[state.index] ?? null) !== null; state.index++) {
    signal.throwIfAborted()
    const content = await readIntactChunk(state)
    if (!content) {
      await deleteChunk(database, record, state.index)
      record.chunks[state.index] = null
      return
    }
    state.hashState = hash.update(content).save()
  }
}

/** Returns the content of the stored chunk at `index`, or `null` if it is damaged. */
async function readIntactChunk({
  database,
  wanted,
  record,
  index,
}: AssemblyState): Promise<Uint8Array<ArrayBuffer> | null> {
  const content = await readChunkContent(await getChunk(database, record.sha256, index))
  if (content?.byteLength !== getChunkLength(record, index)) return null
  const expected = wanted.chunks?.[index] ?? record.chunks[index]
  const got = await computeDigest('SHA-256', content)
  if (expected !== UNKNOWN_DIGEST && expected !== got) return null
  record.chunks[index] = got
  return new Uint8Array(content)
}

async function write(
  state: AssemblyState,
  piece: Uint8Array<ArrayBuffer>,
): Promise<DigestMismatch | null> {
  const { record, hash } = state
  for (let rest = piece; rest.length > 0;) {
    if (state.index === record.chunks.length) {
      throw new RangeError('More bytes than the resource has.')
    }
    const length = getChunkLength(record, state.index)
    const part = rest.subarray(0, length - state.filled)
    state.pieces.push(part)
    state.filled += part.length
    hash.update(part)
    rest = rest.subarray(part.length)
    const mismatch = state.filled === length ? await storeChunk(state) : null
    if (mismatch) return mismatch
  }
  return null
}

async function storeChunk(state: AssemblyState): Promise<DigestMismatch | null> {
  const { database, wanted, record, hash, index } = state
  const chunk = new Blob(state.pieces)
  const got = await computeDigest('SHA-256', await chunk.arrayBuffer())
  const expected = wanted.chunks?.[index] || record.knownDigests[index] || got
  if (got !== expected) {
    dropPieces(state)
    return { index, expected, got }
  }
  await putChunk(database, record, index, chunk, got)
  record.chunks[index] = got
  state.hashState = hash.save()
  state.index++
  dropPieces(state)
  await hashStoredChunks(state)
  return null
}

function dropPieces(state: AssemblyState): void {
  state.hash.load(state.hashState)
  state.pieces = []
  state.filled = 0
}

async function restart(state: AssemblyState, etag: string | null): Promise<void> {
  const { database, record, hash } = state
  await trackDeletion(database, countStoredBytes(record), () => deleteAllChunks(database, record))
  record.chunks.fill(null)
  state.hashState = hash.init().save()
  state.index = 0
  dropPieces(state)
  state.joined = false
  state.isRepair = false
  record.etag = etag
  if (etag !== null) await setEtag(database, record, etag)
}

async function finish({ database, record, hash }: AssemblyState): Promise<DigestMismatch | null> {
  const got = hash.digest()
  if (got !== record.sha256) return { expected: record.sha256, got }
  await markVerified(database, record, record.chunks)
  return null
}
