/**
 * Gives the rows of images their numbers in prompts, and computes the rows when the decoder needs
 * them. It knows images by their digests, so the same image is encoded once.
 */
import { InoriginError } from '../../../error.ts'
import type { ImageReader, PromptImage } from '../../images.ts'
import { FIRST_IMAGE_ROW } from '../../images.ts'
import type { RunEncoder } from './encoder.ts'
import type { EncoderInputs, Extent, ImageArrangement, VisionFamily } from './family.ts'
import { isLyingJpeg } from './orientation.ts'
import { openPicture } from './picture.ts'

/** Images whose numbers are remembered. A forgotten one is computed again. */
const MAX_KNOWN_IMAGES = 4_096

/** Memory of rows in bytes: 64 images of SmolVLM with 16 tiles, or 400 with one. */
const MAX_ROW_BYTES = 64 * 2 ** 20

/** Computes rows of images that prompts in progress retain. */
export interface ImageRows {
  /** Resolves with the row of each number, in order. */
  load(numbers: readonly number[]): Promise<Float32Array[]>
}

export interface ImageStore extends ImageReader, ImageRows {
  /** Sets the encoder of loaded weights. */
  setEncoder(encoder: RunEncoder): void
  /** Frees all rows. */
  close(): void
}

/** What is known of an image, apart from its bytes. */
interface KnownImage extends Pick<PromptImage, 'pieces' | 'firstRow' | 'rowCount'> {
  size: Extent
  runs: ImageArrangement['runs']
  /** `true` if it was decoded once. */
  isReadable: boolean
}

interface Retained {
  image: PromptImage
  known: KnownImage
  users: number
}

/** Creates a store for the images of one model. */
export function createImageStore(family: VisionFamily): ImageStore {
  const known = new Map<string, KnownImage>()
  const retained = new Map<number, Retained>()
  const described = new WeakMap<PromptImage, KnownImage>()
  const rows = createRowCache()
  let nextRow = FIRST_IMAGE_ROW
  let encoder: RunEncoder | null = null
  /** The image whose tiles were needed last. A chunk of a prompt rarely needs two. */
  let prepared: { firstRow: number; inputs: (run: number) => EncoderInputs } | null = null

  const detailOf = ({ input }: Pick<PromptImage, 'input'>) => input.detail ?? family.defaultDetail

  const describe: ImageStore['describe'] = (input) => {
    const detail = detailOf({ input })
    const key = JSON.stringify([input.partition, input.digest, detail])
    let found = known.get(key)
    if (found) known.delete(key)
    else {
      const [width, height] = input.size
      const size: Extent = isLyingJpeg(input.bytes) ? [height, width] : [width, height]
      const { pieces, runs } = family.arrange(size, detail)
      const rowCount = runs.reduce((sum, count) => sum + count, 0)
      found = { size, pieces, runs, rowCount, firstRow: nextRow, isReadable: false }
      nextRow += rowCount
    }
    known.set(key, found)
    const [oldest] = known.keys()
    if (known.size > MAX_KNOWN_IMAGES && oldest !== undefined) known.delete(oldest)
    const image = { ...found, input }
    described.set(image, found)
    return image
  }

  const findKnown = (image: PromptImage): KnownImage => {
    const found = described.get(image)
    if (found) return found
    throw new InoriginError('internal', 'The image belongs to another model.')
  }

  const assertReadable: ImageStore['assertReadable'] = async (image) => {
    const found = findKnown(image)
    if (found.isReadable) return
    const picture = await openPicture(image.input)
    picture.close()
    found.isReadable = true
  }

  const retain: ImageStore['retain'] = (images) => {
    for (const image of images) {
      const entry = retained.get(image.firstRow)
      if (entry) entry.users += 1
      else retained.set(image.firstRow, { image, known: findKnown(image), users: 1 })
    }
    return () => {
      for (const { firstRow } of images) {
        const entry = retained.get(firstRow)
        if (!entry) continue
        entry.users -= 1
        if (entry.users > 0) continue
        retained.delete(firstRow)
        if (prepared?.firstRow === firstRow) prepared = null
      }
    }
  }

  const prepare = async ({
    image,
    known: { size },
  }: Retained): Promise<(run: number) => EncoderInputs> => {
    if (prepared?.firstRow === image.firstRow) return prepared.inputs
    const picture = await openPicture(image.input)
    try {
      const inputs = family.prepare(picture, size, detailOf(image))
      prepared = { firstRow: image.firstRow, inputs }
      return inputs
    } finally {
      picture.close()
    }
  }

  const loadRow = async (number: number): Promise<Float32Array> => {
    const entry = findRetained(retained.values(), number)
    const { run, firstRow, count } = findRun(entry.known, number)
    let block = rows.get(firstRow)
    if (!block) {
      if (!encoder) throw new InoriginError('internal', 'The image encoder is not loaded.')
      const inputs = await prepare(entry)
      block = await encoder(inputs(run), count)
      rows.set(firstRow, block)
    }
    const width = block.length / count
    return block.subarray((number - firstRow) * width, (number - firstRow + 1) * width)
  }

  return {
    placeholder: family.placeholder,
    describe,
    assertReadable,
    retain,
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
      prepared = null
      encoder = null
    },
  }
}

function findRetained(entries: Iterable<Retained>, number: number): Retained {
  for (const entry of entries) {
    const { firstRow, rowCount } = entry.known
    if (number >= firstRow && number < firstRow + rowCount) return entry
  }
  throw new InoriginError('internal', 'The prompt has an image that no request retains.')
}

/** Returns the run of the encoder that makes a row, with the number of its first row. */
function findRun(
  { firstRow: first, runs }: KnownImage,
  number: number,
): { run: number; firstRow: number; count: number } {
  let firstRow = first
  for (const [run, count] of runs.entries()) {
    if (number < firstRow + count) return { run, firstRow, count }
    firstRow += count
  }
  throw new InoriginError('internal', 'The image has fewer rows.')
}

/** Outputs of the encoder by the number of their first row. The least recently used go first. */
function createRowCache() {
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
