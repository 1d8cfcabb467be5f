/** Where a look-up puts what it reads anyway, so that it need not be sent again. */
import type { HubAccess } from '../hub/listing.ts'
import type { Resource } from '../schema.ts'

export interface Keeper {
  /** Told once, before long files are read. Rejects with `unavailable` where so many bytes do not fit. */
  expect(bytes: number): Promise<void>
  /** Told of every piece of those. */
  onBytes(bytes: number): void
  /** A file is whole. */
  keep(resource: Resource, content: Blob): Promise<void>
}

export interface MlcAccess extends HubAccess {
  /** Default: nothing is kept. */
  keeper?: Keeper
}

/** Bytes that come together before they leave the heap: browsers keep long Blobs on the disk. */
const PART = 16 * 2 ** 20

/** Bytes up to which a file is held until its hash is known. Longer ones are sent again. */
const MOST_HELD = 512 * 2 ** 20

/** Puts the pieces of one file together; `undefined` where it is too long for that. */
export function holdPieces(): {
  add(piece: Uint8Array<ArrayBuffer>): void
  end(): Blob | undefined
} {
  let whole: Blob[] = []
  let pieces: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  let filled = 0
  return {
    add(piece) {
      bytes += piece.length
      if (bytes > MOST_HELD) {
        whole = pieces = []
        return
      }
      pieces.push(piece)
      filled += piece.length
      if (filled < PART) return
      whole.push(new Blob(pieces))
      pieces = []
      filled = 0
    },
    end: () => (bytes > MOST_HELD ? undefined : new Blob([...whole, ...pieces])),
  }
}
