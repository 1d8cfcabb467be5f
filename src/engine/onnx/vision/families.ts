/** Chooses the family of a model that sees images. */
import { type Pixels, resample } from '../../../values/resample.ts'
import type { Files } from '../../engine.ts'
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
  readProcessorSettings,
  type VisionFamily,
} from './family.ts'
import { createLfm2 } from './lfm2.ts'
import {
  assertGridSize,
  cropTile,
  listTiles,
  MAX_ASPECT_RATIO,
  padToSquare,
  smartResize,
  toPlanarPatches,
} from './patches.ts'

// Images of the families `qwen2_vl`, `qwen2_5_vl`, `qwen3_vl` and `qwen3_5`. An image keeps its
// shape: it is scaled to a number of pixels within bounds, and each square of them is a row. The
// decoder knows the place of a row by its position on three axes.

/**
 * Largest number of rows of an image. The processors of newer models allow 16,384, which no context
 * of a small model holds. 1,280 is the default of the oldest class.
 */
const MAX_ROWS: Readonly<Record<ImageDetail, number>> = { low: 256, high: 1_280 }

/** Mean and deviation of colors in the Python class. */
const COLOR_MEAN = [0.48145466, 0.4578275, 0.40821073]
const COLOR_DEVIATION = [0.26862954, 0.26130258, 0.27577711]

function createQwen(settings: ProcessorSettings): VisionFamily {
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
          data: toPlanarPatches(pixels, { patch, merge, frames }, normalization),
          dims: [rows * columns, 3 * frames * patch * patch],
        },
        // The oldest export has another name for the same input.
        grid_thw: grid,
        image_grid_thw: grid,
      })
    },
  }
}

// Images of the families `idefics3` and `smolvlm`: SmolVLM, SmolVLM2, Granite-Docling. An image is
// one square tile, or a grid of tiles and the whole image as a tile after them. Each tile becomes
// the same number of rows. An image is stretched to its tiles, as the Python class does. If
// `image_aspect_ratio` is `pad`, as in configurations of LLaVA, it is always one tile and keeps its
// ratio; the mask says which pixels of the tile it takes.

const IMAGE = '<image>'
const BORDER = '<fake_token_around_image>'
const WHOLE_IMAGE = '<global-img>'

/** Rows and columns of tiles, and the size to which the image is scaled for them. */
interface Grid {
  rows: number
  columns: number
  size: Extent
}

function createIdefics3(settings: ProcessorSettings): VisionFamily {
  const { image, processor, config } = settings
  const longest = readCount(image, ['size', 'longest_edge'], 4 * 364)
  const tile = readCount(image, ['max_image_size', 'longest_edge'], 364)
  const rowsPerTile = readCount(processor, ['image_seq_len'], countTileRows(config, tile))
  const filter = readFilter(settings, 'lanczos')
  const normalization = readNormalization(settings)
  const isPadded = image['image_aspect_ratio'] === 'pad'

  const toInputs = (
    pixels: Pixels,
    mask: Uint8Array = new Uint8Array(tile * tile).fill(1),
  ): EncoderInputs => ({
    pixel_values: {
      type: 'float',
      data: toPlanarPatches(pixels, { patch: tile, merge: 1, frames: 1 }, normalization),
      dims: [1, 1, 3, tile, tile],
    },
    pixel_attention_mask: { type: 'bool', data: mask, dims: [1, 1, tile, tile] },
  })

  const split = (size: Extent, detail: ImageDetail): Grid | null =>
    detail === 'high' && !isPadded ? toGrid(scaleToLongest(size, longest), tile) : null

  return {
    placeholder: IMAGE,
    defaultDetail: 'low',
    arrange: (size, detail) => arrange(split(size, detail), rowsPerTile),
    prepare(picture, size, detail) {
      if (isPadded) {
        const whole = picture.resize(scaleToLongest(size, tile), filter)
        const { square, mask } = padToSquare(whole, tile)
        return () => toInputs(square, mask)
      }
      const grid = split(size, detail)
      const scaled = picture.resize(scaleToLongest(size, longest), filter)
      if (!grid) return () => toInputs(resample(scaled, tile, tile, filter))
      const stretched = resample(scaled, ...grid.size, filter)
      const { columns, rows } = grid
      return (run) =>
        toInputs(
          run < columns * rows
            ? cropTile(stretched, tile, run)
            : resample(stretched, tile, tile, filter),
        )
    },
  }
}

/** Returns the rows of a tile that the configuration of the encoder implies. */
function countTileRows(config: ProcessorSettings['config'], tile: number): number {
  const patch = readCount(config, ['vision_config', 'patch_size'], 32)
  const factor = readCount(config, ['scale_factor'], 2)
  return Math.max(1, Math.floor(tile / patch / factor)) ** 2
}

function arrange(grid: Grid | null, rows: number): ImageArrangement {
  const whole = [`${BORDER}${WHOLE_IMAGE}`, rows, BORDER]
  if (!grid) return { pieces: whole, runs: [rows] }
  const name = (row: number, column: number) => `${BORDER}<row_${row}_col_${column}>`
  const pieces = [...listTiles(grid, rows, name, ['\n']), '\n', ...whole]
  return { pieces, runs: Array<number>(grid.rows * grid.columns + 1).fill(rows) }
}

/** Returns the size whose longer side is `longest`. The other side is even, as in Python. */
function scaleToLongest([width, height]: Extent, longest: number): Extent {
  const ratio = width / height
  const even = (length: number): number => Math.trunc(length) + (Math.trunc(length) % 2)
  return width >= height
    ? [longest, Math.max(1, even(longest / ratio))]
    : [Math.max(1, even(longest * ratio)), longest]
}

/** Returns the grid of tiles; `null` if a single tile holds the image. */
function toGrid([width, height]: Extent, tile: number): Grid | null {
  const ratio = width / height
  const up = (length: number): number => Math.ceil(length / tile) * tile
  const size: Extent =
    width >= height
      ? [up(width), up(Math.trunc(up(width) / ratio))]
      : [up(Math.trunc(up(height) * ratio)), up(height)]
  const [columns, rows] = [size[0] / tile, size[1] / tile]
  assertGridSize(columns * rows)
  return columns * rows > 1 ? { rows, columns, size } : null
}

const FAMILIES: Readonly<Record<string, (settings: ProcessorSettings) => VisionFamily>> = {
  idefics3: createIdefics3,
  smolvlm: createIdefics3,
  lfm2_vl: createLfm2,
  qwen2_vl: createQwen,
  qwen2_5_vl: createQwen,
  qwen3_vl: createQwen,
  qwen3_5: createQwen,
}

/** Returns `true` if the configuration is that of a model that sees images. */
export const isVisionModel = (config: Readonly<Record<string, unknown>>): boolean =>
  Object.hasOwn(FAMILIES, String(config['model_type']))

/** Values of `model_type` of the models that see images, in the order of the documentation. */
export const VISION_MODEL_TYPES: readonly string[] = Object.keys(FAMILIES)

/** Resolves with the family of a model; `null` if it has none that is supported. */
export async function readVisionFamily(texts: Files): Promise<VisionFamily | null> {
  const settings = await readProcessorSettings(texts)
  const create = isVisionModel(settings.config) ? FAMILIES[settings.modelType] : undefined
  return create?.(settings) ?? null
}
