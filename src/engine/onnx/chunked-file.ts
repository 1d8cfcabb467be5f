/** Wraps files so that the runtime can stream them without hanging. */

/** Size in bytes of one read. */
const READ_CHUNK_BYTES = 2 * 2 ** 20

/**
 * Returns the same file with streams that read piece by piece. The runtime prefers reads into its
 * own buffer (BYOB). On a busy machine, Chromium 156 sometimes never settles such a read. These
 * streams support only default reads. Each piece is valid until the next read, which frees it.
 */
export function toChunkedFile(file: Blob): Blob {
  return file instanceof ChunkedFile ? file : new ChunkedFile(file)
}

/** A file with such streams. It is a class because the runtime checks `instanceof Blob`. */
class ChunkedFile extends Blob {
  readonly #file: Blob

  constructor(file: Blob) {
    super()
    this.#file = file
  }

  override get size(): number {
    return this.#file.size
  }

  override slice(start?: number, end?: number, type?: string): Blob {
    return new ChunkedFile(this.#file.slice(start, end, type))
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
          const chunk = file.slice(at, at + READ_CHUNK_BYTES)
          at += chunk.size
          read = await chunk.arrayBuffer()
          if (chunk.size > 0) controller.enqueue(new Uint8Array(read))
          else controller.close()
        },
      },
      { highWaterMark: 0 },
    )
  }
}

/**
 * Frees the memory of a piece at once, by a transfer to a channel that is then closed. The garbage
 * collector would let the pieces grow to a third of the file.
 */
function free(chunk: ArrayBuffer | null): void {
  if (!chunk) return
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(null, [chunk])
  port1.close()
  port2.close()
}
