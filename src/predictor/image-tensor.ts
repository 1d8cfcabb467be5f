/** Encodes images as tensors and back: one, or a batch of several with the same size. */
import type { ImageLayout } from '../catalog/schema.ts'
import { toHalf } from '../values/half.ts'
import { type ElementType, toReadableData } from '../values/elements.ts'
import { type ImageSource, MAX_TENSOR_PIXELS, type Raster, type Rasterize } from './image.ts'
import { type Extent, getPaddingBefore } from './image-fit.ts'
import { countChannels, denormalizePixels, writePixels } from './pixels.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { RawTensor, Shape } from './tensor.ts'

/** Requirements for the tensor of an input. */
interface ImageTensorSpec {
  type: ElementType
  shape: Shape | null
  layout: ImageLayout
  rasterize: Rasterize
}

/**
 * Returns the shape of a tensor of images, with a batch dimension if the model has one. `count`
 * defaults to the batch size of the model, or 1.
 */
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

export async function encodeImages(
  sources: readonly ImageSource[],
  { type, shape, layout, rasterize }: ImageTensorSpec,
  path: string,
): Promise<RawTensor> {
  const count = sources.length
  const wanted = shape?.length === 3 ? 1 : (shape?.[0] ?? null)
  if (count === 0 || (wanted !== null && wanted !== count)) {
    throwInvalidInput(
      path,
      `must be ${wanted ?? 'at least 1'} at a time for this model, not ${count}.`,
    )
  }
  const rasters: Raster[] = []
  let size: Extent = [0, 0]
  for (const [index, source] of sources.entries()) {
    const at = count > 1 ? `${path}[${index}]` : path
    const raster = await rasterize(source, at)
    const isSame = index === 0 || raster.size.join() === size.join()
    if (!isSame && layout.fit !== 'pad') {
      throwInvalidInput(
        at,
        `has ${raster.size.join(' x ')} pixels but the first ${size.join(' x ')}. Send them one by one.`,
      )
    }
    size = [Math.max(size[0], raster.size[0]), Math.max(size[1], raster.size[1])]
    if (count * size[0] * size[1] > MAX_TENSOR_PIXELS) {
      throwInvalidInput(
        path,
        `${count} images have more than ${MAX_TENSOR_PIXELS} pixels together. Send fewer at once.`,
      )
    }
    rasters.push(raster)
  }
  // A model that takes bytes scales them itself.
  const numbers = joinRasters(rasters, size, type === 'uint8' ? toByteLayout(layout) : layout)
  return {
    type,
    data: toTypedData(numbers, type),
    shape: toImageShape(layout, shape, size, count),
  }
}

/** Returns the layout without normalization. */
const toByteLayout = (layout: ImageLayout): ImageLayout => ({
  ...layout,
  scale: 1,
  mean: [0],
  std: [1],
})

function joinRasters(rasters: readonly Raster[], size: Extent, layout: ImageLayout): Float32Array {
  const length = size[0] * size[1] * countChannels(layout)
  const numbers = new Float32Array(rasters.length * length)
  for (const [index, { rgba, extent }] of rasters.entries()) {
    const before = getPaddingBefore(size, extent, layout)
    writePixels(numbers, rgba, layout, { start: index * length, size, extent, before })
  }
  return numbers
}

function toTypedData(
  numbers: Float32Array,
  type: ElementType,
): Uint8Array | Uint16Array | Float32Array {
  if (type === 'uint8') return Uint8Array.from(numbers, Math.round)
  return type === 'float16' ? Uint16Array.from(numbers, toHalf) : numbers
}

/** Returns the image in a tensor, or an array of images unless the batch size is 1. */
export function decodeImages(tensor: RawTensor, layout: ImageLayout): ImageData | ImageData[] {
  const [height, width] =
    layout.order === 'nchw' ? tensor.shape.slice(-2) : tensor.shape.slice(-3, -1)
  const extent: [number, number] = [width ?? 0, height ?? 0]
  const numbers = toReadableData(tensor) as Float32Array | Uint8Array
  const scale = tensor.type === 'uint8' ? toByteLayout(layout) : layout
  const length = extent[0] * extent[1] * countChannels(layout)
  const count = tensor.shape.length === 4 ? (tensor.shape[0] ?? 1) : 1
  const images = Array.from({ length: count }, (_, index) => {
    const part = numbers.subarray(index * length, (index + 1) * length)
    return new ImageData(denormalizePixels(part, scale, extent), ...extent)
  })
  const [first] = images
  return first && count === 1 ? first : images
}
