/** Computes the size of an image's tensor, and where the image goes in it. */
import type { ImageLayout } from '../catalog/schema.ts'
import type { Region } from '../values/resample.ts'
import type { ImageSize } from './image-size.ts'

/** Width and height in pixels. */
export type Extent = ImageSize

/** Place of an image in its tensor. All values are in pixels. */
export interface Placement {
  /** Size of the tensor's image. */
  size: Extent
  /** Size to which the image is scaled. It may have fractions, and exceeds `size` with `cover`. */
  scaled: Extent
}

/** Returns the size that a layout requires of every image, or `null` if a side is free. */
export function getLayoutSize({ width, height }: ImageLayout): Extent | null {
  return width === undefined || height === undefined ? null : [width, height]
}

/** Returns the place of an image of that size. */
export function placeImage(source: Extent, layout: ImageLayout): Placement {
  const { width, height, fit = 'stretch', multipleOf = 1 } = layout
  const wanted: [number | undefined, number | undefined] = [width, height]
  const ratios = wanted.map((length, axis) => length && length / (source[axis] ?? 1))
  const [ratio = ratios[1] ?? 1, otherRatio = ratio] = ratios
  const scale = fit === 'cover' ? Math.max(ratio, otherRatio) : Math.min(ratio, otherRatio)
  const scaled: Extent = [source[0] * scale, source[1] * scale]
  const toSide = (axis: 0 | 1): number =>
    wanted[axis] ?? toMultiple(Math.round(scaled[axis]), multipleOf, fit)
  const size: Extent = [toSide(0), toSide(1)]
  if (fit === 'stretch') return { size, scaled: size }
  return fit === 'pad' ? { size, scaled: toWholePixels(scaled) } : { size, scaled }
}

function toMultiple(length: number, step: number, fit: ImageLayout['fit']): number {
  const round = { stretch: Math.round, cover: Math.floor, contain: Math.ceil, pad: Math.ceil }
  return Math.max(1, round[fit ?? 'stretch'](length / step)) * step
}

/** Rounds a size to whole pixels. */
export function toWholePixels([width, height]: Extent): Extent {
  return [Math.max(1, Math.round(width)), Math.max(1, Math.round(height))]
}

/** Returns the rectangle on the target that the whole source is drawn to: x, y, width, height. */
export function centerRectangle({
  size: [width, height],
  scaled,
}: Placement): [number, number, number, number] {
  return [(width - scaled[0]) / 2, (height - scaled[1]) / 2, ...scaled]
}

/** Returns the part of the source that is visible on the target. */
export function findRegion(source: Extent, { size, scaled }: Placement): Region {
  const toHidden = (axis: 0 | 1): number =>
    scaled[axis] > size[axis] ? (source[axis] * (1 - size[axis] / scaled[axis])) / 2 : 0
  const [x, y] = [toHidden(0), toHidden(1)]
  return [x, y, source[0] - x, source[1] - y]
}

/** Returns the number of pixels before an image with padding: x and y. */
export function getPaddingBefore(
  size: Extent,
  image: Extent,
  { padding: { side = 'end' } = {} }: ImageLayout,
): Extent {
  const toOffset = (rest: number): number =>
    side === 'start' ? rest : side === 'both' ? Math.floor(rest / 2) : 0
  return [toOffset(size[0] - image[0]), toOffset(size[1] - image[1])]
}
