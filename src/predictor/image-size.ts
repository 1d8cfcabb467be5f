/**
 * Reads the size of image files from their headers. A file of kilobytes can decode to gigabytes,
 * and browsers have no limit for decoders.
 */

/** Bytes of a file that are searched for its size. Photos can have megabytes of metadata first. */
export const MAX_HEADER_BYTES = 2 ** 24

/** Width and height in pixels. */
export type ImageSize = readonly [width: number, height: number]

/** Formats of {@link readImageSize}, for messages. */
export const IMAGE_FORMATS = 'PNG, JPEG, GIF, WebP or BMP'

/** Returns the size of an image; `undefined` for another format, or a damaged or empty one. */
export function readImageSize(bytes: Uint8Array): ImageSize | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const [, read] = SIZE_READERS.find(([mark]) => startsWith(bytes, mark)) ?? []
  try {
    const [width, height] = read?.(view) ?? [0, 0]
    return width > 0 && height > 0 ? [width, height] : undefined
  } catch (error) {
    // The header is truncated.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Returns the size. Throws a `RangeError` if the bytes are truncated. */
type SizeReader = (view: DataView) => ImageSize | undefined

/** Readers by the bytes with which files of their format begin. A `?` stands for any byte. */
const SIZE_READERS: readonly (readonly [mark: string, read: SizeReader])[] = [
  ['\x89PNG\r\n\x1a\n????IHDR', (view) => [view.getUint32(16), view.getUint32(20)]],
  ['\xff\xd8', readJpeg],
  ['GIF8', readGif],
  // A VP8 key frame (RFC 6386, section 9.1). The two high bits of each length are a scale.
  [
    'RIFF????WEBPVP8 ',
    (view) => [view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff],
  ],
  ['RIFF????WEBPVP8L', readLosslessWebp],
  ['RIFF????WEBPVP8X', readExtendedWebp],
  ['BM', readBmp],
]

/** Media types of the formats that language models accept, by the same bytes. */
const MEDIA_TYPES = [
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8', 'image/jpeg'],
  ['GIF8', 'image/gif'],
  ['RIFF????WEBP', 'image/webp'],
] as const

/** Returns the media type of a file of PNG, JPEG, GIF or WebP; `undefined` for another file. */
export const readMediaType = (bytes: Uint8Array): (typeof MEDIA_TYPES)[number][1] | undefined =>
  MEDIA_TYPES.find(([mark]) => startsWith(bytes, mark))?.[1]

const startsWith = (bytes: Uint8Array, mark: string) =>
  [...mark].every((sign, at) => sign === '?' || bytes[at] === sign.charCodeAt(0))

/** Walks the segments up to the frame header (ITU-T T.81, annex B). */
function readJpeg(view: DataView): ImageSize | undefined {
  let at = 2
  for (;;) {
    while (view.getUint8(at) !== 0xff) at += 1
    while (view.getUint8(at) === 0xff) at += 1
    const marker = view.getUint8(at)
    at += 1
    const isAlone = marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8)
    if (isAlone) continue
    // The image or the scan data comes before any frame header.
    if (marker === 0xd9 || marker === 0xda) return undefined
    if (isFrameHeader(marker)) return [view.getUint16(at + 5), view.getUint16(at + 3)]
    at += view.getUint16(at)
  }
}

/** Returns `true` for a frame marker. Three markers from C0 to CF begin tables and extensions. */
const isFrameHeader = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

/** Reads the larger of the screen and the first frame, since decoders enlarge the screen to it. */
function readGif(view: DataView): ImageSize | undefined {
  const screen = [view.getUint16(6, true), view.getUint16(8, true)] as const
  const flags = view.getUint8(10)
  let at = 13 + ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1))
  // Each extension is a list of blocks that ends with an empty one.
  while (view.getUint8(at) === 0x21) {
    at += 2
    for (let length = view.getUint8(at); length > 0; length = view.getUint8(at)) at += length + 1
    at += 1
  }
  if (view.getUint8(at) !== 0x2c) return undefined
  const right = view.getUint16(at + 1, true) + view.getUint16(at + 5, true)
  const bottom = view.getUint16(at + 3, true) + view.getUint16(at + 7, true)
  return [Math.max(screen[0], right), Math.max(screen[1], bottom)]
}

/** Reads two numbers of 14 bits, each one less than the length (RFC 9649, section 3.4). */
function readLosslessWebp(view: DataView): ImageSize {
  const bits = view.getUint32(21, true)
  return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1]
}

/** Reads the canvas, which bounds all frames: two 24-bit numbers, each one less than the length. */
function readExtendedWebp(view: DataView): ImageSize {
  const low24 = (at: number): number => view.getUint16(at, true) + view.getUint8(at + 2) * 0x10000
  return [low24(24) + 1, low24(27) + 1]
}

/** Reads the header of either kind. The height is negative if the top row comes first. */
function readBmp(view: DataView): ImageSize {
  const isCore = view.getUint32(14, true) === 12
  if (isCore) return [view.getUint16(18, true), view.getUint16(20, true)]
  return [view.getInt32(18, true), Math.abs(view.getInt32(22, true))]
}
