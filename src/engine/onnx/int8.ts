/**
 * Converts a graph whose weights are quantized in blocks of 4 or 8 bits, for which the runtime has no
 * WebAssembly kernel: it would make 32-bit floats of them at every step. Integers of 8 bits have one.
 * docs/decisions/0011-int8-weights-on-wasm.md has the figures.
 */
import { getDeviceMemoryBytes } from '../../device/capabilities.ts'
import { loadingCancelled } from '../failure.ts'
import {
  constantField,
  externalFields,
  type GraphFile,
  type Node,
  nodeField,
  readGraphFile,
} from './graph-file.ts'
import type { GraphFiles } from './model-files.ts'
import { ATTRIBUTE, encode, type Fields, GRAPH, NODE, rewriteGraph, TENSOR } from './protobuf.ts'

/** Path of the new weights, which no exported file uses. */
const WEIGHTS_PATH = '.int8-weights'

/**
 * Returns the files with 8-bit weights, or the same files if nothing in the graph can be converted or
 * the new weights would need more than `maxBytes`. One matrix at a time is in memory. Rejects with
 * `aborted` when the signal aborts.
 */
export async function convertToInt8(
  files: GraphFiles,
  signal: AbortSignal,
  maxBytes = maxWeightBytes(),
): Promise<GraphFiles> {
  const graph = await readGraphFile(files)
  const products = findProducts(graph)
  const matrices = new Map(products.map(({ weights, matrix }) => [weights, matrix]))
  const bytes = [...matrices.values()].reduce((sum, { rows, columns }) => sum + rows * columns, 0)
  if (products.length === 0 || bytes > maxBytes) return files
  const constants = sharedConstants(graph.opset)
  const integers: BlobPart[] = []
  let offset = 0
  for (const [weights, matrix] of matrices) {
    if (signal.aborted) throw loadingCancelled()
    const { rows, columns } = matrix
    const { scales, parts } = await convertMatrix(matrix)
    const names = namesOfWeights(weights)
    const place = externalFields(WEIGHTS_PATH, offset, rows * columns)
    constants.push(
      inline(names.scales, 'float32', [columns], scales),
      constantField(names.integers, ELEMENT.int8, [rows, columns], place),
    )
    integers.push(...parts)
    offset += rows * columns
  }
  // The products are replaced, the new constants are added, and unused ones are removed.
  const removed = findUnused(graph, products)
  const replaced = replaceProducts(products, graph.opset)
  const model = await rewriteGraph(
    files.model,
    async ({ number, from }) => {
      if (number === GRAPH.initializer && removed.has(from)) return []
      const nodes = replaced.get(from)
      return nodes ? encode(nodes) : null
    },
    encode(constants),
  )
  const converted = { path: WEIGHTS_PATH, data: new Blob(integers) }
  return { model, externalData: [...files.externalData, converted] }
}

/** Maximum bytes of converted weights: half of what a 32-bit WebAssembly memory can hold. */
const MAX_WEIGHT_BYTES = 2 * 2 ** 30

/**
 * Returns the limit of this device: a quarter of its memory, which is a guess. Browsers report at most
 * 8 or 32 GiB. If they report nothing, 4 GiB are assumed.
 */
const maxWeightBytes = (): number =>
  Math.min(MAX_WEIGHT_BYTES, (getDeviceMemoryBytes() ?? 4 * 2 ** 30) / 4)

/** Maximum bytes of integers in memory, beside the matrix that they are made of. */
const PART_BYTES = 16 * 2 ** 20

async function convertMatrix(stored: StoredMatrix) {
  const { rows, columns, blockSize, zeroPoints } = stored
  const matrix: BlockQuantized = {
    ...stored,
    values: new Uint8Array(await stored.values.arrayBuffer()),
    scales: new Float32Array(await stored.scales.arrayBuffer()),
    zeroPoints: zeroPoints && new Uint8Array(await zeroPoints.arrayBuffer()),
  }
  const scales = columnScales(matrix)
  const parts: Blob[] = []
  const partRows = Math.max(1, Math.floor(PART_BYTES / columns / blockSize)) * blockSize
  for (let from = 0; from < rows; from += partRows) {
    const to = Math.min(from + partRows, rows)
    parts.push(new Blob([toInt8Rows(matrix, scales, from, to)]))
  }
  return { scales, parts }
}

/** Returns the nodes that take the place of each product, by the product's offset in the file. */
function replaceProducts(products: readonly Product[], opset: number): Map<number, Fields> {
  const quantized = new Set<string>()
  return new Map(
    products.map(({ node, input, weights, output }) => {
      const first = quantized.has(input) ? [] : quantizeRows(input, opset)
      quantized.add(input)
      return [node.from, [...first, ...multiply(input, weights, output)]]
    }),
  )
}

/** Type of an attribute that is a list of integers. */
const INTEGERS = 7

/** Prefix of the names of new tensors, which no export uses. */
const PREFIX = 'inorigin/'

/** Names of tensors that all converted products share. */
const SHARED = {
  axis: `${PREFIX}axis`,
  least: `${PREFIX}least`,
  step: `${PREFIX}step`,
  zeroPoint: `${PREFIX}zero_point`,
}

/** Returns the names of tensors that replace the weights of that name. */
const namesOfWeights = (weights: string) => ({
  integers: `${PREFIX}${weights}/int8`,
  scales: `${PREFIX}${weights}/scales`,
})

const namesOfInput = (input: string) => ({
  integers: `${PREFIX}${input}/uint8`,
  greatest: `${PREFIX}${input}/greatest`,
})

/** -1 as a varint of 64 bits. */
const MINUS_ONE = Uint8Array.from([...Array<number>(9).fill(0xff), 1])

/** Version of the standard operators from which reductions take their axes as an input. */
const AXES_INPUT_OPSET = 18

/**
 * Returns nodes that quantize each row of a product's input by itself: its greatest magnitude
 * becomes 127, and 0 becomes 128. So the result of a row does not depend on the rows beside it.
 */
function quantizeRows(input: string, opset: number): Fields {
  const { integers, greatest } = namesOfInput(input)
  const at = (step: string): string => `${greatest}/${step}`
  const axes: Fields = [
    [ATTRIBUTE.name, 'axes'],
    [ATTRIBUTE.integers, MINUS_ONE],
    [ATTRIBUTE.type, INTEGERS],
  ]
  return [
    nodeField('Abs', [input], [at('magnitude')]),
    opset < AXES_INPUT_OPSET
      ? nodeField('ReduceMax', [at('magnitude')], [at('row')], [[NODE.attribute, axes]])
      : nodeField('ReduceMax', [at('magnitude'), SHARED.axis], [at('row')]),
    // A row of zeros must not be divided by 0.
    nodeField('Max', [at('row'), SHARED.least], [greatest]),
    nodeField('Div', [input, greatest], [at('ratio')]),
    nodeField('QuantizeLinear', [at('ratio'), SHARED.step, SHARED.zeroPoint], [integers]),
  ]
}

/** Returns the nodes that multiply a quantized input by 8-bit weights. */
function multiply(input: string, weights: string, output: string): Fields {
  const { integers, greatest } = namesOfInput(input)
  const { integers: matrix, scales } = namesOfWeights(weights)
  const relative = `${PREFIX}${output}/relative`
  const inputs = [integers, matrix, SHARED.step, scales, SHARED.zeroPoint]
  return [
    nodeField('MatMulIntegerToFloat', inputs, [relative], [[NODE.domain, 'com.microsoft']]),
    nodeField('Mul', [relative, greatest], [output]),
  ]
}

const inline = (
  name: string,
  type: keyof typeof ELEMENT,
  dims: readonly number[],
  { buffer }: { buffer: ArrayBuffer },
): Fields[number] =>
  constantField(name, ELEMENT[type], dims, [[TENSOR.raw, new Uint8Array(buffer)]])

/** Returns the constants that all converted products share. */
const sharedConstants = (opset: number): Fields[number][] => [
  ...(opset < AXES_INPUT_OPSET ? [] : [inline(SHARED.axis, 'int64', [1], BigInt64Array.of(-1n))]),
  inline(SHARED.least, 'float32', [], Float32Array.of(1e-20)),
  inline(SHARED.step, 'float32', [], Float32Array.of(1 / 127)),
  inline(SHARED.zeroPoint, 'uint8', [], Uint8Array.of(128)),
]

/** A matrix as `MatMulNBits` stores it: column by column, in blocks with a scale each. */
export interface BlockQuantized {
  rows: number
  columns: number
  /** Bits of a value. A byte has two values of 4 bits, the first in its low half. */
  bits: 4 | 8
  /** Number of values with a common scale; it is even. The last block of a column is padded. */
  blockSize: number
  values: Uint8Array
  /** Scale of each block, column by column. */
  scales: Float32Array
  /**
   * Value of each block that means 0, with the bits of a value; each column starts at a whole byte.
   * `null` means half the range, such as 8 for 4 bits.
   */
  zeroPoints: Uint8Array | null
}

/** Greatest magnitude of the new integers. The value -128 is not used. */
const MAX_INT8 = 127

/** Returns the number of blocks in a column. */
const countBlocks = ({ rows, blockSize }: Pick<BlockQuantized, 'rows' | 'blockSize'>) =>
  Math.ceil(rows / blockSize)

/** Returns the new scale of each column: its greatest magnitude becomes 127. */
export function columnScales(matrix: BlockQuantized): Float32Array<ArrayBuffer> {
  const { columns, rows, blockSize } = matrix
  const blocks = countBlocks(matrix)
  const values = new Int16Array(blockSize)
  const newScales = new Float32Array(columns)
  for (let column = 0; column < columns; column += 1) {
    let greatest = 0
    for (let block = 0; block < blocks; block += 1) {
      readBlock(matrix, column, block, values)
      const count = Math.min(blockSize, rows - block * blockSize)
      let distance = 0
      for (let at = 0; at < count; at += 1) {
        const value = values[at] as number
        if (value > distance) distance = value
        else if (-value > distance) distance = -value
      }
      const magnitude = distance * Math.abs(matrix.scales[column * blocks + block] as number)
      if (magnitude > greatest) greatest = magnitude
    }
    newScales[column] = greatest / MAX_INT8
  }
  return newScales
}

/** Number of columns that are converted together: neighbors in a row share a line of CPU cache. */
const TILE_COLUMNS = 64

/**
 * Returns rows as integers, row by row. `from` is the first row, a multiple of the block size, and
 * `to` the row after the last.
 */
export function toInt8Rows(
  matrix: BlockQuantized,
  newScales: Float32Array,
  from: number,
  to: number,
): Int8Array<ArrayBuffer> {
  const { columns, blockSize, scales } = matrix
  const blocks = countBlocks(matrix)
  const values = new Int16Array(blockSize)
  const integers = new Int8Array((to - from) * columns)
  for (let tile = 0; tile < columns; tile += TILE_COLUMNS) {
    const tileEnd = Math.min(tile + TILE_COLUMNS, columns)
    for (let row = from; row < to; row += blockSize) {
      const block = row / blockSize
      const count = Math.min(blockSize, to - row)
      for (let column = tile; column < tileEnd; column += 1) {
        readBlock(matrix, column, block, values)
        const newScale = newScales[column] as number
        const factor = newScale > 0 ? (scales[column * blocks + block] as number) / newScale : 0
        let target = (row - from) * columns + column
        for (let at = 0; at < count; at += 1) {
          // The offset makes the number positive, so that cutting its fraction off rounds it.
          integers[target] = (((values[at] as number) * factor + 128.5) | 0) - 128
          target += columns
        }
      }
    }
  }
  return integers
}

/** Reads the values of a block, less its zero point. */
function readBlock(
  { rows, blockSize, bits, values, zeroPoints }: BlockQuantized,
  column: number,
  block: number,
  into: Int16Array,
): void {
  const blocks = Math.ceil(rows / blockSize)
  const index = column * blocks + block
  if (bits === 8) {
    const zeroPoint = zeroPoints ? (zeroPoints[index] as number) : 128
    for (let at = 0; at < blockSize; at += 1) {
      into[at] = (values[index * blockSize + at] as number) - zeroPoint
    }
    return
  }
  let zeroPoint = 8
  if (zeroPoints) {
    const pair = zeroPoints[column * Math.ceil(blocks / 2) + (block >> 1)] as number
    zeroPoint = block % 2 === 0 ? pair & 15 : pair >> 4
  }
  const first = index * (blockSize / 2)
  for (let at = 0; at < blockSize; at += 2) {
    const pair = values[first + at / 2] as number
    into[at] = (pair & 15) - zeroPoint
    into[at + 1] = (pair >> 4) - zeroPoint
  }
}

/** A product with weights that are quantized in blocks. */
interface Product {
  node: Node
  /** Name of the product's input. */
  input: string
  output: string
  /** Name of the new weights: the old ones, joined. Products of the same constants share it. */
  weights: string
  matrix: StoredMatrix
}

/** A quantized matrix whose numbers are still in a file. */
interface StoredMatrix extends Pick<BlockQuantized, 'rows' | 'columns' | 'bits' | 'blockSize'> {
  values: Blob
  scales: Blob
  zeroPoints: Blob | null
}

/** Version of the standard operators from which all that replace a product exist. */
const MIN_OPSET = 13

/** Numbers of element types, from onnx.proto. */
const ELEMENT = { float32: 1, uint8: 2, int8: 3, int64: 7 }

/** Attributes of `MatMulNBits` that are understood. `accuracy_level` has no effect on WASM. */
const ATTRIBUTES = ['K', 'N', 'bits', 'block_size', 'accuracy_level']

/** Returns the products whose weights can be converted; none if the graph has branches or loops. */
function findProducts(graph: GraphFile): Product[] {
  if (graph.opset < MIN_OPSET || graph.nodes.some(({ branches }) => branches.length > 0)) return []
  return graph.nodes.flatMap((node) => toProduct(graph, node) ?? [])
}

function toProduct(graph: GraphFile, node: Node): Product | null {
  const { attributes, inputs, outputs } = node
  if (node.kind !== 'MatMulNBits' || node.domain !== 'com.microsoft') return null
  if ([...attributes.keys()].some((name) => !ATTRIBUTES.includes(name))) return null
  const [input = '', weights = '', scales = '', zeroPoints = '', ...others] = inputs
  // Others are an order of the rows, which is deprecated, and a bias.
  if (others.some((name) => name !== '')) return null
  const bits = attributes.get('bits') ?? 4
  const rows = attributes.get('K') ?? 0
  const columns = attributes.get('N') ?? 0
  const blockSize = attributes.get('block_size') ?? 0
  if ((bits !== 4 && bits !== 8) || rows < 1 || columns < 1 || blockSize < 2) return null
  const blocks = countBlocks({ rows, blockSize })
  const find = (name: string, type: number, bytes: number): Blob | null => {
    const constant = graph.ports.has(name) ? undefined : graph.constants.get(name)
    return constant?.type === type && constant.data?.size === bytes ? constant.data : null
  }
  const values = find(weights, ELEMENT.uint8, (columns * blocks * blockSize * bits) / 8)
  const factors = find(scales, ELEMENT.float32, columns * blocks * 4)
  const zeros = find(zeroPoints, ELEMENT.uint8, columns * Math.ceil((blocks * bits) / 8))
  if (!values || !factors || (zeroPoints !== '' && !zeros)) return null
  return {
    node,
    input,
    output: outputs[0] ?? '',
    weights: [weights, scales, zeroPoints].join('/'),
    matrix: { rows, columns, bits, blockSize, values, scales: factors, zeroPoints: zeros },
  }
}

/** Returns the offsets of the constants that only the products use. */
function findUnused({ nodes, constants, ports }: GraphFile, products: readonly Product[]) {
  const converted = new Set(products.map(({ node }) => node))
  const used = new Set(nodes.flatMap((node) => (converted.has(node) ? [] : node.inputs)))
  const released = products.flatMap(({ node }) => node.inputs)
  const unused = released.filter((name) => !used.has(name) && !ports.has(name))
  return new Set(unused.map((name) => constants.get(name)?.from))
}
