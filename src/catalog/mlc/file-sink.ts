/** Stores files that a look-up reads anyway, so that they are not downloaded twice. */
import type { HubAccess } from '../hub/listing.ts'
import type { Resource } from '../schema.ts'

export interface FileSink {
  /** Called once before long files are read. Rejects with `unavailable` if they do not fit. */
  reserve(bytes: number): Promise<void>
  /** Called for every piece of the files. */
  onBytes(bytes: number): void
  /** Stores a complete file. */
  store(resource: Resource, content: Blob): Promise<void>
}

export interface MlcAccess extends HubAccess {
  /** Storage for the files. Default: nothing is stored. */
  sink?: FileSink
}

/** Bytes collected before they become a Blob, since browsers store long Blobs on disk. */
const BLOB_PART_BYTES = 16 * 2 ** 20

/** Maximum length of a file to hold until its hash is known. Longer ones are downloaded again. */
const MAX_COLLECTED_BYTES = 512 * 2 ** 20

/** Creates a collector for the pieces of one file. `end` returns `undefined` if it is too long. */
export function createCollector(): {
  add(piece: Uint8Array<ArrayBuffer>): void
  end(): Blob | undefined
} {
  let blobs: Blob[] = []
  let pieces: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  let filled = 0
  return {
    add(piece) {
      bytes += piece.length
      if (bytes > MAX_COLLECTED_BYTES) {
        blobs = pieces = []
        return
      }
      pieces.push(piece)
      filled += piece.length
      if (filled < BLOB_PART_BYTES) return
      blobs.push(new Blob(pieces))
      pieces = []
      filled = 0
    },
    end: () => (bytes > MAX_COLLECTED_BYTES ? undefined : new Blob([...blobs, ...pieces])),
  }
}
