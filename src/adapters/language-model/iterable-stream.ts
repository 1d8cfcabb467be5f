/** Streams for `for await` in browsers whose own streams have no iterator, such as WebKit's. */

/** Gives the stream an iterator if it has none. Leaving the loop cancels the stream, as usual. */
export function makeIterable<Chunk>(stream: ReadableStream<Chunk>): ReadableStream<Chunk> {
  if (!(Symbol.asyncIterator in stream)) {
    const iterate = () => iterateStream(stream)
    Object.defineProperty(stream, Symbol.asyncIterator, { value: iterate })
  }
  return stream
}

async function* iterateStream<Chunk>(stream: ReadableStream<Chunk>): AsyncGenerator<Chunk> {
  const reader = stream.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  } finally {
    // A stream that has ended ignores this, and one that failed rejects with the same error.
    await reader.cancel()
    reader.releaseLock()
  }
}
