/**
 * Images of the families `idefics3` and `smolvlm`: SmolVLM, SmolVLM2, Granite-Docling. An image is
 * one square tile, or a grid of tiles and the whole image as a tile after them. Each tile becomes
 * the same number of rows. An image is stretched to its tiles, as the Python class does. If
 * `image_aspect_ratio` is `pad`, as in configurations of LLaVA, it is always one tile and keeps its
 * ratio; the mask says which pixels of the tile it takes.
 */
import { type Pixels, resample } from '../../../values/resample.ts'
import { modelUnusable } from '../../failure.ts'
import type { ImageDetail } from '../../images.ts'
import type { EncoderInputs, Extent, ImageArrangement, VisionFamily } from './family.ts'
import { readCount, readFilter, readNormalization, type ProcessorSettings } from './settings.ts'
import { cropTile, padToSquare, toPlanes } from './tiles.ts'

const IMAGE = '<image>'
const BORDER = '<fake_token_around_image>'
const WHOLE_IMAGE = '<global-img>'

/** Largest number of tiles of one image beside the whole; larger settings are not in use. */
const MAX_GRID_TILES = 64

/** Rows and columns of tiles, and the size to which the image is scaled for them. */
interface Grid {
  rows: number
  columns: number
  size: Extent
}

export function createIdefics3(settings: ProcessorSettings): VisionFamily {
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
      data: toPlanes(pixels, normalization),
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
        const { square, mask } = padToSquare(
          picture.resize(scaleToLongest(size, tile), filter),
          tile,
        )
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
            ? cropTile(stretched, [tile, tile], [run % columns, Math.floor(run / columns)])
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
  const pieces: (string | number)[] = []
  for (let row = 1; row <= grid.rows; row++) {
    for (let column = 1; column <= grid.columns; column++)
      pieces.push(`${BORDER}<row_${row}_col_${column}>`, rows)
    pieces.push('\n')
  }
  pieces.push('\n', ...whole)
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
  if (columns * rows > MAX_GRID_TILES)
    throw modelUnusable(`its image processor splits images into more than ${MAX_GRID_TILES} tiles.`)
  return columns * rows > 1 ? { rows, columns, size } : null
}
