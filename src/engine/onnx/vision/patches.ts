/** Cuts images into square patches, and converts each to a row of numbers for an encoder. */
import type { Pixels } from '../../../values/resample.ts'
import { modelUnusable } from '../../failure.ts'
import type { PromptPiece } from '../../images.ts'
import type { Extent, Normalization } from './family.ts'

/** Returns patches row by row. In a patch, the colors of a pixel are next to each other. */
export function toFlatPatches(
  { rgba, width, height }: Pixels,
  patch: number,
  channels: Normalization,
): Float32Array {
  const numbers = new Float32Array(width * height * 3)
  let start = 0
  for (let top = 0; top < height; top += patch) {
    for (let left = 0; left < width; left += patch, start += patch * patch * 3) {
      for (const [channel, { factor, offset }] of channels.entries()) {
        let at = start + channel
        for (let y = top; y < top + patch; y++) {
          for (let x = left; x < left + patch; x++, at += 3)
            numbers[at] = (rgba[(y * width + x) * 4 + channel] as number) * factor - offset
        }
      }
    }
  }
  return numbers
}

/**
 * Returns patches square by square, and row by row in a square with `merge` patches on a side. A
 * patch has all of red, then green, then blue, and each color once for each frame: an image is
 * repeated, as if it were a film that stands still.
 */
export function toPlanarPatches(
  { rgba, width, height }: Pixels,
  { patch, merge, frames }: { patch: number; merge: number; frames: number },
  channels: Normalization,
): Float32Array {
  const area = patch * patch
  const numbers = new Float32Array(width * height * 3 * frames)
  const square = patch * merge
  let at = 0
  const add = (left: number, top: number): void => {
    for (const [channel, { factor, offset }] of channels.entries()) {
      const start = at
      for (let y = top; y < top + patch; y++) {
        for (let x = left; x < left + patch; x++)
          numbers[at++] = (rgba[(y * width + x) * 4 + channel] as number) * factor - offset
      }
      for (let frame = 1; frame < frames; frame++, at += area)
        numbers.copyWithin(at, start, start + area)
    }
  }
  for (let top = 0; top < height; top += square) {
    for (let left = 0; left < width; left += square) {
      for (let inner = 0; inner < merge * merge; inner++)
        add(left + (inner % merge) * patch, top + Math.floor(inner / merge) * patch)
    }
  }
  return numbers
}

/** Bounds of the size of a scaled image. */
export interface ResizeBounds {
  /** Number of which both sides become multiples. */
  factor: number
  minPixels: number
  maxPixels: number
  /** Length of a side before the bounds are applied: 0, or one `factor`. */
  shortest: number
}

/**
 * Largest ratio of the sides for which the bounds hold. The Python classes refuse more, and a line of
 * pixels tells a model nothing.
 */
export const MAX_ASPECT_RATIO = 200

/** Returns the closest whole number, and the even one of two that are equally close, as Python. */
export function roundHalfEven(value: number): number {
  const below = Math.floor(value)
  const rest = value - below
  if (rest === 0.5) return below % 2 === 0 ? below : below + 1
  return rest < 0.5 ? below : below + 1
}

/**
 * Returns multiples of the factor within the bounds, whose ratio is close to that of the image. Python's
 * processors scale an image to this size, so that it has a number of rows.
 */
export function smartResize([width, height]: Extent, bounds: ResizeBounds): Extent {
  const { factor, minPixels, maxPixels, shortest } = bounds
  const both = (scale: (length: number) => number): Extent => [scale(width), scale(height)]
  const rounded = both((length) => Math.max(shortest, roundHalfEven(length / factor) * factor))
  const area = rounded[0] * rounded[1]
  if (area > maxPixels) {
    const beta = Math.sqrt((height * width) / maxPixels)
    return both((length) => Math.max(factor, Math.floor(length / beta / factor) * factor))
  }
  if (area < minPixels) {
    const beta = Math.sqrt(minPixels / (height * width))
    return both((length) => Math.ceil((length * beta) / factor) * factor)
  }
  return rounded
}

/** Returns the square tile at that index of an image that consists of them, row by row. */
export function cropTile({ rgba, width }: Pixels, side: number, index: number): Pixels {
  const columns = width / side
  const [left, top] = [(index % columns) * side, Math.floor(index / columns) * side]
  const tile = new Uint8ClampedArray(side * side * 4)
  for (let y = 0; y < side; y++) {
    const from = ((top + y) * width + left) * 4
    tile.set(rgba.subarray(from, from + side * 4), y * side * 4)
  }
  return { rgba: tile, width: side, height: side }
}

/** Returns the pieces of a prompt for a grid of tiles with equally many rows, each after its name. */
export const listTiles = (
  grid: { columns: number; rows: number },
  rowsPerTile: number,
  nameOf: (row: number, column: number) => string,
  endOfRow: readonly PromptPiece[] = [],
): PromptPiece[] =>
  Array.from({ length: grid.rows }, (_, row) => [
    ...Array.from({ length: grid.columns }, (__, column) => [
      nameOf(row + 1, column + 1),
      rowsPerTile,
    ]).flat(),
    ...endOfRow,
  ]).flat()

/** Largest number of tiles of one image beside the whole; larger settings are not in use. */
const MAX_GRID_TILES = 64

/** Throws `unavailable` if an image may become more tiles. */
export function assertGridSize(tiles: number): void {
  if (tiles > MAX_GRID_TILES)
    throw modelUnusable(`its image processor splits images into more than ${MAX_GRID_TILES} tiles.`)
}

/**
 * Returns the image in the middle of a square, and which pixels of the square are the image. The
 * rest has the mean color of the two longer edges, which is the background of most drawings.
 * Neither side of the image is longer than `side`.
 */
export function padToSquare(
  image: Pixels,
  side: number,
): { square: Pixels; mask: Uint8Array<ArrayBuffer> } {
  const { rgba, width, height } = image
  const square = new Uint8ClampedArray(side * side * 4)
  // One number for each pixel is a tenth of the time of four bytes.
  const [color] = new Uint32Array(Uint8Array.from(meanOfLongEdges(image)).buffer)
  new Uint32Array(square.buffer).fill(color as number)
  const mask = new Uint8Array(side * side)
  const [left, top] = [Math.floor((side - width) / 2), Math.floor((side - height) / 2)]
  for (let y = 0; y < height; y++) {
    const at = (top + y) * side + left
    square.set(rgba.subarray(y * width * 4, (y + 1) * width * 4), at * 4)
    mask.fill(1, at, at + width)
  }
  return { square: { rgba: square, width: side, height: side }, mask }
}

/** Returns the mean color of the first and the last row, or of those columns of a high image. */
function meanOfLongEdges({ rgba, width, height }: Pixels): number[] {
  const isHigh = height > width
  const longest = Math.max(width, height)
  const sums = [0, 0, 0, 0]
  for (let at = 0; at < longest; at++) {
    for (const across of [0, Math.min(width, height) - 1]) {
      const pixel = isHigh ? at * width + across : across * width + at
      for (const channel of sums.keys())
        sums[channel] = (sums[channel] as number) + (rgba[pixel * 4 + channel] as number)
    }
  }
  return sums.map((sum) => Math.round(sum / (2 * longest)))
}
