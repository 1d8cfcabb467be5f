/** Describes images for prompts, and computes their rows when the decoder needs them. */
import { InoriginError } from '../../../error.ts'
import type { ImageReader, PromptImage } from '../../images.ts'
import type { LocateImage } from '../decoder/positions.ts'
import type { RunEncoder } from './encoder.ts'
import type { EncoderInputs, VisionFamily } from './family.ts'
import { createIdentities, type KnownImage } from './image-identities.ts'
import { openPicture } from './picture.ts'
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

interface Retained {
  image: PromptImage
  known: KnownImage
  users: number
}

/** Creates a store for the images of one model. */
export function createImageStore(family: VisionFamily): ImageStore {
  const identify = createIdentities(family)
  const retained = new Map<number, Retained>()
  const described = new WeakMap<PromptImage, KnownImage>()
  const rows = createRowCache()
  let encoder: RunEncoder | null = null
  /** The image whose tiles were needed last. A chunk of a prompt rarely needs two. */
  let prepared: { firstRow: number; inputs: (run: number) => EncoderInputs } | null = null

  const describe: ImageStore['describe'] = (input) => {
    const found = identify(input)
    const { pieces, firstRow, rowCount } = found
    const image = { pieces, firstRow, rowCount, input }
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
    known: { size, detail },
  }: Retained): Promise<(run: number) => EncoderInputs> => {
    if (prepared?.firstRow === image.firstRow) return prepared.inputs
    const picture = await openPicture(image.input)
    try {
      const inputs = family.prepare(picture, size, detail)
      prepared = { firstRow: image.firstRow, inputs }
      return inputs
    } finally {
      picture.close()
    }
  }

  const encode = async (entry: Retained, { run, firstRow, count }: Run): Promise<Float32Array> => {
    if (!encoder) throw new InoriginError('internal', 'The image encoder is not loaded.')
    const inputs = await prepare(entry)
    const block = await encoder(inputs(run), count)
    rows.set(firstRow, block)
    return block
  }

  const loadRow = async (number: number): Promise<Float32Array> => {
    const entry = findRetained(retained.values(), number)
    const run = findRun(entry.known, number)
    const block = rows.get(run.firstRow) ?? (await encode(entry, run))
    const width = block.length / run.count
    const at = (number - run.firstRow) * width
    return block.subarray(at, at + width)
  }

  const encodeNext: ImageStore['encodeNext'] = async (numbers) => {
    for (const number of numbers) {
      const entry = findRetained(retained.values(), number)
      const run = findRun(entry.known, number)
      if (rows.get(run.firstRow)) continue
      await encode(entry, run)
      return true
    }
    return false
  }

  const locate: LocateImage = (row) => {
    const { grid, firstRow } = findRetained(retained.values(), row).known
    return grid && { grid, firstRow }
  }

  return {
    ...(family.placesRows && { locate }),
    placeholder: family.placeholder,
    describe,
    assertReadable,
    retain,
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
