/**
 * Measures how fast the WebAssembly runtime is with a number of threads. The work resembles decode
 * steps of a model with 8-bit weights: chains of matrices, each multiplied by one vector. All
 * matrices together exceed the caches of most processors, as those of a model do.
 */
import { message, MODEL_GRAPH, varint } from './protobuf.ts'
import { loadRuntime } from './runtime.ts'

export interface ThreadBenchmarkSetup {
  /** URL of the folder with the runtime's wasm files, with a trailing slash. */
  runtime: string
  threads: number
}

/** Sizes of the matrices, in turn: those of the feed-forward layers of a model with 135 M weights. */
const [NARROW, WIDE] = [576, 1536]
/** Number of matrices, which have 14 MB together. */
const MATRICES = 16
/** Number of vectors that are timed together, because the clocks of browsers are coarse. */
const VECTORS = 10
/**
 * Time in milliseconds of one benchmark. Browsers compile WebAssembly again while it runs: with two
 * threads, a vector took 10 ms in the first second and 2.7 ms after two (two cores of an Intel Xeon,
 * Chromium 156). With one thread it took 4.1 ms, so a shorter benchmark finds the wrong number.
 */
const BENCHMARK_MS = 3_000

/**
 * Resolves with the milliseconds of the fastest `VECTORS` vectors. Other load can only slow them.
 * Rejects with `unavailable` if the runtime cannot be loaded.
 */
export async function benchmarkThreads(setup: ThreadBenchmarkSetup): Promise<number> {
  const { runtime: folder, threads } = setup
  const runtime = await loadRuntime({ device: 'wasm', folder, threads })
  const session = await runtime.createSession(createModel())
  const vector = Float32Array.from({ length: NARROW }, (_, index) => Math.sin(index))
  const feeds = { x0: new runtime.ort.Tensor('float32', vector, [1, NARROW]) }
  const start = performance.now()
  let fastestMs = Infinity
  while (performance.now() - start < BENCHMARK_MS) {
    const before = performance.now()
    for (let count = 0; count < VECTORS; count += 1) await session.run(feeds)
    fastestMs = Math.min(fastestMs, performance.now() - before)
  }
  return fastestMs
}

/** Numbers of the fields that are written, from onnx.proto. */
const MODEL = { version: 1, graph: MODEL_GRAPH, opset: 8 }
const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12 }
const NODE = { input: 1, output: 2, kind: 4, attribute: 5 }
const ATTRIBUTE = { name: 1, integer: 3, type: 20 }
const TENSOR = { dims: 1, type: 2, name: 8, raw: 9 }
const OPSET = { domain: 1, version: 2 }
const VALUE = { name: 1, type: 2 }
const TYPE = { tensor: 1, element: 1, shape: 2, dimension: 1, size: 1 }
/** Numbers of the types `FLOAT` and `INT8` of tensors, and `INT` of attributes. */
const [FLOAT, INT8, INTEGER] = [1, 3, 2]

const text = (field: number, value: string): BlobPart[] => message(field, new Blob([value]))
const integer = (field: number, value: number): BlobPart[] => [
  new Uint8Array([...varint(field * 8), ...varint(value)]),
]
const nested = (field: number, ...parts: BlobPart[][]): BlobPart[] =>
  message(field, new Blob(parts.flat()))

/** Creates a model that multiplies `x0` by each matrix in turn, after quantizing it to 8 bits. */
function createModel(): Blob {
  const layers = Array.from({ length: MATRICES }, (_, layer) => createLayer(layer))
  const graph = nested(
    MODEL.graph,
    ...layers,
    text(GRAPH.name, 'threads'),
    vectorInfo(GRAPH.input, 'x0'),
    vectorInfo(GRAPH.output, `x${MATRICES}`),
  )
  const opset = nested(MODEL.opset, text(OPSET.domain, ''), integer(OPSET.version, 17))
  return new Blob([integer(MODEL.version, 8), opset, graph].flat())
}

/** Creates the nodes and the matrix that compute the vector of `layer + 1` from that of `layer`. */
function createLayer(layer: number): BlobPart[] {
  const dims = layer % 2 === 0 ? [NARROW, WIDE] : [WIDE, NARROW]
  const toFloat = nested(
    NODE.attribute,
    text(ATTRIBUTE.name, 'to'),
    integer(ATTRIBUTE.integer, FLOAT),
    integer(ATTRIBUTE.type, INTEGER),
  )
  return [
    node('DynamicQuantizeLinear', [`x${layer}`], [`q${layer}`, `scale${layer}`, `zero${layer}`]),
    node('MatMulInteger', [`q${layer}`, `matrix${layer}`, `zero${layer}`], [`product${layer}`]),
    node('Cast', [`product${layer}`], [`x${layer + 1}`], toFloat),
    nested(
      GRAPH.initializer,
      ...dims.map((size) => integer(TENSOR.dims, size)),
      integer(TENSOR.type, INT8),
      text(TENSOR.name, `matrix${layer}`),
      message(TENSOR.raw, new Blob([createWeights(layer)])),
    ),
  ].flat()
}

function node(
  kind: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attribute: BlobPart[] = [],
): BlobPart[] {
  return nested(
    GRAPH.node,
    ...inputs.map((name) => text(NODE.input, name)),
    ...outputs.map((name) => text(NODE.output, name)),
    text(NODE.kind, kind),
    attribute,
  )
}

/** Describes an input or output of the graph: a row of `NARROW` numbers. */
function vectorInfo(field: number, name: string): BlobPart[] {
  const shape = [1, NARROW].map((size) => nested(TYPE.dimension, integer(TYPE.size, size)))
  const tensor = [integer(TYPE.element, FLOAT), nested(TYPE.shape, ...shape)]
  return nested(field, text(VALUE.name, name), nested(VALUE.type, nested(TYPE.tensor, ...tensor)))
}

/** Creates numbers that differ, because products of equal ones would all be the same. */
const createWeights = (layer: number): Int8Array<ArrayBuffer> =>
  Int8Array.from({ length: NARROW * WIDE }, (_, index) => ((index * 31 + layer) % 251) - 125)
