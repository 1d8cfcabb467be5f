/** Weights of 4 or 8 bits in blocks, converted to 8 bits in columns. */
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import {
  type BlockQuantized,
  columnScales,
  convertToInt8,
  toInt8Rows,
} from '../../../src/engine/onnx/int8.ts'
import { readGraphFile } from '../../../src/engine/onnx/graph-file.ts'
import type { GraphFiles } from '../../../src/engine/onnx/model-files.ts'
import { createChance } from '../../support/random.ts'

const NEVER = new AbortController().signal

const read = async (path: string): Promise<Blob> =>
  new Blob([await readFile(new URL(`../../models/layouts/${path}`, import.meta.url))])

const readQ4 = async (): Promise<GraphFiles> => ({
  model: await read('q4/onnx/model_q4.onnx'),
  externalData: [{ path: 'model_q4.onnx_data', data: await read('q4/onnx/model_q4.onnx_data') }],
})

describe('a graph with 4-bit weights', () => {
  test('gets 8-bit products, in an order that can run', async () => {
    const before = await readGraphFile(await readQ4())
    const after = await readGraphFile(await convertToInt8(await readQ4(), NEVER))
    const count = (graph: typeof after, kind: string): number =>
      graph.nodes.filter((node) => node.kind === kind).length
    const products = count(before, 'MatMulNBits')
    expect(products).toBeGreaterThan(10)
    expect(count(after, 'MatMulNBits')).toBe(0)
    expect(count(after, 'MatMulIntegerToFloat')).toBe(products)
    // Queries, keys and values share an input, and so do both halves of a gate.
    const inputs = before.nodes.filter(({ kind }) => kind === 'MatMulNBits')
    expect(count(after, 'QuantizeLinear')).toBe(new Set(inputs.map((node) => node.inputs[0])).size)

    const ready = new Set([...after.constants.keys(), ...after.ports, ''])
    for (const { inputs: needed, outputs } of after.nodes) {
      expect(needed.filter((name) => !ready.has(name))).toEqual([])
      for (const name of outputs) ready.add(name)
    }
  })

  test('keeps no weights that nothing uses, and those in the other file', async () => {
    const files = await readQ4()
    const converted = await convertToInt8(files, NEVER)
    const { constants, nodes } = await readGraphFile(converted)
    const used = new Set(nodes.flatMap(({ inputs }) => inputs))
    expect([...constants.keys()].filter((name) => !used.has(name))).toEqual([])
    expect(converted.externalData[0]).toBe(files.externalData[0])
    const sizes = [...constants.values()]
      .filter(({ type }) => type === 3)
      .map(({ data }) => data?.size)
    const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? NaN), 0)
    expect(converted.externalData[1]?.data.size).toBe(bytes)
  })

  test('stays as it is if the new weights are too large', async () => {
    const files = await readQ4()
    const bytes = (await convertToInt8(files, NEVER)).externalData[1]?.data.size ?? 0
    expect(await convertToInt8(files, NEVER, bytes - 1)).toBe(files)
    expect(await convertToInt8(files, NEVER, bytes)).not.toBe(files)
  })

  test('stays as it is if a file with its weights is missing', async () => {
    const files = { ...(await readQ4()), externalData: [] }
    expect(await convertToInt8(files, NEVER)).toBe(files)
  })

  test('is not converted further after an abort', async () => {
    const canceled = convertToInt8(await readQ4(), AbortSignal.abort())
    await expect(canceled).rejects.toMatchObject({ kind: 'aborted' })
  })
})

test.each(['plain/onnx/model.onnx', 'branch/onnx/model.onnx', 'q4f16/onnx/model_q4f16.onnx'])(
  '%s stays as it is',
  async (path) => {
    const files = { model: await read(path), externalData: [] }
    expect(await convertToInt8(files, NEVER)).toBe(files)
  },
)

test('a file that is no model stays as it is', async () => {
  const files = { model: new Blob(['not a model at all']), externalData: [] }
  expect(await convertToInt8(files, NEVER)).toBe(files)
})

/** Packs whole numbers of 4 bits, two in a byte. */
const pack = (numbers: readonly number[]): Uint8Array =>
  Uint8Array.from({ length: Math.ceil(numbers.length / 2) }, (_, at) => {
    return (numbers[2 * at] ?? 0) + 16 * (numbers[2 * at + 1] ?? 0)
  })

/** Returns a matrix of 2 columns in blocks of two numbers of 4 bits, without zero points. */
const matrixOf = (parts: Partial<BlockQuantized>): BlockQuantized => ({
  rows: 4,
  columns: 2,
  bits: 4,
  blockSize: 2,
  values: new Uint8Array(),
  scales: Float32Array.of(1, 1, 1, 1, 1, 1),
  zeroPoints: null,
  ...parts,
})

function restore(matrix: BlockQuantized, wholeRows = matrix.rows): number[][] {
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
    const matrix = matrixOf({
      values: pack([8, 15, 1, 8, 9, 7, 8, 8]),
      scales: Float32Array.of(127 / 7, 1, 1, 5),
    })
    expect([...columnScales(matrix)]).toEqual([expect.closeTo(1, 6), expect.closeTo(1 / 127, 6)])
    expect([...toInt8Rows(matrix, columnScales(matrix), 0, 4)]).toEqual([
      0, 127, 127, -127, -7, 0, 0, 0,
    ])
  })

  test('respect the zero point of each block, where a column has an odd number of them', () => {
    const matrix = matrixOf({
      rows: 6,
      values: pack([0, 15, 3, 5, 7, 7, 1, 2, 4, 14, 9, 0]),
      // Three blocks a column, so the second column begins with the third byte.
      zeroPoints: Uint8Array.of(2 + 16 * 5, 7, 1 + 16 * 4, 9),
    })
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
    const values = Uint8Array.of(255, 1, 100, 110)
    const matrix = matrixOf({ rows: 2, bits: 8, values, scales: Float32Array.of(1, 0.5) })
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
    const values = pack([9, 9, 9, 0, 8, 8, 8, 15])
    const matrix = matrixOf({ rows: 3, values, scales: Float32Array.of(1, 1, 3, 3) })
    expect(columnScales(matrix)[1]).toBe(0)
    expect([...toInt8Rows(matrix, columnScales(matrix), 0, 3)]).toEqual([127, 0, 127, 0, 127, 0])
  })

  test('are within half a step of random weights, in one piece or in several', () => {
    const [rows, columns, blockSize] = [160, 130, 32]
    const { below: random } = createChance(7)
    const numbers = Array.from({ length: rows * columns }, () => random(16))
    const scales = Float32Array.from(
      { length: (rows / blockSize) * columns },
      () => random(99) - 40,
    )
    const zeros = Array.from({ length: 6 * columns }, () => random(16))
    const [values, zeroPoints] = [pack(numbers), pack(zeros)]
    const matrix = matrixOf({ rows, columns, blockSize, values, scales, zeroPoints })
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
