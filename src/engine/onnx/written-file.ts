/** Collects the bytes of a file that is made at load. */
import { joinBytes } from '../../values/bytes.ts'

/** Number of bytes up to which a file stays in the memory of its thread; a guess. */
const MAX_MEMORY_BYTES = 256 * 2 ** 20

/** Bytes in memory before the browser may write them to a disk. */
const PART_BYTES = 16 * 2 ** 20

/**
 * A file that grows. A small one stays in the memory of this thread, so that reading it waits for no other
 * process. A large one becomes a `Blob` part by part, which the browser may write to a disk.
 */
export class WrittenFile {
  readonly #maxMemoryBytes: number
  readonly #partBytes: number
  #pieces: Uint8Array<ArrayBuffer>[] = []
  #pieceBytes = 0
  readonly #parts: Blob[] = []
  #size = 0

  constructor(maxMemoryBytes = MAX_MEMORY_BYTES, partBytes = PART_BYTES) {
    this.#maxMemoryBytes = maxMemoryBytes
    this.#partBytes = partBytes
  }

  /** Number of bytes that were written. */
  get size(): number {
    return this.#size
  }

  /** Keeps the piece, which must not change later. */
  write(piece: Uint8Array<ArrayBuffer>): void {
    this.#pieces.push(piece)
    this.#pieceBytes += piece.length
    this.#size += piece.length
    if (this.#size > this.#maxMemoryBytes && this.#pieceBytes >= this.#partBytes) this.#flush()
  }

  /** Returns the whole file. Nothing may be written later. */
  close(): Blob {
    if (this.#parts.length === 0) return new MemoryFile(this.#pieces)
    this.#flush()
    return new Blob(this.#parts)
  }

  #flush(): void {
    this.#parts.push(new Blob(this.#pieces))
    this.#pieces = []
    this.#pieceBytes = 0
  }
}

/** A file in memory. It is a class because the runtime checks `instanceof Blob`. */
class MemoryFile extends Blob {
  readonly #pieces: readonly Uint8Array<ArrayBuffer>[]
  readonly #size: number

  constructor(pieces: readonly Uint8Array<ArrayBuffer>[]) {
    super()
    this.#pieces = pieces
    this.#size = pieces.reduce((bytes, { length }) => bytes + length, 0)
  }

  override get size(): number {
    return this.#size
  }

  /** Takes no negative positions, which nobody uses. */
  override slice(start = 0, end = this.#size): Blob {
    const found: Uint8Array<ArrayBuffer>[] = []
    let at = 0
    for (const piece of this.#pieces) {
      if (at >= end) break
      const [from, to] = [Math.max(0, start - at), Math.min(piece.length, end - at)]
      if (from < to) found.push(piece.subarray(from, to))
      at += piece.length
    }
    return new MemoryFile(found)
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    return joinBytes(this.#pieces).buffer
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new Blob([...this.#pieces]).stream()
  }

  override text(): Promise<string> {
    return new Blob([...this.#pieces]).text()
  }
}
