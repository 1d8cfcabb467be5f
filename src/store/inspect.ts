/** Checks stored resources for damage. */
import { UNNOTED } from './db.ts'
import { digestOf } from './hash.ts'
import { committed, type Database } from './open.ts'
import { chunkLength, resourceRecord } from './resources.ts'
import { readChunk } from './writing.ts'

/**
 * Reads the stored chunks of these resources and deletes every chunk that is unreadable or changed.
 * A resource with a deleted chunk is not readable; the next download fetches that chunk alone.
 * Resolves with the number of bytes deleted. Calls `onBytes` with the bytes read, chunk by chunk.
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

/** Resolves with the content of a stored chunk; `null` if it is missing or its file is lost. */
export async function contentOf(
  chunk: Blob | ArrayBuffer | undefined,
): Promise<ArrayBuffer | null> {
  if (!chunk) return null
  return chunk instanceof ArrayBuffer ? chunk : chunk.arrayBuffer().catch(() => null)
}

/** Deletes a chunk. Its recorded hash stays, and the chunk that replaces it must match. */
function takeOut(database: Database, sha256: string, index: number): Promise<void> {
  return database.use((connection) => {
    const transaction = connection.transaction('chunks', 'readwrite')
    return committed(transaction, () => transaction.store.delete([sha256, index]))
  })
}
