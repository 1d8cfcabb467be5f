/** @module-tag slow */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDecoder } from '../../../src/engine/onnx/decoder/decoder.ts'
import { staysInHeap } from '../../../src/engine/onnx/decoder/graph.ts'
import { readOperations } from '../../../src/engine/onnx/decoder/operations.ts'
import type { Heap } from '../../../src/engine/onnx/heap/heap.ts'
import { loadRuntime, type Runtime, type Session } from '../../../src/engine/onnx/runtime.ts'
import { prefill } from '../../models/layouts.ts'
import { CASES, runtimeFolder, tinyFiles } from '../../models/tiny.ts'

const prompt = CASES[2]?.prompt ?? []

let runtime: Runtime
let session: Session
let heap: Heap
let model: Blob

beforeAll(async () => {
  runtime = await loadRuntime({ device: 'wasm', folder: runtimeFolder() })
  model = (await tinyFiles(['onnx/model.onnx'])).get('onnx/model.onnx') as Blob
  session = await runtime.createSession(model, { keepInHeap: staysInHeap })
  heap = session.heap as Heap
})
afterAll(() => session.release())

/** Whether the memory is as large after some more rounds as it was after the first. */
async function expectNoGrowth(round: () => Promise<void>): Promise<void> {
  for (let count = 0; count < 3; count += 1) await round()
  const before = heap.module.HEAPU8.length
  for (let count = 0; count < 20; count += 1) await round()
  expect(heap.module.HEAPU8.length).toBe(before)
}

test.each([true, false])('conversations leave nothing behind, in place: %j', async (inPlace) => {
  const operations = inPlace ? await readOperations(model) : []
  const options = { contextWindow: 512, firstPosition: 0, operations }
  await expectNoGrowth(async () => {
    const decoder = createDecoder(runtime, session, options)
    const sequence = decoder.open()
    await prefill(sequence, prompt)
    const forks = await Promise.all(Array.from({ length: 20 }, () => sequence.fork(prompt.length)))
    if (decoder.maxBatchSize > 1) {
      const entries = [sequence, ...forks.slice(0, 3)].map((each) => ({ sequence: each, token: 1 }))
      ;(await decoder.step(entries)).release()
    }
    for (const fork of forks) (await fork.forward([2])).release()
    await sequence.truncate(5)
    forks.slice(0, 10).forEach((fork) => fork.close())
    await decoder.close()
  })
})

test('a run that fails leaves nothing behind', async () => {
  const { Tensor } = runtime.ort
  await expectNoGrowth(async () => {
    const ids = new Tensor('int64', new BigInt64Array(2 ** 20), [1, 2 ** 20])
    await expect(session.run({ input_ids: ids }, ['logits'])).rejects.toThrow('ERROR_CODE')
    await expect(session.run({ input_ids: ids, nothing: ids }, ['logits'])).rejects.toThrow(
      'nothing',
    )
  })
})

test('says that there is no room before it writes where there is none', () => {
  expect(() => heap.allocate('float32', [2 ** 30 - 2])).toThrow(
    expect.objectContaining({ kind: 'unavailable', code: 'out_of_memory' }),
  )
})

test('tells a graph as the runtime itself does', async () => {
  const usual = await runtime.createSession(model)
  expect(session.inputs).toEqual(usual.inputs)
  expect(session.outputs).toEqual(usual.outputs)
  expect(usual.heap).toBeUndefined()
  await usual.release()
})
