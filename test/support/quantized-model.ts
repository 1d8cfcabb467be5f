/** Quantizes the embedded model as the exports of hubs are. */
import {
  createWindow,
  fieldsOf,
  fieldsOfGraph,
  GRAPH,
  message,
  MODEL_GRAPH,
  readNumber,
  rewriteMessage,
} from '../../src/engine/onnx/protobuf.ts'
import { readGraphFile, type Constant } from '../../src/engine/onnx/graph-file.ts'
import { halfToFloat32 } from '../../src/values/elements.ts'
import { multiply, type Matrix, type Part } from '../bench/models/linear.ts'
import { onnxGraph } from './onnx.ts'
import { writeMessage } from './protobuf.ts'

/** Fields of a tensor, by their numbers in onnx.proto. */
const TENSOR = { dims: 1, name: 8 }

/** Name of the float16 constant that a node casts to these weights. */
const toHalfName = (weights = ''): string => `${weights}_f16`

/**
 * Returns the model file with integers in place of the float16 matrices of its products. `q8`:
 * the input of a product is quantized in each run, and all its rows have one scale, so a row depends
 * on the rows beside it. `q4`: blocks of weights have scales. inorigin turns these into integers of 8
 * bits on WASM, and each row of an input has a scale of its own.
 */
export async function quantize(model: Blob, format: 'q8' | 'q4'): Promise<Blob> {
  const { nodes, constants } = await readGraphFile({ model, externalData: [] })
  const window = createWindow(model)
  const shapes = await readShapes(model)
  const quantized = new Set<string>()
  const replaced = new Map<number, Part>()
  for (const { kind, from, inputs, outputs } of nodes) {
    const [input = '', weights = ''] = inputs
    const constant = constants.get(toHalfName(weights))
    if (kind !== 'MatMul' || !constant) continue
    const matrix = await readMatrix(weights, constant, shapes.get(toHalfName(weights)) ?? [])
    const part = multiply(format, matrix, input, outputs[0] ?? '')
    // Products of the same input share its integers.
    const isShared = format === 'q8' && quantized.has(input)
    replaced.set(from, isShared ? { ...part, nodes: part.nodes.slice(1) } : part)
    quantized.add(input)
  }
  return rewriteMessage(model, window, { from: 0, to: model.size }, async (field) => {
    if (field.number !== MODEL_GRAPH) return null
    const inner = await rewriteMessage(model, window, field, async ({ number, from }) => {
      const part = number === GRAPH.node ? replaced.get(from) : undefined
      return part ? [encode(part)] : null
    })
    return message(MODEL_GRAPH, inner)
  })
}

async function readShapes(model: Blob): Promise<Map<string, number[]>> {
  const window = createWindow(model)
  const shapes = new Map<string, number[]>()
  for await (const { number, from, to } of fieldsOfGraph(window, model.size)) {
    if (number !== GRAPH.initializer) continue
    const tensor = await window.read(from, to)
    const shape: number[] = []
    let name = ''
    for (const field of fieldsOf(tensor)) {
      const value = tensor.subarray(field.from, field.to)
      if (field.number === TENSOR.dims) shape.push(...readNumbers(value))
      if (field.number === TENSOR.name) name = new TextDecoder().decode(value)
    }
    shapes.set(name, shape)
  }
  return shapes
}

/** Reads varints, of which there are several where a list is packed. */
function readNumbers(bytes: Uint8Array): number[] {
  const numbers: number[] = []
  for (let at = 0; at < bytes.length;) {
    const { value, to } = readNumber(bytes, at)!
    numbers.push(value)
    at = to
  }
  return numbers
}

async function readMatrix(
  name: string,
  { data }: Constant,
  [rows = 0, columns = 0]: readonly number[],
): Promise<Matrix> {
  const values = halfToFloat32(new Uint16Array(await data!.arrayBuffer()))
  // The graph keeps the float16 constant and its cast, which nothing uses any more.
  return { name: `${name}.integers`, values, rows, columns }
}

/** Encodes the nodes and the constants of a graph. */
function encode({ nodes, weights }: Part): Uint8Array<ArrayBuffer> {
  const bytes = weights.map(({ data, ...weight }) => ({
    ...weight,
    data: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  }))
  const graph = onnxGraph({ inputs: [], outputs: [], nodes, weights: bytes })
  // The name of the graph is there already.
  return writeMessage(graph.filter(([number]) => number !== 2))
}
