/**
 * Decodes quantized tensors. Each type packs its numbers in another way, but all of them mean the
 * same: a value is an integer times the scale of its block, plus the offset of its block if the type
 * has one. The order of the roundings to 32 bits is that of the format's reference.
 */
import { halfToFloat32 } from '../../values/elements.ts'
import { TENSOR_TYPES, type TensorType } from './types.ts'

/** Values of quantized blocks: `codes[i] * scales[b] + offsets[b]`, where `b` is the block of `i`. */
export interface Blocks {
  /** Integer of each value. */
  codes: Int8Array
  /** Scale of each block. */
  scales: Float32Array
  /** Offset of each block; unused by types without offsets. */
  offsets: Float32Array
}

/** Layout of a type that stores integers with scales. */
interface BlockLayout {
  /** Number of values with a common scale. */
  blockSize: 16 | 32
  /** Least number of bits for the integers that `MatMulNBits` can use. */
  bits: 4 | 8
  /** Middle of the integers of a type with offsets, which are not negative; `null` without offsets. */
  middle: number | null
  /** Decodes `count` stored blocks, which may contain several blocks with a scale each. */
  decode: (bytes: Uint8Array, count: number, into: Blocks) => void
}

/** Name of a type that stores integers with scales. */
export type BlockType = Exclude<TensorType, 'F32' | 'F16' | 'BF16'>

/** Layouts of the types that store integers with scales. */
export const BLOCK_LAYOUTS: Readonly<Record<BlockType, BlockLayout>> = {
  Q8_0: { blockSize: 32, bits: 8, middle: null, decode: decodeQ8 },
  Q4_0: { blockSize: 32, bits: 4, middle: null, decode: decodeQ4 },
  Q4_1: { blockSize: 32, bits: 4, middle: 8, decode: decodeQ4WithOffset },
  Q5_0: { blockSize: 32, bits: 8, middle: null, decode: decodeQ5 },
  Q5_1: { blockSize: 32, bits: 8, middle: 16, decode: decodeQ5WithOffset },
  Q2_K: { blockSize: 16, bits: 4, middle: 2, decode: decodeQ2K },
  Q3_K: { blockSize: 16, bits: 4, middle: null, decode: decodeQ3K },
  Q4_K: { blockSize: 32, bits: 4, middle: 8, decode: decodeQ4K },
  Q5_K: { blockSize: 32, bits: 8, middle: 16, decode: decodeQ5K },
  Q6_K: { blockSize: 16, bits: 8, middle: null, decode: decodeQ6K },
  IQ4_NL: { blockSize: 32, bits: 8, middle: null, decode: decodeIq4 },
  IQ4_XS: { blockSize: 32, bits: 8, middle: null, decode: decodeIq4Xs },
  MXFP4: { blockSize: 32, bits: 8, middle: null, decode: decodeMxfp4 },
}

/** Returns `true` for a type that stores integers with scales. */
export const isBlockType = (type: TensorType): type is BlockType =>
  Object.hasOwn(BLOCK_LAYOUTS, type)

/** Creates room for so many values of a type. */
export function createBlocks(type: BlockType, values: number): Blocks {
  const blocks = values / BLOCK_LAYOUTS[type].blockSize
  return {
    codes: new Int8Array(values),
    scales: new Float32Array(blocks),
    offsets: new Float32Array(BLOCK_LAYOUTS[type].middle === null ? 0 : blocks),
  }
}

/** Decodes values of any type to 32-bit floats. `values` is their number, a multiple of a block. */
export function dequantize(
  type: TensorType,
  bytes: Uint8Array,
  values: number,
): Float32Array<ArrayBuffer> {
  if (!isBlockType(type)) return toFloats(type, bytes, values)
  const { blockSize, decode, middle } = BLOCK_LAYOUTS[type]
  const into = createBlocks(type, values)
  decode(bytes, values / TENSOR_TYPES[type].values, into)
  const { codes, scales, offsets } = into
  const floats = new Float32Array(values)
  for (let block = 0, at = 0; at < values; block += 1) {
    const scale = scales[block] as number
    const end = at + blockSize
    if (middle === null) {
      for (; at < end; at += 1) floats[at] = (codes[at] as number) * scale
    } else {
      const offset = offsets[block] as number
      for (; at < end; at += 1) floats[at] = Math.fround((codes[at] as number) * scale) + offset
    }
  }
  return floats
}

function toFloats(
  type: Exclude<TensorType, BlockType>,
  bytes: Uint8Array,
  values: number,
): Float32Array<ArrayBuffer> {
  const size = values * TENSOR_TYPES[type].bytes
  const copy = bytes.slice(0, size).buffer
  if (type === 'F32') return new Float32Array(copy)
  const stored = new Uint16Array(copy)
  const floats = new Float32Array(values)
  if (type === 'BF16') {
    // A bfloat16 is the upper half of a 32-bit float.
    const bits = new Uint32Array(floats.buffer)
    for (let at = 0; at < values; at += 1) bits[at] = (stored[at] as number) << 16
    return floats
  }
  const table = getHalves()
  for (let at = 0; at < values; at += 1) floats[at] = table[stored[at] as number] as number
  return floats
}

let halves: Float32Array | undefined

/** Returns the values of all 16-bit floats by their bits. */
function getHalves(): Float32Array {
  halves ??= halfToFloat32(Uint16Array.from({ length: 2 ** 16 }, (_, bits) => bits))
  return halves
}

/** Returns the 16-bit float at an offset. */
const halfAt = (table: Float32Array, bytes: Uint8Array, at: number): number =>
  table[(bytes[at] as number) | ((bytes[at + 1] as number) << 8)] as number

/**
 * Writes the integers of 16 bytes: those of the low halves, then those of the high halves, less
 * `zero`.
 */
function readHalfBytes(
  bytes: Uint8Array,
  from: number,
  codes: Int8Array,
  at: number,
  zero: number,
): void {
  for (let index = 0; index < 16; index += 1) {
    const pair = bytes[from + index] as number
    codes[at + index] = (pair & 15) - zero
    codes[at + index + 16] = (pair >> 4) - zero
  }
}

function decodeQ8(bytes: Uint8Array, count: number, { codes, scales }: Blocks): void {
  const table = getHalves()
  const signed = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length)
  for (let block = 0; block < count; block += 1) {
    const from = block * 34
    scales[block] = halfAt(table, bytes, from)
    codes.set(signed.subarray(from + 2, from + 34), block * 32)
  }
}

function decodeQ4(bytes: Uint8Array, count: number, { codes, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 18
    scales[block] = halfAt(table, bytes, from)
    readHalfBytes(bytes, from + 2, codes, block * 32, 8)
  }
}

function decodeQ4WithOffset(bytes: Uint8Array, count: number, into: Blocks): void {
  const table = getHalves()
  const { codes, scales, offsets } = into
  for (let block = 0; block < count; block += 1) {
    const from = block * 20
    scales[block] = halfAt(table, bytes, from)
    offsets[block] = halfAt(table, bytes, from + 2)
    readHalfBytes(bytes, from + 4, codes, block * 32, 0)
  }
}

function decodeQ5(bytes: Uint8Array, count: number, { codes, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 22
    scales[block] = halfAt(table, bytes, from)
    readFiveBits(bytes, from + 2, codes, block * 32, 16)
  }
}

function decodeQ5WithOffset(bytes: Uint8Array, count: number, into: Blocks): void {
  const table = getHalves()
  const { codes, scales, offsets } = into
  for (let block = 0; block < count; block += 1) {
    const from = block * 24
    scales[block] = halfAt(table, bytes, from)
    offsets[block] = halfAt(table, bytes, from + 2)
    readFiveBits(bytes, from + 4, codes, block * 32, 0)
  }
}

/** Writes 32 integers of 5 bits: the fifth bits are in 4 bytes, before 16 bytes with the others. */
function readFiveBits(
  bytes: Uint8Array,
  from: number,
  codes: Int8Array,
  at: number,
  zero: number,
): void {
  readHalfBytes(bytes, from + 4, codes, at, zero)
  for (let index = 0; index < 32; index += 1) {
    const bit = ((bytes[from + (index >> 3)] as number) >> (index & 7)) & 1
    codes[at + index] = (codes[at + index] as number) + bit * 16
  }
}

function decodeQ2K(bytes: Uint8Array, count: number, { codes, scales, offsets }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 84
    const scale = halfAt(table, bytes, from + 80)
    const step = halfAt(table, bytes, from + 82)
    for (let part = 0; part < 16; part += 1) {
      const both = bytes[from + part] as number
      scales[block * 16 + part] = scale * (both & 15)
      offsets[block * 16 + part] = -step * (both >> 4)
      readTwoBits(bytes, from + 16, part, codes, block * 256)
    }
  }
}

/**
 * Writes 16 integers of 2 bits. Each of two halves of the integers has 32 bytes: the lowest bits of
 * all bytes come first, then the next ones.
 */
function readTwoBits(
  bytes: Uint8Array,
  from: number,
  part: number,
  codes: Int8Array,
  block: number,
): void {
  const start = from + (part >> 3) * 32 + (part & 1) * 16
  const shift = (part & 6) as 0 | 2 | 4 | 6
  const at = block + part * 16
  for (let index = 0; index < 16; index += 1)
    codes[at + index] = ((bytes[start + index] as number) >> shift) & 3
}

function decodeQ3K(bytes: Uint8Array, count: number, { codes, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 110
    const scale = halfAt(table, bytes, from + 108)
    for (let part = 0; part < 16; part += 1) {
      const low = (bytes[from + 96 + (part & 7)] as number) >> ((part >> 3) * 4)
      const high = (bytes[from + 104 + (part & 3)] as number) >> ((part >> 2) * 2)
      scales[block * 16 + part] = scale * (((low & 15) | ((high & 3) << 4)) - 32)
      readTwoBits(bytes, from + 32, part, codes, block * 256)
      // The third bit is stored apart. Where it is 0, the integer is 4 less.
      const start = from + (part & 1) * 16
      const at = block * 256 + part * 16
      for (let index = 0; index < 16; index += 1) {
        const bit = ((bytes[start + index] as number) >> (part >> 1)) & 1
        codes[at + index] = (codes[at + index] as number) - (1 - bit) * 4
      }
    }
  }
}

/** Writes the scales and offsets of 8 parts, which are 6 bits each. */
function readSixBits(bytes: Uint8Array, from: number, block: number, into: Blocks): void {
  const table = getHalves()
  const scale = halfAt(table, bytes, from)
  const step = halfAt(table, bytes, from + 2)
  for (let part = 0; part < 4; part += 1) {
    const first = bytes[from + 4 + part] as number
    const second = bytes[from + 8 + part] as number
    const third = bytes[from + 12 + part] as number
    const at = block * 8 + part
    into.scales[at] = scale * (first & 63)
    into.offsets[at] = -step * (second & 63)
    into.scales[at + 4] = scale * ((third & 15) | ((first >> 6) << 4))
    into.offsets[at + 4] = -step * ((third >> 4) | ((second >> 6) << 4))
  }
}

/** Writes 64 integers: the low halves of 32 bytes, then the high halves. */
function readWideHalfBytes(bytes: Uint8Array, from: number, codes: Int8Array, at: number): void {
  for (let index = 0; index < 32; index += 1) {
    const pair = bytes[from + index] as number
    codes[at + index] = pair & 15
    codes[at + index + 32] = pair >> 4
  }
}

function decodeQ4K(bytes: Uint8Array, count: number, into: Blocks): void {
  for (let block = 0; block < count; block += 1) {
    const from = block * 144
    readSixBits(bytes, from, block, into)
    for (let pair = 0; pair < 4; pair += 1)
      readWideHalfBytes(bytes, from + 16 + pair * 32, into.codes, block * 256 + pair * 64)
  }
}

function decodeQ5K(bytes: Uint8Array, count: number, into: Blocks): void {
  const { codes } = into
  for (let block = 0; block < count; block += 1) {
    const from = block * 176
    readSixBits(bytes, from, block, into)
    for (let pair = 0; pair < 4; pair += 1)
      readWideHalfBytes(bytes, from + 48 + pair * 32, codes, block * 256 + pair * 64)
    for (let part = 0; part < 8; part += 1) {
      const at = block * 256 + part * 32
      for (let index = 0; index < 32; index += 1) {
        const bit = ((bytes[from + 16 + index] as number) >> part) & 1
        codes[at + index] = (codes[at + index] as number) + bit * 16
      }
    }
  }
}

function decodeQ6K(bytes: Uint8Array, count: number, { codes, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 210
    const scale = halfAt(table, bytes, from + 208)
    for (let part = 0; part < 16; part += 1)
      scales[block * 16 + part] = scale * (((bytes[from + 192 + part] as number) << 24) >> 24)
    for (let half = 0; half < 2; half += 1) {
      const low = from + half * 64
      const high = from + 128 + half * 32
      const at = block * 256 + half * 128
      for (let index = 0; index < 32; index += 1) {
        const first = bytes[low + index] as number
        const second = bytes[low + index + 32] as number
        const bits = bytes[high + index] as number
        codes[at + index] = ((first & 15) | ((bits & 3) << 4)) - 32
        codes[at + index + 32] = ((second & 15) | (((bits >> 2) & 3) << 4)) - 32
        codes[at + index + 64] = ((first >> 4) | (((bits >> 4) & 3) << 4)) - 32
        codes[at + index + 96] = ((second >> 4) | ((bits >> 6) << 4)) - 32
      }
    }
  }
}

/** Integers that 4 bits choose in `IQ4_NL` and `IQ4_XS`. */
const IQ4_CODES = Int8Array.from([
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
])

/** Integers that 4 bits choose in `MXFP4`: twice the value of a float with 4 bits. */
const MXFP4_CODES = Int8Array.of(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

/** Writes the integers that 16 bytes choose: those of the low halves, then those of the high ones. */
function readChosen(
  table: Int8Array,
  bytes: Uint8Array,
  from: number,
  codes: Int8Array,
  at: number,
): void {
  for (let index = 0; index < 16; index += 1) {
    const pair = bytes[from + index] as number
    codes[at + index] = table[pair & 15] as number
    codes[at + index + 16] = table[pair >> 4] as number
  }
}

function decodeIq4(bytes: Uint8Array, count: number, { codes, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 18
    scales[block] = halfAt(table, bytes, from)
    readChosen(IQ4_CODES, bytes, from + 2, codes, block * 32)
  }
}

function decodeIq4Xs(bytes: Uint8Array, count: number, { codes, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 136
    const scale = halfAt(table, bytes, from)
    const high = (bytes[from + 2] as number) | ((bytes[from + 3] as number) << 8)
    for (let part = 0; part < 8; part += 1) {
      const low = (bytes[from + 4 + (part >> 1)] as number) >> ((part & 1) * 4)
      scales[block * 8 + part] = scale * (((low & 15) | (((high >> (part * 2)) & 3) << 4)) - 32)
      readChosen(IQ4_CODES, bytes, from + 8 + part * 16, codes, block * 256 + part * 32)
    }
  }
}

function decodeMxfp4(bytes: Uint8Array, count: number, { codes, scales }: Blocks): void {
  for (let block = 0; block < count; block += 1) {
    const from = block * 17
    // The byte is an exponent. The integers are twice the values, so the scale is half.
    scales[block] = 2 ** ((bytes[from] as number) - 128)
    readChosen(MXFP4_CODES, bytes, from + 1, codes, block * 32)
  }
}
