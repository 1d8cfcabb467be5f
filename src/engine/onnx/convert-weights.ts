/**
 * Converts a graph whose weights are quantized in blocks of 4 or 8 bits, for which the runtime has no
 * WebAssembly kernel: it would make 32-bit floats of them at every step. Integers of 8 bits have one,
 * and so have floats. docs/decisions/0011-int8-weights-on-wasm.md has the figures.
 */
import { getDeviceMemoryBytes } from '../../device/capabilities.ts'
import { loadingCancelled } from '../failure.ts'
import {
  attribute,
  constantField,
  ELEMENT,
  externalFields,
  type GraphFile,
  inlineField,
  integersField,
  type Node,
  nodeField,
  readGraphFile,
} from './graph-file.ts'
import {
  type BlockQuantized,
  groupSizeOf,
  MatrixConverter,
  rotationMatrix,
  rotationSizeOf,
} from './matrices.ts'
import type { GraphFiles } from './model-files.ts'
import { encode, type Fields, GRAPH, NODE, rewriteGraph } from './protobuf.ts'
import { WrittenFile } from './written-file.ts'

/** Form of the new weights: 8-bit integers, or 32-bit floats, which keep the values of the file. */
export type WeightForm = 'int8' | 'float32'

/** Path of the new weights, which no exported file uses. */
const WEIGHTS_PATH = '.converted-weights'

/**
 * Resolves with the files with weights in another form, or with the same files if nothing in the graph
 * can be converted or the new weights would need more than `maxBytes`. One matrix at a time is in
 * memory. Rejects with `aborted` when the signal aborts.
 */
export async function convertWeights(
  files: GraphFiles,
  form: WeightForm,
  signal: AbortSignal,
  maxBytes = maxWeightBytes(),
): Promise<GraphFiles> {
  const graph = await readGraphFile(files)
  const found = findProducts(graph)
  const products = joinProducts(found)
  const matrices = new Map(products.map((product) => [product.weights, product]))
  const bytes = [...matrices.values()].reduce(
    (sum, { rows, columns }) => sum + rows * columns * ELEMENT_BYTES[form],
    0,
  )
  if (products.length === 0 || bytes > maxBytes) return files
  const constants = new Map(products.flatMap((product) => smallConstants(product, form)))
  const converter = await MatrixConverter.open()
  const elements = new WrittenFile()
  for (const [weights, product] of matrices) {
    const names = namesOfWeights(weights)
    const from = elements.size
    const scales = await convertMatrix(converter, product, form, elements, signal)
    const place = externalFields(WEIGHTS_PATH, from, elements.size - from)
    const dims = form === 'int8' ? groupedDims(product) : [product.rows, product.columns]
    constants.set(names.elements, constantField(names.elements, ELEMENT[form], dims, place))
    if (form === 'int8') {
      const [groups = 0, , columns = 0] = dims
      const scalePlace = externalFields(WEIGHTS_PATH, elements.size, scales.byteLength)
      const scaleDims = [groups, 1, columns]
      elements.write(new Uint8Array(scales.buffer))
      constants.set(
        names.scales,
        constantField(names.scales, ELEMENT.float32, scaleDims, scalePlace),
      )
    }
  }
  // The products are replaced, the new constants are added, and unused ones are removed.
  const removed = findUnused(graph, found)
  const replaced = replaceProducts(products, form, graph.opset)
  const model = await rewriteGraph(
    files.model,
    async ({ number, from }) => {
      if (number === GRAPH.initializer && removed.has(from)) return []
      const nodes = replaced.get(from)
      return nodes ? [encode(nodes)] : null
    },
    [encode([...constants.values()])],
  )
  const converted = { path: WEIGHTS_PATH, data: elements.close() }
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

const ELEMENT_BYTES: Readonly<Record<WeightForm, number>> = { int8: 1, float32: 4 }

/** Maximum bytes of new elements in memory, beside the matrix that they are made of. */
const PART_BYTES = 16 * 2 ** 20

/** Writes the elements, and resolves with the scale of each group of each column. */
async function convertMatrix(
  converter: MatrixConverter,
  product: JoinedProduct,
  form: WeightForm,
  elements: WrittenFile,
  signal: AbortSignal,
): Promise<Float32Array<ArrayBuffer>> {
  const { rows, columns } = product
  converter.load(await Promise.all(product.parts.map(({ matrix }) => readMatrix(matrix))))
  const groupSize = groupSizeOf(rows)
  const rowBytes = columns * ELEMENT_BYTES[form]
  const partRows = Math.max(1, Math.floor(PART_BYTES / rowBytes / groupSize)) * groupSize
  const scales = new Float32Array((rows / groupSize) * columns)
  for (let from = 0; from < rows; from += partRows) {
    if (signal.aborted) throw loadingCancelled()
    const to = Math.min(from + partRows, rows)
    if (form === 'float32') elements.write(new Uint8Array(converter.toFloatRows(from, to).buffer))
    else {
      const groups = converter.toInt8Groups(from, to)
      scales.set(groups.scales, (from / groupSize) * columns)
      elements.write(new Uint8Array(groups.integers.buffer))
    }
  }
  return scales
}

const readMatrix = async (stored: StoredMatrix): Promise<BlockQuantized> => ({
  ...stored,
  values: new Uint8Array(await stored.values.arrayBuffer()),
  scales: new Float32Array(await stored.scales.arrayBuffer()),
  zeroPoints: stored.zeroPoints && new Uint8Array(await stored.zeroPoints.arrayBuffer()),
})

/**
 * Products of the same input, which are computed as one, because each node costs time: their columns
 * stand side by side. Such are the products for queries, keys and values.
 */
interface JoinedProduct {
  input: string
  /** Length of the input's rows. */
  rows: number
  /** Columns of all parts. */
  columns: number
  /** Name of the new weights: those of the parts, joined. */
  weights: string
  parts: readonly Product[]
}

/** Returns the products by their input. */
function joinProducts(products: readonly Product[]): JoinedProduct[] {
  const byInput = new Map<string, Product[]>()
  for (const product of products)
    byInput.set(product.input, [...(byInput.get(product.input) ?? []), product])
  return [...byInput].map(([input, parts]) => ({
    input,
    rows: parts[0]?.matrix.rows ?? 0,
    columns: parts.reduce((sum, { matrix }) => sum + matrix.columns, 0),
    weights: parts.map(({ weights }) => weights).join('+'),
    parts,
  }))
}

/** Returns the shape of the integers: groups, rows of a group, columns. */
function groupedDims({ rows, columns }: JoinedProduct): [number, number, number] {
  const size = groupSizeOf(rows)
  return [rows / size, size, columns]
}

/** Returns the nodes that take the place of each product, by the product's offset in the file. */
function replaceProducts(
  products: readonly JoinedProduct[],
  form: WeightForm,
  opset: number,
): Map<number, Fields> {
  const replaced = new Map<number, Fields>()
  for (const product of products) {
    const multiply = form === 'int8' ? multiplyIntegers : multiplyFloats
    for (const { node } of product.parts) replaced.set(node.from, [])
    const [first] = product.parts
    if (first) replaced.set(first.node.from, [...multiply(product, opset), ...split(product)])
  }
  return replaced
}

/** Prefix of the names of new tensors, which no export uses. */
const PREFIX = 'inorigin/'

/** Names of constants that converted products share. */
const SHARED = {
  first: `${PREFIX}first`,
  last: `${PREFIX}last`,
  step: `${PREFIX}step`,
  zeroPoint: `${PREFIX}zero_point`,
}

/** Returns the names of the constants that products of an input of this length share. */
function namesOfRows(rows: number) {
  const groupSize = groupSizeOf(rows)
  const rotation = rotationSizeOf(groupSize)
  return {
    rotation: `${PREFIX}rotation/${rotation}`,
    blocks: `${PREFIX}blocks/${rotation}`,
    groups: `${PREFIX}groups/${rows / groupSize}/${groupSize}`,
  }
}

/** Returns the names of the constants of a product's weights. */
const namesOfWeights = (weights: string) => ({
  elements: `${PREFIX}${weights}/elements`,
  scales: `${PREFIX}${weights}/scales`,
  columns: `${PREFIX}${weights}/columns`,
  sizes: `${PREFIX}${weights}/sizes`,
})

/** Returns the name of the output of all parts. */
const outputOf = ({ parts: [first, ...others] }: JoinedProduct): string =>
  first && others.length === 0 ? first.output : `${PREFIX}${first?.output}/joined`

/** Returns the node that divides the columns of several products; none for a single one. */
function split(product: JoinedProduct): Fields {
  const outputs = product.parts.map(({ output }) => output)
  if (outputs.length < 2) return []
  const inputs = [outputOf(product), namesOfWeights(product.weights).sizes]
  return [nodeField('Split', inputs, outputs, attribute('axis', -1))]
}

const multiplyFloats = (product: JoinedProduct): Fields => [
  nodeField(
    'MatMul',
    [product.input, namesOfWeights(product.weights).elements],
    [outputOf(product)],
  ),
]

/**
 * Version of the standard operators from which `ReduceMax` takes its axes as an input, and `Shape` can
 * leave axes out (since 15).
 */
const AXES_INPUT_OPSET = 18

/**
 * Returns the nodes that quantize an input and multiply it by 8-bit weights. Neighboring values are
 * rotated first, in the input and in the weights, because a few values of a row are much greater than
 * the others, and rounding to their scale would lose the others. Then each group of each row gets a
 * scale of its own: its greatest magnitude becomes 127, and 0 becomes 128. So the result of a row does
 * not depend on the rows beside it. A group of zeros becomes any integers, which are multiplied by 0.
 */
function multiplyIntegers(product: JoinedProduct, opset: number): Fields {
  const { input, rows, weights } = product
  const { rotation, blocks, groups } = namesOfRows(rows)
  const { elements, scales, columns } = namesOfWeights(weights)
  const output = outputOf(product)
  const at = (step: string): string => `${PREFIX}${output}/${step}`
  const leading = attribute('perm', [1, 0, 2])
  const max: [string[], Fields] =
    opset < AXES_INPUT_OPSET
      ? [[at('magnitudes')], attribute('axes', [-1])]
      : [[at('magnitudes'), SHARED.last], []]
  const factors = [at('integers'), elements, SHARED.step, scales, SHARED.zeroPoint]
  return [
    nodeField('Reshape', [input, blocks], [at('blocks')]),
    nodeField('MatMul', [at('blocks'), rotation], [at('rotated')]),
    nodeField('Reshape', [at('rotated'), groups], [at('rows')]),
    nodeField('Transpose', [at('rows')], [at('groups')], leading),
    nodeField('Abs', [at('groups')], [at('magnitudes')]),
    nodeField('ReduceMax', max[0], [at('greatest')], max[1]),
    nodeField('Div', [at('groups'), at('greatest')], [at('ratios')]),
    nodeField('QuantizeLinear', [at('ratios'), SHARED.step, SHARED.zeroPoint], [at('integers')]),
    nodeField('MatMulIntegerToFloat', factors, [at('relative')], [[NODE.domain, 'com.microsoft']]),
    nodeField('Mul', [at('relative'), at('greatest')], [at('terms')]),
    nodeField('ReduceSum', [at('terms'), SHARED.first], [at('sums')], attribute('keepdims', 0)),
    // The result has the shape of the input, but for its last axis.
    ...(opset < AXES_INPUT_OPSET
      ? [
          nodeField('Shape', [input], [at('shape')]),
          nodeField('Slice', [at('shape'), SHARED.first, SHARED.last], [at('leading')]),
        ]
      : [nodeField('Shape', [input], [at('leading')], attribute('end', -1))]),
    nodeField('Concat', [at('leading'), columns], [at('wanted')], attribute('axis', 0)),
    nodeField('Reshape', [at('sums'), at('wanted')], [output]),
  ]
}

/** Returns a constant by its name. */
const inline = (...constant: Parameters<typeof inlineField>): [string, Fields[number]] => [
  constant[0],
  inlineField(...constant),
]

const integers = (name: string, ...values: number[]): [string, Fields[number]] => [
  name,
  integersField(name, ...values),
]

/** Returns the constants beside the weights, by their names. */
function smallConstants(product: JoinedProduct, form: WeightForm): [string, Fields[number]][] {
  const { rows, columns, parts, weights } = product
  const names = namesOfWeights(weights)
  const sizes = integers(names.sizes, ...parts.map(({ matrix }) => matrix.columns))
  const divided = parts.length > 1 ? [sizes] : []
  if (form === 'float32') return divided
  const groupSize = groupSizeOf(rows)
  const rotation = rotationSizeOf(groupSize)
  const shared = namesOfRows(rows)
  return [
    ...divided,
    integers(SHARED.first, 0),
    integers(SHARED.last, -1),
    inline(SHARED.step, 'float32', [], Float32Array.of(1 / 127)),
    inline(SHARED.zeroPoint, 'uint8', [], Uint8Array.of(128)),
    inline(shared.rotation, 'float32', [rotation, rotation], rotationMatrix(rotation)),
    integers(shared.blocks, -1, rotation),
    integers(shared.groups, -1, rows / groupSize, groupSize),
    integers(names.columns, columns),
  ]
}

/** A product with weights that are quantized in blocks. */
interface Product {
  node: Node
  /** Name of the product's input. */
  input: string
  output: string
  /** Names of the weights, joined. Products of the same constants share it. */
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
  const blocks = Math.ceil(rows / blockSize)
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
