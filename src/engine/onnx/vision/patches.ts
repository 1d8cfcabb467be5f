/** Cuts images into square patches, and converts each to a row of numbers for an encoder. */
import type { Pixels } from '../../../values/resample.ts'
import type { Normalization } from './settings.ts'

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

/** Sizes of patches that are merged in squares. */
interface MergedSizes {
  patch: number
  /** Patches on a side of a square that becomes one row. */
  merge: number
  /** Frames of a patch. An image is repeated, as if it were a film that stands still. */
  frames: number
}

/**
 * Returns patches square by square, and row by row in a square. A patch has all of red, then green,
 * then blue, and each color once for each frame.
 */
export function toMergedPatches(
  { rgba, width, height }: Pixels,
  { patch, merge, frames }: MergedSizes,
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
