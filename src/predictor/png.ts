/**
 * Encodes pixels as PNG files without loss. A canvas would multiply colors by their alpha, and
 * browsers that protect against fingerprinting change the pixels of a canvas.
 */
import { crc32, toBase64 } from '../values/bytes.ts'
import { isInstanceOf, isObject } from '../values/objects.ts'

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
/** Filter that encodes a row as differences from the row above, which compress better. */
const FILTER_UP = 2
const EIGHT_BITS = 8
/** Color types of PNG: red, green and blue, without and with alpha. */
const RGB = 2
const RGBA = 6

type Pixels = Pick<ImageData, 'data' | 'width' | 'height'>

/** Returns the bytes of a PNG file, without alpha if all pixels are opaque. */
export async function encodePng({ data, width, height }: Pixels): Promise<Uint8Array> {
  const opaque = isOpaque(data)
  const header = new DataView(new ArrayBuffer(13))
  header.setUint32(0, width)
  header.setUint32(4, height)
  header.setUint8(8, EIGHT_BITS)
  header.setUint8(9, opaque ? RGB : RGBA)
  const rows = filterRows(data, width, height, opaque ? 3 : 4)
  const deflated = new Blob([rows]).stream().pipeThrough(new CompressionStream('deflate'))
  const parts = [
    Uint8Array.from(SIGNATURE),
    createChunk('IHDR', new Uint8Array(header.buffer)),
    createChunk('IDAT', new Uint8Array(await new Response(deflated).arrayBuffer())),
    createChunk('IEND', new Uint8Array(0)),
  ]
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}

/** Returns `true` if all RGBA pixels are opaque. */
function isOpaque(data: Pixels['data']): boolean {
  for (let alpha = 3; alpha < data.length; alpha += 4) if (data[alpha] !== 255) return false
  return true
}

/** Returns the outputs with images as PNG files, for responses over HTTP. Those in objects are URLs. */
export async function imagesToFiles(outputs: Record<string, unknown>) {
  const toFile = async (value: unknown): Promise<unknown> => {
    if (isPixels(value)) return encodePng(value)
    if (!Array.isArray(value) || !value.some(hasPixels)) return value
    return Promise.all(value.map((each) => (isPixels(each) ? encodePng(each) : toText(each))))
  }
  const entries = Object.entries(outputs).map(async ([name, value]) => [name, await toFile(value)])
  return Object.fromEntries(await Promise.all(entries))
}

/** Returns a value of a list with images as data URLs, which JSON can have. */
async function toText(value: unknown): Promise<unknown> {
  if (isPixels(value)) return `data:image/png;base64,${toBase64(await encodePng(value))}`
  if (Array.isArray(value)) return Promise.all(value.map(toText))
  if (!hasPixels(value)) return value
  const entries = Object.entries(value as object).map(async ([key, each]) => [
    key,
    await toText(each),
  ])
  return Object.fromEntries(await Promise.all(entries))
}

/** Returns `true` for an image, and for an object or an array of objects that has one. */
const hasPixels = (value: unknown): boolean =>
  isPixels(value) ||
  (Array.isArray(value)
    ? value.some(hasPixels)
    : isObject(value) && Object.values(value).some(isPixels))

const isPixels = (value: unknown): value is ImageData => isInstanceOf(value, ['ImageData'])

function filterRows(data: Pixels['data'], width: number, height: number, depth: number) {
  const rows = new Uint8Array(height * (1 + width * depth))
  let at = 0
  for (let y = 0; y < height; y += 1) {
    rows[at++] = FILTER_UP
    for (let x = 0; x < width; x += 1) {
      const pixel = (y * width + x) * 4
      for (let channel = pixel; channel < pixel + depth; channel += 1) {
        const above = y === 0 ? 0 : (data[channel - width * 4] ?? 0)
        rows[at++] = (data[channel] ?? 0) - above
      }
    }
  }
  return rows
}

/** Returns a chunk of a PNG file: length, type, content and checksum. */
function createChunk(kind: string, content: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(12 + content.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, content.length)
  bytes.set(new TextEncoder().encode(kind), 4)
  bytes.set(content, 8)
  view.setUint32(8 + content.length, crc32(bytes.subarray(4, 8 + content.length)))
  return bytes
}
