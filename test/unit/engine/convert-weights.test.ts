/** Weights of 4 or 8 bits in blocks, converted to groups of 8 bits or to floats. */
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { convertWeights, type WeightForm } from '../../../src/engine/onnx/convert-weights.ts'
import { type Constant, readGraphFile } from '../../../src/engine/onnx/graph-file.ts'
import {
  type BlockQuantized,
  groupSizeOf,
  MatrixConverter,
  rotationMatrix,
  rotationSizeOf,
} from '../../../src/engine/onnx/matrices.ts'
import type { GraphFiles } from '../../../src/engine/onnx/model-files.ts'
import { createChance } from '../../support/random.ts'

const NEVER = new AbortController().signal

const read = async (path: string): Promise<Blob> =>
  new Blob([await readFile(new URL(`../../models/layouts/${path}`, import.meta.url))])

const readQ4 = async (): Promise<GraphFiles> => ({
  model: await read('q4/onnx/model_q4.onnx'),
  externalData: [{ path: 'model_q4.onnx_data', data: await read('q4/onnx/model_q4.onnx_data') }],
})

const FORMS = [
  ['int8', 'MatMulIntegerToFloat', 3],
  ['float32', 'MatMul', 1],
] as const satisfies [WeightForm, string, number][]

const countBytes = (constants: readonly [string, Constant][]): number =>
  constants.reduce((sum, [, { data }]) => sum + (data?.size ?? NaN), 0)

describe.each(FORMS)('a graph with 4-bit weights, converted to %s', (form, kind, element) => {
  test('gets a product for each input, in an order that can run', async () => {
    const before = await readGraphFile(await readQ4())
    const after = await readGraphFile(await convertWeights(await readQ4(), form, NEVER))
    const products = before.nodes.filter((node) => node.kind === 'MatMulNBits')
    // Queries, keys and values share an input, and so do both halves of a gate.
    const inputs = new Set(products.map((node) => node.inputs[0]))
    expect(products.length).toBeGreaterThan(inputs.size)
    const weighted = after.nodes.filter(
      (node) => node.kind === kind && node.inputs.some((name) => name.endsWith('/elements')),
    )
    expect(weighted.length).toBe(inputs.size)
    expect(after.nodes.filter((node) => node.kind === 'MatMulNBits')).toEqual([])

    const ready = new Set([...after.constants.keys(), ...after.ports, ''])
    for (const { inputs: needed, outputs } of after.nodes) {
      expect(needed.filter((name) => !ready.has(name))).toEqual([])
      for (const name of outputs) ready.add(name)
    }
    expect(products.flatMap(({ outputs }) => outputs).every((name) => ready.has(name))).toBe(true)
  })

  test('keeps no weights that nothing uses, and those in the other file', async () => {
    const files = await readQ4()
    const converted = await convertWeights(files, form, NEVER)
    const { constants, nodes } = await readGraphFile(converted)
    const used = new Set(nodes.flatMap(({ inputs }) => inputs))
    expect([...constants.keys()].filter((name) => !used.has(name))).toEqual([])
    expect(converted.externalData[0]).toBe(files.externalData[0])
    const elements = [...constants].filter(([name]) => name.endsWith('/elements'))
    expect(new Set(elements.map(([, { type }]) => type))).toEqual(new Set([element]))
    const scales = [...constants].filter(([name]) => /^inorigin\/.*\/scales$/.test(name))
    expect(converted.externalData[1]?.data.size).toBe(countBytes(elements) + countBytes(scales))
  })

  test('stays as it is if the new weights are too large', async () => {
    const files = await readQ4()
    const { constants } = await readGraphFile(await convertWeights(files, form, NEVER))
    const bytes = countBytes([...constants].filter(([name]) => name.endsWith('/elements')))
    expect(await convertWeights(files, form, NEVER, bytes - 1)).toBe(files)
    expect(await convertWeights(files, form, NEVER, bytes)).not.toBe(files)
  })

  test('stays as it is if a file with its weights is missing', async () => {
    const files = { ...(await readQ4()), externalData: [] }
    expect(await convertWeights(files, form, NEVER)).toBe(files)
  })

  test('is not converted further after an abort', async () => {
    const canceled = convertWeights(await readQ4(), form, AbortSignal.abort())
    await expect(canceled).rejects.toMatchObject({ kind: 'aborted' })
  })
})

test.each(['plain/onnx/model.onnx', 'branch/onnx/model.onnx', 'q4f16/onnx/model_q4f16.onnx'])(
  '%s stays as it is',
  async (path) => {
    const files = { model: await read(path), externalData: [] }
    expect(await convertWeights(files, 'int8', NEVER)).toBe(files)
  },
)

test('a file that is no model stays as it is', async () => {
  const files = { model: new Blob(['not a model at all']), externalData: [] }
  expect(await convertWeights(files, 'int8', NEVER)).toBe(files)
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

async function load(matrices: readonly BlockQuantized[]): Promise<MatrixConverter> {
  const converter = await MatrixConverter.open()
  converter.load(matrices)
  return converter
}

/** Returns a matrix in rows, as floats. */
async function rowsOf(matrix: BlockQuantized): Promise<number[][]> {
  const converter = await load([matrix])
  return toRows([...converter.toFloatRows(0, matrix.rows)], matrix.columns)
}

const toRows = (values: readonly number[], columns: number): number[][] =>
  Array.from({ length: values.length / columns }, (_, row) =>
    values.slice(row * columns, (row + 1) * columns),
  )

describe('floats made of blocks', () => {
  test('have the numbers of blocks of 4 bits without zero points', async () => {
    // Two columns of two blocks; 8 means 0.
    const matrix = matrixOf({
      values: pack([8, 15, 1, 8, 9, 7, 8, 8]),
      scales: Float32Array.of(127 / 7, 1, 1, 5),
    })
    expect(await rowsOf(matrix)).toEqual([
      [0, 1],
      [127, -1],
      [-7, 0],
      [0, 0],
    ])
  })

  test('respect the zero point of each block, where a column has an odd number of them', async () => {
    const matrix = matrixOf({
      rows: 6,
      values: pack([0, 15, 3, 5, 7, 7, 1, 2, 4, 14, 9, 0]),
      // Three blocks a column, so the second column begins with the third byte.
      zeroPoints: Uint8Array.of(2 + 16 * 5, 7, 1 + 16 * 4, 9),
    })
    expect(await rowsOf(matrix)).toEqual([
      [-2, 0],
      [13, 1],
      [-2, 0],
      [0, 10],
      [0, 0],
      [0, -9],
    ])
  })

  test('have the numbers of blocks of 8 bits, with zero points or without', async () => {
    const values = Uint8Array.of(255, 1, 100, 110)
    const matrix = matrixOf({ rows: 2, bits: 8, values, scales: Float32Array.of(1, 0.5) })
    expect(await rowsOf(matrix)).toEqual([
      [127, -14],
      [-127, -9],
    ])
    expect(await rowsOf({ ...matrix, zeroPoints: Uint8Array.of(128, 100) })).toEqual([
      [127, 0],
      [-127, 5],
    ])
  })

  test('ignore the padding of the last block', async () => {
    const values = pack([9, 9, 9, 0, 8, 8, 8, 15])
    const matrix = matrixOf({ rows: 3, values, scales: Float32Array.of(1, 1, 3, 3) })
    expect(await rowsOf(matrix)).toEqual([
      [1, 0],
      [1, 0],
      [1, 0],
    ])
  })
})

test.each([
  [576, 96],
  [1536, 128],
  [896, 64],
  [640, 64],
  [2048, 128],
  [32, 32],
  [70, 70],
])('rows of %i values have groups of %i', (rows, size) => {
  expect(groupSizeOf(rows)).toBe(size)
})

test.each([1, 2, 16, 32])('a rotation of %i values is its own inverse', (size) => {
  const matrix = toRows([...rotationMatrix(size)], size)
  for (const [row, left] of matrix.entries())
    for (const [column] of matrix.entries()) {
      const product = left.reduce(
        (sum, value, at) => sum + value * (matrix[at]?.[column] ?? NaN),
        0,
      )
      expect(product).toBeCloseTo(row === column ? 1 : 0, 6)
    }
})

describe('8-bit groups made of blocks', () => {
  /** A matrix whose blocks have scales and zero points of their own. */
  function randomMatrix(rows: number, columns: number): BlockQuantized {
    const { below: random } = createChance(7)
    const blocks = rows / 32
    const draw = (length: number, limit: number) => Array.from({ length }, () => random(limit))
    return matrixOf({
      rows,
      columns,
      blockSize: 32,
      values: pack(draw(rows * columns, 16)),
      scales: Float32Array.from(draw(blocks * columns, 99), (value) => value - 40),
      zeroPoints: pack(draw(2 * Math.ceil(blocks / 2) * columns, 16)),
    })
  }

  /** Returns rows of the matrices side by side, with the rotation undone. */
  async function restore(
    matrices: readonly BlockQuantized[],
    partRows: number,
  ): Promise<number[][]> {
    const converter = await load(matrices)
    const rows = matrices[0]?.rows ?? 0
    const size = groupSizeOf(rows)
    const rotation = toRows([...rotationMatrix(rotationSizeOf(size))], rotationSizeOf(size))
    const columns = matrices.reduce((sum, matrix) => sum + matrix.columns, 0)
    const rotated: number[][] = []
    for (let from = 0; from < rows; from += partRows) {
      const { integers, scales } = converter.toInt8Groups(from, Math.min(from + partRows, rows))
      for (const [row, values] of toRows([...integers], columns).entries()) {
        const first = Math.floor(row / size) * columns
        rotated.push(values.map((value, column) => value * (scales[first + column] ?? NaN)))
      }
    }
    return rotated.map((_, row) => {
      const weights = rotation[row % rotation.length] ?? []
      const block = row - (row % rotation.length)
      return Array.from({ length: columns }, (__, column) =>
        weights.reduce(
          (sum, weight, at) => sum + weight * (rotated[block + at]?.[column] ?? NaN),
          0,
        ),
      )
    })
  }

  test.each([288, 160, 32])('are close to random weights of %i rows', async (rows) => {
    const matrices = [randomMatrix(rows, 130), randomMatrix(rows, 3)]
    const wanted = await Promise.all(matrices.map((matrix) => rowsOf(matrix)))
    const restored = await restore(matrices, rows)
    // A part of one group gives the same as all at once.
    expect(await restore(matrices, groupSizeOf(rows))).toEqual(restored)
    let [error, energy] = [0, 0]
    for (const [row, values] of restored.entries()) {
      const original = wanted.flatMap((matrix) => matrix[row] ?? [])
      expect(values.length).toBe(original.length)
      for (const [column, value] of values.entries()) {
        error += (value - (original[column] ?? NaN)) ** 2
        energy += value ** 2
      }
    }
    expect(Math.sqrt(error / energy)).toBeLessThan(0.02)
    expect(Math.sqrt(error / energy)).toBeGreaterThan(0.002)
  })

  test('of zeros have the scale 0', async () => {
    const values = new Uint8Array(32).fill(0x88)
    const matrix = matrixOf({ rows: 32, blockSize: 32, values, scales: Float32Array.of(1, 1) })
    const { integers, scales } = (await load([matrix])).toInt8Groups(0, 32)
    expect([...scales]).toEqual([0, 0])
    expect(integers.every((value) => value === 0)).toBe(true)
  })
})
