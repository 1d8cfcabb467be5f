/** Turns numbers of a model into parts of an image: objects, masks, depth, and what is cut out. */
import type { Step } from '../catalog/schema.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { type Interpolation, PlaneScaler } from '../values/interpolate.ts'
import type { Extent } from './image.ts'

/** Image of a run, before it was scaled. */
export interface ImageFacts {
  size: Extent
  /** RGBA pixels; absent unless a step needs them. */
  rgba?: Uint8ClampedArray
}

/** Object in an image, with the pixels at its edges. */
export interface DetectedObject {
  label: string
  index: number
  score: number
  box: { xmin: number; ymin: number; xmax: number; ymax: number }
}

/** Part of an image. Its mask is white there and black elsewhere. */
export interface Segment {
  label: string
  index: number
  score?: number
  mask: ImageData
}

/** Numbers with rows of `classes` each. */
interface Rows {
  data: Float32Array
  classes: number
}

/** Returns the objects of one image, the highest score first. */
export function findObjects(
  { data, classes }: Rows,
  boxes: Float32Array,
  { background = false, count = boxes.length / 4 }: Extract<Step, { step: 'objects' }>,
  threshold: number,
  labels: readonly string[],
  size: Extent,
): DetectedObject[] {
  const known = background ? classes - 1 : classes
  const pairs: { box: number; index: number; score: number }[] = []
  for (let box = 0; box < data.length / classes; box++) {
    const row = data.subarray(box * classes, box * classes + known)
    const best = row.reduce((most, score, index) => (score > (row[most] ?? 0) ? index : most), 0)
    for (const [index, score] of row.entries())
      if (score > threshold && (!background || index === best)) pairs.push({ box, index, score })
  }
  return pairs
    .toSorted((one, other) => other.score - one.score)
    .slice(0, count)
    .map(({ box, index, score }) => ({
      label: labels[index] ?? String(index),
      index,
      score,
      box: toCorners(boxes.subarray(box * 4, box * 4 + 4), size),
    }))
}

/** Returns the corners of a box in whole pixels, rounded as 32-bit floats as in PyTorch. */
function toCorners([x = 0, y = 0, w = 0, h = 0]: Float32Array, [width, height]: Extent) {
  const toPixel = (center: number, offset: number, side: number): number =>
    Math.trunc(Math.fround(Math.fround(center + Math.fround(offset)) * side))
  return {
    xmin: toPixel(x, -0.5 * w, width),
    ymin: toPixel(y, -0.5 * h, height),
    xmax: toPixel(x, 0.5 * w, width),
    ymax: toPixel(y, 0.5 * h, height),
  }
}

/** Planes of numbers of one image, one after the other. */
export interface Planes {
  data: Float32Array
  size: Extent
}

/** Returns the parts of an image by the class with the highest score at each pixel. */
export function findSegments(planes: Planes, labels: readonly string[], to: Extent): Segment[] {
  const { best, areas } = findBest(splitPlanes(planes), planes.size, to)
  const found = [...areas.keys()].filter((index) => (areas[index] ?? 0) > 0)
  assertMasks(found.length, to)
  return found.map((index) => ({
    label: labels[index] ?? String(index),
    index,
    mask: toMask(best, index, to),
  }))
}

/** Probability from which a pixel belongs to a mask, and the share that others must leave of it. */
const MASK_THRESHOLD = 0.5
const LEAST_SHARE = 0.5

/** Returns the parts of an image by the masks of a model, as the pipeline of transformers does. */
export function findPanoptic(
  { data, classes }: Rows,
  planes: Planes,
  threshold: number,
  labels: readonly string[],
  to: Extent,
): Segment[] {
  const all = splitPlanes(planes)
  const kept = Array.from({ length: data.length / classes }, (_, query) => {
    const row = data.subarray(query * classes, (query + 1) * classes)
    const index = row.reduce((most, one, at) => (one > (row[most] ?? 0) ? at : most), 0)
    return { index, score: row[index] ?? 0, plane: all[query] ?? new Float32Array(0) }
  }).filter(({ index, score }) => index < classes - 1 && score > threshold)
  const masks = kept.map(({ plane }) => plane.map((one) => 1 / (1 + Math.exp(-one))))
  const scores = kept.map(({ score }) => score)
  const { best, areas, wholes } = findBest(masks, planes.size, to, scores)
  const found = [...kept.entries()].filter(
    ([at]) => (areas[at] ?? 0) > LEAST_SHARE * (wholes[at] ?? 0) && (wholes[at] ?? 0) > 0,
  )
  assertMasks(found.length, to)
  return found.map(([at, { index, score }]) => ({
    label: labels[index] ?? String(index),
    index,
    score,
    mask: toMask(best, at, to),
  }))
}

const splitPlanes = ({ data, size: [width, height] }: Planes): Float32Array[] =>
  Array.from({ length: data.length / (width * height) }, (_, at) =>
    data.subarray(at * width * height, (at + 1) * width * height),
  )

/**
 * Returns the plane that is highest at each pixel of the scaled size, the number of pixels where each
 * plane is, and the number of those where it reaches {@link MASK_THRESHOLD}. `factors` are those of the
 * planes. Rows are scaled one by one, since all planes at the size of a photo would not fit into memory.
 */
function findBest(
  planes: readonly Float32Array[],
  from: Extent,
  to: Extent,
  factors: readonly number[] = [],
) {
  const [width, height] = to
  const scaler = new PlaneScaler('bilinear', from, to)
  const best = new Uint16Array(width * height)
  const areas = new Uint32Array(planes.length)
  const wholes = new Uint32Array(planes.length)
  const highest = new Float32Array(width)
  const row = new Float32Array(width)
  for (let y = 0; y < height; y++) {
    const chosen = best.subarray(y * width, (y + 1) * width)
    highest.fill(-Infinity)
    for (const [at, plane] of planes.entries()) {
      scaler.writeRow(plane, y, row)
      const factor = factors[at] ?? 1
      for (let x = 0; x < width; x++) {
        // A product of 32 bits, so that equal ones are equal here, too.
        const value = Math.fround((row[x] ?? 0) * factor)
        if (value >= MASK_THRESHOLD) wholes[at] = (wholes[at] ?? 0) + 1
        if (value <= (highest[x] ?? 0)) continue
        highest[x] = value
        chosen[x] = at
      }
    }
    for (const at of planes.length > 0 ? chosen : []) areas[at] = (areas[at] ?? 0) + 1
  }
  return { best, areas, wholes }
}

/** Largest number of pixels of all masks of an image, at 4 bytes each. */
const MAX_MASK_PIXELS = 2 ** 27

function assertMasks(count: number, [width, height]: Extent): void {
  if (count * width * height <= MAX_MASK_PIXELS) return
  const what = `the image has ${width} x ${height} pixels, and ${count} parts.`
  throwInvalidInput('inputs', `${what} Scale it down to ${MAX_MASK_PIXELS} pixels of all parts.`)
}

const toMask = (best: Uint16Array, index: number, [width, height]: Extent): ImageData =>
  drawGray(width, height, (pixel) => (best[pixel] === index ? 255 : 0))

/** Returns an image of which `read` gives the brightness of each pixel. */
export function drawGray(
  width: number,
  height: number,
  read: (pixel: number) => number,
): ImageData {
  const image = new ImageData(width, height)
  for (let pixel = 0; pixel < width * height; pixel++) {
    image.data.fill(read(pixel), pixel * 4, pixel * 4 + 3)
    image.data[pixel * 4 + 3] = 255
  }
  return image
}

/** Returns planes at another size. */
export function scalePlanes(planes: Planes, by: Interpolation, to: Extent): Float32Array {
  const [width, height] = to
  const scaler = new PlaneScaler(by, planes.size, to)
  const all = splitPlanes(planes)
  const scaled = new Float32Array(all.length * width * height)
  for (const [at, plane] of all.entries())
    for (let y = 0; y < height; y++) {
      const start = (at * height + y) * width
      scaler.writeRow(plane, y, scaled.subarray(start, start + width))
    }
  return scaled
}

/** Returns a picture of numbers, of which the smallest is black and the largest white. */
export function drawDepth({ data, size: [width, height] }: Planes): ImageData {
  let [low, high] = [Infinity, -Infinity]
  for (const value of data) {
    if (value < low) low = value
    if (value > high) high = value
  }
  const range = high - low || 1
  // Python cuts the fraction off, where an image would round it.
  return drawGray(width, height, (pixel) => Math.trunc((((data[pixel] ?? 0) - low) / range) * 255))
}

/** Returns the image with numbers from 0 to 1 as its opacity. */
export function cutOut(
  { data, size: [width, height] }: Planes,
  rgba: Uint8ClampedArray,
): ImageData {
  const image = new ImageData(width, height)
  image.data.set(rgba)
  for (const [pixel, value] of data.entries()) image.data[pixel * 4 + 3] = value * 255
  return image
}
