/** Draws images on one canvas that is used again for each image. */
import { throwInvalidInput } from '../values/input-errors.ts'
import type { Pixels } from '../values/resample.ts'
import type { Extent } from './image-fit.ts'

/** Image that a canvas can draw. */
export type Drawable = ImageBitmap | OffscreenCanvas | VideoFrame

type Rectangle = readonly [x: number, y: number, width: number, height: number]

export interface ImageCanvas {
  /**
   * Returns the pixels of a canvas of that size, on which the image was drawn. Throws
   * `invalid_request` that names `path` if the image cannot be drawn.
   */
  draw(image: Drawable, size: Extent, rectangle: Rectangle, path: string): Pixels
  /** Returns the pixels in the middle of an image of that size. */
  center(pixels: Pixels, size: Extent, path: string): Pixels
}

/** Creates a canvas. `fill` is the CSS color behind the images; `null` for a transparent one. */
export function createImageCanvas(fill: string | null): ImageCanvas {
  let context: OffscreenCanvasRenderingContext2D | null = null

  function clear([width, height]: Extent, path: string): OffscreenCanvasRenderingContext2D {
    context ??= new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })
    if (!context)
      return throwInvalidInput(path, 'this browser provides no 2D canvas to read images.')
    const { canvas } = context
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height })
    context.clearRect(0, 0, width, height)
    if (fill) {
      context.fillStyle = fill
      context.fillRect(0, 0, width, height)
    }
    context.imageSmoothingQuality = 'high'
    return context
  }

  return {
    draw(image, size, rectangle, path) {
      const cleared = clear(size, path)
      try {
        cleared.drawImage(image, ...rectangle)
      } catch (cause) {
        throwInvalidInput(path, 'the image cannot be drawn; was it closed or transferred?', cause)
      }
      return readPixels(cleared, size)
    },
    center({ rgba, width, height }, size, path) {
      const cleared = clear(size, path)
      const image = new ImageData(rgba.slice(), width, height)
      const [x, y] = [(size[0] - width) >> 1, (size[1] - height) >> 1]
      cleared.putImageData(image, x, y)
      return readPixels(cleared, size)
    },
  }
}

function readPixels(context: OffscreenCanvasRenderingContext2D, [width, height]: Extent): Pixels {
  return { rgba: context.getImageData(0, 0, width, height).data, width, height }
}
