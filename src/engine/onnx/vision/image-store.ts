/** Describes images for prompts, and computes their rows when the decoder needs them. */
import { InoriginError } from '../../../error.ts'
import { type Pixels, resample } from '../../../values/resample.ts'
import {
  FIRST_IMAGE_ROW,
  type ImageDetail,
  type ImageInput,
  type ImageReader,
  type PromptImage,
} from '../../images.ts'
import type { LocateImage } from '../decoder/positions.ts'
import type { RunEncoder } from './encoder.ts'
import type { EncoderInputs, Extent, ImageArrangement, Picture, VisionFamily } from './family.ts'

/** The images of one model. Those that prompts in progress retain can be computed. */
export class ImageStore implements ImageReader {
  readonly placeholder: string
  /** Returns the places of the rows of an image. Absent if rows are placed like tokens. */
  readonly locate?: LocateImage
  readonly #family: VisionFamily
  readonly #identify: (input: ImageInput) => KnownImage
  readonly #described = new WeakMap<PromptImage, KnownImage>()
  /** Images that prompts retain, by their first rows. */
  readonly #retained = new Map<number, RetainedImage>()
  readonly #rows = new RowCache()
  /** Inputs of the encoder for one image; a chunk of a prompt rarely needs two. */
  #prepared: { firstRow: number; inputs: (run: number) => EncoderInputs } | null = null
  #encoder: RunEncoder | null = null

  constructor(family: VisionFamily) {
    this.placeholder = family.placeholder
    this.#family = family
    this.#identify = createIdentities(family)
    if (family.placesRows)
      this.locate = (row) => {
        const { grid, firstRow } = this.#find(row).known
        return grid && { grid, firstRow }
      }
  }

  describe(input: ImageInput): PromptImage {
    const known = this.#identify(input)
    const { pieces, firstRow, rowCount } = known
    const image = { pieces, firstRow, rowCount, input }
    this.#described.set(image, known)
    return image
  }

  async assertReadable(image: PromptImage): Promise<void> {
    const known = this.#known(image)
    if (known.isReadable) return
    const picture = await openPicture(image.input)
    picture.close()
    known.isReadable = true
  }

  retain(images: readonly PromptImage[]): () => void {
    const all = images.map((image) => ({ image, known: this.#known(image) }))
    for (const { image, known } of all) {
      const entry = this.#retained.get(image.firstRow)
      if (entry) entry.users += 1
      else this.#retained.set(image.firstRow, { image, known, users: 1 })
    }
    return () => {
      for (const image of images) this.#release(image)
    }
  }

  /** Resolves with the row of each number, in order. */
  async load(numbers: readonly number[]): Promise<Float32Array[]> {
    const loaded: Float32Array[] = []
    for (const number of numbers) {
      const image = this.#find(number)
      const run = findRun(image.known, number)
      const block = this.#rows.get(run.firstRow) ?? (await this.#encode(image, run))
      loaded.push(cutRow(block, run, number))
    }
    return loaded
  }

  /**
   * Runs the encoder once if one of these rows is not computed. Resolves to `true` if it ran. All
   * rows of a chunk of a prompt fit into the memory of rows.
   */
  async encodeNext(numbers: readonly number[]): Promise<boolean> {
    for (const number of numbers) {
      const image = this.#find(number)
      const run = findRun(image.known, number)
      if (this.#rows.get(run.firstRow)) continue
      await this.#encode(image, run)
      return true
    }
    return false
  }

  /** Sets the encoder of loaded weights. */
  setEncoder(encoder: RunEncoder): void {
    this.#encoder = encoder
  }

  /** Frees all rows. */
  close(): void {
    this.#rows.clear()
    this.#prepared = null
    this.#encoder = null
  }

  #known(image: PromptImage): KnownImage {
    const found = this.#described.get(image)
    if (found) return found
    throw new InoriginError('internal', 'The image belongs to another model.')
  }

  #find(row: number): RetainedImage {
    for (const entry of this.#retained.values()) {
      const { firstRow, rowCount } = entry.known
      if (row >= firstRow && row < firstRow + rowCount) return entry
    }
    throw new InoriginError('internal', 'The prompt has an image that no request retains.')
  }

  #release({ firstRow }: PromptImage): void {
    const entry = this.#retained.get(firstRow)
    if (!entry) return
    entry.users -= 1
    if (entry.users > 0) return
    this.#retained.delete(firstRow)
    if (this.#prepared?.firstRow === firstRow) this.#prepared = null
  }

  async #encode(image: RetainedImage, { run, firstRow, count }: Run): Promise<Float32Array> {
    if (!this.#encoder) throw new InoriginError('internal', 'The image encoder is not loaded.')
    const encoder = this.#encoder
    const inputs = await this.#prepare(image)
    const block = await encoder(inputs(run), count)
    this.#rows.set(firstRow, block)
    return block
  }

  /** Resolves with a function that returns the inputs of each run of the encoder. */
  async #prepare({ image, known: { size, detail, firstRow } }: RetainedImage) {
    if (this.#prepared?.firstRow === firstRow) return this.#prepared.inputs
    const picture = await openPicture(image.input)
    try {
      const inputs = this.#family.prepare(picture, size, detail)
      this.#prepared = { firstRow, inputs }
      return inputs
    } finally {
      picture.close()
    }
  }
}

/** An image with the facts about it, and the number of prompts that retain it. */
interface RetainedImage {
  image: PromptImage
  known: KnownImage
  users: number
}

/** A run of the encoder for an image, and the rows that it makes. */
interface Run {
  run: number
  firstRow: number
  count: number
}

/** Returns the run of the encoder that makes a row. */
function findRun({ firstRow: first, runs }: KnownImage, number: number): Run {
  let firstRow = first
  for (const [run, count] of runs.entries()) {
    if (number < firstRow + count) return { run, firstRow, count }
    firstRow += count
  }
  throw new InoriginError('internal', 'The image has fewer rows.')
}

/** Returns a row of the block that a run has made. */
function cutRow(block: Float32Array, { firstRow, count }: Run, number: number): Float32Array {
  const width = block.length / count
  const at = (number - firstRow) * width
  return block.subarray(at, at + width)
}

/** Memory of rows in bytes: 64 images of SmolVLM with 16 tiles, or 400 with one. */
const MAX_ROW_BYTES = 64 * 2 ** 20

/**
 * Rows of runs of the encoder, by the number of the first row of each. The least recently used ones
 * go first.
 */
class RowCache {
  readonly #blocks = new Map<number, Float32Array>()
  #bytes = 0

  get(firstRow: number): Float32Array | undefined {
    const block = this.#blocks.get(firstRow)
    if (!block) return undefined
    this.#blocks.delete(firstRow)
    this.#blocks.set(firstRow, block)
    return block
  }

  set(firstRow: number, block: Float32Array): void {
    this.#blocks.set(firstRow, block)
    this.#bytes += block.byteLength
    for (const [oldest, { byteLength }] of this.#blocks) {
      if (this.#bytes <= MAX_ROW_BYTES || oldest === firstRow) break
      this.#blocks.delete(oldest)
      this.#bytes -= byteLength
    }
  }

  clear(): void {
    this.#blocks.clear()
    this.#bytes = 0
  }
}

/**
 * Number of pixels that are read from the decoded image at once, 16 MiB of memory. An image of 64
 * megapixels would take 256 MiB as a whole.
 */
const MAX_STRIP_PIXELS = 2 ** 22

/**
 * Decodes an image: the first frame, turned upright, on white. Color profiles are ignored, as in
 * Python. Scaling is Pillow's, which models were trained with. Rejects with `invalid_request` if it
 * cannot be decoded.
 */
async function openPicture({ bytes, mediaType, place }: ImageInput): Promise<Picture> {
  let bitmap: ImageBitmap
  try {
    const file = new Blob([bytes], { type: mediaType })
    bitmap = await createImageBitmap(file, { colorSpaceConversion: 'none' })
  } catch (cause) {
    throw unreadableImage(place, cause)
  }
  return {
    resize: ([width, height], filter) => {
      // Pillow scales the rows first, each on its own, so they may come in strips.
      const wide = scaleStrips(bitmap, width, filter)
      return resample(wide, width, height, filter)
    },
    close: () => bitmap.close(),
  }
}

/** Returns the image scaled to that width, and as high as before. */
function scaleStrips(
  bitmap: ImageBitmap,
  width: number,
  filter: Parameters<typeof resample>[3],
): Pixels {
  const { width: ownWidth, height } = bitmap
  const rgba = new Uint8ClampedArray(width * height * 4)
  const stripHeight = Math.min(height, Math.max(1, Math.floor(MAX_STRIP_PIXELS / ownWidth)))
  const canvas = new OffscreenCanvas(ownWidth, stripHeight)
  const context = canvas.getContext('2d', { willReadFrequently: true })
  if (!context)
    throw new InoriginError('unavailable', 'This browser provides no 2D canvas to read images.')
  context.fillStyle = 'white'
  for (let top = 0; top < height; top += stripHeight) {
    const rows = Math.min(stripHeight, height - top)
    context.fillRect(0, 0, ownWidth, stripHeight)
    context.drawImage(bitmap, 0, top, ownWidth, rows, 0, 0, ownWidth, rows)
    const { data } = context.getImageData(0, 0, ownWidth, rows)
    const strip = resample({ rgba: data, width: ownWidth, height: rows }, width, rows, filter)
    rgba.set(strip.rgba, top * width * 4)
  }
  return { rgba, width, height }
}

/** Returns the error for bytes that are not an image, or not all of one. */
function unreadableImage(place: string, cause?: unknown): InoriginError {
  const what = `\`${place}\` is not an image that can be read. Send a whole file of PNG, JPEG, GIF or WebP.`
  return new InoriginError('invalid_request', what, { code: 'invalid_image', param: place, cause })
}

/** Images whose numbers are remembered. A forgotten one is computed again. */
const MAX_KNOWN_IMAGES = 4_096

/** Throws `invalid_request` if one side of the image is far longer than the other. */
function assertNotNarrow({ size: [width, height], place }: ImageInput, most: number): void {
  if (Math.max(width, height) <= most * Math.min(width, height)) return
  const what = `\`${place}\` is an image of ${width} x ${height} pixels.`
  const remedy = `This model takes images whose longer side is at most ${most} times the shorter.`
  throw new InoriginError('invalid_request', `${what} ${remedy}`, {
    code: 'invalid_image',
    param: place,
  })
}

/** Facts about an image, apart from its bytes. */
interface KnownImage extends Pick<PromptImage, 'pieces' | 'firstRow' | 'rowCount'> {
  /** Size of the upright image. */
  size: Extent
  detail: ImageDetail
  runs: ImageArrangement['runs']
  grid: ImageArrangement['grid']
  /** `true` if it was decoded once. */
  isReadable: boolean
}

/**
 * Returns a function that identifies images. The same bytes, detail and partition get the same
 * numbers, unless they were forgotten; no two images ever share a number.
 */
export function createIdentities(family: VisionFamily): (input: ImageInput) => KnownImage {
  const known = new Map<string, KnownImage>()
  let nextRow = FIRST_IMAGE_ROW

  const create = (input: ImageInput, detail: ImageDetail): KnownImage => {
    const [width, height] = input.size
    assertNotNarrow(input, family.maxAspectRatio ?? Infinity)
    const size: Extent = isLyingJpeg(input.bytes) ? [height, width] : [width, height]
    const { pieces, runs, grid } = family.arrange(size, detail)
    const rowCount = runs.reduce((sum, count) => sum + count, 0)
    const firstRow = nextRow
    nextRow += rowCount
    return { size, detail, pieces, runs, grid, rowCount, firstRow, isReadable: false }
  }

  return (input) => {
    const detail = input.detail ?? family.defaultDetail
    const key = JSON.stringify([input.partition, input.digest, detail])
    const found = known.get(key) ?? create(input, detail)
    // The most recently used image is the last one.
    known.delete(key)
    known.set(key, found)
    const [oldest] = known.keys()
    if (known.size > MAX_KNOWN_IMAGES && oldest !== undefined) known.delete(oldest)
    return found
  }
}

/** Marker of the segment that holds Exif data, and those of the frame and scan after it. */
const [APP1, START_OF_SCAN, END_OF_IMAGE] = [0xe1, 0xda, 0xd9] as const

/** Exif tag of the orientation, 1 to 8. */
const ORIENTATION_TAG = 0x0112

/** Number of entries of an Exif directory to search. Cameras write a few dozen. */
const MAX_ENTRIES = 1_000

/**
 * Returns `true` if the image is stored lying on its side, so that its width and height are swapped
 * when it is shown (Exif 2.3, orientations 5 to 8).
 */
export function isLyingJpeg(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    if (view.getUint16(0) !== 0xffd8) return false
    let at = 2
    while (view.getUint8(at) === 0xff) {
      const marker = view.getUint8(at + 1)
      if (marker === START_OF_SCAN || marker === END_OF_IMAGE) return false
      // Any number of fill bytes may come before a marker.
      if (marker === 0xff) at += 1
      else if (marker === APP1 && isExif(view, at + 4)) return readOrientation(view, at + 10) >= 5
      else at += 2 + view.getUint16(at + 2)
    }
  } catch (error) {
    // The header is truncated.
    if (!(error instanceof RangeError)) throw error
  }
  return false
}

const isExif = (view: DataView, at: number): boolean =>
  view.getUint32(at) === 0x45786966 && view.getUint16(at + 4) === 0

/** Returns the orientation in the TIFF structure that begins there; 1 if there is none. */
function readOrientation(view: DataView, start: number): number {
  const isLittle = view.getUint16(start) === 0x4949
  const directory = start + view.getUint32(start + 4, isLittle)
  const count = Math.min(view.getUint16(directory, isLittle), MAX_ENTRIES)
  for (let index = 0; index < count; index++) {
    const entry = directory + 2 + index * 12
    if (view.getUint16(entry, isLittle) === ORIENTATION_TAG)
      return view.getUint16(entry + 8, isLittle)
  }
  return 1
}
