/** The adapters and verdicts of GPUs, and what follows for the capabilities of a device. */
import { describe, expect, test } from 'vitest'
import packageJson from '../../../package.json' with { type: 'json' }
import { describeAdapter, isTrusted } from '../../../src/device/adapter.ts'
import { toDeviceId, type Capabilities } from '../../../src/device/capabilities.ts'
import {
  isGpuVerdict,
  listFeatureSets,
  SELF_TEST_RUNTIME,
  withoutUntrusted,
  toVerdictKey,
} from '../../../src/device/gpu-verdict.ts'

const SILENT = { vendor: '', architecture: '', device: '', description: '' }

function adapter(
  info: Partial<GPUAdapterInfo>,
  features: string[] = [],
  more: object = {},
): GPUAdapter {
  const limits = Object.create({ maxBufferSize: 5, maxBindGroups: 4 }) as GPUSupportedLimits
  const described = { ...SILENT, isFallbackAdapter: false, ...info }
  const made: unknown = { info: described, features: new Set(features), limits, ...more }
  return made as GPUAdapter
}

describe('A software adapter is detected', () => {
  test.each<[string, GPUAdapter]>([
    ['by its info', adapter({ isFallbackAdapter: true })],
    ['by the older property', adapter({ vendor: 'x' }, [], { isFallbackAdapter: true })],
    ['SwiftShader', adapter({ vendor: 'google', architecture: 'swiftshader' })],
    ['llvmpipe', adapter({ vendor: 'mesa', description: 'llvmpipe (LLVM 19.1.7, 256 bits)' })],
    ['lavapipe', adapter({ device: 'Lavapipe' })],
    ['Windows', adapter({ vendor: 'microsoft', description: 'Microsoft Basic Render Driver' })],
    ['WARP', adapter({ architecture: 'warp' })],
  ])('%s', (_, found) => {
    expect(describeAdapter(found).software).toBe(true)
  })

  test.each([
    adapter({ vendor: 'nvidia', architecture: 'ampere' }),
    adapter({ vendor: 'apple', architecture: 'metal-3' }),
    adapter({ vendor: 'intel', architecture: 'gen-12lp', description: 'Time warped' }),
    adapter({}),
  ])('and a hardware adapter is none (%#)', (found) => {
    expect(describeAdapter(found).software).toBe(false)
  })
})

test('Subgroups and experimental features are not used', () => {
  const trusted = ['shader-f16', 'timestamp-query']
  const subgroups = ['subgroups', 'subgroups-f16', 'chromium-experimental-subgroup-matrix']
  const features = [...subgroups, ...trusted]
  expect(describeAdapter(adapter({}, features)).features).toEqual(trusted)
  expect(features.filter(isTrusted)).toEqual(trusted)
})

test('Limits are read from the prototype, where browsers keep them', () => {
  expect(describeAdapter(adapter({})).limits).toEqual({ maxBufferSize: 5, maxBindGroups: 4 })
})

const apple = describeAdapter(
  adapter({ vendor: 'Apple', architecture: 'metal-3' }, ['shader-f16', 'timestamp-query']),
)
const seen: Capabilities = {
  webgpu: apple,
  wasm: { simd: true, threads: false, jspi: true },
  memory: 8 * 2 ** 30,
  cores: 8,
}

describe('The id of a device', () => {
  test('describes it', () => {
    expect(toDeviceId(seen)).toBe('dev_apple-metal-3-8cpu-8g')
    expect(toDeviceId({ ...seen, webgpu: null, memory: null })).toBe('dev_nogpu-8cpu')
    expect(toDeviceId({ ...seen, memory: 2 ** 29 })).toBe('dev_apple-metal-3-8cpu-0.5g')
  })

  test('does not change with the version of the browser', () => {
    const later = { ...seen, wasm: { simd: true, threads: true, jspi: false } }
    const webgpu = seen.webgpu && { ...seen.webgpu, features: ['new'], limits: {} }
    expect(toDeviceId({ ...later, webgpu })).toBe(toDeviceId(seen))
  })
})

test.each([
  [
    ['shader-f16', 'subgroups', 'timestamp-query'],
    '[["subgroups","shader-f16"],["shader-f16"],[]]',
    '[["shader-f16"],[]]',
  ],
  [['subgroups'], '[["subgroups"],[]]', '[[]]'],
  [[], '[[]]', '[[]]'],
])('The features %j are tested in the sets %s, in software %s', (available, sets, inSoftware) => {
  expect(JSON.stringify(listFeatureSets(new Set(available), false))).toBe(sets)
  expect(JSON.stringify(listFeatureSets(new Set(available), true))).toBe(inSoftware)
})

test('The key of a verdict names the browser, GPU, driver and runtime', () => {
  const others = [{ architecture: 'turing' }, { features: [] }]
  const keys = others.map((changes) => toVerdictKey({ ...apple, ...changes }, 'Chrome/140'))
  const key = toVerdictKey(apple, 'Chrome/140')
  expect(new Set([key, toVerdictKey(apple, 'Chrome/141'), ...keys]).size).toBe(4)
  expect(key).toContain(SELF_TEST_RUNTIME)
  const installed = packageJson.dependencies['onnxruntime-web']
  expect(SELF_TEST_RUNTIME).toBe(`onnxruntime-web ${installed}`)
})

test('Only a verdict is read from what an older version may have written', () => {
  expect([{ features: null }, { features: [] }, { features: ['a'] }].every(isGpuVerdict)).toBe(true)
  const others = [null, undefined, 'right', {}, { features: 1 }, { features: [1] }]
  expect(others.some(isGpuVerdict)).toBe(false)
})

describe('The capabilities of a device', () => {
  test('without a verdict or a GPU stay', () => {
    expect(withoutUntrusted(seen, undefined)).toBe(seen)
    const none = { ...seen, webgpu: null }
    expect(withoutUntrusted(none, { features: null })).toBe(none)
  })

  test('lose the features with wrong results', () => {
    expect(withoutUntrusted(seen, { features: ['shader-f16'] })).toEqual(seen)
    expect(withoutUntrusted(seen, { features: [] }).webgpu?.features).toEqual(['timestamp-query'])
  })

  test('lose a GPU with wrong or late results', () => {
    const lost = { ...seen, webgpu: null, doubt: 'wrong' }
    expect(withoutUntrusted(seen, { features: null })).toEqual(lost)
    expect(withoutUntrusted(seen, { features: null, late: true }).doubt).toBe('late')
  })
})
