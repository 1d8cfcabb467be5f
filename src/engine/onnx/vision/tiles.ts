/** Cuts images into tiles and converts tiles to numbers. */
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
