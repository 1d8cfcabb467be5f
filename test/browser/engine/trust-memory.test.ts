/**
 * Sessions that run out of memory say so, and never compute anything wrong.
 *
 * @module-tag slow
 */
import { describe, expect, test } from 'vitest'
import { requestGpu } from '../../../src/device/gpu.ts'
import { loadRuntime, type Runtime, type Session } from '../../../src/engine/onnx/runtime.ts'
import { runtimeFolder } from '../../models/tiny.ts'
import { computesCorrectly } from '../../../src/engine/onnx/selftest/selftest.ts'
import { oneOperator } from '../../support/protobuf.ts'

const folder = runtimeFolder()
const expand = oneOperator('Expand', { x: 'float32', shape: 'int64' })
const full = { kind: 'unavailable', code: 'out_of_memory' }

/** `count` times the number 3. */
async function threes({ ort }: Runtime, session: Session, count: number): Promise<unknown> {
  const { y } = await session.run({
    x: new ort.Tensor('float32', [3], [1]),
    shape: new ort.Tensor('int64', [BigInt(count)], [1]),
  })
  return y?.data
}

describe('on WASM', () => {
  test('a run that needs more than there is fails alone', async () => {
    const runtime = await loadRuntime({ device: 'wasm', folder })
    const session = await runtime.createSession(expand)
    await expect(threes(runtime, session, 2 ** 31)).rejects.toMatchObject(full)
    expect(await threes(runtime, session, 2)).toEqual(Float32Array.of(3, 3))
    await session.release()
  })

  test('inputs that there is no room for are not written over something else', async () => {
    const runtime = await loadRuntime({ device: 'wasm', folder, large: true })
    // Of a file that the graph never reads from.
    const piece = new Blob([new Uint8Array(2 ** 24)])
    const data = new Blob(Array.from({ length: 256 }, () => piece))
    expect(data.size).toBe(2 ** 32)
    const session = await runtime.createSession(expand, { externalData: [{ path: 'w', data }] })
    await expect(threes(runtime, session, 2)).rejects.toMatchObject(full)
    await session.release()
  })
})

describe('on WebGPU', { timeout: 600_000 }, () => {
  test('a run that needs more than a buffer can hold', async () => {
    const { device: gpu, adapter } = await requestGpu()
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    const session = await runtime.createSession(expand)
    expect(await threes(runtime, session, 2)).toEqual(Float32Array.of(3, 3))
    const most = (adapter.limits['maxBufferSize'] ?? 0) / 4
    // The first is more than the runtime counts, whatever the GPU could hold.
    for (const tooMany of new Set([2 ** 30 + 1024, most + 1024])) {
      await expect(threes(runtime, session, tooMany)).rejects.toMatchObject(full)
    }
    gpu.destroy()
  })

  test('on a device of the lowest limits', async () => {
    const adapter = await navigator.gpu.requestAdapter()
    const gpu = (await adapter?.requestDevice()) as GPUDevice
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    const session = await runtime.createSession(expand)
    expect(await threes(runtime, session, 5)).toEqual(new Float32Array(5).fill(3))
    const tooMany = gpu.limits.maxStorageBufferBindingSize / 4 + 1024
    const result = await threes(runtime, session, tooMany).catch((error: unknown) => error)
    // Either it is split into pieces that can be bound, or refused.
    if (result instanceof Float32Array) expect(result.at(-1)).toBe(3)
    else expect(result).toMatchObject(full)
    gpu.destroy()
  })

  test('and there the kernels of language models are right', async () => {
    const adapter = await navigator.gpu.requestAdapter()
    const gpu = (await adapter?.requestDevice()) as GPUDevice
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    expect(await computesCorrectly(runtime, gpu, 'float32')).toBe(true)
    gpu.destroy()
  })
})
