/**
 * Bytes in order become chunks in the database and a hash of the whole. The hash is taken piece by
 * piece while they arrive, since `crypto.subtle` can only digest what is in memory at once.
 */
import { createSHA256 } from 'hash-wasm'
import type { WantedResource } from './db.ts'
import type { Database } from './open.ts'
import { digestOf } from './hash.ts'
import {
  beginWriting, discardChunks, finishWriting, putChunk, readChunk, rememberEtag,
} from './writing.ts'

/** A hash that is not the catalog's. `index` is the chunk's, absent when it is the whole. */
export interface Damage {
  index?: number
  expected: string
  got: string
}

/** A resource on its way into the store. */
export interface Assembly {
  /** Bytes that are here, those of the unfinished chunk included. */
  readonly position: number
  /** The server's tag of the version that is being put together. */
  readonly etag: string | null
  /** Whether the bytes that are here came in more than one answer, so perhaps of two versions. */
  readonly joined: boolean
  /**
   * Takes the next bytes, never more than are missing, and stores every chunk they complete. A
   * chunk whose hash is wrong is dropped and answered; `position` is then at its start.
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

/** Goes on where an earlier download of the resource ended. */
export async function openAssembly(
  database: Database,
  wanted: WantedResource,
  chunkBytes: number,
  signal: AbortSignal,
): Promise<Assembly> {
  const { sha256, bytes } = wanted
  const hash = await createSHA256()
  const turn = await beginWriting(database, wanted, chunkBytes)
  let etag = turn.etag
  /** State of the hash at the end of the last whole chunk. */
  let hashed = hash.init().save()
  let index = 0
  let pieces: Uint8Array<ArrayBuffer>[] = []
  let filled = 0
  let joined = turn.chunks > 0

  const startOf = (chunk: number) => Math.min(chunk * chunkBytes, bytes)
  const lengthOf = (chunk: number) => Math.min(chunkBytes, bytes - startOf(chunk))

  function dropPieces(): void {
    hash.load(hashed)
    pieces = []
    filled = 0
  }

  /** Hashes what is stored; whether all of it could be read. */
  async function hashStored(): Promise<boolean> {
    for (; index < turn.chunks; index++) {
      signal.throwIfAborted()
      const chunk = await readChunk(database, sha256, index)
      const content = await contentOf(chunk)
      if (content?.length !== lengthOf(index)) return false
      hashed = hash.update(content).save()
    }
    return true
  }

  async function restart(newTag: string | null): Promise<void> {
    await discardChunks(database, turn)
    hashed = hash.init().save()
    index = 0
    dropPieces()
    joined = false
    etag = newTag
    if (etag !== null) await rememberEtag(database, turn, etag)
  }

  async function storeChunk(): Promise<Damage | null> {
    const chunk = new Blob(pieces)
    const expected = wanted.chunks?.[index]
    if (expected !== undefined) {
      const got = await digestOf('SHA-256', await chunk.arrayBuffer())
      if (got !== expected) {
        const damage = { index, expected, got }
        dropPieces()
        return damage
      }
    }
    await putChunk(database, turn, index, chunk)
    hashed = hash.save()
    index++
    dropPieces()
    return null
  }

  async function write(piece: Uint8Array<ArrayBuffer>): Promise<Damage | null> {
    for (let rest = piece; rest.length > 0; ) {
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
    await finishWriting(database, turn)
    return null
  }

  if (!(await hashStored())) await restart(null)

  return {
    get position() {
      return startOf(index) + filled
    },
    get etag() {
      return etag
    },
    get joined() {
      return joined
    },
    join() {
      joined = true
    },
    write,
    restart,
    finish,
  }
}

async function contentOf(chunk: Blob | ArrayBuffer | undefined): Promise<Uint8Array | null> {
  if (!chunk) return null
  if (chunk instanceof ArrayBuffer) return new Uint8Array(chunk)
  // The browser may have lost the file behind a Blob; then it is downloaded again.
  return chunk.arrayBuffer().then((content) => new Uint8Array(content), () => null)
}
