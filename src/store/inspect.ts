/** Looks whether what is stored is still what was stored. */
import { UNNOTED } from './db.ts'
import { digestOf } from './hash.ts'
import { committed, type Database } from './open.ts'
import { chunkLength, resourceRecord } from './resources.ts'
import { readChunk } from './writing.ts'

/**
 * Reads all that is stored of these resources, and takes out every chunk that cannot be read or is not
 * what it was: their resources are not readable then, and the next download fetches those chunks alone.
 * Answers how many bytes were taken out; `onBytes` is told of what was read, chunk by chunk.
 */
export async function findDamage(
  database: Database,
  hashes: Iterable<string>,
  signal: AbortSignal,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<number> {
  let bytes = 0
  for (const sha256 of new Set(hashes)) {
    const record = await resourceRecord(database, sha256)
    if (!record?.verified) continue
    for (const [index, noted] of record.chunks.entries()) {
      signal.throwIfAborted()
      const content = await contentOf(await readChunk(database, sha256, index))
      const isWhole = content?.byteLength === chunkLength(record, index)
      onBytes(chunkLength(record, index))
      const isSame =
        isWhole && (noted === UNNOTED || (await digestOf('SHA-256', content)) === noted)
      if (isSame) continue
      await takeOut(database, sha256, index)
      bytes += chunkLength(record, index)
    }
  }
  return bytes
}

/** The content of a stored chunk; `null` when it is missing, or the browser lost the file behind it. */
export async function contentOf(
  chunk: Blob | ArrayBuffer | undefined,
): Promise<ArrayBuffer | null> {
  if (!chunk) return null
  return chunk instanceof ArrayBuffer ? chunk : chunk.arrayBuffer().catch(() => null)
}

/** Its hash stays noted, which it must have again. */
function takeOut(database: Database, sha256: string, index: number): Promise<void> {
  return database.use((connection) => {
    const transaction = connection.transaction('chunks', 'readwrite')
    return committed(transaction, () => transaction.store.delete([sha256, index]))
  })
}
