/** Image encoders on a GPU: the kernels of the self-test, and a graph that the GPU computes wrongly. */
import { expect, test } from 'vitest'
import type { GpuComparison } from '../../../src/device/gpu-verdict.ts'
import { requestGpu } from '../../../src/device/gpu.ts'
import { loadRuntime, type Runtime } from '../../../src/engine/onnx/runtime.ts'
import { findOperatorError } from '../../../src/engine/onnx/selftest/operators.ts'
import type { EncoderInputs } from '../../../src/engine/onnx/vision/family.ts'
import { openEncoder } from '../../../src/engine/onnx/vision/open-encoder.ts'
import { runtimeFolder } from '../../models/tiny.ts'
import { createChance } from '../../support/random.ts'
import { onnxFile, type Weight } from '../../support/onnx.ts'

const SIDE = 32
const [ROWS, WIDTH, CHANNELS] = [4, 32, 16] as const

async function openRuntime(device: 'wasm' | 'webgpu'): Promise<Runtime> {
  const folder = runtimeFolder()
  if (device === 'wasm') return loadRuntime({ device, folder })
  const { device: gpu } = await requestGpu({ features: [], optional: [] })
  return loadRuntime({ device, folder, gpu })
}

// A software GPU compiles shaders for seconds, on a busy machine for many.
test.each(['wasm', 'webgpu'] as const)(
  'the operators of the self-test have the numbers of numpy on %s',
  { timeout: 300_000 },
  async (device) => {
    const runtime = await openRuntime(device)
    expect(await findOperatorError(runtime)).toBeLessThan(1e-4)
    runtime.release()
  },
)

function floats(name: string, shape: readonly number[], seed: number): Weight {
  const chance = createChance(seed)
  const count = shape.reduce((product, length) => product * length, 1)
  const values = Float32Array.from({ length: count }, () => chance.below(2000) / 20_000 - 0.05)
  return { name, type: 'float32', shape, data: new Uint8Array(values.buffer) }
}

const integers = (name: string, values: readonly bigint[]): Weight => ({
  name,
  type: 'int64',
  shape: [values.length],
  data: new Uint8Array(BigInt64Array.from(values).buffer),
})

/** Returns an encoder with a convolution of that many powers of three channels; see `wrong-conv.ts`. */
function encoderOf(powerCount: number): Blob {
  const inner = SIDE - 2
  const powers = Array.from({ length: powerCount }, (_, power) => `power${power}`)
  const file = onnxFile({
    inputs: [{ name: 'pixel_values', type: 'float32', shape: [1, 1, 3, SIDE, SIDE] }],
    outputs: [{ name: 'image_features', type: 'float32', shape: [1, ROWS, WIDTH] }],
    nodes: [
      { type: 'Reshape', inputs: ['pixel_values', 'tile'], outputs: ['power0'] },
      ...powers.slice(1).map((power, before) => ({
        type: 'Mul',
        inputs: [`power${before}`, 'power0'],
        outputs: [power],
      })),
      { type: 'Concat', inputs: powers, outputs: ['wide'], attributes: { axis: 1 } },
      { type: 'Conv', inputs: ['wide', 'w'], outputs: ['convolved'] },
      { type: 'Reshape', inputs: ['convolved', 'flat'], outputs: ['flattened'] },
      { type: 'MatMul', inputs: ['flattened', 'connect'], outputs: ['joined'] },
      { type: 'Reshape', inputs: ['joined', 'rows'], outputs: ['image_features'] },
    ],
    weights: [
      integers('tile', [1n, 3n, BigInt(SIDE), BigInt(SIDE)]),
      integers('flat', [BigInt(CHANNELS), BigInt(inner * inner)]),
      integers('rows', [1n, BigInt(ROWS), BigInt(WIDTH)]),
      floats('w', [CHANNELS, 3 * powerCount, 3, 3], 1),
      floats('connect', [inner * inner, (ROWS * WIDTH) / CHANNELS], 2),
    ],
  })
  return new Blob([file])
}

const INPUTS: EncoderInputs = {
  pixel_values: {
    type: 'float',
    data: Float32Array.from({ length: 3 * SIDE * SIDE }, (_, at) => ((at * 37) % 256) / 128 - 1),
    dims: [1, 1, 3, SIDE, SIDE],
  },
}

async function encode(device: 'wasm' | 'webgpu', powerCount: number, known?: GpuComparison) {
  const runtime = await openRuntime(device)
  const model = encoderOf(powerCount)
  const comparisons: GpuComparison[] = []
  const opened: boolean[] = []
  const createSession = (onCpu: boolean) => {
    opened.push(onCpu)
    return runtime.createSession(model, { onCpu })
  }
  const run = await openEncoder(
    { runtime, graph: { model, externalData: [] }, createSession },
    {
      device,
      runtime: runtimeFolder(),
      contextWindow: 64,
      firstPosition: 0,
      heads: undefined,
      ...(known && { encoderComparison: known }),
      onEncoderComparison: (comparison) => comparisons.push(comparison),
    },
  )
  const rows = [await run(INPUTS, ROWS), await run(INPUTS, ROWS)].map((each) => [...each])
  runtime.release()
  return { rows, comparisons, opened }
}

const farthest = (ours: readonly number[] = [], theirs: readonly number[] = []): number =>
  Math.max(...theirs.map((their, at) => Math.abs((ours[at] ?? NaN) - their)))

test(
  'an encoder that the GPU computes wrongly runs on the CPU',
  { tags: ['slow'], timeout: 300_000 },
  async () => {
    const right = await encode('wasm', 3)
    expect(right.comparisons).toEqual([])
    const { rows, comparisons, opened } = await encode('webgpu', 3)
    expect(comparisons).toMatchObject([
      { agrees: false, why: expect.stringContaining('image encoder') },
    ])
    for (const each of rows) expect(farthest(each, right.rows[0])).toBeLessThan(1e-4)
    expect(opened).toEqual([false, true])
    const later = await encode('webgpu', 3, comparisons[0])
    expect(later.opened).toEqual([true])
    expect(farthest(later.rows[0], right.rows[0])).toBeLessThan(1e-4)
  },
)

test(
  'an encoder that the GPU computes right is compared once',
  { tags: ['slow'], timeout: 300_000 },
  async () => {
    const { comparisons, opened } = await encode('webgpu', 4)
    expect(comparisons).toMatchObject([{ agrees: true }])
    expect(opened).toEqual([false, true])
    const later = await encode('webgpu', 4, comparisons[0])
    expect(later).toMatchObject({ comparisons: [], opened: [false] })
  },
)
