/** Converts bytes to base64 and back. */

/** Bytes per call of `String.fromCharCode`: JavaScript engines limit the number of arguments. */
const STEP_BYTES = 2 ** 15

/** Encodes bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += STEP_BYTES)
    binary += String.fromCharCode(...bytes.subarray(at, at + STEP_BYTES))
  return btoa(binary)
}

/** Decodes base64. Throws the error of `atob` when the text is not valid. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at)
  return bytes
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1
  return rest
})

/** Returns the CRC-32 of bytes, the checksum of PNG and ZIP files. */
export function crc32(bytes: Uint8Array): number {
  let rest = 0xffffffff
  for (const byte of bytes) rest = (rest >>> 8) ^ (TABLE[(rest ^ byte) & 255] ?? 0)
  return ~rest >>> 0
}

/**
 * Yields the pieces of a stream, and cancels it when the caller stops early. Not every browser can
 * iterate streams: https://developer.mozilla.org/docs/Web/API/ReadableStream#browser_compatibility
 */
export async function* readStream<T>(stream: ReadableStream<T>): AsyncGenerator<T> {
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

/** Returns pieces as one. */
export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    joined.set(piece, at)
    at += piece.length
  }
  return joined
}
