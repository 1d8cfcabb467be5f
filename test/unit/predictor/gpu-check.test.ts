/** The verdict on a GPU, with sessions that compute a function of a test. */
import type { Tensor } from 'onnxruntime-web'
import { expect, test } from 'vitest'
import type { GpuComparison } from '../../../src/device/gpu-verdict.ts'
import type { Session } from '../../../src/engine/onnx/runtime.ts'
import { InoriginError } from '../../../src/error.ts'
import { GpuCheck } from '../../../src/predictor/gpu-check.ts'

type Compute = (x: number) => number

function tensorOf(numbers: number[]): Tensor {
  const { length } = numbers
  const shared = { type: 'float32', dims: [length], size: length, dispose: () => undefined }
  return { ...shared, data: Float32Array.from(numbers) } as unknown as Tensor
}

function sessionOf(compute: Compute) {
  const state = { runs: 0, released: false }
  const run = async ({ x }: Record<string, Tensor>) => {
    state.runs += 1
    return { y: tensorOf(Array.from(x?.data as Float32Array, compute)) }
  }
  const release = async () => void (state.released = true)
  return { session: { inputs: [], outputs: [], run, release } as unknown as Session, state }
}

function openCheck(onGpu: Compute, onCpu: Compute | Error = (x) => x) {
  const gpu = sessionOf(onGpu)
  const cpu = sessionOf(onCpu instanceof Error ? () => 0 : onCpu)
  const comparisons: GpuComparison[] = []
  const check = new GpuCheck({
    session: gpu.session,
    async openReference() {
      if (onCpu instanceof Error) throw onCpu
      return { session: cpu.session, sources: new Map() }
    },
    onComparison: (comparison) => comparisons.push(comparison),
  })
  const run = async (...x: number[]) => {
    const { results, device } = await check.run({ x: tensorOf(x) }, ['y'])
    return [device, ...Array.from(results['y']?.data as Float32Array)]
  }
  return { run, comparisons, gpu: gpu.state, cpu: cpu.state }
}

const untrusted = { code: 'gpu_untrusted' }

test('A small difference needs two of three inputs, and the CPU answers meanwhile', async () => {
  const { run, comparisons, gpu, cpu } = openCheck((x) => x * 1.1)
  expect(await run(1, 2)).toEqual(['wasm', 1, 2])
  // The same input is no further evidence.
  expect(await run(1, 2)).toEqual(['wasm', 1, 2])
  expect(comparisons).toEqual([])
  await expect(run(3, 4)).rejects.toMatchObject(untrusted)
  expect(comparisons).toMatchObject([
    { agrees: false, why: 'y[1] is 4.4 on the GPU and 4 on the CPU' },
  ])
  const { runs } = gpu
  await expect(run(5, 6)).rejects.toMatchObject(untrusted)
  expect([gpu.runs, cpu.released]).toEqual([runs, true])
})

test('One input of three may differ', async () => {
  const { run, comparisons, cpu } = openCheck((x) => (x === 1 ? 1.1 : x))
  expect(await run(1, 2)).toEqual(['wasm', 1, 2])
  expect(await run(3, 4)).toEqual(['webgpu', 3, 4])
  expect(await run(5, 6)).toEqual(['webgpu', 5, 6])
  expect(comparisons).toMatchObject([{ agrees: true }])
  const { runs } = cpu
  expect(await run(7, 8)).toEqual(['webgpu', 7, 8])
  expect([cpu.runs, cpu.released]).toEqual([runs, true])
})

test('A constant input counts once others were seen', async () => {
  const { run, comparisons } = openCheck((x) => x)
  // Each input is another one, but none tells more than silence.
  for (let level = 0; level < 70; level += 1) await run(level, level)
  expect(comparisons).toEqual([])
  // After 64 runs, one input is enough.
  await run(1, 2)
  expect(comparisons).toMatchObject([{ agrees: true }])
  const varied = openCheck((x) => x)
  await varied.run(1, 2)
  await varied.run(0, 0)
  expect(varied.comparisons).toMatchObject([{ agrees: true }])
})

test('A GPU that is wrong only for a repeated input is found', async () => {
  let gpuRuns = 0
  const { run, comparisons } = openCheck((x) => ((gpuRuns += 1) > 4 ? x * 1.1 : x))
  // The second run of the same input is compared with what the CPU computed for the first.
  for (let time = 0; time < 2; time += 1) expect(await run(1, 2)).toEqual(['webgpu', 1, 2])
  expect(await run(1, 2)).toEqual(['wasm', 1, 2])
  expect(comparisons).toEqual([])
})

test('A model of random numbers, or one that the CPU cannot run, is not compared', async () => {
  let next = 0
  const count = () => (next += 1)
  const random = openCheck(count, count)
  await random.run(1, 2)
  const why = expect.stringContaining('random')
  expect(random.comparisons).toMatchObject([{ agrees: true, why }])
  const unable = openCheck((x) => x, new Error('no kernel'))
  expect(await unable.run(1, 2)).toEqual(['webgpu', 1, 2])
  expect(unable.comparisons).toMatchObject([{ agrees: true, isTransient: true }])
  const gone = new InoriginError('unavailable', 'The GPU was lost.', { code: 'device_lost' })
  const lost = openCheck((x) => x, gone)
  await expect(lost.run(1, 2)).rejects.toMatchObject({ code: 'device_lost' })
  expect(lost.comparisons).toEqual([])
})
