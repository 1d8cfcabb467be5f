/** That memory on a GPU is copied as plain memory is, wherever a token's part of it begins. */
import type { Tensor } from 'onnxruntime-web'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requestGpu } from '../../../src/device/gpu.ts'
import {
  cpuKvMemory,
  gpuKvMemory,
  type KvMemory,
} from '../../../src/engine/onnx/decoder/kv-memory.ts'
import type { CacheSpec } from '../../../src/engine/onnx/decoder/graph.ts'
import { loadRuntime, type Runtime } from '../../../src/engine/onnx/runtime.ts'
import { runtimeFolder } from '../../models/tiny.ts'

/** To be copied to, and read: GPUBufferUsage's numbers. */
const READ = 0x01 | 0x08

let gpu: GPUDevice
let runtime: Runtime
beforeAll(async () => {
  gpu = (await requestGpu()).device
  runtime = await loadRuntime({ device: 'webgpu', folder: runtimeFolder(), gpu })
})
afterAll(() => {
  runtime.release()
  gpu.destroy()
})

const bytesIn = ({ data }: Tensor): Uint8Array<ArrayBuffer> => {
  const { buffer, byteOffset, byteLength } = data as Float32Array<ArrayBuffer>
  return new Uint8Array(buffer, byteOffset, byteLength)
}

/** Both kinds of memory with the same in them. */
function twins(spec: CacheSpec, rows: number, capacity: number): { plain: Tensor; onGpu: Tensor } {
  const plain = cpuKvMemory(runtime.ort).allocate(spec, rows, capacity)
  const bytes = bytesIn(plain)
  bytes.forEach((_, at) => (bytes[at] = (at * 37 + rows) % 251))
  const onGpu = gpuKvMemory(runtime.ort, gpu).allocate(spec, rows, capacity)
  const words = new Uint8Array(Math.ceil(bytes.length / 4) * 4)
  words.set(bytes)
  gpu.queue.writeBuffer(onGpu.gpuBuffer, 0, words)
  return { plain, onGpu }
}

async function download({ gpuBuffer }: Tensor): Promise<Uint8Array> {
  const { size } = gpuBuffer
  const target = gpu.createBuffer({ size, usage: READ })
  const encoder = gpu.createCommandEncoder()
  encoder.copyBufferToBuffer(gpuBuffer, 0, target, 0, size)
  gpu.queue.submit([encoder.finish()])
  await target.mapAsync(1)
  return new Uint8Array(target.getMappedRange())
}

const spec = (type: Tensor.Type, dims: number[], axis: number): CacheSpec => ({
  input: 'past',
  output: 'present',
  type,
  dims,
  axis,
})

test.each([
  ['keys of halves, token beside token', spec('float16', [3, 5, 0], 2)],
  ['odd heads of halves', spec('float16', [1, 2, 0, 3], 2)],
  ['bytes', spec('uint8', [1, 3, 0], 2)],
  ['heads of halves', spec('float16', [1, 2, 0, 4], 2)],
  ['floats, token beside token', spec('float32', [2, 3, 0], 2)],
])('%s', async (_, list) => {
  gpu.pushErrorScope('validation')
  for (const [length, held, room] of [
    [7, 9, 8],
    [5, 5, 5],
    [1, 3, 11],
    [6, 7, 7],
  ] as const) {
    const from = twins(list, 3, held)
    const to = twins(list, 2, room)
    const pairs: [KvMemory, Tensor, Tensor][] = [
      [cpuKvMemory(runtime.ort), from.plain, to.plain],
      [gpuKvMemory(runtime.ort, gpu), from.onGpu, to.onGpu],
    ]
    for (const [memory, source, target] of pairs) {
      // Into the second row first, and beside it then.
      memory.copy(list, { tensor: source, row: 2 }, { tensor: target, row: 1 }, length)
      memory.copy(list, { tensor: source, row: 1 }, { tensor: target, row: 0 }, length)
      memory.flush()
    }
    const wanted = bytesIn(to.plain)
    expect([...(await download(to.onGpu))].slice(0, wanted.length)).toEqual([...wanted])
  }
  expect(await gpu.popErrorScope()).toBeNull()
})
