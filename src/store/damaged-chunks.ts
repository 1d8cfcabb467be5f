/** Checks stored resources for damage. */
import { UNKNOWN_DIGEST } from './db.ts'
import { computeDigest } from '../values/digest.ts'
import { runWrite, type Database } from './database.ts'
import { getChunkLength, findResourceRecord } from './resources.ts'
import { getChunk } from './resource-writer.ts'

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
      const content = await readChunkContent(await getChunk(database, sha256, index))
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
 * Resolves with the content of a stored chunk; `null` if it is missing, if its file is lost, or if
 * the record is something else.
 */
export async function readChunkContent(chunk: unknown): Promise<ArrayBuffer | null> {
  if (chunk instanceof ArrayBuffer) return chunk
  return chunk instanceof Blob ? chunk.arrayBuffer().catch(() => null) : null
}

/** Deletes a chunk. Its recorded hash stays, and the chunk that replaces it must match. */
function deleteChunkData(database: Database, sha256: string, index: number): Promise<void> {
  return runWrite(database, ['chunks'], (transaction) =>
    transaction.objectStore('chunks').delete([sha256, index]),
  )
}
