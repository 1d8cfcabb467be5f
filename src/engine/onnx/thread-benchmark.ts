/**
 * Measures how fast the WebAssembly runtime is with a number of threads. The work resembles decode
 * steps of a model with 8-bit weights: chains of matrices, each multiplied by one vector. All
 * matrices together exceed the caches of most processors, as those of a model do.
 */
import { constantField, nodeField, portField } from './graph-file.ts'
import { ATTRIBUTE, encode, type Fields, GRAPH, MODEL, NODE, OPSET, TENSOR } from './protobuf.ts'
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

/** Numbers of the types `FLOAT` and `INT8` of tensors, and `INT` of attributes. */
const [FLOAT, INT8, INTEGER] = [1, 3, 2]

/** Creates a model that multiplies `x0` by each matrix in turn, after quantizing it to 8 bits. */
function createModel(): Blob {
  const layers = Array.from({ length: MATRICES }, (_, layer) => createLayer(layer))
  const graph: Fields = [
    ...layers.flat(),
    [GRAPH.name, 'threads'],
    portField(GRAPH.input, 'x0', FLOAT, [1, NARROW]),
    portField(GRAPH.output, `x${MATRICES}`, FLOAT, [1, NARROW]),
  ]
  const opset: Fields = [
    [OPSET.domain, ''],
    [OPSET.version, 17],
  ]
  const model: Fields = [
    [MODEL.version, 8],
    [MODEL.opset, opset],
    [MODEL.graph, graph],
  ]
  return new Blob([encode(model)])
}

/** Creates the nodes and the matrix that compute the vector of `layer + 1` from that of `layer`. */
function createLayer(layer: number): Fields {
  const dims = layer % 2 === 0 ? [NARROW, WIDE] : [WIDE, NARROW]
  const toFloat: Fields = [
    [ATTRIBUTE.name, 'to'],
    [ATTRIBUTE.integer, FLOAT],
    [ATTRIBUTE.type, INTEGER],
  ]
  const [integers, zero, matrix, product] = [
    `q${layer}`,
    `zero${layer}`,
    `matrix${layer}`,
    `product${layer}`,
  ] as const
  return [
    nodeField('DynamicQuantizeLinear', [`x${layer}`], [integers, `scale${layer}`, zero]),
    nodeField('MatMulInteger', [integers, matrix, zero], [product]),
    nodeField('Cast', [product], [`x${layer + 1}`], [[NODE.attribute, toFloat]]),
    constantField(matrix, INT8, dims, [[TENSOR.raw, createWeights(layer)]]),
  ]
}

/** Creates numbers that differ, because products of equal ones would all be the same. */
const createWeights = (layer: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length: NARROW * WIDE }, (_, index) => ((index * 31 + layer) % 251) - 125)
