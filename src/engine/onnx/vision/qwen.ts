/**
 * Images of the families `qwen2_vl`, `qwen2_5_vl`, `qwen3_vl` and `qwen3_5`. An image keeps its
 * shape: it is scaled to a number of pixels within bounds, and each square of them is a row. The
 * decoder knows the place of a row by its position on three axes.
 */
import { modelUnusable } from '../../failure.ts'
import type { ImageDetail } from '../../images.ts'
import type { Extent, VisionFamily } from './family.ts'
import { toMergedPatches } from './patches.ts'
import { type ProcessorSettings, readCount, readFilter, readNormalization } from './settings.ts'
import { MAX_ASPECT_RATIO, smartResize } from './smart-resize.ts'

/**
 * Largest number of rows of an image. The processors of newer models allow 16,384, which no context
 * of a small model holds. 1,280 is the default of the oldest class.
 */
const MAX_ROWS: Readonly<Record<ImageDetail, number>> = { low: 256, high: 1_280 }

/** Mean and deviation of colors in the Python class. */
const COLOR_MEAN = [0.48145466, 0.4578275, 0.40821073]
const COLOR_DEVIATION = [0.26862954, 0.26130258, 0.27577711]

export function createQwen(settings: ProcessorSettings): VisionFamily {
  const { image } = settings
  const patch = readCount(image, ['patch_size'], 14)
  const merge = readCount(image, ['merge_size'], 2)
  const frames = readCount(image, ['temporal_patch_size'], 2)
  const factor = patch * merge
  // Older exports name the numbers of pixels so.
  const shortest = readCount(image, ['size', 'shortest_edge'], 56 * 56)
  const longest = readCount(image, ['size', 'longest_edge'], 28 * 28 * 1_280)
  const minPixels = readCount(image, ['min_pixels'], shortest)
  const maxPixels = readCount(image, ['max_pixels'], longest)
  if (maxPixels < minPixels)
    throw modelUnusable('the largest size of its image processor is below the smallest.')
  const filter = readFilter(settings, 'bicubic')
  const normalization = readNormalization(settings, COLOR_MEAN, COLOR_DEVIATION)

  const toSize = (size: Extent, detail: ImageDetail): Extent => {
    const most = Math.max(minPixels, MAX_ROWS[detail] * factor ** 2)
    const bounds = { factor, minPixels, maxPixels: Math.min(maxPixels, most), shortest: 0 }
    return smartResize(size, bounds)
  }

  return {
    placeholder: '<|image_pad|>',
    defaultDetail: 'low',
    maxAspectRatio: MAX_ASPECT_RATIO,
    placesRows: true,
    arrange(size, detail) {
      const [width, height] = toSize(size, detail)
      const [columns, rows] = [width / factor, height / factor]
      return { pieces: [columns * rows], runs: [columns * rows], grid: { columns, rows } }
    },
    prepare(picture, size, detail) {
      const pixels = picture.resize(toSize(size, detail), filter)
      const [columns, rows] = [pixels.width / patch, pixels.height / patch]
      const grid = {
        type: 'int64',
        data: BigInt64Array.of(1n, BigInt(rows), BigInt(columns)),
        dims: [1, 3],
      } as const
      return () => ({
        pixel_values: {
          type: 'float',
          data: toMergedPatches(pixels, { patch, merge, frames }, normalization),
          dims: [rows * columns, 3 * frames * patch * patch],
        },
        // The oldest export has another name for the same input.
        grid_thw: grid,
        image_grid_thw: grid,
      })
    },
  }
}
