/** A predictor whose kernels are wrong on WebGPU, on a device where WebGPU comes first. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LoadProgress, Server, ServeOptions } from '../../src/index.ts'
import { convolution, noise, SIDE } from '../models/wrong-conv.ts'
import { REAL, wear } from '../support/masks.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { predictorEntry, valuesCatalog } from '../support/values.ts'

const TAG = '@test/convolution'
const MODEL = convolution(9)
const OPTIONS = { tags: ['slow'], timeout: 300_000 }

let folder: string
let site: Site

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inorigin-gpu-check-'))
  writeFileSync(join(folder, 'model.onnx'), MODEL)
  site = await openSite({ folders: { '/own/': folder } })
  wear(site, { gpu: REAL, features: [] })
})

afterEach(async () => {
  await site?.close()
  rmSync(folder, { recursive: true, force: true })
})

interface InPage {
  server: Server
  seen: LoadProgress[]
}

const catalog = valuesCatalog(
  predictorEntry(TAG, '/own/model.onnx', MODEL, {
    signature: {
      inputs: [{ name: 'x', type: 'float32' }],
      outputs: [{ name: 'y', type: 'float32' }],
    },
    devices: ['webgpu', 'wasm'],
  }),
)

async function openPage(options: ServeOptions = {}): Promise<Page> {
  const page = await site.open()
  await serveIn(page, { catalog, ...options })
  await page.evaluate(() => {
    const { server } = globalThis as unknown as InPage
    const seen: LoadProgress[] = []
    Object.assign(globalThis, { seen })
    void (async () => {
      for await (const progress of server.models.progress()) seen.push(progress)
    })()
  })
  return page
}

const predict = (page: Page, seed: number) =>
  page.evaluate(
    async ([tag, numbers, shape]) => {
      const { server } = globalThis as unknown as InPage
      const data = Float32Array.from(numbers)
      const { outputs, device } = await server.predict(tag, { x: { data, shape } })
      const { data: y } = outputs['y'] as { data: Float32Array }
      return { device, first: y[0] ?? NaN }
    },
    [TAG, [...noise(9, seed)], [1, 9, SIDE, SIDE]] as const,
  )

const explain = (page: Page) =>
  page.evaluate((tag) => (globalThis as unknown as InPage).server.explain(tag), TAG)

test(
  'each answer is right, WebGPU is left, and the reason is reported and remembered',
  OPTIONS,
  async () => {
    const page = await openPage({ device: 'wasm' })
    const right = [await predict(page, 2), await predict(page, 3)]
    await page.close()

    const auto = await openPage()
    expect((await explain(auto)).chosen).toBe('fp32-webgpu')
    const both = await Promise.all([predict(auto, 2), predict(auto, 3)])
    expect(both).toEqual(right)
    expect(both.map(({ device }) => device)).toEqual(['wasm', 'wasm'])
    expect(await predict(auto, 3)).toEqual(right[1])

    const { chosen, reasons } = await explain(auto)
    expect(chosen).toBe('fp32-wasm')
    const why =
      /the GPU computes wrong numbers for it: y\[\d+\] is \S+ on the GPU and \S+ on the CPU/
    expect(reasons[0]?.why).toMatch(why)
    const reported = () =>
      auto.evaluate(() =>
        (globalThis as unknown as InPage).seen.flatMap(({ gpuDifference }) => gpuDifference ?? []),
      )
    await expect.poll(reported).toContainEqual(expect.stringMatching(/^y\[\d+\] is/))

    await auto.reload()
    await serveIn(auto, { catalog })
    expect((await explain(auto)).reasons[0]?.why).toMatch(why)
    expect(await predict(auto, 2)).toEqual(right[0])
  },
)
