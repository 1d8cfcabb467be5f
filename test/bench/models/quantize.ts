/** Quantizes weights as exports for hubs and llama.cpp do. */
import { toHalf } from '../../../src/values/elements.ts'

/** 8-bit numbers with one scale for all. */
interface Scaled<T> {
  data: T
  scale: number
  /** Number that stands for 0. */
  zeroPoint: number
}

/** Numbers with a scale for each block. */
interface Blocks {
  data: Uint8Array
  scales: Float32Array
}

export const toHalves = (values: Float32Array): Uint16Array =>
  fill(new Uint16Array(values.length), (index) => toHalf(values[index] as number))

/** Quantizes symmetrically, as onnxruntime does for int8. */
export function toInt8(values: Float32Array): Scaled<Int8Array> {
  const scale = Math.abs(extreme(values, 0, values.length)) / 127
  const quantize = (index: number): number => Math.round((values[index] as number) / scale)
  return { data: fill(new Int8Array(values.length), quantize), scale, zeroPoint: 0 }
}

/** Quantizes between the least and the greatest value, as onnxruntime does for uint8. */
export function toUint8(values: Float32Array): Scaled<Uint8Array> {
  let [least, greatest] = [0, 0]
  for (const value of values) {
    if (value < least) least = value
    else if (value > greatest) greatest = value
  }
  const scale = (greatest - least) / 255
  const zeroPoint = Math.round(-least / scale)
  const quantize = (index: number): number =>
    Math.min(255, Math.round((values[index] as number) / scale) + zeroPoint)
  return { data: fill(new Uint8Array(values.length), quantize), scale, zeroPoint }
}

/** Fills in place: `from` would make a list of its hundred million arguments first. */
function fill<T extends Int8Array | Uint8Array | Uint16Array>(
  target: T,
  quantize: (index: number) => number,
): T {
  for (let index = 0; index < target.length; index += 1) target[index] = quantize(index)
  return target
}

/** Numbers in a block of `MatMulNBits`, Q4_0 and Q8_0. */
export const BLOCK = 32

/** Quantizes rows to 4 bits for `MatMulNBits`: neighbors share a byte. */
export function toNibbles(values: Float32Array): Blocks {
  const data = new Uint8Array(values.length / 2)
  const scales = new Float32Array(values.length / BLOCK)
  for (let block = 0; block < scales.length; block += 1) {
    const start = block * BLOCK
    const scale = extreme(values, start, start + BLOCK) / -8
    scales[block] = scale
    for (let index = start; index < start + BLOCK; index += 2) {
      const pair = [values[index], values[index + 1]] as [number, number]
      data[index / 2] = nibble(pair[0], scale) | (nibble(pair[1], scale) << 4)
    }
  }
  return { data, scales }
}

/** Quantizes rows to Q4_0: a block's scale precedes it, and its halves share bytes. */
export function toQ4(values: Float32Array): Uint8Array {
  const BYTES = 2 + BLOCK / 2
  const view = new DataView(new ArrayBuffer((values.length / BLOCK) * BYTES))
  for (let at = 0, start = 0; start < values.length; at += BYTES, start += BLOCK) {
    const scale = extreme(values, start, start + BLOCK) / -8
    view.setUint16(at, toHalf(scale), true)
    for (let index = 0; index < BLOCK / 2; index += 1) {
      const low = nibble(values[start + index] as number, scale)
      const high = nibble(values[start + index + BLOCK / 2] as number, scale)
      view.setUint8(at + 2 + index, low | (high << 4))
    }
  }
  return new Uint8Array(view.buffer)
}

/** Quantizes rows to Q8_0: a block's scale precedes it. */
export function toQ8(values: Float32Array): Uint8Array {
  const BYTES = 2 + BLOCK
  const view = new DataView(new ArrayBuffer((values.length / BLOCK) * BYTES))
  for (let at = 0, start = 0; start < values.length; at += BYTES, start += BLOCK) {
    const scale = Math.abs(extreme(values, start, start + BLOCK)) / 127
    view.setUint16(at, toHalf(scale), true)
    for (let index = 0; index < BLOCK; index += 1) {
      const value = values[start + index] as number
      view.setInt8(at + 2 + index, scale === 0 ? 0 : Math.round(value / scale))
    }
  }
  return new Uint8Array(view.buffer)
}

/** Numbers in a block of `MatMulBnb4`. */
export const BNB_BLOCK = 64

/** The sixteen numbers of NF4: quantiles of a normal distribution. */
const NF4 = [
  -1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0, 0.0795803,
  0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1,
]
/** Borders between them. */
const NF4_BORDERS = NF4.slice(1).map((value, index) => (value + (NF4[index] as number)) / 2)

/** Quantizes rows to NF4 for `MatMulBnb4`. */
export function toNf4(values: Float32Array): Blocks {
  const data = new Uint8Array(values.length / 2)
  const scales = new Float32Array(values.length / BNB_BLOCK)
  for (let block = 0; block < scales.length; block += 1) {
    const start = block * BNB_BLOCK
    const scale = Math.abs(extreme(values, start, start + BNB_BLOCK))
    scales[block] = scale
    for (let index = start; index < start + BNB_BLOCK; index += 2) {
      const pair = [values[index], values[index + 1]] as [number, number]
      data[index / 2] = (nearest(pair[0] / scale) << 4) | nearest(pair[1] / scale)
    }
  }
  return { data, scales }
}

/** Index of the nearest number of NF4; that of 0 for a block of zeros. */
function nearest(value: number): number {
  if (Number.isNaN(value)) return 7
  let index = 0
  while (index < NF4_BORDERS.length && value > (NF4_BORDERS[index] as number)) index += 1
  return index
}

/** 4 bits, of which 8 stands for 0. */
const nibble = (value: number, scale: number): number =>
  scale === 0 ? 8 : Math.min(15, Math.round(value / scale) + 8)

/** The value of the greatest magnitude, with its sign. */
function extreme(values: Float32Array, start: number, end: number): number {
  let found = 0
  for (let index = start; index < end; index += 1) {
    const value = values[index] as number
    if (Math.abs(value) > Math.abs(found)) found = value
  }
  return found
}
