/**
 * Scales images to the same bytes as Pillow, which most models were trained with. A canvas scales
 * differently in each browser, and thins out what it shrinks.
 */

/**
 * Filter of {@link resample}. Each but the nearest pixel widens with the scale when the image shrinks
 * (antialiasing).
 */
export type ResampleFilter = 'nearest' | 'box' | 'bilinear' | 'hamming' | 'bicubic' | 'lanczos'

/** Opaque pixels: red, green, blue and alpha in bytes, row by row. */
export interface Pixels {
  rgba: Uint8ClampedArray
  width: number
  height: number
}

/** Part of an image in pixels, also in fractions of them: left, top, right, bottom. */
export type Region = readonly [left: number, top: number, right: number, bottom: number]

/** Bits of fraction of a weight. The sum of bytes times weights then fits into 32 bits. */
const WEIGHT_BITS = 22
/** Parameter of the cubic convolution, which Pillow sets to -0.5. */
const CUBIC = -0.5

/** Kernels with the distance from their center, in pixels, at which they end. */
const KERNELS: Readonly<
  Record<Exclude<ResampleFilter, 'nearest'>, { reach: number; weigh: (x: number) => number }>
> = {
  box: { reach: 0.5, weigh: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  bilinear: { reach: 1, weigh: (x) => Math.max(0, 1 - Math.abs(x)) },
  hamming: { reach: 1, weigh: (x) => sinc(x) * (0.54 + 0.46 * Math.cos(Math.PI * x)) },
  bicubic: { reach: 2, weigh: (x) => weighCubic(Math.abs(x)) },
  lanczos: { reach: 3, weigh: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0) },
}

function weighCubic(x: number): number {
  if (x < 1) return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * CUBIC : 0
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x))

/**
 * Returns the image scaled to `width` x `height` pixels. `region` limits it to a part of the image;
 * default: all of it. The alpha of the result is 255. It takes time in proportion to
 * `width * image.height` and to the pixels of the image.
 */
export function resample(
  image: Pixels,
  width: number,
  height: number,
  filter: ResampleFilter,
  region: Region = [0, 0, image.width, image.height],
): Pixels {
  const [left, top, right, bottom] = region
  const isWidthSame = left === 0 && right === image.width && width === image.width
  const isHeightSame = top === 0 && bottom === image.height && height === image.height
  const shrinks = image.height - height
  // Pillow 13 scales columns first if the height shrinks by far more. The rounding between the passes
  // shows, so they must have its order.
  if (!isWidthSame && !isHeightSame && shrinks > 0 && shrinks > (image.width - width) * 2) {
    const low = scaleColumns(image, height, createTaps(filter, top, bottom, height, image.height))
    return scaleRows(low, width, createTaps(filter, left, right, width, image.width))
  }
  const wide = isWidthSame
    ? image
    : scaleRows(image, width, createTaps(filter, left, right, width, image.width))
  if (!isHeightSame)
    return scaleColumns(wide, height, createTaps(filter, top, bottom, height, image.height))
  return wide === image ? { ...image, rgba: image.rgba.slice() } : wide
}

/** Weights of the pixels of the source that each pixel of the target is made of. */
interface Taps {
  /** First pixel of the source, for each pixel of the target. */
  first: Int32Array
  count: Int32Array
  /** Fixed-point weights, `stride` for each pixel of the target. */
  weights: Int32Array
  stride: number
}

function createTaps(
  filter: ResampleFilter,
  from: number,
  to: number,
  targetLength: number,
  sourceLength: number,
): Taps {
  const scale = (to - from) / targetLength
  if (filter === 'nearest') return pickTaps(from, scale, targetLength, sourceLength)
  const { reach, weigh } = KERNELS[filter]
  const widening = Math.max(scale, 1)
  const support = reach * widening
  const stride = Math.ceil(support) * 2 + 1
  const first = new Int32Array(targetLength)
  const count = new Int32Array(targetLength)
  const weights = new Int32Array(targetLength * stride)
  const exact = new Float64Array(stride)
  for (let target = 0; target < targetLength; target++) {
    const center = from + (target + 0.5) * scale
    const begin = Math.max(0, Math.trunc(center - support + 0.5))
    const length = Math.min(sourceLength, Math.trunc(center + support + 0.5)) - begin
    let sum = 0
    for (let tap = 0; tap < length; tap++) {
      const weight = weigh((tap + begin - center + 0.5) * (1 / widening))
      exact[tap] = weight
      sum += weight
    }
    for (let tap = 0; tap < length; tap++) {
      const weight = (exact[tap] ?? 0) / (sum || 1)
      weights[target * stride + tap] = Math.trunc(
        weight * 2 ** WEIGHT_BITS + (weight < 0 ? -0.5 : 0.5),
      )
    }
    first[target] = begin
    count[target] = length
  }
  return { first, count, weights, stride }
}

/** Returns the taps of the one pixel that is nearest to the middle of each pixel of the target. */
function pickTaps(from: number, scale: number, targetLength: number, sourceLength: number): Taps {
  const first = new Int32Array(targetLength)
  // Pillow adds the steps one after the other, and the rounding of the sum shows.
  let place = from + scale * 0.5
  for (let target = 0; target < targetLength; target++, place += scale)
    first[target] = Math.min(sourceLength - 1, Math.trunc(place))
  return {
    first,
    count: new Int32Array(targetLength).fill(1),
    weights: new Int32Array(targetLength).fill(2 ** WEIGHT_BITS),
    stride: 1,
  }
}

const HALF = 2 ** (WEIGHT_BITS - 1)

function scaleRows({ rgba, width: sourceWidth, height }: Pixels, width: number, taps: Taps) {
  const scaled = new Uint8ClampedArray(width * height * 4)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const source = (y * sourceWidth + (taps.first[x] ?? 0)) * 4
      addTaps(rgba, source, 4, taps, x, scaled, (y * width + x) * 4)
    }
  }
  return { rgba: scaled, width, height }
}

function scaleColumns({ rgba, width }: Pixels, height: number, taps: Taps): Pixels {
  const scaled = new Uint8ClampedArray(width * height * 4)
  for (let y = 0; y < height; y++) {
    const row = (taps.first[y] ?? 0) * width
    for (let x = 0; x < width; x++)
      addTaps(rgba, (row + x) * 4, width * 4, taps, y, scaled, (y * width + x) * 4)
  }
  return { rgba: scaled, width, height }
}

/** Writes the pixel at `to`: the weighted sum of pixels from `source` on, `step` bytes apart. */
function addTaps(
  rgba: Uint8ClampedArray,
  source: number,
  step: number,
  { count, weights, stride }: Taps,
  target: number,
  scaled: Uint8ClampedArray,
  to: number,
): void {
  let [red, green, blue] = [HALF, HALF, HALF]
  const from = target * stride
  const end = from + (count[target] ?? 0)
  let at = source
  for (let tap = from; tap < end; tap++, at += step) {
    const weight = weights[tap] as number
    red += (rgba[at] as number) * weight
    green += (rgba[at + 1] as number) * weight
    blue += (rgba[at + 2] as number) * weight
  }
  scaled[to] = red >> WEIGHT_BITS
  scaled[to + 1] = green >> WEIGHT_BITS
  scaled[to + 2] = blue >> WEIGHT_BITS
  scaled[to + 3] = 255
}
