import { describe, expect, test } from 'vitest'
import { createDecoder } from '../../../src/engine/onnx/decoder/decoder.ts'
import { staysInHeap } from '../../../src/engine/onnx/decoder/graph.ts'
import { readOperations } from '../../../src/engine/onnx/decoder/operations.ts'
import type { Heap } from '../../../src/engine/onnx/heap/heap.ts'
import { loadRuntime, type Runtime, type Session } from '../../../src/engine/onnx/runtime.ts'
import { maxDifference, prefill } from '../../models/layouts.ts'
import { CASES, runtimeFolder, tinyFiles } from '../../models/tiny.ts'

const EXACT = 2e-5

const prompt = CASES[2]?.prompt ?? []

/** Turns flash attention on for the next sessions; fails if it is not off. */
function enableFlashAttention({ module }: Heap): void {
  const memory = new TextDecoder('latin1').decode(module.HEAPU8.slice())
  const at = memory.indexOf('ORT_GQA_DISABLE_FLASH_ATTENTION=1\0')
  expect(at).toBeGreaterThan(0)
  module.HEAPU8[memory.indexOf('1\0', at)] = '0'.charCodeAt(0)
}

describe.each([{ large: false }, { large: true }])('on wasm, large: $large', ({ large }) => {
  let runtime: Runtime
  let model: Blob

  const openSession = async (
    options: { keepInHeap?: typeof staysInHeap } = { keepInHeap: staysInHeap },
  ): Promise<Session> => {
    runtime ??= await loadRuntime({ device: 'wasm', folder: runtimeFolder(), large })
    model ??= (await tinyFiles(['onnx/model.onnx'])).get('onnx/model.onnx') as Blob
    return runtime.createSession(model, options)
  }

  const computeScores = async (session: Session, chunk: number): Promise<Float32Array> => {
    const operations = await readOperations(model)
    const options = { contextWindow: 512, firstPosition: 0, operations }
    const decoder = createDecoder(runtime, session, options)
    const scores = await prefill(decoder.open(), prompt, chunk)
    await decoder.close()
    return scores
  }

  test('attention is plain, with the scores of flash attention', async () => {
    const plain = await openSession()
    enableFlashAttention(plain.heap as Heap)
    const flash = await openSession()
    for (const chunk of [256, 64]) {
      const [scores, flashScores] = [
        await computeScores(plain, chunk),
        await computeScores(flash, chunk),
      ]
      expect(maxDifference(scores, flashScores)).toBeLessThan(EXACT)
      // Sums in another order show that the kernels differ.
      expect(scores).not.toEqual(flashScores)
    }
    await plain.release()
    await flash.release()
  })

  test('attention of predictors is plain', async () => {
    const plain = await openSession()
    const predictor = await openSession({})
    expect(predictor.heap).toBe(undefined)
    expect(await computeScores(predictor, 256)).toEqual(await computeScores(plain, 256))
    await plain.release()
    await predictor.release()
  })
})
