import { describe, expect, test } from 'vitest'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Capabilities } from '../../../src/device/capabilities.ts'
import {
  isGpuVerdict,
  listFeatureSets,
  SELF_TEST_RUNTIME,
  withoutUntrusted,
  toVerdictKey,
} from '../../../src/device/gpu-verdict.ts'

const adapter = {
  vendor: 'nvidia',
  architecture: 'ampere',
  device: '',
  description: '',
  software: false,
  features: ['shader-f16', 'timestamp-query'],
  limits: { maxBufferSize: 5 },
}
const seen: Capabilities = {
  webgpu: adapter,
  wasm: { simd: true, threads: false, jspi: true },
  memory: null,
  cores: 4,
}

describe('features are tried', () => {
  test.each([
    [
      ['shader-f16', 'subgroups', 'timestamp-query'],
      [['shader-f16'], []],
    ],
    [['subgroups'], [[]]],
    [[], [[]]],
  ])('%j', (available, expected) => {
    expect(listFeatureSets(new Set(available))).toEqual(expected)
  })
})

describe('the subject of a verdict', () => {
  const subject = toVerdictKey(adapter, 'Chrome/140')

  test('is another for another browser, GPU, driver or runtime', () => {
    expect(toVerdictKey(adapter, 'Chrome/141')).not.toBe(subject)
    expect(toVerdictKey({ ...adapter, architecture: 'turing' }, 'Chrome/140')).not.toBe(subject)
    expect(toVerdictKey({ ...adapter, features: [] }, 'Chrome/140')).not.toBe(subject)
    expect(subject).toContain(SELF_TEST_RUNTIME)
  })

  test('names the runtime that is installed', () => {
    const installed = packageJson.dependencies['onnxruntime-web']
    expect(SELF_TEST_RUNTIME).toBe(`onnxruntime-web ${installed}`)
  })
})

test('a verdict is known from what an older version may have written', () => {
  expect([{ features: null }, { features: [] }, { features: ['a'] }].every(isGpuVerdict)).toBe(true)
  const others = [null, undefined, 'right', {}, { features: 1 }, { features: [1] }]
  expect(others.some(isGpuVerdict)).toBe(false)
})

describe('what a device can do is judged', () => {
  test('without a verdict, by what it says', () => {
    expect(withoutUntrusted(seen, undefined)).toBe(seen)
    const none = { ...seen, webgpu: null }
    expect(withoutUntrusted(none, { features: null })).toBe(none)
  })

  test('without the features that it gets wrong', () => {
    expect(withoutUntrusted(seen, { features: ['shader-f16'] })).toEqual(seen)
    expect(withoutUntrusted(seen, { features: [] }).webgpu?.features).toEqual(['timestamp-query'])
  })

  test('without its GPU, where that is always wrong', () => {
    expect(withoutUntrusted(seen, { features: null })).toEqual({
      ...seen,
      webgpu: null,
      doubt: 'wrong',
    })
    expect(withoutUntrusted(seen, { features: null, late: true }).doubt).toBe('late')
  })
})
