/** Stores a resource from a file that the user chose. */
import { createSHA256 } from 'hash-wasm'
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { runExclusive } from './exclusive.ts'
import { openAssembly } from './assembly.ts'
import { CHUNK_BYTES, type WantedResource } from './db.ts'
import { toDownloadLockName } from './download.ts'
import type { Database } from './database.ts'
import { trackDeletion } from './pending-deletions.ts'
import { countStoredBytes, readResource, removeResource, findResourceRecord } from './resources.ts'

/** Number of bytes of a file that are in memory at once. */
const READ_PIECE_BYTES = 4 * 1024 * 1024

export interface ImportFileOptions {
  signal: AbortSignal
  tag: Tag
  /** Called after every piece. */
  onBytes: (bytes: number) => void
}

/** Reads bytes of a file. Rejects with `invalid_request` if that fails, as after a change. */
export async function readPiece(
  file: Blob,
  start = 0,
  end = file.size,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await file.slice(start, end).arrayBuffer())
  } catch (cause) {
    throw fileChangedError(file instanceof File ? file.name : 'A file', cause)
  }
}

/** Returns the error for a file that changed after the user chose it. */
export function fileChangedError(path: string, cause?: unknown): InoriginError {
  const what = `${path} was changed or removed while it was being read. Choose it again.`
  return new InoriginError('invalid_request', what, {
    code: 'import_changed',
    param: 'files',
    cause,
  })
}

/** Computes the sha256 of a file, which may be larger than the memory. */
export async function digestFile(
  file: Blob,
  { signal, onBytes }: Pick<ImportFileOptions, 'signal' | 'onBytes'>,
): Promise<string> {
  const hash = (await createSHA256()).init()
  for (let start = 0; start < file.size; start += READ_PIECE_BYTES) {
    signal.throwIfAborted()
    const piece = await readPiece(file, start, start + READ_PIECE_BYTES)
    hash.update(piece)
    onBytes(piece.length)
  }
  return hash.digest()
}

/**
 * Stores a file as that resource, except for the chunks that are already stored. Resolves with
 * `false` if it is not that resource, as after a change of the file. Then nothing of it is stored.
 */
export function importFile(
  database: Database,
  wanted: WantedResource,
  file: Blob,
  { signal, tag, onBytes }: ImportFileOptions,
): Promise<boolean> {
  return runExclusive(
    toDownloadLockName(database, wanted.sha256),
    { signal },
    async (exclusive) => {
      if (await readResource(database, wanted.sha256)) return true
      const options = { chunkBytes: CHUNK_BYTES, signal: exclusive, tag }
      const assembly = await openAssembly(database, wanted, options)
      for (;;) {
        while (assembly.position < wanted.bytes) {
          exclusive.throwIfAborted()
          const { position, end } = assembly
          const content = await readPiece(
            file,
            position,
            Math.min(position + READ_PIECE_BYTES, end),
          )
          if (content.length === 0 || (await assembly.write(content))) {
            return deleteMismatched(database, wanted.sha256)
          }
          onBytes(content.length)
        }
        if (!(await assembly.finish())) return true
        if (!assembly.joined) return deleteMismatched(database, wanted.sha256)
        // The chunks that an earlier download stored were of another file.
        await assembly.restart(null)
      }
    },
  )
}

/** Deletes the data that turned out not to be the resource. */
async function deleteMismatched(database: Database, sha256: string): Promise<false> {
  const record = await findResourceRecord(database, sha256)
  const bytes = record ? countStoredBytes(record) : 0
  await trackDeletion(database, bytes, () => removeResource(database, sha256))
  return false
}
