/** The build of the runtime that is stored in parts, where WebAssembly cannot suspend. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { openSite, serveIn } from '../support/site.ts'

/** Model worker of a browser without `WebAssembly.Suspending`: Chromium has no switch for that. */
const script = '/inorigin/model-worker.js'
const withoutSuspension = `delete WebAssembly.Suspending\n${readFileSync(`dist-demo${script}`, 'utf8')}`

test('runs a predictor on WebGPU by the joined parts', async () => {
  const site = await openSite({ pages: { [script]: withoutSuspension } })
  try {
    const page = await site.open()
    await serveIn(page, { device: 'webgpu', offline: false })
    const digit = await page.evaluate(async () => {
      const { server } = globalThis as unknown as { server: Server }
      const { outputs } = await server.predict('@inorigin/digits', { image: new ImageData(28, 28) })
      return typeof outputs['digit']
    })
    expect(digit).toBe('string')
    const runtimes = site.requests.filter((each) => each.endsWith('.wasm'))
    expect([...new Set(runtimes)].toSorted()).toEqual([
      'GET /inorigin/ort/ort-wasm-simd-threaded.asyncify.0.wasm',
      'GET /inorigin/ort/ort-wasm-simd-threaded.asyncify.1.wasm',
    ])
  } finally {
    await site.close()
  }
})
