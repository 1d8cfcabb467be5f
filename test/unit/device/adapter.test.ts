import { describe, expect, test } from 'vitest'
import { describeAdapter, isTrusted } from '../../../src/device/adapter.ts'
import { toDeviceId, type Capabilities } from '../../../src/device/capabilities.ts'

const SILENT = {
  vendor: '',
  architecture: '',
  device: '',
  description: '',
  isFallbackAdapter: false,
}

function adapter(
  info: Partial<GPUAdapterInfo>,
  features: string[] = [],
  more: object = {},
): GPUAdapter {
  const limits = Object.create({ maxBufferSize: 5, maxBindGroups: 4 }) as GPUSupportedLimits
  const made: unknown = {
    info: { ...SILENT, ...info },
    features: new Set(features),
    limits,
    ...more,
  }
  return made as GPUAdapter
}

describe('a software adapter is known', () => {
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
  ])('and a real one is not taken for it (%#)', (found) => {
    expect(describeAdapter(found).software).toBe(false)
  })
})

test('no device of ours has subgroups or experiments', () => {
  const features = [
    'subgroups',
    'subgroups-f16',
    'chromium-experimental-subgroup-matrix',
    'shader-f16',
    'timestamp-query',
  ]
  expect(describeAdapter(adapter({}, features)).features).toEqual(['shader-f16', 'timestamp-query'])
  expect(features.filter(isTrusted)).toEqual(['shader-f16', 'timestamp-query'])
})

test('limits are read off the prototype, where browsers keep them', () => {
  expect(describeAdapter(adapter({})).limits).toEqual({ maxBufferSize: 5, maxBindGroups: 4 })
})

describe('the id of a device', () => {
  const seen: Capabilities = {
    webgpu: describeAdapter(adapter({ vendor: 'Apple', architecture: 'metal-3' })),
    wasm: { simd: true, threads: false, jspi: true },
    memory: 8 * 2 ** 30,
    cores: 8,
  }

  test('tells what it is', () => {
    expect(toDeviceId(seen)).toBe('dev_apple-metal-3-8cpu-8g')
    expect(toDeviceId({ ...seen, webgpu: null, memory: null })).toBe('dev_nogpu-8cpu')
    expect(toDeviceId({ ...seen, memory: 2 ** 29 })).toBe('dev_apple-metal-3-8cpu-0.5g')
  })

  test('does not change with what comes and goes with browsers', () => {
    const later = { ...seen, wasm: { simd: true, threads: true, jspi: false } }
    const webgpu = seen.webgpu && { ...seen.webgpu, features: ['new'], limits: {} }
    expect(toDeviceId({ ...later, webgpu })).toBe(toDeviceId(seen))
  })
})
