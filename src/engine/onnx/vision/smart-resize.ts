/** Finds the size to which Python's processors scale an image, so that it has a number of rows. */
import type { Extent } from './family.ts'

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

/** Returns multiples of the factor within the bounds, whose ratio is close to that of the image. */
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
