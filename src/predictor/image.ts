/** Converts images to numbers and back, in the layout of an implementation. */
import type { ImageLayout } from '../catalog/schema.ts'
import { IMAGE_FORMATS, type ImageSize, MAX_HEADER_BYTES, readImageSize } from './image-size.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { isInstanceOf } from '../values/instances.ts'

/** Images that a worker can draw. `transferable-inputs.ts` converts page elements to these. */
export type ImageSource = ImageData | ImageBitmap | Blob | OffscreenCanvas | VideoFrame

const CHANNELS = { gray: 1, rgb: 3, rgba: 4 } as const

/** Weights of red, green and blue in the perceived brightness (ITU-R BT.601). */
const [RED, GREEN, BLUE] = [0.299, 0.587, 0.114] as const

/** Names of the classes of {@link ImageSource}. */
export const IMAGE_CLASSES = [
  'ImageData',
  'ImageBitmap',
  'Blob',
  'OffscreenCanvas',
  'VideoFrame',
] as const

export const isImageSource = (value: unknown): value is ImageSource =>
  isInstanceOf(value, IMAGE_CLASSES)

export function countChannels(layout: ImageLayout): number {
  return CHANNELS[layout.channels]
}

/** Width and height in pixels. */
export type Extent = ImageSize

/** Largest number of pixels in a batch of images that keep their size, at up to 16 bytes each. */
export const MAX_TENSOR_PIXELS = 2 ** 24

/**
 * Largest number of pixels in an image file that is decoded and scaled, enough for photos of large
 * phone cameras. Each pixel takes 4 bytes while it is drawn, 256 MiB together.
 */
const MAX_DECODED_PIXELS = 2 ** 26

/** Function that reads an image as RGBA pixels, scaled to the layout's size if it has one. */
export type Rasterize = (source: ImageSource, path: string) => Promise<Raster>

interface Raster {
  /** RGBA pixels, which must not be modified: they may be the caller's. */
  rgba: Uint8ClampedArray
  extent: Extent
}

export function createRasterizer(layout: ImageLayout): Rasterize {
  const { background } = layout
  let context: OffscreenCanvasRenderingContext2D | null = null
  const fill = background ?? (layout.channels === 'rgba' ? null : 'black')

  return async (source, path) => {
    if (matchesLayout(source, layout))
      return { rgba: source.data, extent: [source.width, source.height] }
    const maxPixels = getLayoutSize(layout) ? MAX_DECODED_PIXELS : MAX_TENSOR_PIXELS
    const drawable = await toDrawable(source, maxPixels, path)
    const own = getExtent(drawable, path)
    const [width, height] = getLayoutSize(layout) ?? assertPixelLimit(own, maxPixels, path)
    context ??= new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })
    if (!context) throwInvalidInput(path, 'this browser provides no 2D canvas to read images.')
    const { canvas } = context
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height })
    const [x, y, w, h] = fitRectangle(own, [width, height], layout.fit)
    context.clearRect(0, 0, width, height)
    if (fill) {
      context.fillStyle = fill
      context.fillRect(0, 0, width, height)
    }
    context.imageSmoothingQuality = 'high'
    try {
      context.drawImage(drawable, x, y, w, h)
    } catch (cause) {
      throwInvalidInput(path, 'the image cannot be drawn; was it closed or transferred?', cause)
    } finally {
      if (drawable !== source && drawable instanceof ImageBitmap) drawable.close()
    }
    return { rgba: context.getImageData(0, 0, width, height).data, extent: [width, height] }
  }
}

/** Returns `true` if drawing the pixels would not change them. */
function matchesLayout(source: ImageSource, layout: ImageLayout): source is ImageData {
  if (!(source instanceof ImageData)) return false
  const { data, width, height } = source
  const [wantedWidth, wantedHeight] = getLayoutSize(layout) ?? [width, height]
  if (width !== wantedWidth || height !== wantedHeight || width * height > MAX_TENSOR_PIXELS)
    return false
  for (let alpha = 3; alpha < data.length; alpha += 4) if (data[alpha] !== 255) return false
  return data instanceof Uint8ClampedArray
}

/** Returns the size that a layout requires, or `null`. */
export function getLayoutSize({ width, height }: ImageLayout): Extent | null {
  return width === undefined || height === undefined ? null : [width, height]
}

function assertPixelLimit([width, height]: Extent, maxPixels: number, path: string): Extent {
  if (width * height <= maxPixels) return [width, height]
  return throwInvalidInput(
    path,
    `the image has ${width} x ${height} pixels. Scale it down to at most ${maxPixels}.`,
  )
}

async function toDrawable(
  source: ImageSource,
  maxPixels: number,
  path: string,
): Promise<ImageBitmap | OffscreenCanvas | VideoFrame> {
  if (!(source instanceof Blob) && !(source instanceof ImageData)) return source
  if (source instanceof Blob) assertPixelLimit(await readFileExtent(source, path), maxPixels, path)
  try {
    return await createImageBitmap(source)
  } catch (cause) {
    return throwUnreadableImage(source, path, cause)
  }
}

/** Returns the size of the image in a file without decoding it. */
async function readFileExtent(file: Blob, path: string): Promise<Extent> {
  const head = await file.slice(0, MAX_HEADER_BYTES).arrayBuffer()
  return readImageSize(new Uint8Array(head)) ?? throwUnreadableImage(file, path)
}

function throwUnreadableImage(source: Blob | ImageData, path: string, cause?: unknown): never {
  const type = source instanceof Blob && source.type ? ` (${source.type})` : ''
  return throwInvalidInput(
    path,
    `this is not an image that can be read${type}. Send ${IMAGE_FORMATS}.`,
    cause,
  )
}

function getExtent(drawable: ImageBitmap | OffscreenCanvas | VideoFrame, path: string): Extent {
  const isFrame = 'displayWidth' in drawable
  const width = isFrame ? drawable.displayWidth : drawable.width
  const height = isFrame ? drawable.displayHeight : drawable.height
  if (!width || !height)
    throwInvalidInput(path, 'the image has no pixels; was it closed or transferred?')
  return [width, height]
}

/** Returns the rectangle on the target that the whole source is drawn to: x, y, width, height. */
export function fitRectangle(
  source: Extent,
  target: Extent,
  fit: ImageLayout['fit'] = 'stretch',
): [number, number, number, number] {
  if (fit === 'stretch') return [0, 0, ...target]
  const scales = [target[0] / source[0], target[1] / source[1]] as const
  const scale = fit === 'contain' ? Math.min(...scales) : Math.max(...scales)
  const [width, height] = [source[0] * scale, source[1] * scale]
  return [(target[0] - width) / 2, (target[1] - height) / 2, width, height]
}

/** Converts RGBA pixels to `(value / 255 - mean) / std` for each channel, in the layout's order. */
export function normalizePixels(rgba: Uint8ClampedArray, layout: ImageLayout): Float32Array {
  const depth = countChannels(layout)
  const pixels = rgba.length / 4
  const numbers = new Float32Array(pixels * depth)
  const planar = layout.order === 'nchw'
  for (let channel = 0; channel < depth; channel++) {
    const [mean, std] = getMoments(layout, channel)
    const [scale, offset] = [1 / (255 * std), mean / std]
    for (let pixel = 0; pixel < pixels; pixel++) {
      const value = depth === 1 ? toBrightness(rgba, pixel * 4) : (rgba[pixel * 4 + channel] ?? 0)
      numbers[planar ? channel * pixels + pixel : pixel * depth + channel] = value * scale - offset
    }
  }
  return numbers
}

function toBrightness(rgba: Uint8ClampedArray, at: number): number {
  return RED * (rgba[at] ?? 0) + GREEN * (rgba[at + 1] ?? 0) + BLUE * (rgba[at + 2] ?? 0)
}

/** Inverts {@link normalizePixels} for images of any size. Gray becomes three equal channels. */
export function denormalizePixels(
  numbers: ArrayLike<number>,
  layout: ImageLayout,
  [width, height]: Extent,
): Uint8ClampedArray<ArrayBuffer> {
  const depth = countChannels(layout)
  const pixels = width * height
  const rgba = new Uint8ClampedArray(pixels * 4)
  const planar = layout.order === 'nchw'
  for (let pixel = 0; pixel < pixels; pixel++) {
    for (let target = 0; target < 4; target++) {
      const channel = depth === 1 ? 0 : target
      if (target >= Math.max(depth, 3)) {
        rgba[pixel * 4 + target] = 255
        continue
      }
      const [mean, std] = getMoments(layout, channel)
      const at = planar ? channel * pixels + pixel : pixel * depth + channel
      rgba[pixel * 4 + target] = ((numbers[at] ?? 0) * std + mean) * 255
    }
  }
  return rgba
}

function getMoments({ mean, std }: ImageLayout, channel: number): [mean: number, std: number] {
  return [mean?.[channel] ?? mean?.[0] ?? 0, std?.[channel] ?? std?.[0] ?? 1]
}
