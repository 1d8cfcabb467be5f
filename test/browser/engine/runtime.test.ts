/** The runtime on both devices: its sessions, its memory, its kernels of attention, and its failures. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requestGpu } from '../../../src/device/gpu.ts'
import type { Decoder } from '../../../src/engine/decoder.ts'
import { OnnxDecoder } from '../../../src/engine/onnx/decoder/decoder.ts'
import { staysInHeap } from '../../../src/engine/onnx/decoder/graph.ts'
import { type Operation, readOperations } from '../../../src/engine/onnx/graph-file.ts'
import type { Heap } from '../../../src/engine/onnx/heap.ts'
import { loadRuntime, type Runtime, type Session } from '../../../src/engine/onnx/runtime.ts'
import { maxDifference, prefill } from '../../models/layouts.ts'
import { CASES, runtimeFolder, tinyFiles } from '../../models/tiny.ts'

const EXACT = 2e-5

const folder = runtimeFolder()
const prompt = CASES[2]?.prompt ?? []

let model: Blob
let operations: Operation[]
beforeAll(async () => {
  model = (await tinyFiles(['onnx/model.onnx'])).get('onnx/model.onnx') as Blob
  operations = await readOperations(model)
})

const createTinyDecoder = (
  runtime: Runtime,
  session: Session,
  nodes: readonly Operation[] = operations,
): Decoder =>
  new OnnxDecoder(runtime, session, { contextWindow: 512, firstPosition: 0, operations: nodes })

describe('sessions on wasm', () => {
  let runtime: Runtime
  let session: Session
  beforeAll(async () => {
    runtime = await loadRuntime({ device: 'wasm', folder })
    session = await runtime.createSession(model)
  })
  afterAll(() => session.release())

  test('run one after the other when they are called at once', async () => {
    const decoder = createTinyDecoder(runtime, session)
    const [first, ...others] = await Promise.all(
      [decoder.open(), decoder.open(), decoder.open()].map(async (each) =>
        (await each.forward(prompt)).row(0),
      ),
    )
    expect(others).toEqual([first, first])
    await decoder.close()
  })

  test('run again after a run that failed', async () => {
    await expect(session.run({})).rejects.toMatchObject({ name: 'InoriginError' })
    const decoder = createTinyDecoder(runtime, session)
    expect(await (await decoder.open().forward(prompt)).row(0)).toBeInstanceOf(Float32Array)
    await decoder.close()
  })

  test('name the folder where the runtime is missing', async () => {
    const nowhere = new URL('/nowhere/', location.href).href
    const missing = await loadRuntime({ device: 'wasm', folder: nowhere })
    await expect(missing.createSession(model)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'runtime_missing',
      message: expect.stringContaining(nowhere),
    })
  })
})

describe.each([{ large: false }, { large: true }])('on wasm, large: $large', ({ large }) => {
  let runtime: Runtime
  let plain: Session
  beforeAll(async () => {
    runtime = await loadRuntime({ device: 'wasm', folder, large })
    plain = await runtime.createSession(model, { keepInHeap: staysInHeap })
  })
  afterAll(() => plain.release())

  const computeScores = async (session: Session, chunk: number): Promise<Float32Array> => {
    const decoder = createTinyDecoder(runtime, session)
    const scores = await prefill(decoder.open(), prompt, chunk)
    await decoder.close()
    return scores
  }

  /** Turns flash attention on for the next sessions; fails if it is not off. */
  function enableFlashAttention({ module }: Heap): void {
    const memory = new TextDecoder('latin1').decode(module.HEAPU8.slice())
    const at = memory.indexOf('ORT_GQA_DISABLE_FLASH_ATTENTION=1\0')
    expect(at).toBeGreaterThan(0)
    module.HEAPU8[memory.indexOf('1\0', at)] = '0'.charCodeAt(0)
  }

  test('attention of predictors and language models is plain, with the scores of flash attention', async () => {
    const predictor = await runtime.createSession(model)
    expect(predictor.heap).toBe(undefined)
    expect(await computeScores(predictor, 256)).toEqual(await computeScores(plain, 256))
    await predictor.release()

    enableFlashAttention(plain.heap as Heap)
    const flash = await runtime.createSession(model, { keepInHeap: staysInHeap })
    for (const chunk of [256, 64]) {
      const scores = await computeScores(plain, chunk)
      const flashScores = await computeScores(flash, chunk)
      expect(maxDifference(scores, flashScores)).toBeLessThan(EXACT)
      // Sums in another order show that the kernels differ.
      expect(scores).not.toEqual(flashScores)
    }
    await flash.release()
  })
})

describe('the heap', { tags: ['slow'] }, () => {
  let runtime: Runtime
  let session: Session
  let heap: Heap
  beforeAll(async () => {
    runtime = await loadRuntime({ device: 'wasm', folder })
    session = await runtime.createSession(model, { keepInHeap: staysInHeap })
    heap = session.heap as Heap
  })
  afterAll(() => session.release())

  /** Expects memory of the same size after more rounds as after the first. */
  async function expectNoGrowth(round: () => Promise<void>): Promise<void> {
    for (let count = 0; count < 3; count += 1) await round()
    const before = heap.module.HEAPU8.length
    for (let count = 0; count < 20; count += 1) await round()
    expect(heap.module.HEAPU8.length).toBe(before)
  }

  test.each([true, false])('does not grow with conversations, in place: %j', async (inPlace) => {
    await expectNoGrowth(async () => {
      const decoder = createTinyDecoder(runtime, session, inPlace ? operations : [])
      const sequence = decoder.open()
      await prefill(sequence, prompt)
      const forks = await Promise.all(
        Array.from({ length: 20 }, () => sequence.fork(prompt.length)),
      )
      if (decoder.maxBatchSize > 1) {
        const batch = [sequence, ...forks.slice(0, 3)].map((each) => ({ sequence: each, token: 1 }))
        ;(await decoder.step(batch)).release()
      }
      for (const fork of forks) (await fork.forward([2])).release()
      await sequence.truncate(5)
      forks.slice(0, 10).forEach((fork) => fork.close())
      await decoder.close()
    })
  })

  test('does not grow with runs that fail', async () => {
    const { Tensor } = runtime.ort
    await expectNoGrowth(async () => {
      const ids = new Tensor('int64', new BigInt64Array(2 ** 20), [1, 2 ** 20])
      await expect(session.run({ input_ids: ids }, ['logits'])).rejects.toThrow('ERROR_CODE')
      const unknown = session.run({ input_ids: ids, nothing: ids }, ['logits'])
      await expect(unknown).rejects.toThrow('nothing')
    })
  })

  test('rejects what does not fit before it writes', () => {
    expect(() => heap.allocate('float32', [2 ** 30 - 2])).toThrow(
      expect.objectContaining({ kind: 'unavailable', code: 'out_of_memory' }),
    )
  })

  test('describes a graph as the runtime itself does', async () => {
    const usual = await runtime.createSession(model)
    expect(session.inputs).toEqual(usual.inputs)
    expect(session.outputs).toEqual(usual.outputs)
    await usual.release()
  })
})

describe('on webgpu', () => {
  test('the runtime needs a device', async () => {
    await expect(loadRuntime({ device: 'webgpu', folder })).rejects.toMatchObject({
      kind: 'internal',
    })
  })

  test.each<[code: string, fail: (gpu: GPUDevice) => unknown]>([
    [
      'out_of_memory',
      (gpu) => {
        const error = new GPUOutOfMemoryError('no room')
        gpu.dispatchEvent(new GPUUncapturedErrorEvent('uncapturederror', { error }))
      },
    ],
    [
      'gpu_error',
      (gpu) => {
        gpu.createBuffer({ size: 4, usage: 0 })
        return gpu.queue.onSubmittedWorkDone()
      },
    ],
    [
      'device_lost',
      (gpu) => {
        gpu.destroy()
        return gpu.lost
      },
    ],
  ])('a run rejects with %s when the GPU fails so', async (code, fail) => {
    const { device: gpu } = await requestGpu()
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    const session = await runtime.createSession(model)
    const decoder = createTinyDecoder(runtime, session)
    await fail(gpu)
    await expect(decoder.open().forward([1])).rejects.toMatchObject({ kind: 'unavailable', code })
    // The release does not wait for a device that is lost.
    await session.release()
  })
})
