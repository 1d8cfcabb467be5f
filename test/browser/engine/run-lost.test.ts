/** @module-tag slow */
import { afterEach, expect, test, vi } from 'vitest'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import { CASES, runtimeFolder, TEXTS, tinyFiles } from '../../models/tiny.ts'
import { decoded, GREEDY, never, promptOf, textOf, WEIGHTS } from './run-engine.ts'

afterEach(() => vi.restoreAllMocks())

test('answers go on with not a token changed when their device is lost', async () => {
  const devices: GPUDevice[] = []
  const request = GPUAdapter.prototype.requestDevice
  vi.spyOn(GPUAdapter.prototype, 'requestDevice').mockImplementation(async function (
    this: GPUAdapter,
    wanted,
  ) {
    const device = await request.call(this, wanted)
    devices.push(device)
    return device
  })
  const engine = await openOnnx({
    device: 'webgpu',
    maxInputTokens: 512,
    runtime: runtimeFolder(),
    texts: await tinyFiles(TEXTS),
    verdict: { features: [] },
  })
  await engine.load(await tinyFiles(WEIGHTS), never)
  const opened = devices.length
  const cases = CASES.slice(0, 2)
  const started: number[] = []
  let told = 0
  const texts = await Promise.all(
    cases.map(async ({ prompt }) => {
      const pieces = []
      const onStart = ({ cachedTokens }: { cachedTokens: number }): void =>
        void started.push(cachedTokens)
      for await (const piece of engine.generate(promptOf(prompt), {
        ...GREEDY,
        maxTokens: 8,
        onStart,
      })) {
        pieces.push(piece)
        told += 1
        // In the middle of what both are told next.
        if (told === 4) setTimeout(() => devices.at(-1)?.destroy(), 5)
      }
      return textOf(pieces)
    }),
  )
  expect(devices).toHaveLength(opened + 1)
  expect(texts).toEqual(cases.map(({ greedy }) => decoded(greedy.slice(0, 8))))
  expect(started).toEqual([0, 0])
  await engine.close()
}, 180_000)
