/** Which predictors are compared on which device, and what a later host knows of it. */
import { afterEach, expect, test, vi } from 'vitest'
import type { Implementation } from '../../../src/catalog/schema.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { createGpuComparisons } from '../../../src/host/choice/gpu-comparisons.ts'
import { memoryDatabase } from '../../support/memory-database.ts'
import { predictor } from '../catalog/entries.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

const device = (architecture: string): Capabilities => ({
  webgpu: {
    vendor: 'acme',
    architecture,
    device: '',
    description: '',
    software: false,
    features: [],
    limits: {},
  },
  wasm: { simd: true, threads: false, jspi: true },
  memory: null,
  cores: 4,
})

const MIB = 2 ** 20

function implementation(
  place: Implementation['device'],
  graphBytes: number,
  weightBytes: number,
): Implementation {
  const file = (type: 'onnx' | 'data' | 'config', bytes: number) =>
    ({ type, url: type, name: type, bytes, sha256: '0'.repeat(64) }) as const
  const resources = [file('onnx', graphBytes), file('data', weightBytes), file('config', 999 * MIB)]
  return { id: 'one', engine: 'onnx', device: place, resources }
}

function memory() {
  const facts = new Map<string, unknown>()
  return memoryDatabase({
    get: async (_store: string, subject: string) => facts.get(subject),
    put: async (_store: string, fact: unknown, subject: string) => void facts.set(subject, fact),
    getAllKeys: async () => [...facts.keys()],
  })
}

test('predictors on WebGPU are compared up to 64 MiB of graph and weights', () => {
  const { mustCompare } = createGpuComparisons(memory(), async () => device('one'))
  const entry = predictor()
  expect(mustCompare(entry, implementation('webgpu', MIB, 63 * MIB))).toBe(true)
  expect(mustCompare(entry, implementation('webgpu', MIB, 63 * MIB + 1))).toBe(false)
  expect(mustCompare(entry, implementation('wasm', 1, 1))).toBe(false)
})

test('a comparison holds for the adapter, the browser and the files that were compared', async () => {
  vi.stubGlobal('IDBKeyRange', { bound: () => null })
  const database = memory()
  const entry = predictor()
  const compared = implementation('webgpu', 1, 1)
  const found = { agrees: false, why: 'y[0] is 1 on the GPU and 2 on the CPU' }
  const openAs = (browser: string, architecture = 'one', version = '1.0.0.1') => {
    const fullVersionList = [{ brand: 'Browser', version }]
    const userAgentData = { getHighEntropyValues: async () => ({ fullVersionList }) }
    vi.stubGlobal('navigator', { userAgent: browser, userAgentData })
    return createGpuComparisons(database, async () => device(architecture))
  }
  openAs('Browser/1').record(entry, compared, found)
  await vi.waitFor(
    async () => expect(await openAs('Browser/1').find(entry, compared)).toEqual(found),
    20_000,
  )
  expect(await openAs('Browser/2').find(entry, compared)).toBeUndefined()
  // An update of which the user agent string tells nothing.
  expect(await openAs('Browser/1', 'one', '1.0.0.2').find(entry, compared)).toBeUndefined()
  expect(await openAs('Browser/1', 'two').find(entry, compared)).toBeUndefined()
  const changed = {
    ...compared,
    resources: compared.resources.map((file) => ({ ...file, sha256: '1'.repeat(64) })),
  }
  expect(await openAs('Browser/1').find(entry, changed)).toBeUndefined()
})
