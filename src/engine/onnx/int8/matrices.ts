/** Finds the matrix products of a graph whose weights can become 8-bit integers. */
import type { GraphFile, Node } from './graph-file.ts'
import { type BlockQuantized, countBlocks } from './requantize.ts'

/** A product with weights that are quantized in blocks. */
export interface Product {
  node: Node
  /** Name of the product's input. */
  input: string
  output: string
  /** Name of the new weights: the old ones, joined. Products of the same constants share it. */
  weights: string
  matrix: StoredMatrix
}

/** A quantized matrix whose numbers are still in a file. */
export interface StoredMatrix extends Pick<
  BlockQuantized,
  'rows' | 'columns' | 'bits' | 'blockSize'
> {
  values: Blob
  scales: Blob
  zeroPoints: Blob | null
}

/** Version of the standard operators from which all that replace a product exist. */
const MIN_OPSET = 13

/** Numbers of element types, from onnx.proto. */
export const ELEMENT = { float32: 1, uint8: 2, int8: 3, int64: 7 }

/** Attributes of `MatMulNBits` that are understood. `accuracy_level` has no effect on WASM. */
const ATTRIBUTES = ['K', 'N', 'bits', 'block_size', 'accuracy_level']

/** Returns the products that can be converted; none if the graph has branches or loops. */
export function findProducts(graph: GraphFile): Product[] {
  if (graph.opset < MIN_OPSET || graph.nodes.some(({ hasGraphs }) => hasGraphs)) return []
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

/** Returns the constants that only the products use. */
export function findUnused({ nodes, constants, ports }: GraphFile, products: readonly Product[]) {
  const converted = new Set(products.map(({ node }) => node))
  const used = new Set(nodes.flatMap((node) => (converted.has(node) ? [] : node.inputs)))
  const released = products.flatMap(({ node }) => node.inputs)
  return new Set(
    released.filter((name) => constants.has(name) && !used.has(name) && !ports.has(name)),
  )
}
