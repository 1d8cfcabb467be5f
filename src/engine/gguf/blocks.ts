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

let halfTable: Float32Array | undefined

/** Returns the values of all 16-bit floats by their bits. */
function getHalves(): Float32Array {
  halfTable ??= halfToFloat32(Uint16Array.from({ length: 2 ** 16 }, (_, bits) => bits))
  return halfTable
}

/** Returns the 16-bit float at an offset. */
const halfAt = (table: Float32Array, bytes: Uint8Array, at: number): number =>
  table[(bytes[at] as number) | ((bytes[at + 1] as number) << 8)] as number

/** Returns the bytes as integers of 16 bits, in which every block begins. */
const toHalfWords = ({ buffer, byteOffset, length }: Uint8Array): Uint16Array =>
  byteOffset % 2 === 0
    ? new Uint16Array(buffer, byteOffset, length >> 1)
    : new Uint16Array(buffer.slice(byteOffset, byteOffset + length - (length % 2)))

const toWords = ({ buffer }: Uint8Array): Int32Array => new Int32Array(buffer)

// Four bytes at once are one integer of 32 bits. No sum of bytes exceeds 255.

/** Returns the 4 bytes at a place, which is counted in integers of 16 bits. */
const wordAt = (halves: Uint16Array, at: number): number =>
  (halves[at] as number) | ((halves[at + 1] as number) << 16)

/** The lowest 4 bits of each byte. */
const LOW = 0x0f0f0f0f

/** Returns the integers of 4 bits in each byte of two words as the bytes of one. */
function packPairs(one: number, other: number): number {
  const first = (one | (one >>> 4)) & 0x00ff00ff
  const second = (other | (other >>> 4)) & 0x00ff00ff
  return (
    (first & 0xff) |
    ((first >>> 8) & 0xff00) |
    ((second & 0xff) << 16) |
    ((second & 0x00ff0000) << 8)
  )
}

/**
 * Writes integers of 4 bits, which `count` pairs of words have: the low halves of all bytes first, then
 * the high ones. The result has neighbors in the same byte.
 */
function readHalfBytes(
  halves: Uint16Array,
  from: number,
  count: number,
  words: Int32Array,
  at: number,
): void {
  for (let index = 0; index < count; index += 1) {
    const first = wordAt(halves, from + index * 4)
    const second = wordAt(halves, from + index * 4 + 2)
    words[at + index] = packPairs(first & LOW, second & LOW)
    words[at + index + count] = packPairs((first >>> 4) & LOW, (second >>> 4) & LOW)
  }
}

function decodeQ8(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  const halves = toHalfWords(bytes)
  const words = toWords(integers)
  for (let block = 0; block < count; block += 1) {
    const from = block * 17
    const at = block * 8
    scales[block] = table[halves[from] as number] as number
    // A signed integer plus 128 differs in its highest bit.
    for (let index = 0; index < 8; index += 1)
      words[at + index] = wordAt(halves, from + 1 + index * 2) ^ 0x80808080
  }
}

function decodeQ4(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  const halves = toHalfWords(bytes)
  const words = toWords(integers)
  for (let block = 0; block < count; block += 1) {
    const from = block * 9
    scales[block] = table[halves[from] as number] as number
    readHalfBytes(halves, from + 1, 2, words, block * 4)
  }
}

function decodeQ4WithOffset(bytes: Uint8Array, count: number, into: Blocks): void {
  const table = getHalves()
  const { integers, scales, offsets } = into
  const halves = toHalfWords(bytes)
  const words = toWords(integers)
  for (let block = 0; block < count; block += 1) {
    const from = block * 10
    scales[block] = table[halves[from] as number] as number
    offsets[block] = table[halves[from + 1] as number] as number
    readHalfBytes(halves, from + 2, 2, words, block * 4)
  }
}

function decodeQ5(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  const halves = toHalfWords(bytes)
  const words = toWords(integers)
  for (let block = 0; block < count; block += 1) {
    const from = block * 11
    scales[block] = table[halves[from] as number] as number
    readFiveBits(halves, from + 1, words, block * 8)
  }
}

function decodeQ5WithOffset(bytes: Uint8Array, count: number, into: Blocks): void {
  const table = getHalves()
  const { integers, scales, offsets } = into
  const halves = toHalfWords(bytes)
  const words = toWords(integers)
  for (let block = 0; block < count; block += 1) {
    const from = block * 12
    scales[block] = table[halves[from] as number] as number
    offsets[block] = table[halves[from + 1] as number] as number
    readFiveBits(halves, from + 2, words, block * 8)
  }
}

/** Offset from integers of 5 bits to those of 8 bits, by which their middle becomes 128. */
const FIVE_BITS_START = 0x70707070

/** The fifth bits of four bytes, by 4 bits that follow each other. */
const FIFTH_BITS = Int32Array.from(
  { length: 16 },
  (_, bits) => ((bits & 1) | ((bits & 2) << 7) | ((bits & 4) << 14) | ((bits & 8) << 21)) << 4,
)

/** Writes 32 integers of 5 bits: the fifth bits are in 4 bytes, before 16 bytes with the others. */
function readFiveBits(halves: Uint16Array, from: number, words: Int32Array, at: number): void {
  const low = halves[from] as number
  const high = halves[from + 1] as number
  for (let index = 0; index < 4; index += 1) {
    const pairs = wordAt(halves, from + 2 + index * 2)
    const [first, second] = [(low >> (index * 4)) & 15, (high >> (index * 4)) & 15]
    words[at + index] = FIVE_BITS_START + ((pairs & LOW) | (FIFTH_BITS[first] as number))
    words[at + index + 4] =
      FIVE_BITS_START + (((pairs >>> 4) & LOW) | (FIFTH_BITS[second] as number))
  }
}

function decodeQ2K(bytes: Uint8Array, count: number, { integers, scales, offsets }: Blocks): void {
  const table = getHalves()
  const halves = toHalfWords(bytes)
  const words = toWords(integers)
  for (let block = 0; block < count; block += 1) {
    const from = block * 42
    const scale = table[halves[from + 40] as number] as number
    const step = table[halves[from + 41] as number] as number
    for (let part = 0; part < 16; part += 1) {
      const both = bytes[block * 84 + part] as number
      scales[block * 16 + part] = scale * (both & 15)
      offsets[block * 16 + part] = -step * (both >> 4)
      // Each half of the integers has 32 bytes: the lowest bits of all come first, then the next ones.
      const start = from + 8 + (part >> 3) * 16 + (part & 1) * 8
      const shift = part & 6
      const at = block * 32 + part * 2
      for (let index = 0; index < 2; index += 1) {
        const first = (wordAt(halves, start + index * 4) >>> shift) & 0x03030303
        const second = (wordAt(halves, start + index * 4 + 2) >>> shift) & 0x03030303
        words[at + index] = packPairs(first + 0x06060606, second + 0x06060606)
      }
    }
  }
}

function decodeQ3K(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  const halves = toHalfWords(bytes)
  const words = toWords(integers)
  for (let block = 0; block < count; block += 1) {
    const start = block * 110
    const from = block * 55
    const scale = table[halves[from + 54] as number] as number
    for (let part = 0; part < 16; part += 1) {
      const low = (bytes[start + 96 + (part & 7)] as number) >> ((part >> 3) * 4)
      const high = (bytes[start + 104 + (part & 3)] as number) >> ((part >> 2) * 2)
      scales[block * 16 + part] = scale * (((low & 15) | ((high & 3) << 4)) - 32)
      // The third bit of an integer is stored apart. It counts 4 more, from -4 on.
      const third = from + (part & 1) * 8
      const other = from + 16 + (part >> 3) * 16 + (part & 1) * 8
      const at = block * 32 + part * 2
      for (let index = 0; index < 4; index += 2) {
        const place = index * 2
        const first = readThreeBits(halves, other + place, third + place, part)
        const second = readThreeBits(halves, other + place + 2, third + place + 2, part)
        words[at + (index >> 1)] = packPairs(first, second)
      }
    }
  }
}

/** Returns four integers of 3 bits, and 4 more each. */
function readThreeBits(halves: Uint16Array, from: number, third: number, part: number): number {
  const bits = (wordAt(halves, from) >>> (part & 6)) & 0x03030303
  return (bits | (((wordAt(halves, third) >>> (part >> 1)) & 0x01010101) << 2)) + 0x04040404
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
  const halves = toHalfWords(bytes)
  const words = toWords(into.integers)
  for (let block = 0; block < count; block += 1) {
    readSixBits(bytes, block * 144, block, into)
    // The low halves of 32 bytes come before their high halves.
    for (let pair = 0; pair < 4; pair += 1)
      readHalfBytes(halves, block * 72 + 8 + pair * 16, 4, words, block * 32 + pair * 8)
  }
}

function decodeQ5K(bytes: Uint8Array, count: number, into: Blocks): void {
  const halves = toHalfWords(bytes)
  const words = toWords(into.integers)
  for (let block = 0; block < count; block += 1) {
    const from = block * 88
    readSixBits(bytes, block * 176, block, into)
    for (let pair = 0; pair < 4; pair += 1) {
      const at = block * 64 + pair * 16
      for (let index = 0; index < 8; index += 1) {
        const both = wordAt(halves, from + 24 + pair * 16 + index * 2)
        const bits = wordAt(halves, from + 8 + index * 2) >>> (pair * 2)
        const first = (both & LOW) | ((bits & 0x01010101) << 4)
        const second = ((both >>> 4) & LOW) | ((bits & 0x02020202) << 3)
        words[at + index] = FIVE_BITS_START + first
        words[at + index + 8] = FIVE_BITS_START + second
      }
    }
  }
}

/** Offset from integers of 6 bits to those of 8 bits, by which their middle becomes 128. */
const SIX_BITS_START = 0x60606060

function decodeQ6K(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  const halves = toHalfWords(bytes)
  const words = toWords(integers)
  for (let block = 0; block < count; block += 1) {
    const from = block * 105
    const scale = table[halves[from + 104] as number] as number
    for (let part = 0; part < 16; part += 1)
      scales[block * 16 + part] =
        scale * (((bytes[block * 210 + 192 + part] as number) << 24) >> 24)
    for (let half = 0; half < 2; half += 1) {
      const low = from + half * 32
      const high = from + 64 + half * 16
      const at = block * 64 + half * 32
      for (let index = 0; index < 8; index += 1) {
        const first = wordAt(halves, low + index * 2)
        const second = wordAt(halves, low + 16 + index * 2)
        const bits = wordAt(halves, high + index * 2)
        const place = at + index
        words[place] = SIX_BITS_START + ((first & LOW) | ((bits & 0x03030303) << 4))
        words[place + 8] = SIX_BITS_START + ((second & LOW) | ((bits & 0x0c0c0c0c) << 2))
        words[place + 16] = SIX_BITS_START + (((first >>> 4) & LOW) | (bits & 0x30303030))
        words[place + 24] = SIX_BITS_START + (((second >>> 4) & LOW) | ((bits >>> 2) & 0x30303030))
      }
    }
  }
}

/** Returns the integers, plus 128, that two halves of a byte choose, by the byte. */
function createPairTable(integers: readonly number[]): Uint16Array {
  const chosen = integers.map((value) => value + 128)
  return Uint16Array.from(
    { length: 256 },
    (_, pair) => (chosen[pair & 15] as number) | ((chosen[pair >> 4] as number) << 8),
  )
}

/** Integers that 4 bits choose in `IQ4_NL` and `IQ4_XS`. */
const IQ4_PAIRS = createPairTable([
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
])

/** Integers that 4 bits choose in `MXFP4`: twice the value of a float with 4 bits. */
const MXFP4_PAIRS = createPairTable([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])

/** Writes the integers that 16 bytes choose: those of the low halves, then those of the high ones. */
function readChosen(
  pairs: Uint16Array,
  bytes: Uint8Array,
  from: number,
  integers: Uint16Array,
  at: number,
): void {
  for (let index = 0; index < 8; index += 1) {
    const first = bytes[from + index * 2] as number
    const second = bytes[from + index * 2 + 1] as number
    integers[at + index] = pairs[(first & 15) | ((second & 15) << 4)] as number
    integers[at + index + 8] = pairs[(first >> 4) | (second & 0xf0)] as number
  }
}

function decodeIq4(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  const chosen = new Uint16Array(integers.buffer)
  for (let block = 0; block < count; block += 1) {
    const from = block * 18
    scales[block] = halfAt(table, bytes, from)
    readChosen(IQ4_PAIRS, bytes, from + 2, chosen, block * 16)
  }
}

function decodeIq4Xs(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const table = getHalves()
  const chosen = new Uint16Array(integers.buffer)
  for (let block = 0; block < count; block += 1) {
    const from = block * 136
    const scale = halfAt(table, bytes, from)
    const high = (bytes[from + 2] as number) | ((bytes[from + 3] as number) << 8)
    for (let part = 0; part < 8; part += 1) {
      const low = (bytes[from + 4 + (part >> 1)] as number) >> ((part & 1) * 4)
      scales[block * 8 + part] = scale * (((low & 15) | (((high >> (part * 2)) & 3) << 4)) - 32)
      readChosen(IQ4_PAIRS, bytes, from + 8 + part * 16, chosen, block * 128 + part * 16)
    }
  }
}

/** Scales by their bytes, which are exponents. The integers are twice the values, so a scale is half. */
const MXFP4_SCALES = Float32Array.from({ length: 256 }, (_, exponent) => 2 ** (exponent - 128))

function decodeMxfp4(bytes: Uint8Array, count: number, { integers, scales }: Blocks): void {
  const chosen = new Uint16Array(integers.buffer)
  for (let block = 0; block < count; block += 1) {
    const from = block * 17
    scales[block] = MXFP4_SCALES[bytes[from] as number] as number
    readChosen(MXFP4_PAIRS, bytes, from + 1, chosen, block * 16)
  }
}
