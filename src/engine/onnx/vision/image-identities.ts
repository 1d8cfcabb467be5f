/** Gives the rows of each image their numbers in prompts. */
import {
  FIRST_IMAGE_ROW,
  type ImageDetail,
  type ImageInput,
  type PromptImage,
} from '../../images.ts'
import type { Extent, ImageArrangement, VisionFamily } from './family.ts'
import { isLyingJpeg } from './orientation.ts'

/** Images whose numbers are remembered. A forgotten one is computed again. */
const MAX_KNOWN_IMAGES = 4_096

/** Facts about an image, apart from its bytes. */
export interface KnownImage extends Pick<PromptImage, 'pieces' | 'firstRow' | 'rowCount'> {
  /** Size of the upright image. */
  size: Extent
  detail: ImageDetail
  runs: ImageArrangement['runs']
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

  const create = ({ size: [width, height], bytes }: ImageInput, detail: ImageDetail) => {
    const size: Extent = isLyingJpeg(bytes) ? [height, width] : [width, height]
    const { pieces, runs } = family.arrange(size, detail)
    const rowCount = runs.reduce((sum, count) => sum + count, 0)
    const created = { size, detail, pieces, runs, rowCount, firstRow: nextRow, isReadable: false }
    nextRow += rowCount
    return created
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
