/** The build of the runtime that is stored in parts, where WebAssembly cannot suspend. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

/** Model worker of a browser without `WebAssembly.Suspending`: Chromium has no switch for that. */
const script = '/inorigin/model-worker.js'
const withoutSuspension = `delete WebAssembly.Suspending\n${readFileSync(`dist-demo${script}`, 'utf8')}`

/** A software GPU on a busy machine may need more time than the self-test gives it. */
const MAX_TRIES = 3

/** Resolves with the type of the first predicted label. A self-test that timed out runs again in a new host. */
async function predictLabel(site: Site, tries = 1): Promise<string> {
  const page = await site.open()
  await serveIn(page, { device: 'webgpu', offline: false })
  try {
    return await page.evaluate(async () => {
      const { server } = globalThis as unknown as { server: Server }
      const { outputs } = await server.predict('@inorigin/digits', { image: new ImageData(28, 28) })
      return typeof outputs['digit']
    })
  } catch (error) {
    if (tries === MAX_TRIES || !String(error).includes('timed out in the self-test')) throw error
  }
  await page.close()
  return predictLabel(site, tries + 1)
}

test(
  'runs a predictor on WebGPU by the joined parts',
  { tags: ['slow'], timeout: 600_000 },
  async () => {
    const site = await openSite({ pages: { [script]: withoutSuspension } })
    try {
      expect(await predictLabel(site)).toBe('string')
      const runtimes = site.requests.filter((each) => each.endsWith('.wasm'))
      expect([...new Set(runtimes)].toSorted()).toEqual([
        'GET /inorigin/ort/ort-wasm-simd-threaded.asyncify.0.wasm',
        'GET /inorigin/ort/ort-wasm-simd-threaded.asyncify.1.wasm',
      ])
    } finally {
      await site.close()
    }
  },
)
