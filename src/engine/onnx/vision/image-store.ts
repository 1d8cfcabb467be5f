/** Describes images for prompts, and computes their rows when the decoder needs them. */
import { InoriginError } from '../../../error.ts'
import type { ImageInput, ImageReader, PromptImage } from '../../images.ts'
import type { LocateImage } from '../decoder/positions.ts'
import type { RunEncoder } from './encoder.ts'
import type { EncoderInputs, VisionFamily } from './family.ts'
import { createIdentities, type KnownImage } from './image-identities.ts'
import { openPicture } from './picture.ts'
import { createRetainedImages, type DescribedImage } from './retained-images.ts'
import { createRowCache } from './row-cache.ts'

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
