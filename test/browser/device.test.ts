/** The devices of this browser. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { probeDevice, type Capabilities } from '../../src/device/capabilities.ts'
import { findAdapter } from '../../src/device/adapter.ts'
import { requestGpu } from '../../src/device/gpu.ts'

interface Answer {
  capabilities: Capabilities
  persisted: boolean
}

afterEach(() => {
  vi.restoreAllMocks()
})

test('a dedicated worker sees the same device as the page', async () => {
  const worker = new Worker(new URL('./device-worker.ts', import.meta.url), { type: 'module' })
  const answer = await new Promise<Answer>((resolve, reject) => {
    worker.addEventListener('message', ({ data }) => resolve(data))
    worker.addEventListener('error', (event) => reject(new Error(event.message)))
    worker.postMessage('probe')
  })
  worker.terminate()
  expect(answer).toEqual({ capabilities: await probeDevice(), persisted: false })
})

test('the software adapter is known as one', async () => {
  const { webgpu, wasm, cores } = await probeDevice()
  expect(webgpu).toMatchObject({ vendor: 'google', architecture: 'swiftshader', software: true })
  expect(webgpu?.limits['maxBufferSize']).toBeGreaterThan(2 ** 28)
  expect(wasm.simd).toBe(true)
  expect(wasm.threads).toBe(crossOriginIsolated)
  expect(cores).toBe(navigator.hardwareConcurrency)
})

test('there is no adapter if the GPU does not answer', async () => {
  vi.useFakeTimers()
  vi.spyOn(navigator.gpu, 'requestAdapter').mockReturnValue(new Promise(() => undefined))
  const found = findAdapter()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await found).toBeNull()
  vi.useRealTimers()
})

describe('a requested device', () => {
  test('has no subgroups by itself, with which this adapter computes wrong numbers', async () => {
    const offered = await findAdapter()
    expect(offered?.features.has('subgroups')).toBe(true)
    const { device, adapter } = await requestGpu()
    expect(device.features.has('subgroups')).toBe(false)
    expect(adapter.features).not.toContain('subgroups')
    expect([...device.features].filter((name) => name.includes('experimental'))).toEqual([])
    device.destroy()
  })

  test('has the limits of its adapter, not the low ones of the standard', async () => {
    const { device, adapter } = await requestGpu()
    for (const name of ['maxBufferSize', 'maxStorageBufferBindingSize'] as const) {
      expect(device.limits[name]).toBe(adapter.limits[name])
    }
    expect(device.limits.maxBufferSize).toBeGreaterThan(268_435_456)
    device.destroy()
  })

  test('has the requested features, or the error names the missing one', async () => {
    const { device } = await requestGpu({ features: ['float32-filterable'] })
    expect(device.features.has('float32-filterable')).toBe(true)
    device.destroy()
    await expect(requestGpu({ features: ['subgroups'] })).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('subgroups is not enabled on request'),
    })
    await expect(requestGpu({ features: ['unheard-of'] })).rejects.toThrow('no unheard-of')
  })

  test('is an error of its own without WebGPU', async () => {
    vi.spyOn(navigator.gpu, 'requestAdapter').mockResolvedValue(null)
    await expect(requestGpu()).rejects.toMatchObject({ kind: 'unavailable', code: 'no_webgpu' })
    expect((await probeDevice()).webgpu).toBeNull()
  })
})
