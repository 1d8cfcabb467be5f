/** A resource out of a file that the user chose, into the store. */
import { createSHA256 } from 'hash-wasm'
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { alone } from './alone.ts'
import { openAssembly } from './assembly.ts'
import { CHUNK_BYTES, type WantedResource } from './db.ts'
import { downloadLock } from './download.ts'
import type { Database } from './open.ts'
import { deleting } from './owed.ts'
import { bytesHere, readResource, removeResource, resourceRecord } from './resources.ts'

/** Bytes of a file that are in memory at once. */
const PIECE = 4 * 1024 * 1024

export interface IntakeOptions {
  signal: AbortSignal
  tag: Tag
  /** Told after every piece. */
  onBytes: (bytes: number) => void
}

/** Bytes of a file. Rejects with `invalid_request` when they cannot be read, as after it was changed. */
export async function readPiece(
  file: Blob,
  start = 0,
  end = file.size,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await file.slice(start, end).arrayBuffer())
  } catch (cause) {
    throw changed(file instanceof File ? file.name : 'A file', cause)
  }
}

/** A file is not what it was when it was chosen. */
export function changed(path: string, cause?: unknown): InoriginError {
  const what = `${path} was changed or taken away while it was being read. Choose it again.`
  return new InoriginError('invalid_request', what, {
    code: 'import_changed',
    param: 'files',
    cause,
  })
}

/** The sha256 of a file, which need not fit into memory. */
export async function hashFile(
  file: Blob,
  { signal, onBytes }: Pick<IntakeOptions, 'signal' | 'onBytes'>,
): Promise<string> {
  const hash = (await createSHA256()).init()
  for (let start = 0; start < file.size; start += PIECE) {
    signal.throwIfAborted()
    const piece = await readPiece(file, start, start + PIECE)
    hash.update(piece)
    onBytes(piece.length)
  }
  return hash.digest()
}

/**
 * Stores a file as that resource; what is here of it already is not written again. Answers whether it
 * is that resource: the file may have changed since it was looked at, and then nothing of it stays.
 */
export function takeIn(
  database: Database,
  wanted: WantedResource,
  file: Blob,
  { signal, tag, onBytes }: IntakeOptions,
): Promise<boolean> {
  return alone(downloadLock(database, wanted.sha256), { signal }, async (turn) => {
    if (await readResource(database, wanted.sha256)) return true
    const options = { chunkBytes: CHUNK_BYTES, signal: turn, tag }
    const assembly = await openAssembly(database, wanted, options)
    for (;;) {
      while (assembly.position < wanted.bytes) {
        turn.throwIfAborted()
        const { position, end } = assembly
        const content = await readPiece(file, position, Math.min(position + PIECE, end))
        if (content.length === 0 || (await assembly.write(content))) {
          return refuse(database, wanted.sha256)
        }
        onBytes(content.length)
      }
      if (!(await assembly.finish())) return true
      if (!assembly.joined) return refuse(database, wanted.sha256)
      // What came over the network before was of another file.
      await assembly.restart(null)
    }
  })
}

/** Nothing stays of what is not that resource. */
async function refuse(database: Database, sha256: string): Promise<false> {
  const record = await resourceRecord(database, sha256)
  const bytes = record ? bytesHere(record) : 0
  await deleting(database, bytes, () => removeResource(database, sha256))
  return false
}
