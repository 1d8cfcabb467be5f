/** Cuts images into tiles, pads them to a tile, and converts tiles to numbers. */
import type { Pixels } from '../../../values/resample.ts'
import type { Extent } from './family.ts'
import type { Normalization } from './settings.ts'

/** Returns the tile at that column and row of a grid. */
export function cropTile(
  { rgba, width }: Pixels,
  [tileWidth, tileHeight]: Extent,
  [column, row]: readonly [column: number, row: number],
): Pixels {
  const tile = new Uint8ClampedArray(tileWidth * tileHeight * 4)
  for (let y = 0; y < tileHeight; y++) {
    const from = ((row * tileHeight + y) * width + column * tileWidth) * 4
    tile.set(rgba.subarray(from, from + tileWidth * 4), y * tileWidth * 4)
  }
  return { rgba: tile, width: tileWidth, height: tileHeight }
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

/** Returns the normalized numbers of an image: all of red, then green, then blue. */
export function toPlanes({ rgba, width, height }: Pixels, channels: Normalization): Float32Array {
  const area = width * height
  const numbers = new Float32Array(area * channels.length)
  for (const [channel, { factor, offset }] of channels.entries()) {
    for (let pixel = 0; pixel < area; pixel++)
      numbers[channel * area + pixel] = (rgba[pixel * 4 + channel] as number) * factor - offset
  }
  return numbers
}
