/** Gives the rows of each image their numbers in prompts. */
import { InoriginError } from '../../../error.ts'
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
export interface KnownImage extends Pick<PromptImage, 'pieces' | 'firstRow' | 'rowCount'> {
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
