/** Reads images as pixels of the size that the layout of an implementation requires. */
import type { ImageLayout } from '../catalog/schema.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { isInstanceOf } from '../values/objects.ts'
import { type Pixels, type Region, resample } from '../values/resample.ts'
import { IMAGE_FORMATS, type ImageSize, MAX_HEADER_BYTES, readImageSize } from './image-size.ts'

/** Images that a worker can draw. `transferable-inputs.ts` converts page elements to these. */
export type ImageSource = ImageData | ImageBitmap | Blob | OffscreenCanvas | VideoFrame

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

/** Largest number of pixels in a batch of images that keep their size, at up to 16 bytes each. */
export const MAX_TENSOR_PIXELS = 2 ** 24

/** Largest number of pixels in a decoded file, enough for photos: 256 MiB while it is drawn. */
const MAX_DECODED_PIXELS = 2 ** 26

/** Pixels of an image, and the size of its tensor. */
export interface Raster {
  /** RGBA pixels, which must not be modified: they may be the caller's. */
  rgba: Uint8ClampedArray
  extent: Extent
  /** Size of the tensor's image. It is larger than `extent` if the image is padded. */
  size: Extent
  /** Size of the image before it was scaled. */
  own: Extent
  /** RGBA pixels of that size. Absent unless they are kept. */
  ownRgba?: Uint8ClampedArray
}

type Drawable = ImageBitmap | OffscreenCanvas | VideoFrame
type Rectangle = readonly [x: number, y: number, width: number, height: number]

/** Reads images as the layout requires them. It uses one canvas again for each image. */
export class Rasterizer {
  readonly layout: ImageLayout
  readonly #keepsPixels: boolean
  #context: OffscreenCanvasRenderingContext2D | null = null

  /** With `keepsPixels`, a raster has the pixels of the image before it was scaled, too. */
  constructor(layout: ImageLayout, keepsPixels = false) {
    this.layout = layout
    this.#keepsPixels = keepsPixels
  }

  /** Resolves with scaled pixels. Rejects with `invalid_request` that names `path`. */
  async read(source: ImageSource, path: string): Promise<Raster> {
    const layout = this.layout
    const unchanged = findUnchanged(source, layout)
    if (unchanged) return unchanged
    const isSized = getLayoutSize(layout) !== null
    const maxPixels = isSized ? MAX_DECODED_PIXELS : MAX_TENSOR_PIXELS
    const drawable = await toDrawable(source, maxPixels, path)
    try {
      const own = getExtent(drawable, path)
      const placement = placeImage(own, layout)
      const { size, scaled } = placement
      if (!isSized) for (const each of [own, size]) assertPixelLimit(each, maxPixels, path)
      const { rgba, width, height } = layout.resize
        ? this.#crop(drawable, own, placement, path)
        : layout.resample
          ? this.#resample(drawable, own, placement, path)
          : layout.fit === 'pad'
            ? this.#draw(drawable, scaled, [0, 0, ...scaled], path)
            : this.#draw(drawable, size, centerRectangle(placement), path)
      const raster: Raster = { rgba, extent: [width, height], size, own }
      if (!this.#keepsPixels) return raster
      assertPixelLimit(own, MAX_DECODED_PIXELS, path)
      return { ...raster, ownRgba: this.#draw(drawable, own, [0, 0, ...own], path).rgba }
    } finally {
      if (drawable !== source && drawable instanceof ImageBitmap) drawable.close()
    }
  }

  #resample(image: Drawable, own: Extent, placement: Placement, path: string): Pixels {
    const { fit, resample: filter = 'bilinear' } = this.layout
    const isInside = fit === 'contain' || fit === 'pad'
    const [width, height] = isInside ? toWholePixels(placement.scaled) : placement.size
    assertPixelLimit(own, MAX_DECODED_PIXELS, path)
    // The rows are scaled first, so this is the size of the image between the passes.
    assertPixelLimit([width, own[1]], MAX_DECODED_PIXELS, path)
    const pixels = this.#draw(image, own, [0, 0, ...own], path)
    const scaled = resample(pixels, width, height, filter, findRegion(own, placement))
    if (fit !== 'contain') return scaled
    const { size } = placement
    const cleared = this.#clear(size, path)
    const middle = new ImageData(scaled.rgba.slice(), width, height)
    cleared.putImageData(middle, (size[0] - width) >> 1, (size[1] - height) >> 1)
    return readPixels(cleared, size)
  }

  /** Scales the whole image, and cuts out its middle. */
  #crop(image: Drawable, own: Extent, { size, scaled }: Placement, path: string): Pixels {
    const [x, y] = [getMargin(size[0], scaled[0]), getMargin(size[1], scaled[1])]
    const { resample: filter } = this.layout
    if (!filter) return this.#draw(image, size, [x, y, ...scaled], path)
    const [width, height] = scaled
    assertPixelLimit(own, MAX_DECODED_PIXELS, path)
    // The rows are scaled first, so this is the size of the image between the passes.
    for (const each of [scaled, [width, own[1]] as const])
      assertPixelLimit(each, MAX_DECODED_PIXELS, path)
    const pixels = this.#draw(image, own, [0, 0, ...own], path)
    const resized = resample(pixels, width, height, filter)
    if (size[0] === width && size[1] === height) return resized
    const cleared = this.#clear(size, path)
    cleared.putImageData(new ImageData(resized.rgba.slice(), width, height), x, y)
    return readPixels(cleared, size)
  }

  /** Returns the pixels of a canvas of that size, on which the image was drawn. */
  #draw(image: Drawable, size: Extent, rectangle: Rectangle, path: string): Pixels {
    const cleared = this.#clear(size, path)
    try {
      cleared.drawImage(image, ...rectangle)
    } catch (cause) {
      throwInvalidInput(path, 'the image cannot be drawn; was it closed or transferred?', cause)
    }
    return readPixels(cleared, size)
  }

  #clear([width, height]: Extent, path: string): OffscreenCanvasRenderingContext2D {
    const options = { willReadFrequently: true }
    const context = (this.#context ??= new OffscreenCanvas(width, height).getContext('2d', options))
    if (!context)
      return throwInvalidInput(path, 'this browser provides no 2D canvas to read images.')
    const { canvas } = context
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height })
    context.clearRect(0, 0, width, height)
    const { background, channels } = this.layout
    const fill = background ?? (channels === 'rgba' ? null : 'black')
    if (fill) {
      context.fillStyle = fill
      context.fillRect(0, 0, width, height)
    }
    context.imageSmoothingQuality = 'high'
    return context
  }
}

const readPixels = (context: OffscreenCanvasRenderingContext2D, [width, height]: Extent) => ({
  rgba: context.getImageData(0, 0, width, height).data,
  width,
  height,
})

/** Returns pixels that need no drawing, because it would not change them. */
function findUnchanged(source: ImageSource, layout: ImageLayout): Raster | null {
  if (!(source instanceof ImageData) || !(source.data instanceof Uint8ClampedArray)) return null
  const { data, width, height } = source
  const { size, scaled } = placeImage([width, height], layout)
  const isScaled = scaled[0] !== width || scaled[1] !== height
  const isFramed = layout.fit !== 'pad' && (size[0] !== width || size[1] !== height)
  if (isScaled || isFramed || width * height > MAX_TENSOR_PIXELS) return null
  for (let alpha = 3; alpha < data.length; alpha += 4) if (data[alpha] !== 255) return null
  return { rgba: data, extent: [width, height], size, own: [width, height], ownRgba: data }
}

function assertPixelLimit([width, height]: Extent, maxPixels: number, path: string): void {
  if (width * height <= maxPixels) return
  const what = `the image has ${width} x ${height} pixels. Scale it down to at most ${maxPixels}.`
  throwInvalidInput(path, what)
}

async function toDrawable(source: ImageSource, maxPixels: number, path: string): Promise<Drawable> {
  if (!(source instanceof Blob) && !(source instanceof ImageData)) return source
  const throwUnreadable = (cause?: unknown): never => {
    const type = source instanceof Blob && source.type ? ` (${source.type})` : ''
    const what = `this is not an image that can be read${type}. Send ${IMAGE_FORMATS}.`
    return throwInvalidInput(path, what, cause)
  }
  if (source instanceof Blob) {
    const head = await source.slice(0, MAX_HEADER_BYTES).arrayBuffer()
    const extent = readImageSize(new Uint8Array(head)) ?? throwUnreadable()
    assertPixelLimit(extent, maxPixels, path)
  }
  return createImageBitmap(source).catch(throwUnreadable)
}

function getExtent(drawable: Drawable, path: string): Extent {
  const isFrame = 'displayWidth' in drawable
  const width = isFrame ? drawable.displayWidth : drawable.width
  const height = isFrame ? drawable.displayHeight : drawable.height
  if (!width || !height)
    throwInvalidInput(path, 'the image has no pixels; was it closed or transferred?')
  return [width, height]
}

/** Width and height in pixels. */
export type Extent = ImageSize

interface Placement {
  size: Extent
  /** Size to which the image is scaled. It may have fractions, and exceeds `size` with `cover`. */
  scaled: Extent
}

/** Returns the size that a layout requires of every image, or `null` if a side is free. */
export const getLayoutSize = ({ width, height }: ImageLayout): Extent | null =>
  width === undefined || height === undefined ? null : [width, height]

/** Returns the place of an image of that size. */
export function placeImage(source: Extent, layout: ImageLayout): Placement {
  const { width, height, fit = 'stretch', multipleOf = 1 } = layout
  if (layout.resize) {
    const scaled = resizeExtent(source, layout.resize)
    return { size: [width ?? scaled[0], height ?? scaled[1]], scaled }
  }
  const wanted: [number | undefined, number | undefined] = [width, height]
  const ratios = wanted.map((length, axis) => length && length / (source[axis] ?? 1))
  const [ratio = ratios[1] ?? 1, otherRatio = ratio] = ratios
  const scale = fit === 'cover' ? Math.max(ratio, otherRatio) : Math.min(ratio, otherRatio)
  const scaled: Extent = [source[0] * scale, source[1] * scale]
  const toSide = (axis: 0 | 1) =>
    wanted[axis] ?? toMultiple(Math.round(scaled[axis]), multipleOf, fit)
  const size: Extent = [toSide(0), toSide(1)]
  if (fit === 'stretch') return { size, scaled: size }
  return fit === 'pad' ? { size, scaled: toWholePixels(scaled) } : { size, scaled }
}

/** Returns the size to which a whole image is scaled before it is cropped. */
function resizeExtent(source: Extent, resize: NonNullable<ImageLayout['resize']>): Extent {
  const { multipleOf = 1, round = 'nearest' } = resize
  const scaled = 'shortest' in resize ? toShortest(source, resize) : toFrame(source, resize)
  const toSide = (length: number): number =>
    Math.max(1, ROUNDINGS[round](length / multipleOf)) * multipleOf
  return [toSide(scaled[0]), toSide(scaled[1])]
}

/** Rounding to whole numbers; of a half to the even one, as in Python. */
const ROUNDINGS = {
  nearest: (value: number): number =>
    Math.abs(value % 1) === 0.5 ? 2 * Math.round(value / 2) : Math.round(value),
  down: Math.floor,
  up: Math.ceil,
} as const

type Resize<Key extends string> = Extract<NonNullable<ImageLayout['resize']>, Record<Key, unknown>>

function toFrame(source: Extent, resize: Resize<'multipleOf'> | Resize<'width'>): Extent {
  if (!('width' in resize)) return source
  const { width, height, keepsRatio = false } = resize
  if (!keepsRatio) return [width, height]
  const [wide, high] = [width / source[0], height / source[1]]
  const scale = Math.abs(1 - wide) < Math.abs(1 - high) ? wide : high
  return [scale * source[0], scale * source[1]]
}

function toShortest(
  [width, height]: Extent,
  { shortest, longest = Infinity, nearest = false }: Resize<'shortest'>,
): Extent {
  const [short, long] = [Math.min(width, height), Math.max(width, height)]
  const free: Extent = [shortest, Math.floor((shortest * long) / short)]
  const limited = (): Extent => {
    if (!nearest) return [Math.floor((longest * free[0]) / free[1]), longest]
    const exact = (longest * short) / long
    const side = ROUNDINGS.nearest(exact)
    return side === short ? [short, long] : [side, Math.trunc((exact * long) / short)]
  }
  const isLimited = (nearest ? (long / short) * shortest : free[1]) > longest
  const [less, more] = isLimited ? limited() : free
  return width <= height ? [less, more] : [more, less]
}

/** Returns the place of an image in the middle of a side; below 0 for a longer one. */
const getMargin = (side: number, length: number): number => Math.ceil((side - length) / 2)

function toMultiple(length: number, step: number, fit: ImageLayout['fit']): number {
  const round = { stretch: Math.round, cover: Math.floor, contain: Math.ceil, pad: Math.ceil }
  return Math.max(1, round[fit ?? 'stretch'](length / step)) * step
}

const toWholePixels = ([width, height]: Extent): Extent => [
  Math.max(1, Math.round(width)),
  Math.max(1, Math.round(height)),
]

/** Returns the rectangle on the target that the whole source is drawn to: x, y, width, height. */
export const centerRectangle = ({
  size: [width, height],
  scaled,
}: Placement): [number, number, number, number] => [
  (width - scaled[0]) / 2,
  (height - scaled[1]) / 2,
  ...scaled,
]

/** Returns the part of the source that is visible on the target. */
export function findRegion(source: Extent, { size, scaled }: Placement): Region {
  const toHidden = (axis: 0 | 1) =>
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
  const toOffset = (rest: number) =>
    side === 'start' ? rest : side === 'both' ? Math.floor(rest / 2) : 0
  return [toOffset(size[0] - image[0]), toOffset(size[1] - image[1])]
}
