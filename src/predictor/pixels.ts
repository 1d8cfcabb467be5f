/** Converts the bytes of pixels to the numbers of a tensor and back. */
import type { ImageLayout } from '../catalog/schema.ts'
import type { Extent } from './image-fit.ts'

/** Byte of an RGBA pixel that each channel of a tensor holds. Gray is computed from three. */
const SOURCE_BYTES = {
  gray: [0],
  rgb: [0, 1, 2],
  bgr: [2, 1, 0],
  rgba: [0, 1, 2, 3],
} as const satisfies Record<ImageLayout['channels'], readonly number[]>

/** Weights of red, green and blue in the perceived brightness (ITU-R BT.601). */
const [RED, GREEN, BLUE] = [0.299, 0.587, 0.114] as const

export function countChannels(layout: ImageLayout): number {
  return SOURCE_BYTES[layout.channels].length
}

/** Place of an image among the numbers of a tensor. */
export interface Frame {
  /** Index of the first number of the image. */
  start: number
  /** Size of the tensor's image. */
  size: Extent
  /** Size of the image that is written, which is smaller if it is padded. */
  extent: Extent
  /** Number of pixels before it: x and y. */
  before: Extent
}

/**
 * Writes RGBA pixels as `(value * scale - mean) / std` for each channel, in the layout's order, and
 * the padding around them.
 */
export function writePixels(
  numbers: Float32Array,
  rgba: Uint8ClampedArray,
  layout: ImageLayout,
  { start, size: [width, height], extent, before }: Frame,
): void {
  const depth = countChannels(layout)
  const planar = layout.order === 'nchw'
  const step = planar ? 1 : depth
  const isPadded = extent[0] !== width || extent[1] !== height
  for (let channel = 0; channel < depth; channel++) {
    const { factor, offset } = getMoments(layout, channel)
    const first = start + (planar ? channel * width * height : channel)
    if (isPadded) {
      const value = layout.padding?.value?.[channel] ?? layout.padding?.value?.[0] ?? 0
      const end = first + width * height * step
      for (let at = first; at < end; at += step) numbers[at] = value * factor - offset
    }
    const byte = SOURCE_BYTES[layout.channels][channel] ?? 0
    for (let y = 0; y < extent[1]; y++) {
      let at = first + ((y + before[1]) * width + before[0]) * step
      const end = (y + 1) * extent[0] * 4
      for (let pixel = y * extent[0] * 4; pixel < end; pixel += 4, at += step) {
        const value = depth === 1 ? toBrightness(rgba, pixel) : (rgba[pixel + byte] as number)
        numbers[at] = value * factor - offset
      }
    }
  }
}

function toBrightness(rgba: Uint8ClampedArray, at: number): number {
  return RED * (rgba[at] ?? 0) + GREEN * (rgba[at + 1] ?? 0) + BLUE * (rgba[at + 2] ?? 0)
}

/** Inverts {@link writePixels} for one image of any size. Gray becomes three equal channels. */
export function denormalizePixels(
  numbers: ArrayLike<number>,
  layout: ImageLayout,
  [width, height]: Extent,
): Uint8ClampedArray<ArrayBuffer> {
  const depth = countChannels(layout)
  const pixels = width * height
  const rgba = new Uint8ClampedArray(pixels * 4).fill(255)
  const planar = layout.order === 'nchw'
  const bytes = depth === 1 ? [0, 1, 2] : SOURCE_BYTES[layout.channels]
  for (const [index, byte] of bytes.entries()) {
    const channel = depth === 1 ? 0 : index
    const { factor, offset } = getMoments(layout, channel)
    for (let pixel = 0; pixel < pixels; pixel++) {
      const at = planar ? channel * pixels + pixel : pixel * depth + channel
      rgba[pixel * 4 + byte] = ((numbers[at] ?? 0) + offset) / factor
    }
  }
  return rgba
}

/** Returns the numbers by which a byte becomes `byte * factor - offset`. */
function getMoments(
  { scale = 1 / 255, mean, std }: ImageLayout,
  channel: number,
): { factor: number; offset: number } {
  const [mu, sigma] = [mean?.[channel] ?? mean?.[0] ?? 0, std?.[channel] ?? std?.[0] ?? 1]
  return { factor: scale / sigma, offset: mu / sigma }
}
