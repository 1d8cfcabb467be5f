import { describe, expect, test } from 'vitest'
import {
  type BlockQuantized,
  columnScales,
  toInt8Rows,
} from '../../../src/engine/onnx/int8/requantize.ts'

/** Numbers that a matrix stands for, row by row. */
type Restored = number[][]

/** Packs whole numbers of 4 bits, two in a byte. */
const pack = (numbers: readonly number[]): Uint8Array =>
  Uint8Array.from({ length: Math.ceil(numbers.length / 2) }, (_, at) => {
    return (numbers[2 * at] ?? 0) + 16 * (numbers[2 * at + 1] ?? 0)
  })

function restore(matrix: BlockQuantized, wholeRows = matrix.rows): Restored {
  const scales = columnScales(matrix)
  const parts: number[] = []
  for (let from = 0; from < matrix.rows; from += wholeRows) {
    const to = Math.min(from + wholeRows, matrix.rows)
    parts.push(...toInt8Rows(matrix, scales, from, to))
  }
  return Array.from({ length: matrix.rows }, (_, row) =>
    Array.from({ length: matrix.columns }, (__, column) => {
      return (parts[row * matrix.columns + column] ?? NaN) * (scales[column] ?? NaN)
    }),
  )
}

describe('8-bit columns made of blocks', () => {
  test('have the numbers of blocks of 4 bits without zero points', () => {
    // Two columns of two blocks; 8 means 0, and the scales are such that nothing is rounded.
    const matrix: BlockQuantized = {
      rows: 4,
      columns: 2,
      bits: 4,
      blockSize: 2,
      values: pack([8, 15, 1, 8, 9, 7, 8, 8]),
      scales: Float32Array.of(127 / 7, 1, 1, 5),
      zeroPoints: null,
    }
    expect([...columnScales(matrix)]).toEqual([expect.closeTo(1, 6), expect.closeTo(1 / 127, 6)])
    expect([...toInt8Rows(matrix, columnScales(matrix), 0, 4)]).toEqual([
      0, 127, 127, -127, -7, 0, 0, 0,
    ])
  })

  test('respect the zero point of each block, where a column has an odd number of them', () => {
    const matrix: BlockQuantized = {
      rows: 6,
      columns: 2,
      bits: 4,
      blockSize: 2,
      values: pack([0, 15, 3, 5, 7, 7, 1, 2, 4, 14, 9, 0]),
      scales: Float32Array.of(1, 1, 1, 1, 1, 1),
      // Three blocks a column, so the second column begins with the third byte.
      zeroPoints: Uint8Array.of(2 + 16 * 5, 7, 1 + 16 * 4, 9),
    }
    const columns = [
      [-2, 13, -2, 0, 0, 0],
      [0, 1, 0, 10, 0, -9],
    ]
    const restored = restore(matrix)
    for (const [column, numbers] of columns.entries()) {
      for (const [row, number] of numbers.entries()) {
        expect(Math.abs((restored[row]?.[column] ?? NaN) - number)).toBeLessThan(13 / 127 / 1.9)
      }
    }
  })

  test('have the numbers of blocks of 8 bits, with zero points or without', () => {
    const matrix: BlockQuantized = {
      rows: 2,
      columns: 2,
      bits: 8,
      blockSize: 2,
      values: Uint8Array.of(255, 1, 100, 110),
      scales: Float32Array.of(1, 0.5),
      zeroPoints: null,
    }
    expect(restore(matrix)).toEqual([
      [127, expect.closeTo(-14, 4)],
      [-127, expect.closeTo(-9, 1)],
    ])
    expect(restore({ ...matrix, zeroPoints: Uint8Array.of(128, 100) })).toEqual([
      [127, 0],
      [-127, expect.closeTo(5, 4)],
    ])
  })

  test('ignore the padding of the last block, and columns of zeros', () => {
    const matrix: BlockQuantized = {
      rows: 3,
      columns: 2,
      bits: 4,
      blockSize: 2,
      values: pack([9, 9, 9, 0, 8, 8, 8, 15]),
      scales: Float32Array.of(1, 1, 3, 3),
      zeroPoints: null,
    }
    expect(columnScales(matrix)[1]).toBe(0)
    expect([...toInt8Rows(matrix, columnScales(matrix), 0, 3)]).toEqual([127, 0, 127, 0, 127, 0])
  })

  test('are within half a step of random weights, in one piece or in several', () => {
    const [rows, columns, blockSize] = [160, 130, 32]
    let seed = 7
    const random = (below: number): number => {
      seed = (seed * 16_807) % 2_147_483_647
      return seed % below
    }
    const numbers = Array.from({ length: rows * columns }, () => random(16))
    const scales = Float32Array.from(
      { length: (rows / blockSize) * columns },
      () => random(99) - 40,
    )
    const zeros = Array.from({ length: 6 * columns }, () => random(16))
    const matrix: BlockQuantized = {
      rows,
      columns,
      bits: 4,
      blockSize,
      values: pack(numbers),
      scales,
      zeroPoints: pack(zeros),
    }
    const steps = columnScales(matrix)
    const restored = restore(matrix)
    expect(restore(matrix, 64)).toEqual(restored)
    let furthest = 0
    for (let column = 0; column < columns; column += 1) {
      for (let row = 0; row < rows; row += 1) {
        const block = Math.floor(row / blockSize)
        const number = (numbers[column * rows + row] ?? NaN) - (zeros[column * 6 + block] ?? NaN)
        const wanted = number * (scales[column * 5 + block] ?? NaN)
        const off = Math.abs((restored[row]?.[column] ?? NaN) - wanted) / (steps[column] ?? NaN)
        furthest = Math.max(furthest, off)
      }
    }
    expect(furthest).toBeLessThan(0.501)
    expect(furthest).toBeGreaterThan(0.4)
  })
})
