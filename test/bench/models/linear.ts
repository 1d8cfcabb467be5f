/** How a graph stores and multiplies a matrix in each format. */
import type { Operator, Weight } from '../../support/onnx.ts'
import { BLOCK, BNB_BLOCK, toHalves, toInt8, toNf4, toNibbles, toUint8 } from './quantize.ts'
import type { OnnxFormat } from './shapes.ts'
import { transpose } from './weights.ts'

/** Weights and operators of one step. */
export interface Part {
  weights: (Omit<Weight, 'data'> & { data: ArrayBufferView })[]
  nodes: Operator[]
}

/** A matrix of `rows` inputs and `columns` outputs. */
export interface Matrix {
  name: string
  values: Float32Array
  rows: number
  columns: number
}

/** Multiplies `input` with the matrix into `output`. */
export function multiply(format: OnnxFormat, matrix: Matrix, input: string, output: string): Part {
  switch (format) {
    case 'fp32':
      return {
        weights: [float32(matrix.name, matrix.values, [matrix.rows, matrix.columns])],
        nodes: [{ type: 'MatMul', inputs: [input, matrix.name], outputs: [output] }],
      }
    case 'q8':
    case 'uint8':
      return multiplyIntegers(format, matrix, input, output)
    case 'bnb4':
      return multiplyBnb4(matrix, input, output)
    default:
      return multiplyBlocks(format, matrix, input, output)
  }
}

/** Returns the rows of a matrix that `input` names in `output`. */
export function gather(format: OnnxFormat, matrix: Matrix, input: string, output: string): Part {
  const { name, values, rows, columns } = matrix
  const found = format === 'q8' || format === 'uint8' ? `${output}.quantized` : output
  const nodes: Operator[] = [{ type: 'Gather', inputs: [name, input], outputs: [found] }]
  if (format === 'q8' || format === 'uint8') {
    const weights = integers(format, matrix)
    const scale = [`${name}.scale`, `${name}.zero`]
    nodes.push({ type: 'DequantizeLinear', inputs: [found, ...scale], outputs: [output] })
    return { weights, nodes }
  }
  const shape = [rows, columns]
  return { weights: [float(format, name, values, shape)], nodes }
}

/** Returns a tensor of the floats that this format computes with. */
export const float = (
  format: OnnxFormat,
  name: string,
  values: Float32Array,
  shape: number[],
): Part['weights'][number] =>
  format === 'q4f16'
    ? { name, type: 'float16', shape, data: toHalves(values) }
    : float32(name, values, shape)

const float32 = (name: string, data: Float32Array, shape: number[]): Part['weights'][number] => ({
  name,
  type: 'float32',
  shape,
  data,
})

/** Dynamic quantization: the input is quantized in each run. Inputs that are used twice are shared. */
function multiplyIntegers(
  format: 'q8' | 'uint8',
  matrix: Matrix,
  input: string,
  output: string,
): Part {
  const { name } = matrix
  const [quantized, scale, zero] = ['quantized', 'scale', 'zero'].map((part) => `${input}.${part}`)
  const inputs = [quantized, name, zero, `${name}.zero`] as string[]
  return {
    weights: integers(format, matrix),
    nodes: [
      {
        type: 'DynamicQuantizeLinear',
        inputs: [input],
        outputs: [quantized, scale, zero] as string[],
      },
      { type: 'MatMulInteger', inputs, outputs: [`${output}.sums`] },
      {
        type: 'Cast',
        inputs: [`${output}.sums`],
        outputs: [`${output}.cast`],
        attributes: { to: 1 },
      },
      { type: 'Mul', inputs: [scale as string, `${name}.scale`], outputs: [`${output}.scale`] },
      { type: 'Mul', inputs: [`${output}.cast`, `${output}.scale`], outputs: [output] },
    ],
  }
}

function integers(
  format: 'q8' | 'uint8',
  { name, values, rows, columns }: Matrix,
): Part['weights'] {
  const { data, scale, zeroPoint } = format === 'q8' ? toInt8(values) : toUint8(values)
  const type = format === 'q8' ? 'int8' : 'uint8'
  return [
    { name, type, shape: [rows, columns], data },
    float32(`${name}.scale`, Float32Array.of(scale), []),
    { name: `${name}.zero`, type, shape: [], data: Uint8Array.of(zeroPoint) },
  ]
}

function multiplyBlocks(format: OnnxFormat, matrix: Matrix, input: string, output: string): Part {
  const { name, values, rows, columns } = matrix
  const { data, scales } = toNibbles(transpose(values, rows, columns))
  const blocks = rows / BLOCK
  return {
    weights: [
      { name, type: 'uint8', shape: [columns, blocks, BLOCK / 2], data },
      float(format, `${name}.scale`, scales, [columns * blocks]),
    ],
    nodes: [
      {
        type: 'MatMulNBits',
        domain: 'com.microsoft',
        inputs: [input, name, `${name}.scale`],
        outputs: [output],
        attributes: {
          K: rows,
          N: columns,
          bits: 4,
          block_size: BLOCK,
          ...(format === 'q4a4' && { accuracy_level: 4 }),
        },
      },
    ],
  }
}

function multiplyBnb4(matrix: Matrix, input: string, output: string): Part {
  const { name, values, rows, columns } = matrix
  const { data, scales } = toNf4(transpose(values, rows, columns))
  return {
    weights: [
      { name, type: 'uint8', shape: [data.length], data },
      float32(`${name}.scale`, scales, [scales.length]),
    ],
    nodes: [
      {
        type: 'MatMulBnb4',
        domain: 'com.microsoft',
        inputs: [input, name, `${name}.scale`],
        outputs: [output],
        // 1 is NF4.
        attributes: { K: rows, N: columns, block_size: BNB_BLOCK, quant_type: 1 },
      },
    ],
  }
}
