/**
 * Converts a graph whose weights are quantized in blocks of 4 or 8 bits, for which the runtime has no
 * WebAssembly kernel: it would make 32-bit floats of them at every step. Integers of 8 bits have one.
 * docs/decisions/0011-int8-weights-on-wasm.md has the figures.
 */
import { getDeviceMemoryBytes } from '../../../device/capabilities.ts'
import { loadingCancelled } from '../../failure.ts'
import type { GraphFiles } from '../model-files.ts'
import { createWindow, message, MODEL_GRAPH, rewriteMessage } from '../protobuf.ts'
import { GRAPH, type GraphFile, readGraphFile } from './graph-file.ts'
import { findProducts, findUnused, type Product, type StoredMatrix } from './matrices.ts'
import {
  integersConstant,
  multiply,
  quantizeRows,
  scalesConstant,
  sharedConstants,
} from './nodes.ts'
import { type BlockQuantized, columnScales, toInt8Rows } from './requantize.ts'

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
  const constants: BlobPart[] = sharedConstants(graph.opset)
  const integers: BlobPart[] = []
  let offset = 0
  for (const [weights, matrix] of matrices) {
    if (signal.aborted) throw loadingCancelled()
    const { rows, columns } = matrix
    const { scales, parts } = await convertMatrix(matrix)
    constants.push(
      scalesConstant(weights, scales),
      integersConstant(weights, [rows, columns], WEIGHTS_PATH, offset),
    )
    integers.push(...parts)
    offset += rows * columns
  }
  const model = await rewriteGraph(files.model, graph, products, constants)
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

async function convertMatrix(
  stored: StoredMatrix,
): Promise<{ scales: Float32Array<ArrayBuffer>; parts: Blob[] }> {
  const { rows, columns, blockSize } = stored
  const matrix: BlockQuantized = {
    ...stored,
    values: await readBytes(stored.values),
    scales: new Float32Array((await readBytes(stored.scales)).buffer),
    zeroPoints: stored.zeroPoints && (await readBytes(stored.zeroPoints)),
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

const readBytes = async (file: Blob): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await file.arrayBuffer())

/** Replaces the products, adds the new constants and removes those that are no longer used. */
async function rewriteGraph(
  model: Blob,
  graph: GraphFile,
  products: readonly Product[],
  constants: readonly BlobPart[],
): Promise<Blob> {
  const window = createWindow(model)
  const unused = [...findUnused(graph, products)].flatMap((name) => graph.constants.get(name) ?? [])
  const removed = new Set(unused.map(({ from }) => from))
  const replaced = encodeProducts(products, graph.opset)
  return rewriteMessage(model, window, { from: 0, to: model.size }, async (field) => {
    if (field.number !== MODEL_GRAPH) return null
    const inner = await rewriteMessage(model, window, field, async ({ number, from }) => {
      if (number === GRAPH.initializer && removed.has(from)) return []
      return replaced.get(from) ?? null
    })
    return message(MODEL_GRAPH, new Blob([inner, ...constants]))
  })
}

/** Returns the nodes that take the place of each product, by the product's offset in the file. */
function encodeProducts(products: readonly Product[], opset: number): Map<number, BlobPart[]> {
  const quantized = new Set<string>()
  return new Map(
    products.map(({ node, input, weights, output }) => {
      const first = quantized.has(input) ? [] : quantizeRows(input, opset)
      quantized.add(input)
      return [node.from, [...first, ...multiply(input, weights, output)]]
    }),
  )
}
