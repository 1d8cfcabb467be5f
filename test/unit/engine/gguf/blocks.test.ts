/** Values of tensor types. The checksums are those of the format's reference, the package `gguf`. */
import { expect, test } from 'vitest'
import { dequantize } from '../../../../src/engine/gguf/blocks.ts'
import { TENSOR_TYPES, type TensorType } from '../../../../src/engine/gguf/types.ts'
import { crc32 } from '../../../../src/values/bytes.ts'
import { createChance } from '../../../support/random.ts'

/** Offsets of 16-bit floats in a block, and the checksum of the values of random blocks. */
const CASES: Readonly<Record<TensorType, { halves: readonly number[]; checksum: number }>> = {
  F32: { halves: [2], checksum: 0xa8e5d527 },
  F16: { halves: [0], checksum: 0x38aff0d3 },
  BF16: { halves: [0], checksum: 0xf3b061ee },
  Q8_0: { halves: [0], checksum: 0xe67c16a6 },
  Q4_0: { halves: [0], checksum: 0xad7676c9 },
  Q4_1: { halves: [0, 2], checksum: 0xd7667660 },
  Q5_0: { halves: [0], checksum: 0xe05d17e2 },
  Q5_1: { halves: [0, 2], checksum: 0x5c6fc668 },
  Q2_K: { halves: [80, 82], checksum: 0xacdb9519 },
  Q3_K: { halves: [108], checksum: 0xb960409d },
  Q4_K: { halves: [0, 2], checksum: 0x44dc0da8 },
  Q5_K: { halves: [0, 2], checksum: 0xaa4ec394 },
  Q6_K: { halves: [208], checksum: 0x7b121c33 },
  IQ4_NL: { halves: [0], checksum: 0x7e9b4cb6 },
  IQ4_XS: { halves: [0], checksum: 0x53cbf2c2 },
  MXFP4: { halves: [], checksum: 0x9938f038 },
}

const BLOCKS = 64

/** Returns random blocks. Their 16-bit floats are below 2, and their exponents of a byte small. */
function createBytes(type: TensorType): Uint8Array {
  const { below } = createChance(7)
  const { bytes } = TENSOR_TYPES[type]
  const data = Uint8Array.from({ length: BLOCKS * bytes }, () => below(256))
  for (let block = 0; block < BLOCKS; block += 1) {
    for (const at of CASES[type].halves) {
      const high = block * bytes + at + 1
      data[high] = (data[high] ?? 0) & 0xbf
    }
    if (type === 'MXFP4') data[block * bytes] = 100 + below(50)
  }
  return data
}

test.each(Object.keys(CASES) as TensorType[])('decodes %s as the reference does', (type) => {
  const values = dequantize(type, createBytes(type), BLOCKS * TENSOR_TYPES[type].values)
  // The sign of a zero means nothing.
  const positive = values.map((value) => value + 0)
  expect(crc32(new Uint8Array(positive.buffer))).toBe(CASES[type].checksum)
})

test('decodes the smallest exponents of MXFP4', () => {
  const bytes = new Uint8Array(34).fill(0x21)
  bytes[0] = 0
  bytes[17] = 1
  const values = dequantize('MXFP4', bytes, 64)
  expect(values[0]).toBe(2 ** -128)
  expect(values[16]).toBe(2 ** -127)
  expect(values[32]).toBe(2 ** -127)
})
