/**
 * Decodes quantized tensors. Each type packs its numbers in another way, but all of them mean the
 * same: a value is an integer times the scale of its block, plus the offset of its block if the type
 * has one. The order of the roundings to 32 bits is that of the format's reference.
 */
import { halfToFloat32 } from '../../values/elements.ts'
import { TENSOR_TYPES, type TensorType } from './types.ts'

/** Values of quantized blocks: `(integer - zero) * scale + offset`. */
export interface Blocks {
  /**
   * Integers as `MatMulNBits` stores them: bytes, or two in a byte, the first one in its low half.
   */
  integers: Uint8Array<ArrayBuffer>
  /** Scale of each block. */
  scales: Float32Array<ArrayBuffer>
  /** Offset of each block; empty for types without offsets. */
  offsets: Float32Array<ArrayBuffer>
}

/** Layout of a type that stores integers with scales. */
interface BlockLayout {
  /** Number of values with a common scale. */
  blockSize: 16 | 32
  /** Number of bits of an integer after decoding. */
  bits: 4 | 8
  /** Integer that means 0. */
  zero: number
  hasOffsets: boolean
  /** Decodes `count` stored blocks, which may contain several blocks with a scale each. */
  decode: (bytes: Uint8Array, count: number, into: Blocks) => void
}

/** Name of a type that stores integers with scales. */
export type BlockType = Exclude<TensorType, 'F32' | 'F16' | 'BF16'>

/** Layouts of the types that store integers with scales. */
export const BLOCK_LAYOUTS: Readonly<Record<BlockType, BlockLayout>> = {
  Q8_0: { blockSize: 32, bits: 8, zero: 128, hasOffsets: false, decode: decodeQ8 },
  Q4_0: { blockSize: 32, bits: 4, zero: 8, hasOffsets: false, decode: decodeQ4 },
  Q4_1: { blockSize: 32, bits: 4, zero: 0, hasOffsets: true, decode: decodeQ4WithOffset },
  Q5_0: { blockSize: 32, bits: 8, zero: 128, hasOffsets: false, decode: decodeQ5 },
  Q5_1: { blockSize: 32, bits: 8, zero: 112, hasOffsets: true, decode: decodeQ5WithOffset },
  Q2_K: { blockSize: 16, bits: 4, zero: 6, hasOffsets: true, decode: decodeQ2K },
  Q3_K: { blockSize: 16, bits: 4, zero: 8, hasOffsets: false, decode: decodeQ3K },
  Q4_K: { blockSize: 32, bits: 4, zero: 0, hasOffsets: true, decode: decodeQ4K },
  Q5_K: { blockSize: 32, bits: 8, zero: 112, hasOffsets: true, decode: decodeQ5K },
  Q6_K: { blockSize: 16, bits: 8, zero: 128, hasOffsets: false, decode: decodeQ6K },
  IQ4_NL: { blockSize: 32, bits: 8, zero: 128, hasOffsets: false, decode: decodeIq4 },
  IQ4_XS: { blockSize: 32, bits: 8, zero: 128, hasOffsets: false, decode: decodeIq4Xs },
  MXFP4: { blockSize: 32, bits: 8, zero: 128, hasOffsets: false, decode: decodeMxfp4 },
}

/** Returns `true` for a type that stores integers with scales. */
export const isBlockType = (type: TensorType): type is BlockType =>
  Object.hasOwn(BLOCK_LAYOUTS, type)

/** Decodes blocks. `values` is the number of their values. */
export function decodeBlocks(type: BlockType, bytes: Uint8Array, values: number): Blocks {
  const { blockSize, bits, hasOffsets, decode } = BLOCK_LAYOUTS[type]
  const blocks = values / blockSize
  const into = {
    integers: new Uint8Array((values * bits) / 8),
    scales: new Float32Array(blocks),
    offsets: new Float32Array(hasOffsets ? blocks : 0),
  }
  decode(bytes, values / TENSOR_TYPES[type].values, into)
  return into
}

/** Decodes values of any type to 32-bit floats. `values` is their number, a multiple of a block. */
export function dequantize(
  type: TensorType,
  bytes: Uint8Array,
  values: number,
): Float32Array<ArrayBuffer> {
  if (!isBlockType(type)) return toFloats(type, bytes, values)
  const { blockSize, bits, zero, hasOffsets } = BLOCK_LAYOUTS[type]
  const { integers, scales, offsets } = decodeBlocks(type, bytes, values)
  const floats = new Float32Array(values)
  for (let block = 0, at = 0; at < values; block += 1) {
    const scale = scales[block] as number
    const end = at + blockSize
    if (bits === 8) {
      for (; at < end; at += 1) floats[at] = ((integers[at] as number) - zero) * scale
    } else {
      for (; at < end; at += 2) {
        const pair = integers[at >> 1] as number
        floats[at] = ((pair & 15) - zero) * scale
        floats[at + 1] = ((pair >> 4) - zero) * scale
      }
    }
    if (!hasOffsets) continue
    // The product has been rounded to 32 bits before the sum is.
    const offset = offsets[block] as number
    for (let index = end - blockSize; index < end; index += 1)
      floats[index] = (floats[index] as number) + offset
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
 * Writes 32 integers of 4 bits, which 16 bytes have: the low halves first, then the high ones. The
 * result has neighbors in the same byte.
 */
function readHalfBytes(bytes: Uint8Array, from: number, integers: Uint8Array, at: number): void {
  for (let index = 0; index < 8; index += 1) {
    const first = bytes[from + index * 2] as number
    const second = bytes[from + index * 2 + 1] as number
    integers[at + index] = (first & 15) | ((second & 15) << 4)
    integers[at + index + 8] = (first >> 4) | (second & 0xf0)
  }
}

function decodeQ8(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 34
    const at = block * 32
    scales[block] = halfAt(table, bytes, from)
    // A signed integer plus 128 differs in its highest bit.
    for (let index = 0; index < 32; index += 1)
      integers[at + index] = (bytes[from + 2 + index] as number) ^ 128
  }
}

function decodeQ4(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 18
    scales[block] = halfAt(table, bytes, from)
    readHalfBytes(bytes, from + 2, integers, block * 16)
  }
}

function decodeQ4WithOffset(bytes: Uint8Array, count: number, into: Blocks): void {
  const table = getHalves()
  const { integers, scales, offsets } = into
  for (let block = 0; block < count; block += 1) {
    const from = block * 20
    scales[block] = halfAt(table, bytes, from)
    offsets[block] = halfAt(table, bytes, from + 2)
    readHalfBytes(bytes, from + 4, integers, block * 16)
  }
}

function decodeQ5(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 22
    scales[block] = halfAt(table, bytes, from)
    readFiveBits(bytes, from + 2, integers, block * 32)
  }
}

function decodeQ5WithOffset(bytes: Uint8Array, count: number, into: Blocks): void {
  const table = getHalves()
  const { integers, scales, offsets } = into
  for (let block = 0; block < count; block += 1) {
    const from = block * 24
    scales[block] = halfAt(table, bytes, from)
    offsets[block] = halfAt(table, bytes, from + 2)
    readFiveBits(bytes, from + 4, integers, block * 32)
  }
}

/** Offset from integers of 5 bits to those of 8 bits, by which their middle becomes 128. */
const FIVE_BITS_START = 128 - 16

/** Writes 32 integers of 5 bits: the fifth bits are in 4 bytes, before 16 bytes with the others. */
function readFiveBits(bytes: Uint8Array, from: number, integers: Uint8Array, at: number): void {
  const low = (bytes[from] as number) | ((bytes[from + 1] as number) << 8)
  const high = (bytes[from + 2] as number) | ((bytes[from + 3] as number) << 8)
  for (let index = 0; index < 16; index += 1) {
    const pair = bytes[from + 4 + index] as number
    integers[at + index] = FIVE_BITS_START + ((pair & 15) | (((low >> index) & 1) << 4))
    integers[at + index + 16] = FIVE_BITS_START + ((pair >> 4) | (((high >> index) & 1) << 4))
  }
}

function decodeQ2K(bytes: Uint8Array, count: number, { integers, scales, offsets }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 84
    const scale = halfAt(table, bytes, from + 80)
    const step = halfAt(table, bytes, from + 82)
    for (let part = 0; part < 16; part += 1) {
      const both = bytes[from + part] as number
      scales[block * 16 + part] = scale * (both & 15)
      offsets[block * 16 + part] = -step * (both >> 4)
      // Each half of the integers has 32 bytes: the lowest bits of all come first, then the next ones.
      const start = from + 16 + (part >> 3) * 32 + (part & 1) * 16
      const shift = part & 6
      const at = block * 128 + part * 8
      for (let index = 0; index < 8; index += 1) {
        const first = ((bytes[start + index * 2] as number) >> shift) & 3
        const second = ((bytes[start + index * 2 + 1] as number) >> shift) & 3
        integers[at + index] = (first + 6) | ((second + 6) << 4)
      }
    }
  }
}

function decodeQ3K(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 110
    const scale = halfAt(table, bytes, from + 108)
    for (let part = 0; part < 16; part += 1) {
      const low = (bytes[from + 96 + (part & 7)] as number) >> ((part >> 3) * 4)
      const high = (bytes[from + 104 + (part & 3)] as number) >> ((part >> 2) * 2)
      scales[block * 16 + part] = scale * (((low & 15) | ((high & 3) << 4)) - 32)
      const start = from + 32 + (part >> 3) * 32 + (part & 1) * 16
      // The third bit of an integer is stored apart. It counts 4 more, from -4 on.
      const third = from + (part & 1) * 16
      const shift = part & 6
      const at = block * 128 + part * 8
      for (let index = 0; index < 8; index += 1) {
        const place = index * 2
        const first = ((bytes[start + place] as number) >> shift) & 3
        const second = ((bytes[start + place + 1] as number) >> shift) & 3
        const firstBit = ((bytes[third + place] as number) >> (part >> 1)) & 1
        const secondBit = ((bytes[third + place + 1] as number) >> (part >> 1)) & 1
        integers[at + index] = (first + firstBit * 4 + 4) | ((second + secondBit * 4 + 4) << 4)
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

function decodeQ4K(bytes: Uint8Array, count: number, into: Blocks): void {
  const { integers } = into
  for (let block = 0; block < count; block += 1) {
    const from = block * 144
    readSixBits(bytes, from, block, into)
    // The low halves of 32 bytes come before their high halves.
    for (let pair = 0; pair < 4; pair += 1) {
      const start = from + 16 + pair * 32
      const at = block * 128 + pair * 32
      for (let index = 0; index < 16; index += 1) {
        const first = bytes[start + index * 2] as number
        const second = bytes[start + index * 2 + 1] as number
        integers[at + index] = (first & 15) | ((second & 15) << 4)
        integers[at + index + 16] = (first >> 4) | (second & 0xf0)
      }
    }
  }
}

function decodeQ5K(bytes: Uint8Array, count: number, into: Blocks): void {
  const { integers } = into
  for (let block = 0; block < count; block += 1) {
    const from = block * 176
    readSixBits(bytes, from, block, into)
    for (let pair = 0; pair < 4; pair += 1) {
      const at = block * 256 + pair * 64
      for (let index = 0; index < 32; index += 1) {
        const both = bytes[from + 48 + pair * 32 + index] as number
        const bits = (bytes[from + 16 + index] as number) >> (pair * 2)
        integers[at + index] = FIVE_BITS_START + ((both & 15) | ((bits & 1) << 4))
        integers[at + index + 32] = FIVE_BITS_START + ((both >> 4) | ((bits & 2) << 3))
      }
    }
  }
}

function decodeQ6K(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  // The middle of the integers, 32, becomes 128.
  const start = 128 - 32
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
        integers[at + index] = start + ((first & 15) | ((bits & 3) << 4))
        integers[at + index + 32] = start + ((second & 15) | ((bits & 12) << 2))
        integers[at + index + 64] = start + ((first >> 4) | (bits & 48))
        integers[at + index + 96] = start + ((second >> 4) | ((bits & 192) >> 2))
      }
    }
  }
}

/** Integers that 4 bits choose in `IQ4_NL` and `IQ4_XS`, plus 128. */
const IQ4_INTEGERS = Uint8Array.from(
  [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
  (value) => value + 128,
)

/** Integers that 4 bits choose in `MXFP4`, plus 128: twice the value of a float with 4 bits. */
const MXFP4_INTEGERS = Uint8Array.from(
  [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12],
  (value) => value + 128,
)

/** Writes the integers that 16 bytes choose: those of the low halves, then those of the high ones. */
function readChosen(
  table: Uint8Array,
  bytes: Uint8Array,
  from: number,
  integers: Uint8Array,
  at: number,
): void {
  for (let index = 0; index < 16; index += 1) {
    const pair = bytes[from + index] as number
    integers[at + index] = table[pair & 15] as number
    integers[at + index + 16] = table[pair >> 4] as number
  }
}

function decodeIq4(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 18
    scales[block] = halfAt(table, bytes, from)
    readChosen(IQ4_INTEGERS, bytes, from + 2, integers, block * 32)
  }
}

function decodeIq4Xs(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  for (let block = 0; block < count; block += 1) {
    const from = block * 136
    const scale = halfAt(table, bytes, from)
    const high = (bytes[from + 2] as number) | ((bytes[from + 3] as number) << 8)
    for (let part = 0; part < 8; part += 1) {
      const low = (bytes[from + 4 + (part >> 1)] as number) >> ((part & 1) * 4)
      scales[block * 8 + part] = scale * (((low & 15) | (((high >> (part * 2)) & 3) << 4)) - 32)
      readChosen(IQ4_INTEGERS, bytes, from + 8 + part * 16, integers, block * 256 + part * 32)
    }
  }
}

function decodeMxfp4(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  for (let block = 0; block < count; block += 1) {
    const from = block * 17
    // The byte is an exponent. The integers are twice the values, so the scale is half.
    scales[block] = 2 ** ((bytes[from] as number) - 128)
    readChosen(MXFP4_INTEGERS, bytes, from + 1, integers, block * 32)
  }
}
