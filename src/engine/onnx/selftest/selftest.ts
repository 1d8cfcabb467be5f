/**
 * The GPU self-test. It runs a small decoder, with the kernels of language models, in the same ways
 * as the engine and compares the logits with known values, and in 32 bits a graph of other operators.
 * Faulty drivers compute wrong numbers without any error.
 */
import type { Tensor } from 'onnxruntime-web'
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import { InoriginError } from '../../../error.ts'
import { fromBase64 } from '../../../values/bytes.ts'
import { toHalf } from '../../../values/elements.ts'
import { rowOf } from '../logits/gpu.ts'
import {
  AROUND,
  CONTEXT,
  EXPECTED_LOGITS,
  HEAD,
  KV_HEADS,
  LAYOUT,
  LOCATION,
  NODES,
  VOCABULARY,
} from './graphs.ts'
import { EXPECTED_OUTPUTS, OPERATOR_GRAPH, OPERATOR_WEIGHTS } from './operator-graph.ts'
import type { Runtime, Session } from '../runtime.ts'
import { bytesOf, product } from '../tensor.ts'

type FloatType = keyof typeof AROUND

/**
 * Maximum error of a logit; typical logits are about 0.4, the largest 1.5. Some kernels round their
 * factors to 8 bits. SwiftShader's error is 0.35 with `subgroups` and 0.00005 without.
 */
const TOLERANCE: Record<FloatType, number> = { float32: 0.02, float16: 0.06 }

/** Maximum error of a number of the operators; the largest is about 1. SwiftShader's is 0.000001. */
const OPERATOR_TOLERANCE = 0.005

/**
 * Resolves with `true` if all logits are correct. Rejects if the device is lost or runs out of
 * memory.
 */
export async function computesCorrectly(
  runtime: Runtime,
  gpu: GPUDevice,
  precision: FloatType,
): Promise<boolean> {
  try {
    for await (const error of errorsOf(runtime, gpu, precision)) {
      if (error > TOLERANCE[precision]) return false
    }
    return precision === 'float16' || (await computesOperators(runtime))
  } catch (thrown) {
    const error = InoriginError.from(thrown)
    if (error.code === 'device_lost' || error.code === 'out_of_memory') throw error
    return false
  }
}

/** Message of the runtime for a kernel that needs more buffers than the adapter has. */
const TOO_FEW_BUFFERS = /Too many storage buffers in shader/

/**
 * Resolves with `true` if the operators' outputs are correct. An adapter with too few buffers for
 * one of them, such as 8 for the 9 of an LSTM, refuses models with it and computes nothing wrong.
 */
async function computesOperators(runtime: Runtime): Promise<boolean> {
  const error = await findOperatorError(runtime).catch((thrown: unknown) => {
    if (TOO_FEW_BUFFERS.test(InoriginError.from(thrown).message)) return 0
    throw thrown
  })
  return error <= OPERATOR_TOLERANCE
}

/** Yields the largest error of each run. */
async function* errorsOf(
  runtime: Runtime,
  gpu: GPUDevice,
  precision: FloatType,
): AsyncGenerator<number> {
  const session = await runtime.createSession(graphOf(precision), {
    externalData: [{ path: LOCATION, data: weightsOf(precision) }],
  })
  const one = createCaches(runtime, gpu, precision, 1)
  const pair = createCaches(runtime, gpu, precision, 2)
  const ask = (caches: Caches, tokens: readonly number[][], ends: readonly number[]) =>
    run(runtime, session, caches, tokens, ends)
  try {
    yield findLargestError(await ask(one, [idsBetween(0, 40)], [40]), EXPECTED_LOGITS.prompt)
    yield findLargestError(await ask(one, [idsBetween(40, 71)], [71]), EXPECTED_LOGITS.more)
    yield findLargestError(await ask(one, [[idAt(71)]], [72]), EXPECTED_LOGITS.token)
    copyTwice(gpu, one, pair)
    yield findLargestError(
      await ask(pair, [[idAt(72)], [idAt(40)]], [73, 41]),
      EXPECTED_LOGITS.pair,
    )
  } finally {
    for (const buffer of [...one.buffers, ...pair.buffers]) buffer.destroy()
    await session.release()
  }
}

/** Returns the ONNX file of the decoder; {@link weightsOf} returns its external weights. */
export function graphOf(precision: FloatType): Blob {
  const [before, behind] = AROUND[precision]
  return new Blob([before, NODES, behind].map(fromBase64))
}

/** Returns pseudorandom weights, computed with the same formula as in `test/models/selftest.py`. */
export function weightsOf(precision: FloatType): Blob {
  let start = 0
  const tensors = LAYOUT.map(([count, exponent]) => {
    const bytes = Uint8Array.from({ length: count }, (_, index) => draw(start + index))
    start += count
    if (exponent === null) return bytes
    const values = Float32Array.from(bytes, (byte) => (byte - 128) * 2 ** (exponent - 7))
    return precision === 'float32' ? values : Uint16Array.from(values, (value) => toHalf(value))
  })
  return new Blob(tensors)
}

/** Returns the token at a position of the sequence that all runs are parts of. */
export const idAt = (position: number): number => (position * 37) % VOCABULARY

const idsBetween = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => idAt(from + index))

type Caches = ReturnType<typeof createCaches>

/** Creates the keys and values of a KV cache, as buffers that runs read and update in place. */
function createCaches({ ort }: Runtime, gpu: GPUDevice, dataType: FloatType, rows: number) {
  const dims = [rows, KV_HEADS, CONTEXT, HEAD]
  const size = bytesOf({ type: dataType, dims })
  const buffers = [0, 1].map(() => gpu.createBuffer({ size, usage: STORAGE_USAGE }))
  const [key, value] = buffers.map((buffer) =>
    ort.Tensor.fromGpuBuffer(buffer, { dataType, dims }),
  ) as [Tensor, Tensor]
  return { buffers, key, value }
}

/** Copies a KV cache of one row into both rows of another. */
function copyTwice(gpu: GPUDevice, one: Caches, pair: Caches): void {
  const encoder = gpu.createCommandEncoder()
  one.buffers.forEach((from, index) => {
    const to = pair.buffers[index]
    if (!to) return
    for (const row of [0, 1]) encoder.copyBufferToBuffer(from, 0, to, row * from.size, from.size)
  })
  gpu.queue.submit([encoder.finish()])
}

/** Runs the graph; `ends` has the length of each sequence after its tokens. Returns the logits. */
async function run(
  { ort }: Runtime,
  session: Session,
  { key, value }: Caches,
  tokens: readonly number[][],
  ends: readonly number[],
): Promise<number[]> {
  const longest = Math.max(...ends)
  const mask = ends.flatMap((end) =>
    Array.from({ length: longest }, (_, at) => (at < end ? 1n : 0n)),
  )
  const rows = tokens.length
  const int64 = (values: bigint[]) =>
    new ort.Tensor('int64', BigInt64Array.from(values), [rows, values.length / rows])
  const { scores } = await session.run(
    {
      input_ids: int64(tokens.flat().map(BigInt)),
      attention_mask: int64(mask),
      'past.key': key,
      'past.value': value,
    },
    { scores: null, 'present.key': key, 'present.value': value },
  )
  if (!scores) throw new InoriginError('internal', 'The GPU self-test returned no logits.')
  const length = product(scores.dims.slice(0, -1))
  return Array.from({ length }, (_, row) => [...rowOf(scores, row)]).flat()
}

/** Returns a pseudorandom byte, the same as in `test/models/selftest.py`. */
function draw(position: number): number {
  let x = Math.imul(position + 1, 2654435761)
  x = Math.imul(x ^ (x >>> 15), 2246822519)
  x = Math.imul(x ^ (x >>> 13), 3266489917)
  return x >>> 24
}

/** Returns the largest difference; `Infinity` if a logit is missing or NaN. */
function findLargestError(scores: readonly number[], answers: readonly number[]): number {
  const far = answers.map((answer, index) => Math.abs((scores[index] ?? Number.NaN) - answer))
  return far.some(Number.isNaN) ? Number.POSITIVE_INFINITY : Math.max(...far)
}

// Runs the operators that the decoder of the self-test lacks: recurrent cells, `If`, `Loop`,
// padding by reflection, and convolutions of the layouts in use.

/** Resolves with the largest error of any output. */
export async function findOperatorError(runtime: Runtime): Promise<number> {
  const weights = Float32Array.from(
    { length: OPERATOR_WEIGHTS },
    (_, index) => (draw(index) - 128) / 256,
  )
  const session = await runtime.createSession(new Blob([fromBase64(OPERATOR_GRAPH)]), {
    externalData: [{ path: LOCATION, data: new Blob([weights]) }],
  })
  try {
    const outputs = await session.run({ scale: new runtime.ort.Tensor('float32', [1], []) })
    const errors = Object.entries(EXPECTED_OUTPUTS).map(([name, expected]) => {
      const output = outputs[name]
      if (!output) throw new InoriginError('internal', `The GPU self-test returned no ${name}.`)
      return findLargestError([...(output.data as Float32Array)], expected)
    })
    return Math.max(...errors)
  } finally {
    await session.release()
  }
}
