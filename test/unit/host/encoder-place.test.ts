/** Where the image encoder of a model runs, if the GPU computes it wrongly. */
import { afterEach, expect, test, vi } from 'vitest'
import type { Implementation } from '../../../src/catalog/schema.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { createGpuComparisons } from '../../../src/host/choice/gpu-comparisons.ts'
import { createRecentInputs } from '../../../src/host/choice/recent-inputs.ts'
import { createSelector } from '../../../src/host/choice/selector.ts'
import { createIdleMonitor } from '../../../src/host/models/idle.ts'
import type { Models } from '../../../src/host/models/models.ts'
import { memoryDatabase } from '../../support/memory-database.ts'
import { model, predictor } from '../catalog/entries.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

const implementation = (device: 'webgpu' | 'wasm'): Implementation => {
  const file = { type: 'onnx' as const, url: 'https://a.test/m', name: 'm.onnx', bytes: 1 }
  return { id: device, engine: 'onnx', device, resources: [{ ...file, sha256: '0'.repeat(64) }] }
}

const gpu = implementation('webgpu')
const implementations = [gpu, implementation('wasm')]

const DEVICE: Capabilities = {
  webgpu: {
    vendor: 'acme',
    architecture: 'one',
    device: '',
    description: '',
    software: false,
    features: [],
    limits: {},
  },
  wasm: { simd: true, threads: false, jspi: true },
  memory: null,
  cores: 4,
}

function open() {
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })
  const database = memoryDatabase({
    get: async () => undefined,
    put: async () => undefined,
    getAllKeys: async () => [],
  })
  const comparisons = createGpuComparisons(database, async () => DEVICE)
  const selector = createSelector({
    database,
    models: { ofTag: () => [] } as unknown as Models,
    idle: createIdleMonitor(),
    verdict: async () => undefined,
    device: async () => DEVICE,
    preference: 'auto',
    threads: {
      get: async () => undefined,
      current: async () => 1,
      measure: async () => undefined,
    },
    crashes: { find: async () => new Map() },
    comparisons,
    recentInputs: createRecentInputs(),
  })
  return { ...selector, comparisons }
}

test('a wrong image encoder leaves its model on the GPU, and explain names it', async () => {
  const seer = model({ implementations, capabilities: { imageInput: true } })
  const { select, comparisons, explain } = open()
  const before = await explain(seer)
  expect(before.device.gpu).toMatchObject({ tested: false })
  expect(before.reasons[0]?.why).not.toContain('image encoder')
  comparisons.record(seer, gpu, { agrees: false, why: 'its rows differ' })
  expect((await select(seer)).implementation.id).toBe('webgpu')
  const [first, second] = (await explain(seer)).reasons
  expect(first?.why).toContain('its image encoder runs on WASM: its rows differ')
  expect(second?.why).not.toContain('image encoder')
})

test('comparisons of predictors and of encoders are kept apart', async () => {
  const { comparisons } = open()
  const seer = model({ implementations, capabilities: { imageInput: true } })
  const compared = { agrees: false, why: 'its rows differ' }
  comparisons.record(seer, gpu, compared)
  expect(await comparisons.find(seer, gpu)).toBeUndefined()
  expect(await comparisons.findEncoder(seer, gpu)).toEqual(compared)
  const other = predictor({ implementations })
  comparisons.record(other, gpu, compared)
  expect(await comparisons.find(other, gpu)).toEqual(compared)
  expect(await comparisons.findEncoder(other, gpu)).toBeUndefined()
})
