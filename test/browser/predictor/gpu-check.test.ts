/** Predictors on a GPU whose first outputs are compared with those of the CPU. */
import { expect, test } from 'vitest'
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import type { GpuComparison } from '../../../src/device/gpu-verdict.ts'
import { openPredictor } from '../../../src/predictor/open-predictor.ts'
import type { Device, TensorValue } from '../../../src/types/index.ts'
import { convolution, noise, SIDE } from '../../models/wrong-conv.ts'
import { runtime, tagsOf } from './embedded.ts'

const { signal } = new AbortController()
const options = { tags: tagsOf('webgpu'), timeout: 300_000 }

/** A convolution, with what its check concludes. */
async function openConvolution(channels: 8 | 9, device: Device = 'webgpu') {
  const model = convolution(channels)
  const resource = {
    type: 'onnx',
    url: 'm',
    name: 'm.onnx',
    bytes: model.length,
    sha256: '0'.repeat(64),
  } as const
  const implementation = { id: device, engine: 'onnx', device, resources: [resource] } as const
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@test/convolution',
    name: 'Convolution',
    created: '2026-01-01T00:00:00Z',
    signature: {
      inputs: [{ name: 'x', type: 'float32' }],
      outputs: [
        { name: 'y', type: 'float32' },
        { name: 'best', type: 'int64' },
      ],
    },
    implementations: [{ ...implementation, resources: [resource] }],
  }
  const files = new Map([['m.onnx', new Blob([model])]])
  const comparisons: GpuComparison[] = []
  const predictor = await openPredictor(
    { entry, implementation: entry.implementations[0]!, files, device, runtime },
    signal,
    (comparison) => comparisons.push(comparison),
  )
  const run = async (data: Float32Array) => {
    const shape = [1, channels, SIDE, SIDE]
    const { outputs, device: used } = await predictor.predict({ x: { data, shape } }, signal)
    const { data: numbers } = outputs['y'] as TensorValue
    return { used, largest: Math.max(...(numbers as Float32Array)) }
  }
  return { run, comparisons, close: predictor.close }
}

test('a kernel that computes wrong numbers answers no caller', options, async () => {
  const { run, comparisons, close } = await openConvolution(9)
  const expected = { code: 'gpu_untrusted', details: { comparison: { agrees: false } } }
  await expect(run(noise(9, 2))).rejects.toMatchObject(expected)
  await expect(run(noise(9, 3))).rejects.toMatchObject(expected)
  expect(comparisons).toEqual([
    {
      agrees: false,
      why: expect.stringMatching(/^y\[\d+\] is \S+ on the GPU and \S+ on the CPU$/),
    },
  ])
  await close()
})

test('silence, on which a wrong kernel is right, is no evidence', options, async () => {
  const { run, comparisons, close } = await openConvolution(9)
  const silence = noise(9, 2).fill(0)
  for (let count = 0; count < 4; count += 1) expect((await run(silence)).largest).toBe(0)
  expect(comparisons).toEqual([])
  await expect(run(noise(9, 2))).rejects.toMatchObject({ code: 'gpu_untrusted' })
  await close()
})

test(
  'a right kernel is trusted after two inputs that differ from each other',
  options,
  async () => {
    const { run, comparisons, close } = await openConvolution(8)
    const onCpu = await openConvolution(8, 'wasm')
    const first = noise(8, 2)
    const { largest } = await onCpu.run(first)
    await onCpu.close()
    for (const used of [await run(first), await run(first)]) {
      expect(used.used).toBe('webgpu')
      expect(used.largest).toBeCloseTo(largest, 3)
    }
    expect(comparisons).toEqual([])
    await run(noise(8, 3))
    expect(comparisons).toEqual([{ agrees: true, why: expect.stringContaining('first inputs') }])
    expect((await run(noise(8, 4))).used).toBe('webgpu')
    await close()
  },
)
