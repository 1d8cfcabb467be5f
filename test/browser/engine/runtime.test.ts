import { expect, test } from 'vitest'
import { requestGpu } from '../../../src/device/gpu.ts'
import { createDecoder } from '../../../src/engine/onnx/decoder/decoder.ts'
import { loadRuntime, type Session } from '../../../src/engine/onnx/runtime.ts'
import { CASES, runtimeFolder, tinyFiles } from '../../models/tiny.ts'

const model = async (): Promise<Blob> =>
  (await tinyFiles(['onnx/model.onnx'])).get('onnx/model.onnx') as Blob
const prompt = CASES[1]?.prompt ?? []

test('takes runs at the same time one after the other', async () => {
  const runtime = await loadRuntime({ device: 'wasm', folder: runtimeFolder() })
  const session = await runtime.createSession(await model())
  const decoder = createDecoder(runtime, session, { contextWindow: 64, firstPosition: 0 })
  const scores = await Promise.all(
    [decoder.open(), decoder.open(), decoder.open()].map(async (each) =>
      (await each.forward(prompt)).row(0),
    ),
  )
  expect(scores[1]).toEqual(scores[0])
  expect(scores[2]).toEqual(scores[0])
  await session.release()
})

test('a failed run does not stop the next', async () => {
  const runtime = await loadRuntime({ device: 'wasm', folder: runtimeFolder() })
  const session = await runtime.createSession(await model())
  await expect(session.run({})).rejects.toMatchObject({ name: 'InoriginError' })
  const decoder = createDecoder(runtime, session, { contextWindow: 64, firstPosition: 0 })
  expect(await (await decoder.open().forward(prompt)).row(0)).toBeInstanceOf(Float32Array)
  await session.release()
})

test('needs a device on webgpu', async () => {
  await expect(loadRuntime({ device: 'webgpu', folder: runtimeFolder() })).rejects.toMatchObject({
    kind: 'internal',
  })
})

async function onGpu(): Promise<{
  gpu: GPUDevice
  session: Session
  forward: () => Promise<unknown>
}> {
  const { device: gpu } = await requestGpu()
  const runtime = await loadRuntime({ device: 'webgpu', folder: runtimeFolder(), gpu })
  const session = await runtime.createSession(await model())
  const decoder = createDecoder(runtime, session, { contextWindow: 64, firstPosition: 0 })
  return { gpu, session, forward: () => decoder.open().forward([1]) }
}

test('says so when the GPU runs out of memory', async () => {
  const { gpu, session, forward } = await onGpu()
  const error = new GPUOutOfMemoryError('no room')
  gpu.dispatchEvent(new GPUUncapturedErrorEvent('uncapturederror', { error }))
  await expect(forward()).rejects.toMatchObject({ kind: 'unavailable', code: 'out_of_memory' })
  await session.release()
})

test('says so when the GPU refuses the work', async () => {
  const { gpu, session, forward } = await onGpu()
  gpu.createBuffer({ size: 4, usage: 0 })
  await gpu.queue.onSubmittedWorkDone()
  await expect(forward()).rejects.toMatchObject({ kind: 'unavailable', code: 'gpu_error' })
  await session.release()
})

test('says so when the GPU is lost', async () => {
  const { gpu, session, forward } = await onGpu()
  gpu.destroy()
  await gpu.lost
  await expect(forward()).rejects.toMatchObject({ kind: 'unavailable', code: 'device_lost' })
  // Whoever clears up afterwards is not kept waiting.
  await session.release()
})
