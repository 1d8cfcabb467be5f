/**
 * The GPU self-test. It runs a small decoder, with the kernels of language models, in the same ways
 * as the engine and compares the logits with known values, and in 32 bits a graph of other operators.
 * Faulty drivers compute wrong numbers without any error.
 */
import type { Tensor } from 'onnxruntime-web'
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import { InoriginError } from '../../../error.ts'
import { toHalf } from '../../../values/elements.ts'
import { rowOf } from '../logits/gpu.ts'
import type { Runtime, Session } from '../runtime.ts'
import { bytesOf, product } from '../tensor.ts'

type Precision = keyof typeof AROUND

/**
 * Maximum error of a logit; typical logits are about 0.4, the largest 1.5. Some kernels round their
 * factors to 8 bits. SwiftShader's error is 0.35 with `subgroups` and 0.00005 without.
 */
const TOLERANCE: Record<Precision, number> = { float32: 0.02, float16: 0.06 }

/** Maximum error of a number of the operators; the largest is about 1. SwiftShader's is 0.000001. */
const OPERATOR_TOLERANCE = 0.005

/**
 * Resolves with `true` if all logits are correct. Rejects if the device is lost or runs out of
 * memory.
 */
export async function computesCorrectly(
  runtime: Runtime,
  gpu: GPUDevice,
  precision: Precision,
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
  precision: Precision,
): AsyncGenerator<number> {
  const session = await runtime.createSession(graphOf(precision), {
    externalData: [{ path: LOCATION, data: weightsOf(precision) }],
  })
  const one = createCaches(runtime, gpu, precision, 1)
  const pair = createCaches(runtime, gpu, precision, 2)
  const ask = (caches: Caches, tokens: readonly number[][], ends: readonly number[]) =>
    run(runtime, session, caches.tensors, tokens, ends)
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
export function graphOf(precision: Precision): Blob {
  const [before, behind] = AROUND[precision]
  const parts = [before, NODES, behind].map((part) =>
    Uint8Array.from(atob(part), (each) => each.charCodeAt(0)),
  )
  return new Blob(parts)
}

/** Returns pseudorandom weights, computed with the same formula as in `test/models/selftest.py`. */
export function weightsOf(precision: Precision): Blob {
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

/** KV cache of one run. */
interface Caches {
  /** Buffers of the keys and of the values. */
  buffers: GPUBuffer[]
  /** The same buffers as tensors, which a run reads and updates in place. */
  tensors: Record<'key' | 'value', Tensor>
}

function createCaches(
  { ort }: Runtime,
  gpu: GPUDevice,
  precision: Precision,
  rows: number,
): Caches {
  const dims = [rows, KV_HEADS, CONTEXT, HEAD]
  const size = bytesOf({ type: precision, dims })
  const key = gpu.createBuffer({ size, usage: STORAGE_USAGE })
  const value = gpu.createBuffer({ size, usage: STORAGE_USAGE })
  const tensor = (buffer: GPUBuffer) =>
    ort.Tensor.fromGpuBuffer(buffer, { dataType: precision, dims })
  return { buffers: [key, value], tensors: { key: tensor(key), value: tensor(value) } }
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
  { key, value }: Caches['tensors'],
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
  return numbersOf(scores)
}

function numbersOf(scores: Tensor): number[] {
  const rows = product(scores.dims.slice(0, -1))
  return Array.from({ length: rows }, (_, row) => [...rowOf(scores, row)]).flat()
}

// Draws the weights of the self-test, and compares its results.

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

/** Graphs of the GPU self-test. `test/models/selftest.py` writes this file and describes it. */
const CONTEXT = 96
export const KV_HEADS = 2
export const HEAD = 64
const VOCABULARY = 64
export const LOCATION = 'weights'
/** Number of values of each weight tensor, and `n` of their bound 2^n; `null` marks raw bytes. */
const LAYOUT: readonly (readonly [count: number, exponent: number | null])[] = [
  [128, 0],
  [128, 0],
  [128, 0],
  [16384, -3],
  [16384, -3],
  [3072, 0],
  [3072, 0],
  [2048, -2],
  [2048, 0],
  [512, -3],
  [4096, null],
  [256, 0],
  [16384, null],
  [1024, -6],
  [16384, null],
  [1024, -2],
  [16384, null],
  [1024, -6],
  [16384, null],
  [1024, -6],
  [16384, null],
  [1024, -6],
]
/** Expected logits of each run, row by row. */
export const EXPECTED_LOGITS = {
  prompt: [
    0.0688, -0.5769, -0.0666, 0.1096, -0.7287, -0.2982, 0.7835, 0.7949, -0.504, -0.3636, 0.9813,
    0.2271, -0.9921, -0.3718, 1.2354, 1.033, -0.9353, 1.0904, 1.28, -0.0331, -0.7424, -0.4743,
    -0.5943, 0.2114, 0.4204, 0.4798, -0.4607, -0.4054, 0.0733, -0.0888, -0.4678, 0.1444, -0.5246,
    0.135, 0.632, 0.3604, -0.2427, -0.5473, 0.8153, 0.3331, -0.1717, -0.4086, 0.247, 0.1703,
    -0.0263, 1.2251, 0.3918, -0.3551, 0.1793, -0.0502, -0.3222, -0.3368, 0.5049, 0.1972, 0.2125,
    -0.3804, -0.0306, 0.4048, -0.2631, 0.4555, -0.5056, 0.3712, -0.3843, 0.2436, 0.3507, -0.6871,
    -0.8852, -0.2475, 0.0653, 0.8053, -0.1637, -0.0855, -0.2008, -0.3566, -0.2044, -0.6047, -0.072,
    -0.3795, -0.0935, 0.4642, 0.2843, -0.0931, -0.5842, -0.6109, -0.0357, 0.2086, 0.2793, 0.4876,
    -0.709, 0.0396, -0.2217, 0.0269, -0.4521, 0.0131, 0.1509, 0.2082, 0.522, 0.1256, -1.0215,
    -0.9607, 0.1269, -0.1467, 0.1485, -0.7704, -0.5466, 0.7921, -0.2258, 0.4927, -0.174, 0.4244,
    -0.4702, -0.7047, -0.2521, 0.1266, -0.6219, 0.3026, 0.4075, -0.3301, -0.8677, -0.9397, 1.0801,
    0.9366, -0.4756, -0.1347, 0.209, 0.129, -0.2311, -0.7141, -0.0424, 0.4745, 0.0177, 0.3915,
    -0.3636, 0.2323, -0.1351, 0.3916, 0.1206, -0.5877, -0.2158, -0.1924, -0.2008, -0.3669, -0.1913,
    0.0029, -0.2054, -0.0067, 0.0265, -0.3429, -0.1345, 0.0567, 0.2606, 0.5391, 0.1474, 0.6335,
    -0.3408, 0.2121, 0.1374, -0.5855, -0.1895, -0.2505,
  ],
  more: [
    0.6604, -0.2898, -1.0587, -0.2968, 0.5698, 0.9364, -0.0358, -0.2954, -0.0139, 0.8977, 0.1166,
    -0.3392, 0.2916, -0.0318, -0.4104, 0.0357, -0.7801, -0.1842, -0.3535, 0.392, -0.4853, -0.1957,
    -0.1561, -0.5371, -0.4585, -0.3857, -0.3443, -0.1703, 0.0665, -0.0782, 0.5576, -0.8939, 0.6975,
    0.3507, -0.0198, -0.647, -0.2203, 0.2134, 0.5294, 0.1245, 0.5095, -0.1101, -0.1039, -0.1284,
    -0.2118, -0.0163, -0.6557, -0.1127, 0.0661, -0.1963, -0.8264, -0.2796, -0.298, 0.3847, -0.6511,
    -0.6275, 0.0656, -0.3995, -1.0793, 0.0973, 0.6244, 0.9116, 0.528, 0.1033, -0.0736, 0.4569,
    0.1105, 0.0071, -0.2546, -0.4827, 0.3649, -0.5719, 0.3018, -0.3531, 0.4729, -0.6197, -0.7158,
    0.1323, -0.0908, 0.0077, 0.0921, -0.3264, -0.1879, -0.5824, -0.4065, -0.7033, 0.0871, 0.1467,
    0.5281, 0.1689, -0.1027, 0.0637, 0.624, 0.4646, -0.0638, -0.2405, 0.3905, -1.1271, -0.3086,
    -0.6635, -0.7173, 0.0047, 0.7905, 0.3219, -0.3175, 0.0075, 0.9647, -0.5904, -0.6985, -0.2564,
    1.2637, 0.9939, -0.6819, 1.2788, 1.4167, -0.2856, -0.5842, -0.6403, -0.7508, 0.1272, 0.6296,
    0.4359, -0.5078, -0.4924,
  ],
  token: [0.1732, -0.1747, -0.4422, 0.1623],
  pair: [-0.6329, 0.1444, 0.9275, 0.4721, 0.6604, -0.2898, -1.0587, -0.2968],
}
/** Nodes that both graphs share: a part of their files, in base64. */
const NODES =
  'Cj0KDmF0dGVudGlvbl9tYXNrCgNvbmUSA3N1bRoDc3VtIglSZWR1Y2VTdW0qDwoIa2VlcGRpbXMYAKABAjoACh0KA3' +
  'N1bQoDb25lEgRsZXNzGgRsZXNzIgNTdWI6AAorCgRsZXNzEgdsZW5ndGhzGgdsZW5ndGhzIgRDYXN0KgkKAnRvGAag' +
  'AQI6AAonCg5hdHRlbnRpb25fbWFzaxIFc2hhcGUaBXNoYXBlIgVTaGFwZToACjgKBXNoYXBlCgZzZWNvbmQSB3RvdG' +
  'FsNjQaB3RvdGFsNjQiBkdhdGhlcioLCgRheGlzGACgAQI6AAoqCgd0b3RhbDY0EgV0b3RhbBoFdG90YWwiBENhc3Qq' +
  'CQoCdG8YBqABAjoACpIBCgdlbWJlZC5iCglpbnB1dF9pZHMKB2VtYmVkLnMSAXgaAXgiFEdhdGhlckJsb2NrUXVhbn' +
  'RpemVkKgsKBGJpdHMYBKABAioRCgpibG9ja19zaXplGCCgAQIqEgoLZ2F0aGVyX2F4aXMYAKABAioUCg1xdWFudGl6' +
  'ZV9heGlzGAGgAQI6DWNvbS5taWNyb3NvZnQKRAoBeAoGYmVmb3JlEgFuGgFuIhxTaW1wbGlmaWVkTGF5ZXJOb3JtYW' +
  'xpemF0aW9uKhEKB2Vwc2lsb24VrMUnN6ABAToACoABCgFuCgNxLmIKA3EucxIDcS55GgNxLnkiC01hdE11bE5CaXRz' +
  'KgkKAUsYgAGgAQIqCQoBThiAAqABAioVCg5hY2N1cmFjeV9sZXZlbBgAoAECKgsKBGJpdHMYBKABAioRCgpibG9ja1' +
  '9zaXplGCCgAQI6DWNvbS5taWNyb3NvZnQKGgoBbgoBaxIDay55GgNrLnkiBk1hdE11bDoAChoKAW4KAXYSA3YueRoD' +
  'di55IgZNYXRNdWw6AArMAQoDcS55CgNrLnkKA3YueQoIcGFzdC5rZXkKCnBhc3QudmFsdWUKB2xlbmd0aHMKBXRvdG' +
  'FsCgNjb3MKA3NpbhIIYXR0ZW5kZWQSC3ByZXNlbnQua2V5Eg1wcmVzZW50LnZhbHVlGghhdHRlbmRlZCITR3JvdXBR' +
  'dWVyeUF0dGVudGlvbioQCglkb19yb3RhcnkYAaABAioTCgxrdl9udW1faGVhZHMYAqABAioQCgludW1faGVhZHMYBK' +
  'ABAjoNY29tLm1pY3Jvc29mdAqHAQoIYXR0ZW5kZWQKA28uYgoDby5zEgNvLnkaA28ueSILTWF0TXVsTkJpdHMqCQoB' +
  'SxiAAqABAioJCgFOGIABoAECKhUKDmFjY3VyYWN5X2xldmVsGACgAQIqCwoEYml0cxgEoAECKhEKCmJsb2NrX3Npem' +
  'UYIKABAjoNY29tLm1pY3Jvc29mdApjCgF4CgNvLnkKB2JldHdlZW4SAW0SABIAEgJ4MRoBbSIgU2tpcFNpbXBsaWZp' +
  'ZWRMYXllck5vcm1hbGl6YXRpb24qEQoHZXBzaWxvbhWsxSc3oAEBOg1jb20ubWljcm9zb2Z0CowBCgFtCgZnYXRlLm' +
  'IKBmdhdGUucxIGZ2F0ZS55GgZnYXRlLnkiC01hdE11bE5CaXRzKgkKAUsYgAGgAQIqCQoBThiAAqABAioVCg5hY2N1' +
  'cmFjeV9sZXZlbBgAoAECKgsKBGJpdHMYBKABAioRCgpibG9ja19zaXplGCCgAQI6DWNvbS5taWNyb3NvZnQKJQoGZ2' +
  'F0ZS55EgdzaWdtb2lkGgdzaWdtb2lkIgdTaWdtb2lkOgAKJAoGZ2F0ZS55CgdzaWdtb2lkEgRzaWx1GgRzaWx1IgNN' +
  'dWw6AAqEAQoBbQoEdXAuYgoEdXAucxIEdXAueRoEdXAueSILTWF0TXVsTkJpdHMqCQoBSxiAAaABAioJCgFOGIACoA' +
  'ECKhUKDmFjY3VyYWN5X2xldmVsGASgAQIqCwoEYml0cxgEoAECKhEKCmJsb2NrX3NpemUYIKABAjoNY29tLm1pY3Jv' +
  'c29mdAolCgRzaWx1CgR1cC55Egdwcm9kdWN0Ggdwcm9kdWN0IgNNdWw6AAqSAQoHcHJvZHVjdAoGZG93bi5iCgZkb3' +
  'duLnMSBmRvd24ueRoGZG93bi55IgtNYXRNdWxOQml0cyoJCgFLGIACoAECKgkKAU4YgAGgAQIqFQoOYWNjdXJhY3lf' +
  'bGV2ZWwYAKABAioLCgRiaXRzGASgAQIqEQoKYmxvY2tfc2l6ZRggoAECOg1jb20ubWljcm9zb2Z0CiMKAW0KBm1peF' +
  '9pbhIFbWl4ZWQaBW1peGVkIgZNYXRNdWw6AAo4CgVtaXhlZBIGcGxhY2VzGgZwbGFjZXMiB1NvZnRtYXgqFAoEYXhp' +
  'cxj///////////8BoAECOgAKJQoGcGxhY2VzCgdtaXhfb3V0EgNtaXgaA21peCIGTWF0TXVsOgAKGgoGZG93bi55Cg' +
  'NtaXgSAXkaAXkiA0FkZDoACmYKAngxCgF5CgVhZnRlchIEbGFzdBIAEgASAngyGgRsYXN0IiBTa2lwU2ltcGxpZmll' +
  'ZExheWVyTm9ybWFsaXphdGlvbioRCgdlcHNpbG9uFazFJzegAQE6DWNvbS5taWNyb3NvZnQKJgoEbGFzdAoEaGVhZB' +
  'IGc2NvcmVzGgZzY29yZXMiBk1hdE11bDoA'
/** Parts of each file before and after the nodes, in base64. */
const AROUND: Record<'float32' | 'float16', readonly [before: string, behind: string]> = {
  float32: [
    'CAg6pB4=',
    'EgV0cmlhbCpACIABEAFCBmJlZm9yZWoTCghsb2NhdGlvbhIHd2VpZ2h0c2oLCgZvZmZzZXQSATBqDQoGbGVu' +
      'Z3RoEgM1MTJwASpDCIABEAFCB2JldHdlZW5qEwoIbG9jYXRpb24SB3dlaWdodHNqDQoGb2Zmc2V0EgM1MTJq' +
      'DQoGbGVuZ3RoEgM1MTJwASpCCIABEAFCBWFmdGVyahMKCGxvY2F0aW9uEgd3ZWlnaHRzag4KBm9mZnNldBIE' +
      'MTAyNGoNCgZsZW5ndGgSAzUxMnABKkMIgAEIgAEQAUIBa2oTCghsb2NhdGlvbhIHd2VpZ2h0c2oOCgZvZmZz' +
      'ZXQSBDE1MzZqDwoGbGVuZ3RoEgU2NTUzNnABKkQIgAEIgAEQAUIBdmoTCghsb2NhdGlvbhIHd2VpZ2h0c2oP' +
      'CgZvZmZzZXQSBTY3MDcyag8KBmxlbmd0aBIFNjU1MzZwASpFCGAIIBABQgNjb3NqEwoIbG9jYXRpb24SB3dl' +
      'aWdodHNqEAoGb2Zmc2V0EgYxMzI2MDhqDwoGbGVuZ3RoEgUxMjI4OHABKkUIYAggEAFCA3NpbmoTCghsb2Nh' +
      'dGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjE0NDg5NmoPCgZsZW5ndGgSBTEyMjg4cAEqSAiAAQgQEAFCBm1p' +
      'eF9pbmoTCghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjE1NzE4NGoOCgZsZW5ndGgSBDgxOTJwASpJ' +
      'CBAIgAEQAUIHbWl4X291dGoTCghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjE2NTM3NmoOCgZsZW5n' +
      'dGgSBDgxOTJwASpGCIABCAQQAUIEaGVhZGoTCghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjE3MzU2' +
      'OGoOCgZsZW5ndGgSBDIwNDhwASpICEAIQBACQgdlbWJlZC5iahMKCGxvY2F0aW9uEgd3ZWlnaHRzahAKBm9m' +
      'ZnNldBIGMTc1NjE2ag4KBmxlbmd0aBIENDA5NnABKkgIQAgEEAFCB2VtYmVkLnNqEwoIbG9jYXRpb24SB3dl' +
      'aWdodHNqEAoGb2Zmc2V0EgYxNzk3MTJqDgoGbGVuZ3RoEgQxMDI0cAEqSAiAAggECBAQAkIDcS5iahMKCGxv' +
      'Y2F0aW9uEgd3ZWlnaHRzahAKBm9mZnNldBIGMTgwNzM2ag8KBmxlbmd0aBIFMTYzODRwASpDCIAIEAFCA3Eu' +
      'c2oTCghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjE5NzEyMGoOCgZsZW5ndGgSBDQwOTZwASpICIAB' +
      'CAgIEBACQgNvLmJqEwoIbG9jYXRpb24SB3dlaWdodHNqEAoGb2Zmc2V0EgYyMDEyMTZqDwoGbGVuZ3RoEgUx' +
      'NjM4NHABKkMIgAgQAUIDby5zahMKCGxvY2F0aW9uEgd3ZWlnaHRzahAKBm9mZnNldBIGMjE3NjAwag4KBmxl' +
      'bmd0aBIENDA5NnABKksIgAIIBAgQEAJCBmdhdGUuYmoTCghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQS' +
      'BjIyMTY5NmoPCgZsZW5ndGgSBTE2Mzg0cAEqRgiACBABQgZnYXRlLnNqEwoIbG9jYXRpb24SB3dlaWdodHNq' +
      'EAoGb2Zmc2V0EgYyMzgwODBqDgoGbGVuZ3RoEgQ0MDk2cAEqSQiAAggECBAQAkIEdXAuYmoTCghsb2NhdGlv' +
      'bhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjI0MjE3NmoPCgZsZW5ndGgSBTE2Mzg0cAEqRAiACBABQgR1cC5zahMK' +
      'CGxvY2F0aW9uEgd3ZWlnaHRzahAKBm9mZnNldBIGMjU4NTYwag4KBmxlbmd0aBIENDA5NnABKksIgAEICAgQ' +
      'EAJCBmRvd24uYmoTCghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjI2MjY1NmoPCgZsZW5ndGgSBTE2' +
      'Mzg0cAEqRgiACBABQgZkb3duLnNqEwoIbG9jYXRpb24SB3dlaWdodHNqEAoGb2Zmc2V0EgYyNzkwNDBqDgoG' +
      'bGVuZ3RoEgQ0MDk2cAEqEwgBEAdCA29uZUoIAQAAAAAAAAAqFBAHQgZzZWNvbmRKCAEAAAAAAAAAWh0KCWlu' +
      'cHV0X2lkcxIQCg4IBxIKCgMSAWIKAxIBc1oiCg5hdHRlbnRpb25fbWFzaxIQCg4IBxIKCgMSAWIKAxIBdFok' +
      'CghwYXN0LmtleRIYChYIARISCgMSAWIKAggCCgMSAXAKAghAWiYKCnBhc3QudmFsdWUSGAoWCAESEgoDEgFi' +
      'CgIIAgoDEgFwCgIIQGIeCgZzY29yZXMSFAoSCAESDgoDEgFiCgMSAXMKAggEYicKC3ByZXNlbnQua2V5EhgK' +
      'FggBEhIKAxIBYgoCCAIKAxIBcQoCCEBiKQoNcHJlc2VudC52YWx1ZRIYChYIARISCgMSAWIKAggCCgMSAXEK' +
      'AghAQgQKABARQhEKDWNvbS5taWNyb3NvZnQQAQ==',
  ],
  float16: [
    'CAg6lx4=',
    'EgV0cmlhbCpACIABEApCBmJlZm9yZWoTCghsb2NhdGlvbhIHd2VpZ2h0c2oLCgZvZmZzZXQSATBqDQoGbGVu' +
      'Z3RoEgMyNTZwASpDCIABEApCB2JldHdlZW5qEwoIbG9jYXRpb24SB3dlaWdodHNqDQoGb2Zmc2V0EgMyNTZq' +
      'DQoGbGVuZ3RoEgMyNTZwASpBCIABEApCBWFmdGVyahMKCGxvY2F0aW9uEgd3ZWlnaHRzag0KBm9mZnNldBID' +
      'NTEyag0KBmxlbmd0aBIDMjU2cAEqQgiAAQiAARAKQgFrahMKCGxvY2F0aW9uEgd3ZWlnaHRzag0KBm9mZnNl' +
      'dBIDNzY4ag8KBmxlbmd0aBIFMzI3NjhwASpECIABCIABEApCAXZqEwoIbG9jYXRpb24SB3dlaWdodHNqDwoG' +
      'b2Zmc2V0EgUzMzUzNmoPCgZsZW5ndGgSBTMyNzY4cAEqQwhgCCAQCkIDY29zahMKCGxvY2F0aW9uEgd3ZWln' +
      'aHRzag8KBm9mZnNldBIFNjYzMDRqDgoGbGVuZ3RoEgQ2MTQ0cAEqQwhgCCAQCkIDc2luahMKCGxvY2F0aW9u' +
      'Egd3ZWlnaHRzag8KBm9mZnNldBIFNzI0NDhqDgoGbGVuZ3RoEgQ2MTQ0cAEqRwiAAQgQEApCBm1peF9pbmoT' +
      'Cghsb2NhdGlvbhIHd2VpZ2h0c2oPCgZvZmZzZXQSBTc4NTkyag4KBmxlbmd0aBIENDA5NnABKkgIEAiAARAK' +
      'QgdtaXhfb3V0ahMKCGxvY2F0aW9uEgd3ZWlnaHRzag8KBm9mZnNldBIFODI2ODhqDgoGbGVuZ3RoEgQ0MDk2' +
      'cAEqRQiAAQgEEApCBGhlYWRqEwoIbG9jYXRpb24SB3dlaWdodHNqDwoGb2Zmc2V0EgU4Njc4NGoOCgZsZW5n' +
      'dGgSBDEwMjRwASpHCEAIQBACQgdlbWJlZC5iahMKCGxvY2F0aW9uEgd3ZWlnaHRzag8KBm9mZnNldBIFODc4' +
      'MDhqDgoGbGVuZ3RoEgQ0MDk2cAEqRghACAQQCkIHZW1iZWQuc2oTCghsb2NhdGlvbhIHd2VpZ2h0c2oPCgZv' +
      'ZmZzZXQSBTkxOTA0ag0KBmxlbmd0aBIDNTEycAEqRwiAAggECBAQAkIDcS5iahMKCGxvY2F0aW9uEgd3ZWln' +
      'aHRzag8KBm9mZnNldBIFOTI0MTZqDwoGbGVuZ3RoEgUxNjM4NHABKkMIgAgQCkIDcS5zahMKCGxvY2F0aW9u' +
      'Egd3ZWlnaHRzahAKBm9mZnNldBIGMTA4ODAwag4KBmxlbmd0aBIEMjA0OHABKkgIgAEICAgQEAJCA28uYmoT' +
      'Cghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjExMDg0OGoPCgZsZW5ndGgSBTE2Mzg0cAEqQwiACBAK' +
      'QgNvLnNqEwoIbG9jYXRpb24SB3dlaWdodHNqEAoGb2Zmc2V0EgYxMjcyMzJqDgoGbGVuZ3RoEgQyMDQ4cAEq' +
      'SwiAAggECBAQAkIGZ2F0ZS5iahMKCGxvY2F0aW9uEgd3ZWlnaHRzahAKBm9mZnNldBIGMTI5Mjgwag8KBmxl' +
      'bmd0aBIFMTYzODRwASpGCIAIEApCBmdhdGUuc2oTCghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjE0' +
      'NTY2NGoOCgZsZW5ndGgSBDIwNDhwASpJCIACCAQIEBACQgR1cC5iahMKCGxvY2F0aW9uEgd3ZWlnaHRzahAK' +
      'Bm9mZnNldBIGMTQ3NzEyag8KBmxlbmd0aBIFMTYzODRwASpECIAIEApCBHVwLnNqEwoIbG9jYXRpb24SB3dl' +
      'aWdodHNqEAoGb2Zmc2V0EgYxNjQwOTZqDgoGbGVuZ3RoEgQyMDQ4cAEqSwiAAQgICBAQAkIGZG93bi5iahMK' +
      'CGxvY2F0aW9uEgd3ZWlnaHRzahAKBm9mZnNldBIGMTY2MTQ0ag8KBmxlbmd0aBIFMTYzODRwASpGCIAIEApC' +
      'BmRvd24uc2oTCghsb2NhdGlvbhIHd2VpZ2h0c2oQCgZvZmZzZXQSBjE4MjUyOGoOCgZsZW5ndGgSBDIwNDhw' +
      'ASoTCAEQB0IDb25lSggBAAAAAAAAACoUEAdCBnNlY29uZEoIAQAAAAAAAABaHQoJaW5wdXRfaWRzEhAKDggH' +
      'EgoKAxIBYgoDEgFzWiIKDmF0dGVudGlvbl9tYXNrEhAKDggHEgoKAxIBYgoDEgF0WiQKCHBhc3Qua2V5EhgK' +
      'FggKEhIKAxIBYgoCCAIKAxIBcAoCCEBaJgoKcGFzdC52YWx1ZRIYChYIChISCgMSAWIKAggCCgMSAXAKAghA' +
      'Yh4KBnNjb3JlcxIUChIIChIOCgMSAWIKAxIBcwoCCARiJwoLcHJlc2VudC5rZXkSGAoWCAoSEgoDEgFiCgII' +
      'AgoDEgFxCgIIQGIpCg1wcmVzZW50LnZhbHVlEhgKFggKEhIKAxIBYgoCCAIKAxIBcQoCCEBCBAoAEBFCEQoN' +
      'Y29tLm1pY3Jvc29mdBAB',
  ],
}

/** Operators of the GPU self-test. `test/models/selftest_operators.py` writes this file. */
const OPERATOR_WEIGHTS = 6128
/** Graph in base64. */
const OPERATOR_GRAPH =
  'CAg6xSQKHQoFc291bmQKBXNjYWxlEghzb3VuZF9pbiIDTXVsCjEKCHNvdW5kX2luCgRwYWRzEgZwYWRkZWQiA1BhZC' +
  'oSCgRtb2RlIgdyZWZsZWN0oAEDChYKBnBhZGRlZAoCdzESAmMxIgRDb252CicKAmMxCgl3X2NoYW5uZWwSAmMyIgRD' +
  'b252KgwKBWdyb3VwGAigAQIKNwoCYzIKCHdfc3RyaWRlEgJjMyIEQ29udioNCgRwYWRzQAFAAaABByoOCgdzdHJpZG' +
  'VzQAKgAQcKJwoCYzMSBXN0ZXBzIglUcmFuc3Bvc2UqDwoEcGVybUACQABAAaABBwo/CgVzdGVwcwoGbHN0bV93CgZs' +
  'c3RtX3IKBmxzdG1fYhIEbHN0bSIETFNUTSoSCgtoaWRkZW5fc2l6ZRgIoAECCh4KBGxzdG0KA29uZRIIbHN0bV9vdX' +
  'QiB1NxdWVlemUKWwoIbHN0bV9vdXQKBWdydV93CgVncnVfcgoFZ3J1X2ISABIDZ3J1IgNHUlUqEgoLaGlkZGVuX3Np' +
  'emUYCKABAioaChNsaW5lYXJfYmVmb3JlX3Jlc2V0GAGgAQIKGwoDZ3J1CgVjZWxscxIEY2VsbCIHUmVzaGFwZQonCg' +
  'RjZWxsEgNzdW0iCVJlZHVjZVN1bSoPCghrZWVwZGltcxgAoAECChwKA3N1bQoDbG93Egdpc19oaWdoIgdHcmVhdGVy' +
  'CrIBCgdpc19oaWdoEgZjaG9zZW4iAklmKksKC2Vsc2VfYnJhbmNoMjkKFQoEY2VsbBIIbmVnYXRpdmUiA05lZxIEZW' +
  'xzZWIaCghuZWdhdGl2ZRIOCgwIARIICgIIAQoCCAigAQUqTgoLdGhlbl9icmFuY2gyPAoZCgRjZWxsCgN0d28SB2Rv' +
  'dWJsZWQiA011bBIEdGhlbmIZCgdkb3VibGVkEg4KDAgBEggKAggBCgIICKABBQrjAQoGcm91bmRzCgAKBmNob3Nlbh' +
  'IJcmVjdXJyZW50IgRMb29wKr0BCgRib2R5MrEBChQKAmdvEgRnb2VzIghJZGVudGl0eQogCgVzdGF0ZQoGd19sb29w' +
  'Egdwcm9kdWN0IgZNYXRNdWwKFQoHcHJvZHVjdBIEbmV4dCIEVGFuaBIEYm9keVoLCgFpEgYKBAgHEgBaDAoCZ28SBg' +
  'oECAkSAFoXCgVzdGF0ZRIOCgwIARIICgIIAQoCCAhiDgoEZ29lcxIGCgQICRIAYhYKBG5leHQSDgoMCAESCAoCCAEK' +
  'AggIoAEFCiEKB3BpY3R1cmUKBXNjYWxlEgpwaWN0dXJlX2luIgNNdWwKPwoKcGljdHVyZV9pbgoCdzISAnAxIgRDb2' +
  '52KhEKBHBhZHNAAUABQAFAAaABByoQCgdzdHJpZGVzQAJAAqABBwoOCgJwMRICcDIiBFJlbHUKOwoCcDIKCncyX2No' +
  'YW5uZWwSAnAzIgRDb252KgwKBWdyb3VwGBCgAQIqEQoEcGFkc0ABQAFAAUABoAEHChYKAnAzCgZ3Ml9vbmUSAnA0Ig' +
  'RDb252CjEKAnA0Cgh3Ml9wYXRjaBIJY29udm9sdmVkIgRDb252KhAKB3N0cmlkZXNABEAEoAEHChsKBHJvd3MKBXNj' +
  'YWxlEgdyb3dzX2luIgNNdWwKMQoHcm93c19pbhIEbWVhbiIKUmVkdWNlTWVhbioUCgRheGVzQP///////////wGgAQ' +
  'cKGwoHcm93c19pbgoEbWVhbhIFYXBhcnQiA1N1YgoaCgVhcGFydAoDdHdvEgdzcXVhcmVzIgNQb3cKNQoHc3F1YXJl' +
  'cxIIdmFyaWFuY2UiClJlZHVjZU1lYW4qFAoEYXhlc0D///////////8BoAEHCh8KCHZhcmlhbmNlCgdlcHNpbG9uEg' +
  'VhYm92ZSIDQWRkChgKBWFib3ZlEglkZXZpYXRpb24iBFNxcnQKHQoFYXBhcnQKCWRldmlhdGlvbhIEZXZlbiIDRGl2' +
  'ChkKBGV2ZW4KBG5vcm0SBnNjYWxlZCIDTXVsCiEKBnNjYWxlZAoJbm9ybV9iaWFzEgdub3JtZWQwIgNBZGQKHQoHbm' +
  '9ybWVkMAoCcTASBnEwX291dCIGTWF0TXVsCh0KB25vcm1lZDAKAmswEgZrMF9vdXQiBk1hdE11bAodCgdub3JtZWQw' +
  'CgJ2MBIGdjBfb3V0IgZNYXRNdWwKIQoGcTBfb3V0CgVoZWFkcxIHcV9oZWFkcyIHUmVzaGFwZQoxCgdxX2hlYWRzEg' +
  'hxX3R1cm5lZCIJVHJhbnNwb3NlKhEKBHBlcm1AAEACQAFAA6ABBwohCgZrMF9vdXQKBWhlYWRzEgdrX2hlYWRzIgdS' +
  'ZXNoYXBlCjEKB2tfaGVhZHMSCGtfdHVybmVkIglUcmFuc3Bvc2UqEQoEcGVybUAAQAJAA0ABoAEHCiEKBnYwX291dA' +
  'oFaGVhZHMSB3ZfaGVhZHMiB1Jlc2hhcGUKMQoHdl9oZWFkcxIIdl90dXJuZWQiCVRyYW5zcG9zZSoRCgRwZXJtQABA' +
  'AkABQAOgAQcKIQoIcV90dXJuZWQKCGtfdHVybmVkEgNyYXciBk1hdE11bAoZCgNyYXcKBXNoYXJlEgZzY29yZXMiA0' +
  '11bAovCgZzY29yZXMSBnNoYXJlcyIHU29mdG1heCoUCgRheGlzGP///////////wGgAQIKIAoGc2hhcmVzCgh2X3R1' +
  'cm5lZBIEc2VlbiIGTWF0TXVsCi8KBHNlZW4SCXNlZW5fcm93cyIJVHJhbnNwb3NlKhEKBHBlcm1AAEACQAFAA6ABBw' +
  'onCglzZWVuX3Jvd3MKBXdob2xlEgpmaXJzdF9yb3dzIgdSZXNoYXBlCiAKB3Jvd3NfaW4KCmZpcnN0X3Jvd3MSBHN1' +
  'bTAiA0FkZApHCgRzdW0wCgRub3JtCglub3JtX2JpYXMSB25vcm1lZDEiEkxheWVyTm9ybWFsaXphdGlvbioRCgdlcH' +
  'NpbG9uFazFJzegAQEKHQoHbm9ybWVkMQoCcTESBnExX291dCIGTWF0TXVsCh0KB25vcm1lZDEKAmsxEgZrMV9vdXQi' +
  'Bk1hdE11bAodCgdub3JtZWQxCgJ2MRIGdjFfb3V0IgZNYXRNdWwKawoGcTFfb3V0CgZrMV9vdXQKBnYxX291dBILc2' +
  'Vjb25kX3Jvd3MiEk11bHRpSGVhZEF0dGVudGlvbioQCgludW1faGVhZHMYAqABAioPCgVzY2FsZRXzBLVAoAEBOg1j' +
  'b20ubWljcm9zb2Z0CiwKC3NlY29uZF9yb3dzEghhdHRlbmRlZCIER2VsdToNY29tLm1pY3Jvc29mdBIJb3BlcmF0b3' +
  'JzKkIIAQgICBQQAUIFc291bmRqEwoIbG9jYXRpb24SB3dlaWdodHNqCwoGb2Zmc2V0EgEwag0KBmxlbmd0aBIDNjQw' +
  'cAEqSQgBCAMIEAgQEAFCB3BpY3R1cmVqEwoIbG9jYXRpb24SB3dlaWdodHNqDQoGb2Zmc2V0EgM2NDBqDgoGbGVuZ3' +
  'RoEgQzMDcycAEqQggICAgIAxABQgJ3MWoTCghsb2NhdGlvbhIHd2VpZ2h0c2oOCgZvZmZzZXQSBDM3MTJqDQoGbGVu' +
  'Z3RoEgM3NjhwASpJCAgIAQgEEAFCCXdfY2hhbm5lbGoTCghsb2NhdGlvbhIHd2VpZ2h0c2oOCgZvZmZzZXQSBDQ0OD' +
  'BqDQoGbGVuZ3RoEgMxMjhwASpJCAwICAgDEAFCCHdfc3RyaWRlahMKCGxvY2F0aW9uEgd3ZWlnaHRzag4KBm9mZnNl' +
  'dBIENDYwOGoOCgZsZW5ndGgSBDExNTJwASpHCAEIIAgMEAFCBmxzdG1fd2oTCghsb2NhdGlvbhIHd2VpZ2h0c2oOCg' +
  'ZvZmZzZXQSBDU3NjBqDgoGbGVuZ3RoEgQxNTM2cAEqRwgBCCAICBABQgZsc3RtX3JqEwoIbG9jYXRpb24SB3dlaWdo' +
  'dHNqDgoGb2Zmc2V0EgQ3Mjk2ag4KBmxlbmd0aBIEMTAyNHABKkQIAQhAEAFCBmxzdG1fYmoTCghsb2NhdGlvbhIHd2' +
  'VpZ2h0c2oOCgZvZmZzZXQSBDgzMjBqDQoGbGVuZ3RoEgMyNTZwASpFCAEIGAgIEAFCBWdydV93ahMKCGxvY2F0aW9u' +
  'Egd3ZWlnaHRzag4KBm9mZnNldBIEODU3NmoNCgZsZW5ndGgSAzc2OHABKkUIAQgYCAgQAUIFZ3J1X3JqEwoIbG9jYX' +
  'Rpb24SB3dlaWdodHNqDgoGb2Zmc2V0EgQ5MzQ0ag0KBmxlbmd0aBIDNzY4cAEqRAgBCDAQAUIFZ3J1X2JqEwoIbG9j' +
  'YXRpb24SB3dlaWdodHNqDwoGb2Zmc2V0EgUxMDExMmoNCgZsZW5ndGgSAzE5MnABKkUICAgIEAFCBndfbG9vcGoTCg' +
  'hsb2NhdGlvbhIHd2VpZ2h0c2oPCgZvZmZzZXQSBTEwMzA0ag0KBmxlbmd0aBIDMjU2cAEqRggQCAMIAwgDEAFCAncy' +
  'ahMKCGxvY2F0aW9uEgd3ZWlnaHRzag8KBm9mZnNldBIFMTA1NjBqDgoGbGVuZ3RoEgQxNzI4cAEqTQgQCAEIAwgDEA' +
  'FCCncyX2NoYW5uZWxqEwoIbG9jYXRpb24SB3dlaWdodHNqDwoGb2Zmc2V0EgUxMjI4OGoNCgZsZW5ndGgSAzU3NnAB' +
  'KkkICAgQCAEIARABQgZ3Ml9vbmVqEwoIbG9jYXRpb24SB3dlaWdodHNqDwoGb2Zmc2V0EgUxMjg2NGoNCgZsZW5ndG' +
  'gSAzUxMnABKkwICAgICAQIBBABQgh3Ml9wYXRjaGoTCghsb2NhdGlvbhIHd2VpZ2h0c2oPCgZvZmZzZXQSBTEzMzc2' +
  'ag4KBmxlbmd0aBIENDA5NnABKkUIAQgMCBAQAUIEcm93c2oTCghsb2NhdGlvbhIHd2VpZ2h0c2oPCgZvZmZzZXQSBT' +
  'E3NDcyag0KBmxlbmd0aBIDNzY4cAEqQAgQEAFCBG5vcm1qEwoIbG9jYXRpb24SB3dlaWdodHNqDwoGb2Zmc2V0EgUx' +
  'ODI0MGoMCgZsZW5ndGgSAjY0cAEqRQgQEAFCCW5vcm1fYmlhc2oTCghsb2NhdGlvbhIHd2VpZ2h0c2oPCgZvZmZzZX' +
  'QSBTE4MzA0agwKBmxlbmd0aBICNjRwASpCCBAIEBABQgJxMGoTCghsb2NhdGlvbhIHd2VpZ2h0c2oPCgZvZmZzZXQS' +
  'BTE4MzY4ag4KBmxlbmd0aBIEMTAyNHABKkIIEAgQEAFCAmswahMKCGxvY2F0aW9uEgd3ZWlnaHRzag8KBm9mZnNldB' +
  'IFMTkzOTJqDgoGbGVuZ3RoEgQxMDI0cAEqQggQCBAQAUICdjBqEwoIbG9jYXRpb24SB3dlaWdodHNqDwoGb2Zmc2V0' +
  'EgUyMDQxNmoOCgZsZW5ndGgSBDEwMjRwASpCCBAIEBABQgJxMWoTCghsb2NhdGlvbhIHd2VpZ2h0c2oPCgZvZmZzZX' +
  'QSBTIxNDQwag4KBmxlbmd0aBIEMTAyNHABKkIIEAgQEAFCAmsxahMKCGxvY2F0aW9uEgd3ZWlnaHRzag8KBm9mZnNl' +
  'dBIFMjI0NjRqDgoGbGVuZ3RoEgQxMDI0cAEqQggQCBAQAUICdjFqEwoIbG9jYXRpb24SB3dlaWdodHNqDwoGb2Zmc2' +
  'V0EgUyMzQ4OGoOCgZsZW5ndGgSBDEwMjRwASo8CAYQB0IEcGFkc0owAAAAAAAAAAAAAAAAAAAAAAIAAAAAAAAAAAAA' +
  'AAAAAAAAAAAAAAAAAAIAAAAAAAAAKhMIARAHQgNvbmVKCAEAAAAAAAAAKh0IAhAHQgVjZWxsc0oQAQAAAAAAAAAIAA' +
  'AAAAAAACoUEAdCBnJvdW5kc0oIAwAAAAAAAAAqDRABQgNsb3dKBAAAesQqDRABQgN0d29KBAAAAEAqLQgEEAdCBWhl' +
  'YWRzSiABAAAAAAAAAAwAAAAAAAAAAgAAAAAAAAAIAAAAAAAAAColCAMQB0IFd2hvbGVKGAEAAAAAAAAADAAAAAAAAA' +
  'AQAAAAAAAAACoREAFCB2Vwc2lsb25KBKzFJzcqDxABQgVzaGFyZUoE8wS1QFoPCgVzY2FsZRIGCgQIARIAYhsKCXJl' +
  'Y3VycmVudBIOCgwIARIICgIIAQoCCAhiIwoJY29udm9sdmVkEhYKFAgBEhAKAggBCgIICAoCCAIKAggCYh4KCGF0dG' +
  'VuZGVkEhIKEAgBEgwKAggBCgIIDAoCCBBCBAoAEBFCEQoNY29tLm1pY3Jvc29mdBAB'
/** Expected numbers of each output. */
const EXPECTED_OUTPUTS = {
  recurrent: [-0.16908, 0.17577, 0.12534, -0.37407, 0.2392, 0.02083, -0.06782, 0.08308],
  convolved: [
    1.07043, -0.10668, -0.04255, 0.11098, -0.39879, -0.97736, 0.9814, -0.9682, 0.53201, 0.51636,
    -0.55073, -1.80908, -0.2223, 0.34912, -0.29996, -0.78921, 0.15614, 0.89365, -0.11673, 0.94537,
    -0.67967, -1.13137, 0.17025, 0.3464, 0.36255, -0.11271, 0.53422, 0.40738, -0.77852, -0.33265,
    0.60735, -0.9067,
  ],
  attended: [
    0.19128, 0.09124, -0.12137, -0.12542, 0.15607, -0.03923, -0.02326, -0.15298, 0.45454, -0.16979,
    0.1972, -0.06727, 0.69655, -0.00731, -0.13771, 0.35949, 0.13799, 0.08955, -0.1131, -0.11914,
    0.13734, -0.00236, -0.02201, -0.14848, 0.39905, -0.16981, 0.18594, -0.03968, 0.6863, 0.00536,
    -0.10982, 0.37, 0.15923, 0.09841, -0.11941, -0.11249, 0.1599, -0.0357, -0.02719, -0.15145,
    0.43619, -0.16983, 0.17514, -0.04785, 0.68395, 0.00278, -0.1201, 0.37923, 0.14439, 0.09227,
    -0.13469, -0.13738, 0.18183, -0.00175, -0.06211, -0.15513, 0.46336, -0.16977, 0.22788, -0.04568,
    0.6955, -0.02998, -0.11334, 0.39621, 0.15256, 0.09197, -0.12824, -0.13292, 0.16498, -0.00841,
    -0.04692, -0.1537, 0.46496, -0.1698, 0.2157, -0.02491, 0.67865, -0.02667, -0.09495, 0.42422,
    0.14348, 0.09885, -0.1149, -0.1063, 0.14947, -0.02522, -0.02037, -0.14972, 0.41303, -0.1694,
    0.20813, -0.02103, 0.6891, -0.00992, -0.08686, 0.39302, 0.13906, 0.08071, -0.11613, -0.13087,
    0.13783, 0.01721, -0.02841, -0.14852, 0.31509, -0.16598, 0.19787, -0.02664, 0.68239, 0.01733,
    -0.08797, 0.34014, 0.12724, 0.09132, -0.12169, -0.11555, 0.15589, -0.00223, -0.03821, -0.14948,
    0.40876, -0.16837, 0.21363, -0.08435, 0.75784, -0.00318, -0.14518, 0.2823, 0.14223, 0.09966,
    -0.12464, -0.11753, 0.16435, -0.0212, -0.03997, -0.15253, 0.43964, -0.16996, 0.20595, -0.0045,
    0.68789, -0.01834, -0.06829, 0.43381, 0.1417, 0.10466, -0.12127, -0.09801, 0.17542, -0.0403,
    -0.03369, -0.15071, 0.41466, -0.16983, 0.19993, -0.0441, 0.68705, -0.00028, -0.11593, 0.37488,
    0.11859, 0.11191, -0.117, -0.07565, 0.17899, -0.04188, -0.03138, -0.14832, 0.38329, -0.1686,
    0.21008, -0.04317, 0.70473, -0.00076, -0.10676, 0.34826, 0.14657, 0.08346, -0.12521, -0.13777,
    0.15755, 0.01064, -0.04461, -0.15181, 0.4124, -0.16996, 0.16551, -0.05091, 0.67392, 0.01378,
    -0.1247, 0.36271,
  ],
}

// Runs the operators that the decoder of the self-test lacks: recurrent cells, `If`, `Loop`,
// padding by reflection, and convolutions of the layouts in use.

/** Resolves with the largest error of any output. */
export async function findOperatorError({ ort, createSession }: Runtime): Promise<number> {
  const graph = Uint8Array.from(atob(OPERATOR_GRAPH), (each) => each.charCodeAt(0))
  const weights = Float32Array.from(
    { length: OPERATOR_WEIGHTS },
    (_, index) => (draw(index) - 128) / 256,
  )
  const session = await createSession(new Blob([graph]), {
    externalData: [{ path: LOCATION, data: new Blob([weights]) }],
  })
  try {
    const outputs = await session.run({ scale: new ort.Tensor('float32', [1], []) })
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
