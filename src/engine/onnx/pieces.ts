/** Files as the runtime can stream them without getting stuck. */

/** Bytes that are read at once. */
const PIECE = 2 * 2 ** 20

/**
 * The same file, whose streams read piece by piece. Where it can, the runtime reads into a buffer of
 * its own, and Chromium (156, on a busy machine) then now and again leaves a read without an answer
 * for ever; of these streams it cannot, and reads as everybody does.
 */
export function inPieces(file: Blob): Blob {
  return file instanceof Pieces ? file : new Pieces(file)
}

/** A class, since the runtime asks whether it is a `Blob`. */
class Pieces extends Blob {
  readonly #file: Blob

  constructor(file: Blob) {
    super()
    this.#file = file
  }

  override get size(): number {
    return this.#file.size
  }

  override slice(start?: number, end?: number, type?: string): Blob {
    return new Pieces(this.#file.slice(start, end, type))
  }

  override arrayBuffer(): Promise<ArrayBuffer> {
    return this.#file.arrayBuffer()
  }

  override stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    const file = this.#file
    let at = 0
    return new ReadableStream(
      {
        async pull(controller) {
          const piece = file.slice(at, at + PIECE)
          if (piece.size > 0) controller.enqueue(new Uint8Array(await piece.arrayBuffer()))
          else controller.close()
          at += piece.size
        },
      },
      { highWaterMark: 0 },
    )
  }
}
