import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requestGpu } from '../../../src/device/gpu.ts'
import { createDecoder, type Decoder, type Sequence } from '../../../src/engine/onnx/decoder/decoder.ts'
import { isCacheOutput } from '../../../src/engine/onnx/decoder/graph.ts'
import { loadRuntime, type Runtime, type Session } from '../../../src/engine/onnx/runtime.ts'
import { best } from '../../../src/engine/onnx/sampling/sampler.ts'
import { CASES, FIRST_SCORES, runtimeFolder, tinyFiles } from '../../models/tiny.ts'

interface Opened {
  runtime: Runtime
  session: Session
  decoder: Decoder
}

async function open(device: 'wasm' | 'webgpu', folder: string): Promise<Opened> {
  const gpu = device === 'webgpu' ? (await requestGpu()).device : undefined
  const runtime = await loadRuntime({ device, folder: runtimeFolder(), gpu })
  const names = [`${folder}/model.onnx`, `${folder}/model.onnx_data`]
  const files = await tinyFiles(names, folder === 'onnx' ? { 'onnx/model.onnx_data': null } : {})
  const data = files.get(`${folder}/model.onnx_data`)
  const session = await runtime.createSession(files.get(`${folder}/model.onnx`) as Blob, {
    externalData: data ? [{ path: 'model.onnx_data', data }] : [],
    keepOnDevice: isCacheOutput,
  })
  return {
    runtime,
    session,
    decoder: createDecoder(runtime, session, { contextWindow: 512, firstPosition: 0 }),
  }
}

/** Greedy tokens after a prompt that is taken in chunks. */
async function greedy(
  sequence: Sequence,
  prompt: number[],
  count: number,
  chunk: number,
): Promise<number[]> {
  let from = 0
  for (; prompt.length - from > chunk; from += chunk)
    await sequence.extend(prompt.slice(from, from + chunk))
  const tokens = [best(await sequence.predict(prompt.slice(from)))]
  while (tokens.length < count) tokens.push(best(await sequence.predict(tokens.slice(-1))))
  return tokens
}

describe.each([
  { device: 'wasm', folder: 'onnx', count: 16, chunks: [256, 64, 7] },
  { device: 'wasm', folder: 'older', count: 16, chunks: [256, 64] },
  { device: 'webgpu', folder: 'onnx', count: 8, chunks: [256, 100] },
  { device: 'webgpu', folder: 'older', count: 4, chunks: [256] },
] as const)('$device, $folder', ({ device, folder, count, chunks }) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open(device, folder)
  })
  afterAll(async () => {
    await opened.session.release()
    opened.runtime.release()
  })

  test('computes the scores of the reference', async () => {
    const sequence = opened.decoder.open()
    const scores = await sequence.predict(CASES[1]?.prompt ?? [])
    FIRST_SCORES.forEach((score, index) => expect(scores[index]).toBeCloseTo(score, 3))
    expect(sequence.length).toBe(CASES[1]?.prompt.length)
    sequence.close()
  })

  test.each(CASES.map((each) => ({ ...each, length: each.prompt.length })))(
    'chooses the tokens of the reference after $length tokens',
    async ({ prompt, greedy: expected }) => {
      for (const chunk of prompt.length > 100 ? chunks : [256]) {
        const sequence = opened.decoder.open()
        expect(await greedy(sequence, prompt, count, chunk)).toEqual(expected.slice(0, count))
        sequence.close()
      }
    },
  )

  test('keeps two conversations apart', async () => {
    const [first, second] = [opened.decoder.open(), opened.decoder.open()]
    const [one, other] = [CASES[0], CASES[1]]
    if (!one || !other) throw new Error('two cases are needed')
    const tokens = [best(await first.predict(one.prompt)), best(await second.predict(other.prompt))]
    tokens.push(
      best(await first.predict(tokens.slice(0, 1))),
      best(await second.predict(tokens.slice(1, 2))),
    )
    expect(tokens).toEqual([one.greedy[0], other.greedy[0], one.greedy[1], other.greedy[1]])
    first.close()
    second.close()
  })
})
