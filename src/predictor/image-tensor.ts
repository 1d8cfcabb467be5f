/** Encodes images as tensors and back: one, or a batch of several with the same size. */
import type { ImageLayout } from '../catalog/schema.ts'
import { type ElementType, toHalf, toReadableData } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import {
  type Extent,
  getPaddingBefore,
  type ImageSource,
  MAX_TENSOR_PIXELS,
  type Raster,
  type Rasterizer,
} from './image.ts'
import type { ImageFacts } from './image-steps.ts'
import type { RawTensor, Shape } from './tensor.ts'

/** Returns the shape of `count` images, with a batch dimension if the model has one. */
export function toImageShape(
  layout: ImageLayout,
  spec: Shape | null,
  [width, height]: Extent,
  count = spec?.[0] ?? 1,
): number[] {
  const depth = countChannels(layout)
  const image = layout.order === 'nchw' ? [depth, height, width] : [height, width, depth]
  return spec?.length === 3 ? image : [count, ...image]
}

/** Resolves with the tensor of images that `rasterizer` scales, and with what steps need of them. */
export async function encodeImages(
  sources: readonly ImageSource[],
  type: ElementType,
  shape: Shape | null,
  rasterizer: Rasterizer,
  path: string,
): Promise<{ tensor: RawTensor; images: ImageFacts[] }> {
  const { layout } = rasterizer
  const count = sources.length
  const wanted = shape?.length === 3 ? 1 : (shape?.[0] ?? null)
  if (count === 0 || (wanted !== null && wanted !== count)) {
    const what = `must be ${wanted ?? 'at least 1'} at a time for this model, not ${count}.`
    throwInvalidInput(path, what)
  }
  const rasters: Raster[] = []
  let size: Extent = [0, 0]
  for (const [index, source] of sources.entries()) {
    const at = count > 1 ? `${path}[${index}]` : path
    const raster = await rasterizer.read(source, at)
    const [own, first] = [raster.size.join(' x '), size.join(' x ')]
    if (index > 0 && own !== first && layout.fit !== 'pad')
      throwInvalidInput(at, `has ${own} pixels but the first ${first}. Send them one by one.`)
    size = [Math.max(size[0], raster.size[0]), Math.max(size[1], raster.size[1])]
    if (count * size[0] * size[1] > MAX_TENSOR_PIXELS) {
      const what = `${count} images have more than ${MAX_TENSOR_PIXELS} pixels together.`
      throwInvalidInput(path, `${what} Send fewer at once.`)
    }
    rasters.push(raster)
  }
  const length = size[0] * size[1] * countChannels(layout)
  const numbers = new Float32Array(count * length)
  for (const [index, { rgba, extent }] of rasters.entries()) {
    const before = getPaddingBefore(size, extent, layout)
    const frame = { start: index * length, size, extent, before }
    writePixels(numbers, rgba, toOwnScale(layout, type), frame)
  }
  const bytes = type === 'uint8' && Uint8Array.from(numbers, Math.round)
  const halves = type === 'float16' && Uint16Array.from(numbers, toHalf)
  const data = bytes || halves || numbers
  const images = rasters.map(({ own, ownRgba }) => ({
    size: own,
    ...(ownRgba && { rgba: ownRgba }),
  }))
  return { tensor: { type, data, shape: toImageShape(layout, shape, size, count) }, images }
}

/** Returns the layout without normalization for a model that takes bytes, since it scales them. */
const toOwnScale = (layout: ImageLayout, type: ElementType): ImageLayout =>
  type === 'uint8' ? { ...layout, scale: 1, mean: [0], std: [1] } : layout

/** Returns the image in a tensor, or an array of images unless the batch size is 1. */
export function decodeImages(tensor: RawTensor, layout: ImageLayout): ImageData | ImageData[] {
  const [height = 0, width = 0] =
    layout.order === 'nchw' ? tensor.shape.slice(-2) : tensor.shape.slice(-3, -1)
  const numbers = toReadableData(tensor) as Float32Array | Uint8Array
  const own = toOwnScale(layout, tensor.type)
  const length = width * height * countChannels(layout)
  const count = tensor.shape.length === 4 ? (tensor.shape[0] ?? 1) : 1
  const images = Array.from({ length: count }, (_, index) => {
    const part = numbers.subarray(index * length, (index + 1) * length)
    return new ImageData(denormalizePixels(part, own, [width, height]), width, height)
  })
  const [first] = images
  return first && count === 1 ? first : images
}

/** Byte of an RGBA pixel that each channel of a tensor holds. Gray is computed from three. */
const SOURCE_BYTES = { gray: [0], rgb: [0, 1, 2], bgr: [2, 1, 0], rgba: [0, 1, 2, 3] } as const

/** Weights of red, green and blue in the perceived brightness (ITU-R BT.601). */
const [RED, GREEN, BLUE] = [0.299, 0.587, 0.114] as const

export const countChannels = (layout: ImageLayout): number => SOURCE_BYTES[layout.channels].length

interface Frame {
  /** Index of the first number of the image. */
  start: number
  size: Extent
  /** Size of the image that is written, which is smaller if it is padded. */
  extent: Extent
  /** Number of pixels before it: x and y. */
  before: Extent
}

/** Writes pixels as `(value * scale - mean) / std` in the layout's order, and their padding. */
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

const toBrightness = (rgba: Uint8ClampedArray, at: number) =>
  RED * (rgba[at] ?? 0) + GREEN * (rgba[at + 1] ?? 0) + BLUE * (rgba[at + 2] ?? 0)

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
function getMoments({ scale = 1 / 255, mean, std }: ImageLayout, channel: number) {
  const [mu, sigma] = [mean?.[channel] ?? mean?.[0] ?? 0, std?.[channel] ?? std?.[0] ?? 1]
  return { factor: scale / sigma, offset: mu / sigma }
}
