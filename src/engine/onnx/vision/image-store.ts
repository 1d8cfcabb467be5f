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

/** Computes rows of images that prompts in progress retain. */
export interface ImageRows {
  /** Resolves with the row of each number, in order. */
  load(numbers: readonly number[]): Promise<Float32Array[]>
  /**
   * Runs the encoder once if one of these rows is not computed. Resolves to `true` if it ran. All
   * rows of a chunk of a prompt fit into the memory of rows.
   */
  encodeNext(numbers: readonly number[]): Promise<boolean>
  /** Returns the places of the rows of an image. Absent if rows are placed like tokens. */
  locate?: LocateImage
}

export interface ImageStore extends ImageReader, ImageRows {
  /** Sets the encoder of loaded weights. */
  setEncoder(encoder: RunEncoder): void
  /** Frees all rows. */
  close(): void
}

/** Creates a store for the images of one model. */
export function createImageStore(family: VisionFamily): ImageStore {
  const { describe, findKnown, assertReadable } = createDescriptions(family)
  const preparation = createPreparation(family)
  const retained = createRetainedImages(preparation.forget)
  const rows = createRowCache()
  let encoder: RunEncoder | null = null

  const encode = async (image: DescribedImage, run: Run): Promise<Float32Array> => {
    if (!encoder) throw new InoriginError('internal', 'The image encoder is not loaded.')
    const inputs = await preparation.prepare(image)
    const block = await encoder(inputs(run.run), run.count)
    rows.set(run.firstRow, block)
    return block
  }

  const loadRow = async (number: number): Promise<Float32Array> => {
    const image = retained.find(number)
    const run = findRun(image.known, number)
    return cutRow(rows.get(run.firstRow) ?? (await encode(image, run)), run, number)
  }

  const encodeNext: ImageStore['encodeNext'] = async (numbers) => {
    for (const number of numbers) {
      const image = retained.find(number)
      const run = findRun(image.known, number)
      if (rows.get(run.firstRow)) continue
      await encode(image, run)
      return true
    }
    return false
  }

  const locate: LocateImage = (row) => {
    const { grid, firstRow } = retained.find(row).known
    return grid && { grid, firstRow }
  }

  return {
    ...(family.placesRows && { locate }),
    placeholder: family.placeholder,
    describe,
    assertReadable,
    retain: (images) =>
      retained.retain(images.map((image) => ({ image, known: findKnown(image) }))),
    encodeNext,
    async load(numbers) {
      const loaded: Float32Array[] = []
      for (const number of numbers) loaded.push(await loadRow(number))
      return loaded
    },
    setEncoder: (loaded) => {
      encoder = loaded
    },
    close() {
      rows.clear()
      preparation.clear()
      encoder = null
    },
  }
}

/** Describes images by their bytes, and remembers the facts about each. */
function createDescriptions(family: VisionFamily) {
  const identify = createIdentities(family)
  const described = new WeakMap<PromptImage, KnownImage>()

  const findKnown = (image: PromptImage): KnownImage => {
    const found = described.get(image)
    if (found) return found
    throw new InoriginError('internal', 'The image belongs to another model.')
  }

  return {
    findKnown,
    describe(input: ImageInput): PromptImage {
      const found = identify(input)
      const { pieces, firstRow, rowCount } = found
      const image = { pieces, firstRow, rowCount, input }
      described.set(image, found)
      return image
    },
    /** Rejects with `invalid_request` if the browser cannot decode the image. */
    async assertReadable(image: PromptImage): Promise<void> {
      const found = findKnown(image)
      if (found.isReadable) return
      const picture = await openPicture(image.input)
      picture.close()
      found.isReadable = true
    },
  }
}

/** Creates the inputs of the encoder. Those of one image are kept: a chunk rarely needs two. */
function createPreparation(family: VisionFamily) {
  let prepared: { firstRow: number; inputs: (run: number) => EncoderInputs } | null = null
  return {
    /** Resolves with a function that returns the inputs of each run of the encoder. */
    async prepare({ image, known: { size, detail } }: DescribedImage) {
      if (prepared?.firstRow === image.firstRow) return prepared.inputs
      const picture = await openPicture(image.input)
      try {
        const inputs = family.prepare(picture, size, detail)
        prepared = { firstRow: image.firstRow, inputs }
        return inputs
      } finally {
        picture.close()
      }
    },
    forget({ firstRow }: PromptImage): void {
      if (prepared?.firstRow === firstRow) prepared = null
    },
    clear(): void {
      prepared = null
    },
  }
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

// Decodes image files. The browser decodes; scaling is Pillow's, which models were trained with.

/**
 * Number of pixels that are read from the decoded image at once, 16 MiB of memory. An image of 64
 * megapixels would take 256 MiB as a whole.
 */
const MAX_STRIP_PIXELS = 2 ** 22

/**
 * Decodes an image: the first frame, turned upright, on white. Color profiles are ignored, as in
 * Python. Rejects with `invalid_request` if it cannot be decoded.
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

// Images that prompts in progress retain.

/** An image with the facts about it. */
interface DescribedImage {
  image: PromptImage
  known: KnownImage
}

interface RetainedImages {
  /** Retains images. Returns the function that releases them again. */
  retain(images: readonly DescribedImage[]): () => void
  /** Returns the retained image that has this row. Throws `internal` if there is none. */
  find(row: number): DescribedImage
}

/** Creates an empty list. `onRelease` is called when the last prompt has released an image. */
function createRetainedImages(onRelease: (image: PromptImage) => void): RetainedImages {
  const entries = new Map<number, DescribedImage & { users: number }>()

  function release(image: PromptImage): void {
    const entry = entries.get(image.firstRow)
    if (!entry) return
    entry.users -= 1
    if (entry.users > 0) return
    entries.delete(image.firstRow)
    onRelease(image)
  }

  return {
    retain(images) {
      for (const { image, known } of images) {
        const entry = entries.get(image.firstRow)
        if (entry) entry.users += 1
        else entries.set(image.firstRow, { image, known, users: 1 })
      }
      return () => {
        for (const { image } of images) release(image)
      }
    },
    find(row) {
      for (const entry of entries.values()) {
        const { firstRow, rowCount } = entry.known
        if (row >= firstRow && row < firstRow + rowCount) return entry
      }
      throw new InoriginError('internal', 'The prompt has an image that no request retains.')
    },
  }
}

// Keeps rows that the encoder made, within a bound.

/** Memory of rows in bytes: 64 images of SmolVLM with 16 tiles, or 400 with one. */
const MAX_ROW_BYTES = 64 * 2 ** 20

/** Rows of runs of the encoder, by the number of the first row of each. */
interface RowCache {
  get(firstRow: number): Float32Array | undefined
  set(firstRow: number, block: Float32Array): void
  clear(): void
}

/** Creates an empty cache. The least recently used rows go first. */
function createRowCache(): RowCache {
  const blocks = new Map<number, Float32Array>()
  let bytes = 0
  return {
    get(firstRow: number): Float32Array | undefined {
      const block = blocks.get(firstRow)
      if (!block) return undefined
      blocks.delete(firstRow)
      blocks.set(firstRow, block)
      return block
    },
    set(firstRow: number, block: Float32Array): void {
      blocks.set(firstRow, block)
      bytes += block.byteLength
      for (const [oldest, { byteLength }] of blocks) {
        if (bytes <= MAX_ROW_BYTES || oldest === firstRow) break
        blocks.delete(oldest)
        bytes -= byteLength
      }
    },
    clear(): void {
      blocks.clear()
      bytes = 0
    },
  }
}

// Gives the rows of each image their numbers in prompts.

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

// Reads from a JPEG's header whether a browser turns the image.

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
