import { describe, expect, test } from 'vitest'
import { fromHalf } from '../../../src/values/elements.ts'
import {
  BLOCK,
  BNB_BLOCK,
  toInt8,
  toNf4,
  toNibbles,
  toQ4,
  toQ8,
  toUint8,
} from '../../bench/models/quantize.ts'
import { drawWeights } from '../../bench/models/weights.ts'

const values = drawWeights('test', 'normal', 64, 64)
const largest = Math.max(...values.map(Math.abs))

/** Largest difference between the values and what they became. */
const error = (restored: (index: number) => number): number =>
  Math.max(...values.map((value, index) => Math.abs(value - restored(index))))

const low = (byte = 0): number => byte & 15
const high = (byte = 0): number => byte >> 4

describe('quantized weights differ by at most half a step', () => {
  test('int8, for the whole matrix', () => {
    const { data, scale } = toInt8(values)
    expect(error((index) => (data[index] ?? NaN) * scale)).toBeLessThanOrEqual(largest / 127 / 1.99)
  })

  test('uint8, whose zero point is exactly 0', () => {
    const { data, scale, zeroPoint } = toUint8(values)
    const step = (2 * largest) / 255
    expect(error((index) => ((data[index] ?? NaN) - zeroPoint) * scale)).toBeLessThanOrEqual(step)
    expect(toUint8(Float32Array.of(-1, 0, 3)).data[1]).toBe(
      toUint8(Float32Array.of(-1, 0, 3)).zeroPoint,
    )
  })

  test('4 bits of MatMulNBits, where neighbors share a byte', () => {
    const { data, scales } = toNibbles(values)
    const restored = (index: number): number => {
      const byte = data[Math.floor(index / 2)]
      return (
        ((index % 2 === 0 ? low(byte) : high(byte)) - 8) *
        (scales[Math.floor(index / BLOCK)] ?? NaN)
      )
    }
    expect(error(restored)).toBeLessThanOrEqual(largest / 8)
  })

  test('Q4_0, where the halves of a block share bytes', () => {
    const bytes = toQ4(values)
    const restored = (index: number): number => {
      const [start, at] = [Math.floor(index / BLOCK) * 18, index % BLOCK]
      const scale = fromHalf((bytes[start] ?? 0) | ((bytes[start + 1] ?? 0) << 8))
      const byte = bytes[start + 2 + (at % 16)]
      return ((at < 16 ? low(byte) : high(byte)) - 8) * scale
    }
    expect(error(restored)).toBeLessThanOrEqual(largest / 7.9)
  })

  test('Q8_0', () => {
    const bytes = toQ8(values)
    const restored = (index: number): number => {
      const start = Math.floor(index / BLOCK) * 34
      const scale = fromHalf((bytes[start] ?? 0) | ((bytes[start + 1] ?? 0) << 8))
      return (((bytes[start + 2 + (index % BLOCK)] ?? NaN) << 24) >> 24) * scale
    }
    expect(error(restored)).toBeLessThanOrEqual(largest / 127)
  })

  test('NF4, whose 7 stands for 0', () => {
    const { scales } = toNf4(values)
    expect(scales).toHaveLength(values.length / BNB_BLOCK)
    const ends = new Float32Array(BNB_BLOCK)
    ends.set([-2, 2, 0])
    expect([...toNf4(ends).data.subarray(0, 2)]).toEqual([0x0f, 0x77])
    expect([...toNf4(new Float32Array(BNB_BLOCK)).data.subarray(0, 1)]).toEqual([0x77])
  })
})
