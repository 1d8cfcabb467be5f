/**
 * Yields the pieces of a stream, and cancels it when the caller stops early. Not every browser can
 * iterate streams: https://developer.mozilla.org/docs/Web/API/ReadableStream#browser_compatibility
 */
export async function* readStream(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    // A stream that failed has reported its error to `read` by now.
    reader.cancel().catch(() => undefined)
  }
}
