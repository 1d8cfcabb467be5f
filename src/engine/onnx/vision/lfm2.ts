/**
 * Images of the family `lfm2_vl`: LFM2-VL and LFM2.5-VL. An image is one tile of any shape within a
 * number of rows, or a grid of square tiles and mostly the whole image as a tile after them.
 */
import type { Pixels } from '../../../values/resample.ts'
import { modelUnusable } from '../../failure.ts'
import type { ImageDetail } from '../../images.ts'
import {
  type EncoderInputs,
  type Extent,
  type ImageArrangement,
  type ProcessorSettings,
  readCount,
  readFilter,
  readNormalization,
  readNumber,
  type VisionFamily,
} from './family.ts'
import {
  cropTile,
  MAX_ASPECT_RATIO,
  type ResizeBounds,
  roundHalfEven,
  smartResize,
  toFlatPatches,
} from './patches.ts'

const [START, END] = ['<|image_start|>', '<|image_end|>'] as const
const THUMBNAIL = '<|img_thumbnail|>'

/** Largest number of tiles of one image beside the whole; larger settings are not in use. */
const MAX_GRID_TILES = 64

/** Columns and rows of tiles. */
type Grid = readonly [columns: number, rows: number]

interface Layout {
  patch: number
  /** Side in pixels of what becomes one row. */
  factor: number
  tile: number
  /** Bounds of an image as one tile. */
  bounds: ResizeBounds
  /** Pixels from which an image is split. */
  splitPixels: number
  /** Grids by their number of tiles; empty if images are never split. */
  grids: readonly Grid[]
  hasThumbnail: boolean
  /** Patches of each run of the encoder. Those that an image lacks are zeros. */
  patchCount: number
}

export function createLfm2(settings: ProcessorSettings): VisionFamily {
  const layout = readLayout(settings)
  const { tile, hasThumbnail } = layout
  const filter = readFilter(settings, 'bilinear')
  const normalization = readNormalization(settings)

  const toInputs = (pixels: Pixels): EncoderInputs => {
    const { patch, patchCount } = layout
    const [columns, rows] = [pixels.width / patch, pixels.height / patch]
    const width = patch * patch * 3
    const values = new Float32Array(patchCount * width)
    values.set(toFlatPatches(pixels, patch, normalization))
    const mask = new BigInt64Array(patchCount).fill(1n, 0, rows * columns)
    return {
      pixel_values: { type: 'float', data: values, dims: [1, patchCount, width] },
      pixel_attention_mask: { type: 'int64', data: mask, dims: [1, patchCount] },
      spatial_shapes: {
        type: 'int64',
        data: BigInt64Array.of(BigInt(rows), BigInt(columns)),
        dims: [1, 2],
      },
    }
  }

  return {
    placeholder: '<image>',
    defaultDetail: 'low',
    maxAspectRatio: Math.min(MAX_ASPECT_RATIO, layout.bounds.maxPixels / layout.factor ** 2),
    arrange: (size, detail) => arrange(size, chooseGrid(size, detail, layout), layout),
    prepare(picture, size, detail) {
      const grid = chooseGrid(size, detail, layout)
      const whole =
        !grid || hasThumbnail ? picture.resize(smartResize(size, layout.bounds), filter) : null
      if (!grid) return () => toInputs(whole as Pixels)
      const [columns, rows] = grid
      const stretched = picture.resize([columns * tile, rows * tile], filter)
      return (run) =>
        toInputs(
          run < columns * rows
            ? cropTile(stretched, [tile, tile], [run % columns, Math.floor(run / columns)])
            : (whole as Pixels),
        )
    },
  }
}

function readLayout({ image, processor }: ProcessorSettings): Layout {
  // Older exports have the settings of tiles beside those of the text.
  const all = { ...processor, ...image }
  const count = (name: string, fallback: number): number => readCount(all, [name], fallback)
  const patch = count('encoder_patch_size', 16)
  const downsampling = count('downsample_factor', 2)
  const factor = patch * downsampling
  const tile = count('tile_size', 512)
  if (tile % factor !== 0)
    throw modelUnusable(`tile_size of its image processor is not a multiple of ${factor}.`)
  const maxTokens = count('max_image_tokens', 256)
  const maxPixels = maxTokens * factor ** 2
  const minPixels = count('min_image_tokens', 64) * factor ** 2
  const splits = all['do_image_splitting'] !== false
  const tolerance = readNumber(all['max_pixels_tolerance'], 2)
  return {
    patch,
    factor,
    tile,
    bounds: { factor, minPixels, maxPixels, shortest: factor },
    splitPixels: maxPixels * tolerance,
    grids: splits ? listGrids(count('min_tiles', 2), count('max_tiles', 10)) : [],
    hasThumbnail: all['use_thumbnail'] !== false,
    patchCount: Math.max(maxTokens * downsampling ** 2, splits ? (tile / patch) ** 2 : 0),
  }
}

/** Returns all grids with that many tiles, those with fewer tiles first. */
function listGrids(fewest: number, most: number): Grid[] {
  if (most > MAX_GRID_TILES)
    throw modelUnusable(`its image processor splits images into more than ${MAX_GRID_TILES} tiles.`)
  const sides = Array.from({ length: most }, (_, index) => index + 1)
  return sides
    .flatMap((columns) => sides.map((rows): Grid => [columns, rows]))
    .filter(([columns, rows]) => columns * rows >= fewest && columns * rows <= most)
    .toSorted((one, other) => one[0] * one[1] - other[0] * other[1])
}

/** Returns the grid for an image; `null` if it is one tile. */
function chooseGrid(size: Extent, detail: ImageDetail, layout: Layout): Grid | null {
  if (detail !== 'high' || !isTooLarge(size, layout)) return null
  const [width, height] = size
  let best: Grid | null = null
  let distance = Infinity
  for (const grid of layout.grids) {
    const [columns, rows] = grid
    const far = Math.abs(width / height - columns / rows)
    const isFilled = width * height > 0.5 * layout.tile ** 2 * columns * rows
    if (far < distance || (far === distance && isFilled)) best = grid
    distance = Math.min(far, distance)
  }
  return best && best[0] * best[1] > 1 ? best : null
}

function isTooLarge([width, height]: Extent, { patch, factor, splitPixels }: Layout): boolean {
  const round = (length: number): number => Math.max(patch, roundHalfEven(length / factor) * factor)
  return round(width) * round(height) > splitPixels
}

function arrange(size: Extent, grid: Grid | null, layout: Layout): ImageArrangement {
  const { factor, tile, hasThumbnail, bounds } = layout
  const [width, height] = smartResize(size, bounds)
  const whole = (width / factor) * (height / factor)
  if (!grid) return { pieces: [START, whole, END], runs: [whole] }
  const [columns, rows] = grid
  const rowsPerTile = (tile / factor) ** 2
  const pieces: (string | number)[] = [START]
  for (let row = 1; row <= rows; row++) {
    for (let column = 1; column <= columns; column++)
      pieces.push(`<|img_row_${row}_col_${column}|>`, rowsPerTile)
  }
  if (hasThumbnail) pieces.push(THUMBNAIL, whole)
  const runs = [
    ...Array<number>(rows * columns).fill(rowsPerTile),
    ...(hasThumbnail ? [whole] : []),
  ]
  return { pieces: [...pieces, END], runs }
}
