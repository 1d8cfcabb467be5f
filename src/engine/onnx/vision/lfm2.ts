/**
 * Images of the family `lfm2_vl`: LFM2-VL and LFM2.5-VL. An image is one tile of any shape within a
 * number of rows, or a grid of square tiles and mostly the whole image as a tile after them.
 */
import type { Pixels } from '../../../values/resample.ts'
import { modelUnusable } from '../../failure.ts'
import type { ImageDetail, ImageGrid } from '../../images.ts'
import {
  type EncoderInputs,
  type Extent,
  type ProcessorSettings,
  readCount,
  readFilter,
  readNormalization,
  readNumber,
  type VisionFamily,
} from './family.ts'
import {
  assertGridSize,
  cropTile,
  listTiles,
  MAX_ASPECT_RATIO,
  roundHalfEven,
  smartResize,
  toFlatPatches,
} from './patches.ts'

const [START, END] = ['<|image_start|>', '<|image_end|>'] as const
const THUMBNAIL = '<|img_thumbnail|>'

export function createLfm2(settings: ProcessorSettings): VisionFamily {
  // Older exports have the settings of tiles beside those of the text.
  const all = { ...settings.processor, ...settings.image }
  const count = (name: string, fallback: number): number => readCount(all, [name], fallback)
  const patch = count('encoder_patch_size', 16)
  const downsampling = count('downsample_factor', 2)
  /** Side in pixels of what becomes one row. */
  const factor = patch * downsampling
  const tile = count('tile_size', 512)
  if (tile % factor !== 0)
    throw modelUnusable(`tile_size of its image processor is not a multiple of ${factor}.`)
  const maxTokens = count('max_image_tokens', 256)
  const maxPixels = maxTokens * factor ** 2
  const minPixels = count('min_image_tokens', 64) * factor ** 2
  const splits = all['do_image_splitting'] !== false
  /** Pixels from which an image is split. */
  const splitPixels = maxPixels * readNumber(all['max_pixels_tolerance'], 2)
  const grids = splits ? listGrids(count('min_tiles', 2), count('max_tiles', 10)) : []
  const hasThumbnail = all['use_thumbnail'] !== false
  /** Patches of each run of the encoder. Those that an image lacks are zeros. */
  const patchCount = Math.max(maxTokens * downsampling ** 2, splits ? (tile / patch) ** 2 : 0)
  const filter = readFilter(settings, 'bilinear')
  const normalization = readNormalization(settings)

  /** Returns the size of an image as one tile. */
  const toSize = (size: Extent): Extent =>
    smartResize(size, { factor, minPixels, maxPixels, shortest: factor })

  /** Returns the grid for an image; `null` if it is one tile. */
  const chooseGrid = (size: Extent, detail: ImageDetail): ImageGrid | null => {
    const [width, height] = size.map((length) =>
      Math.max(patch, roundHalfEven(length / factor) * factor),
    ) as [number, number]
    return detail === 'high' && width * height > splitPixels ? findGrid(size, grids, tile) : null
  }

  const toInputs = (pixels: Pixels): EncoderInputs => {
    const [columns, rows] = [pixels.width / patch, pixels.height / patch]
    const width = patch * patch * 3
    const values = new Float32Array(patchCount * width)
    values.set(toFlatPatches(pixels, patch, normalization))
    const mask = new BigInt64Array(patchCount).fill(1n, 0, rows * columns)
    const shape = BigInt64Array.of(BigInt(rows), BigInt(columns))
    return {
      pixel_values: { type: 'float', data: values, dims: [1, patchCount, width] },
      pixel_attention_mask: { type: 'int64', data: mask, dims: [1, patchCount] },
      spatial_shapes: { type: 'int64', data: shape, dims: [1, 2] },
    }
  }

  return {
    placeholder: '<image>',
    defaultDetail: 'low',
    maxAspectRatio: Math.min(MAX_ASPECT_RATIO, maxPixels / factor ** 2),
    arrange(size, detail) {
      const [width, height] = toSize(size)
      const whole = (width / factor) * (height / factor)
      const grid = chooseGrid(size, detail)
      if (!grid) return { pieces: [START, whole, END], runs: [whole] }
      const rowsPerTile = (tile / factor) ** 2
      const name = (row: number, column: number) => `<|img_row_${row}_col_${column}|>`
      const tiles = listTiles(grid, rowsPerTile, name)
      const runs = Array<number>(grid.rows * grid.columns).fill(rowsPerTile)
      return hasThumbnail
        ? { pieces: [START, ...tiles, THUMBNAIL, whole, END], runs: [...runs, whole] }
        : { pieces: [START, ...tiles, END], runs }
    },
    prepare(picture, size, detail) {
      const grid = chooseGrid(size, detail)
      const whole = !grid || hasThumbnail ? picture.resize(toSize(size), filter) : null
      if (!grid) return () => toInputs(whole as Pixels)
      const { columns, rows } = grid
      const stretched = picture.resize([columns * tile, rows * tile], filter)
      return (run) =>
        toInputs(run < columns * rows ? cropTile(stretched, tile, run) : (whole as Pixels))
    },
  }
}

/** Returns all grids with that many tiles, those with fewer tiles first. */
function listGrids(fewest: number, most: number): ImageGrid[] {
  assertGridSize(most)
  const sides = Array.from({ length: most }, (_, index) => index + 1)
  return sides
    .flatMap((columns) => sides.map((rows) => ({ columns, rows })))
    .filter(({ columns, rows }) => columns * rows >= fewest && columns * rows <= most)
    .toSorted((one, other) => one.columns * one.rows - other.columns * other.rows)
}

/** Returns the grid whose ratio is closest to that of an image; `null` if it has one tile. */
function findGrid(
  [width, height]: Extent,
  grids: readonly ImageGrid[],
  tile: number,
): ImageGrid | null {
  let best: ImageGrid | null = null
  let distance = Infinity
  for (const grid of grids) {
    const { columns, rows } = grid
    const far = Math.abs(width / height - columns / rows)
    const isFilled = width * height > 0.5 * tile ** 2 * columns * rows
    if (far < distance || (far === distance && isFilled)) best = grid
    distance = Math.min(far, distance)
  }
  return best && best.columns * best.rows > 1 ? best : null
}
