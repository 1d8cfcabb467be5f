/** Image files made byte by byte, of kinds that no canvas writes. */
import { crc32, deflateSync } from 'node:zlib'

/** Bits of each pixel of a PNG, and its color type: gray or red, green and blue. */
interface PngFormat {
  depth: 1 | 8 | 16
  colorType: 0 | 2
}

/** Returns a PNG. `rowOf` returns the bytes of a row. */
export function pngFile(
  [width, height]: readonly [width: number, height: number],
  { depth, colorType }: PngFormat,
  rowOf: (y: number) => Uint8Array,
): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([depth, colorType], 8)
  const rows = Array.from({ length: height }, (_, y) => Buffer.concat([Buffer.of(0), rowOf(y)]))
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(Buffer.concat(rows))),
    pngChunk('IEND', Buffer.alloc(0)),
  ])
}

function pngChunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

/** Returns a PNG of 256 x 256 pixels: a circle of that color on white. */
export function circlePng(color: readonly [red: number, green: number, blue: number]): Buffer {
  const colorAt = (x: number, y: number) =>
    Math.hypot(x - 128, y - 128) < 60 ? color : [250, 250, 250]
  const rowOf = (y: number) =>
    Uint8Array.from(Array.from({ length: 256 }, (_, x) => colorAt(x, y)).flat())
  return pngFile([256, 256], { depth: 8, colorType: 2 }, rowOf)
}

/** Returns a GIF of one pixel of that color. */
export const gifPixel = (color: readonly [red: number, green: number, blue: number]): Buffer =>
  Buffer.concat([
    Buffer.from('GIF89a', 'latin1'),
    Buffer.of(1, 0, 1, 0, 0x80, 0, 0, ...color, 0, 0, 0),
    Buffer.of(0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b),
  ])

/**
 * Returns a baseline JPEG of 8 x 8 pixels in one color of CMYK, 0 to 255. Its Adobe marker says that
 * the channels are inverted, as Photoshop writes them (ITU-T T.81, annexes B and F).
 */
export function cmykJpeg(color: readonly number[]): Buffer {
  const segment = (marker: number, ...data: number[]): number[] => [
    0xff,
    marker,
    (data.length + 2) >> 8,
    (data.length + 2) & 0xff,
    ...data,
  ]
  const components = color.map((_, index) => index + 1)
  // Each coefficient is 8 times the level, so with a divisor of 8 it is the level itself.
  const divisors = Array<number>(64).fill(8)
  const lengths = (...counts: number[]): number[] => [
    ...counts,
    ...Array(16 - counts.length).fill(0),
  ]
  // Categories 0 to 11 have codes of 4 bits, and the end of the block is a single 0.
  const categories = Array.from({ length: 12 }, (_, category) => category)
  const bits = color.map((level) => `${levelBits(level - 128)}0`).join('')
  const scan = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1').match(/.{8}/g) ?? []
  return Buffer.from([
    0xff,
    0xd8,
    ...segment(0xee, ...Buffer.from('Adobe'), 0, 100, 0, 0, 0, 0, 0),
    ...segment(0xdb, 0, ...divisors),
    ...segment(0xc0, 8, 0, 8, 0, 8, 4, ...components.flatMap((id) => [id, 0x11, 0])),
    ...segment(0xc4, 0x00, ...lengths(0, 0, 0, 12), ...categories),
    ...segment(0xc4, 0x10, ...lengths(1), 0),
    ...segment(0xda, 4, ...components.flatMap((id) => [id, 0]), 0, 63, 0),
    // A byte of ones is followed by a zero, so that it is no marker.
    ...scan.flatMap((byte) => (byte === '11111111' ? [0xff, 0] : [parseInt(byte, 2)])),
    0xff,
    0xd9,
  ])
}

/** Returns category and bits of a coefficient. */
function levelBits(level: number): string {
  const category = level === 0 ? 0 : Math.floor(Math.log2(Math.abs(level))) + 1
  const value = level < 0 ? level + 2 ** category - 1 : level
  return (
    category.toString(2).padStart(4, '0') +
    ((category && value.toString(2).padStart(category, '0')) || '')
  )
}

/** Returns a JPEG with an Exif segment that gives the orientation, 1 to 8. */
export function withOrientation(jpeg: Buffer, orientation: number): Buffer {
  const entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]
  const tiff = [...Buffer.from('MM'), 0, 42, 0, 0, 0, 8, 0, 1, ...entry, 0, 0, 0, 0]
  const exif = [...Buffer.from('Exif'), 0, 0, ...tiff]
  const start = Buffer.of(0xff, 0xd8, 0xff, 0xe1, 0, exif.length + 2, ...exif)
  return Buffer.concat([start, jpeg.subarray(2)])
}
