import { expect, test } from 'vitest'
import { openOnnx } from '../../../src/engine/onnx/index.ts'
import { runtimeFolder, TEXTS, tinyFiles } from '../../models/tiny.ts'
import { decoded, never, run, short, textOf, WEIGHTS } from './run-engine.ts'

// In a file, and so a page, of its own: the mark below is the first of its page.
test('a load that is expected finds the runtime started, and starts no other', async () => {
  const runtime = runtimeFolder()
  const [texts, weights] = [await tinyFiles(TEXTS), await tinyFiles(WEIGHTS)]
  const setup = { device: 'wasm', runtime, texts, maxInputTokens: 512 } as const
  const engine = await openOnnx({ ...setup, expectedWeights: weights })
  await runtimeMark()
  await engine.load(weights, never)
  expect(performance.getEntriesByName('inorigin:runtime')).toHaveLength(1)
  expect(textOf((await run(engine, short.prompt)).pieces)).toBe(decoded(short.greedy))
  await engine.close()
})

/** Resolves when a runtime is ready, before or after the call. */
function runtimeMark(): Promise<void> {
  return new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => {
      if (list.getEntriesByName('inorigin:runtime').length > 0) resolve()
    })
    observer.observe({ type: 'mark', buffered: true })
  })
}
