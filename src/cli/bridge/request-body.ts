/** Reads bodies of HTTP requests: within a limit, and decoded if they are compressed. */
import type { IncomingMessage } from 'node:http'
import { createBrotliDecompress, createGunzip } from 'node:zlib'
import { Decompress } from 'fzstd'
import { InoriginError, messageOf } from '../../error.ts'
import { shorten } from '../../values/text.ts'

/** Names of the encodings that are decoded, as `accept-encoding` lists them. */
export const ENCODINGS = 'gzip, br, zstd'

/** Maximum time in milliseconds for which the rest of a refused body is read. */
const DISCARD_TIMEOUT_MS = 30_000

interface ReadOptions {
  /** Maximum number of bytes, before and after it is decoded. */
  maxBytes: number
  /** Called when the body is about to be read. */
  onBegin: () => void
  /** Called with the number of bytes that were added to what is kept. May throw to refuse. */
  onBytes: (count: number) => void
}

/**
 * Resolves with the decoded body. After an error, the rest of the body is still there, and
 * {@link discardBody} must read it.
 *
 * @throws InoriginError `too_large`, `unsupported_media_type` for an encoding that is not decoded, and
 *   `invalid_request` for a body that is not what its encoding says.
 */
export async function readBody(
  request: IncomingMessage,
  { maxBytes, onBegin, onBytes }: ReadOptions,
): Promise<Uint8Array> {
  const encoding = parseEncoding(request.headers['content-encoding'])
  if (Number(request.headers['content-length']) > maxBytes) throw tooLargeError(maxBytes)
  onBegin()
  const sent = new Pieces(maxBytes, onBytes)
  // To leave the loop must not destroy the request, because its client could not read the response.
  for await (const piece of request.iterator({ destroyOnReturn: false })) sent.add(piece)
  const bytes = sent.join()
  if (encoding === 'identity' || bytes.byteLength === 0) return bytes
  const decoded = new Pieces(maxBytes, onBytes)
  try {
    await DECODERS[encoding](bytes, decoded)
  } catch (cause) {
    if (cause instanceof InoriginError) throw cause
    const what = `The body is not valid ${encoding}: ${shorten(messageOf(cause))}.`
    throw new InoriginError('invalid_request', what, { code: 'invalid_content_encoding', cause })
  }
  return decoded.join()
}

/**
 * Reads the rest of a body and drops it. A connection that is closed while bytes arrive is reset, and
 * its client may lose the response. Resolves when the body ends, when the client leaves, or after
 * 30 s.
 */
export async function discardBody(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return
  let timer: ReturnType<typeof setTimeout> | undefined
  await new Promise<void>((resolve) => {
    timer = setTimeout(resolve, DISCARD_TIMEOUT_MS)
    for (const event of ['end', 'close', 'error']) request.once(event, () => resolve())
    request.resume()
  })
  clearTimeout(timer)
}

/** The bytes of a body so far. */
class Pieces {
  readonly #maxBytes: number
  readonly #onBytes: ReadOptions['onBytes']
  readonly #pieces: Uint8Array[] = []
  #length = 0

  constructor(maxBytes: number, onBytes: ReadOptions['onBytes']) {
    this.#maxBytes = maxBytes
    this.#onBytes = onBytes
  }

  add(piece: Uint8Array): void {
    this.#length += piece.byteLength
    if (this.#length > this.#maxBytes) throw tooLargeError(this.#maxBytes)
    this.#onBytes(piece.byteLength)
    this.#pieces.push(piece)
  }

  join(): Uint8Array {
    return Buffer.concat(this.#pieces, this.#length)
  }
}

type Decode = (bytes: Uint8Array, decoded: Pieces) => Promise<void>

const decodeByNode =
  (create: typeof createGunzip | typeof createBrotliDecompress): Decode =>
  async (bytes, decoded) => {
    const decoder = create()
    decoder.end(bytes)
    // Leaving the loop by an error ends the decoder before more than the limit is in memory.
    for await (const piece of decoder) decoded.add(piece as Uint8Array)
  }

const DECODERS = {
  gzip: decodeByNode(createGunzip),
  br: decodeByNode(createBrotliDecompress),
  // Node.js has a decoder of its own from 22.15 on.
  zstd: async (bytes: Uint8Array, decoded: Pieces) => {
    assertZstdWindows(bytes)
    new Decompress((piece) => decoded.add(piece)).push(bytes, true)
  },
} satisfies Record<string, Decode>

type Encoding = keyof typeof DECODERS

const isDecoded = (name: string): name is Encoding => Object.hasOwn(DECODERS, name)

function parseEncoding(header = ''): Encoding | 'identity' {
  const name = header
    .trim()
    .toLowerCase()
    .replace(/^x-gzip$/, 'gzip')
  if (name === '' || name === 'identity') return 'identity'
  if (isDecoded(name)) return name
  const what = `The content-encoding "${shorten(header)}" is not supported.`
  throw new InoriginError(
    'unsupported_media_type',
    `${what} Send the body as it is, or in one of ${ENCODINGS}.`,
    { code: 'invalid_content_encoding' },
  )
}

function tooLargeError(maxBytes: number): InoriginError {
  const what = `The body is larger than ${maxBytes} bytes. Send less at once.`
  return new InoriginError('too_large', what, { code: 'request_too_large' })
}

// The decoder of zstd allocates the window that a frame asks for, which may be 2 GiB. So all headers
// are read before. Their format: https://datatracker.ietf.org/doc/html/rfc8878#section-3.1

/** Maximum length in bytes of a window. Senders may not use a larger one than 8 MiB (RFC 9659). */
const MAX_ZSTD_WINDOW_BYTES = 2 ** 25
const ZSTD_MAGIC = 0xfd2fb528
/** The last four bits of this number are any. */
const ZSTD_SKIPPABLE_MAGIC = 0x184d2a50

/** Throws if a frame has too large a window, or if the bytes are no frames. */
function assertZstdWindows(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  while (at < bytes.byteLength) {
    const magic = view.getUint32(at, true)
    if ((magic & ~15) >>> 0 === ZSTD_SKIPPABLE_MAGIC) at += 8 + view.getUint32(at + 4, true)
    else if (magic === ZSTD_MAGIC) at = findZstdFrameEnd(view, at + 4)
    else throw new Error('it has no frame at its beginning, or after a frame')
  }
}

/** Returns the position after the frame whose descriptor is at this position. */
function findZstdFrameEnd(view: DataView, start: number): number {
  const descriptor = view.getUint8(start)
  const isSingle = (descriptor & 32) !== 0
  const hasChecksum = (descriptor & 4) !== 0
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0
  let at = start + 1
  let windowBytes = 0
  if (!isSingle) {
    const window = view.getUint8(at)
    windowBytes = 2 ** (10 + (window >> 3)) * (1 + (window & 7) / 8)
    at += 1
  }
  at += dictionaryBytes
  if (isSingle) windowBytes = readNumber(view, at, sizeBytes)
  if (windowBytes > MAX_ZSTD_WINDOW_BYTES) throw tooLargeError(MAX_ZSTD_WINDOW_BYTES)
  at += sizeBytes
  for (let isLast = false; !isLast;) {
    const header = readNumber(view, at, 3)
    isLast = (header & 1) === 1
    // A block of one repeated byte has only that byte.
    at += 3 + (((header >> 1) & 3) === 1 ? 1 : header >> 3)
  }
  return at + (hasChecksum ? 4 : 0)
}

function readNumber(view: DataView, at: number, length: number): number {
  let number = 0
  for (let index = 0; index < length; index += 1) number += view.getUint8(at + index) * 256 ** index
  return number
}
