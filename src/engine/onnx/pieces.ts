/** Files as the runtime can stream them without getting stuck. */

/** Bytes that are read at once. */
const PIECE = 2 * 2 ** 20

/**
 * The same file, whose streams read piece by piece. Where it can, the runtime reads into a buffer of
 * its own, and Chromium (156, on a busy machine) then now and again leaves a read without an answer
 * for ever; of these streams it cannot, and reads as everybody does. What is read is there until the
 * next is: that frees it.
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
    let read: ArrayBuffer | null = null
    return new ReadableStream(
      {
        async pull(controller) {
          free(read)
          const piece = file.slice(at, at + PIECE)
          at += piece.size
          read = await piece.arrayBuffer()
          if (piece.size > 0) controller.enqueue(new Uint8Array(read))
          else controller.close()
        },
      },
      { highWaterMark: 0 },
    )
  }
}

/**
 * Gives the memory back at once. Left to the browser, the pieces of a file pile up to a third of it
 * before they are collected; what is on its way through a channel ends with the channel.
 */
function free(piece: ArrayBuffer | null): void {
  if (!piece) return
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(null, [piece])
  port1.close()
  port2.close()
}
