/**
 * Bytes become chunks in the database and a hash of the whole. The hash is taken piece by piece in the
 * order of the bytes, since `crypto.subtle` can only digest what is in memory at once: what is stored
 * already is read on the way, and a stored chunk that is not what it was is taken as missing.
 */
import { createSHA256 } from 'hash-wasm'
import type { Tag } from '../types/index.ts'
import { UNNOTED, type WantedResource } from './db.ts'
import { digestOf } from './hash.ts'
import { contentOf } from './inspect.ts'
import type { Database } from './open.ts'
import { deleting } from './owed.ts'
import { bytesHere } from './resources.ts'
import {
  beginWriting,
  discardChunks,
  dropChunk,
  finishWriting,
  putChunk,
  readChunk,
  rememberEtag,
} from './writing.ts'

/** A hash that is not the catalog's. `index` is the chunk's, absent when it is the whole. */
export interface Damage {
  index?: number
  expected: string
  got: string
}

/** A resource on its way into the store. */
export interface Assembly {
  /** The first byte that is missing; the resource's length when none is. */
  readonly position: number
  /** Where bytes that are here begin again behind it; the resource's length when none do. */
  readonly end: number
  /** Bytes that are here, those of the unfinished chunk included. */
  readonly here: number
  /** The server's tag of the version that is being put together. */
  readonly etag: string | null
  /** Whether the bytes that are here came in more than one answer, so perhaps of two versions. */
  readonly joined: boolean
  /** It was whole once: only what was lost of it is missing. */
  readonly repairs: boolean
  /**
   * Takes the next bytes, never more than are missing up to `end`, and stores every chunk they
   * complete. A chunk whose hash is wrong is dropped and answered; `position` is then at its start.
   */
  write(piece: Uint8Array<ArrayBuffer>): Promise<Damage | null>
  /** Says that the next bytes come in another answer than those that are here. */
  join(): void
  /** Starts over with nothing, for the version of that tag. */
  restart(etag: string | null): Promise<void>
  /**
   * Makes the resource readable when its whole hash is right; otherwise answers and changes
   * nothing.
   */
  finish(): Promise<Damage | null>
}

export interface AssemblyOptions {
  /** Bytes of every chunk but the last. */
  chunkBytes: number
  signal: AbortSignal
  /** What it is stored for. */
  tag?: Tag | undefined
}

/** Goes on where an earlier download of the resource ended. */
export async function openAssembly(
  database: Database,
  wanted: WantedResource,
  { chunkBytes, signal, tag }: AssemblyOptions,
): Promise<Assembly> {
  const { sha256, bytes } = wanted
  const hash = await createSHA256()
  const turn = await beginWriting(database, wanted, chunkBytes, tag)
  /** The hash of each chunk that is here. */
  let chunks = turn.chunks
  const { known } = turn
  let { etag } = turn
  let repairs = known.length > 0
  /** State of the hash at the end of the last whole chunk. */
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

  /** The content of a stored chunk, if it is what was stored. */
  async function stored(at: number): Promise<Uint8Array<ArrayBuffer> | null> {
    const content = await contentOf(await readChunk(database, sha256, at))
    if (content?.byteLength !== lengthOf(at)) return null
    const noted = wanted.chunks?.[at] ?? chunks[at]
    const got = await digestOf('SHA-256', content)
    if (noted !== UNNOTED && noted !== got) return null
    chunks = chunks.with(at, got)
    return new Uint8Array(content)
  }

  /** Goes over what is stored, up to the next chunk that is not. */
  async function pass(): Promise<void> {
    for (; index < chunks.length && chunks[index] !== null; index++) {
      signal.throwIfAborted()
      const content = await stored(index)
      if (!content) {
        await dropChunk(database, turn, index)
        chunks = chunks.with(index, null)
        return
      }
      hashed = hash.update(content).save()
    }
  }

  async function restart(newTag: string | null): Promise<void> {
    const leaving = bytesHere({ bytes, chunkBytes, chunks })
    await deleting(database, leaving, () => discardChunks(database, turn))
    chunks = chunks.map(() => null)
    hashed = hash.init().save()
    index = 0
    dropPieces()
    joined = false
    repairs = false
    etag = newTag
    if (etag !== null) await rememberEtag(database, turn, etag)
  }

  async function storeChunk(): Promise<Damage | null> {
    const chunk = new Blob(pieces)
    const got = await digestOf('SHA-256', await chunk.arrayBuffer())
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

  async function write(piece: Uint8Array<ArrayBuffer>): Promise<Damage | null> {
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

  async function finish(): Promise<Damage | null> {
    const got = hash.digest()
    if (got !== sha256) return { expected: sha256, got }
    await finishWriting(database, turn, chunks)
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
      return bytesHere({ bytes, chunkBytes, chunks }) + filled
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
