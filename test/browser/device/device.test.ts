import { afterEach, describe, expect, test, vi } from 'vitest'
import { chooseImplementation } from '../../../src/catalog/choose-implementation.ts'
import { toDeviceId, probeDevice, type Capabilities } from '../../../src/device/capabilities.ts'
import { findAdapter } from '../../../src/device/adapter.ts'
import { requestGpu } from '../../../src/device/gpu.ts'

interface Answer {
  capabilities: Capabilities
  persisted: boolean
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('in a dedicated worker', () => {
  test('tells what the page would tell', async () => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
    const answer = await new Promise<Answer>((resolve, reject) => {
      worker.addEventListener('message', ({ data }) => resolve(data))
      worker.addEventListener('error', (event) => reject(new Error(event.message)))
      worker.postMessage('probe')
    })
    worker.terminate()
    expect(answer.capabilities).toEqual(await probeDevice())
    expect(answer.persisted).toBe(false)
  })
})

test('sees the software adapter for what it is', async () => {
  const { webgpu, wasm, cores } = await probeDevice()
  expect(webgpu).toMatchObject({ vendor: 'google', architecture: 'swiftshader', software: true })
  expect(webgpu?.limits['maxBufferSize']).toBeGreaterThan(2 ** 28)
  expect(wasm.simd).toBe(true)
  expect(wasm.threads).toBe(crossOriginIsolated)
  expect(cores).toBe(navigator.hardwareConcurrency)
})

test('names the device the same every time', async () => {
  const id = toDeviceId(await probeDevice())
  expect(id).toMatch(/^dev_google-swiftshader-software-\d+cpu/)
  expect(toDeviceId(await probeDevice())).toBe(id)
})

test('keeps WASM when the GPU does not answer', async () => {
  vi.useFakeTimers()
  vi.spyOn(navigator.gpu, 'requestAdapter').mockReturnValue(new Promise(() => undefined))
  const found = findAdapter()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await found).toBeNull()
  vi.useRealTimers()
})

describe('a device of our own', () => {
  test('never has subgroups, which this adapter offers and computes wrongly with', async () => {
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

  test('has the features that were asked for, or is refused by name', async () => {
    const { device } = await requestGpu({ features: ['float32-filterable'] })
    expect(device.features.has('float32-filterable')).toBe(true)
    device.destroy()
    await expect(requestGpu({ features: ['subgroups'] })).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('subgroups is never enabled'),
    })
    await expect(requestGpu({ features: ['unheard-of'] })).rejects.toThrow('no unheard-of')
  })

  test('says when it is gone', async () => {
    const { device, lost } = await requestGpu()
    device.destroy()
    expect(await lost).toMatchObject({ reason: 'destroyed' })
  })

  test('is refused clearly where there is no WebGPU', async () => {
    vi.spyOn(navigator.gpu, 'requestAdapter').mockResolvedValue(null)
    await expect(requestGpu()).rejects.toMatchObject({ kind: 'unavailable', code: 'no_webgpu' })
    expect((await probeDevice()).webgpu).toBeNull()
  })
})

test('WASM is chosen here, unless WebGPU is asked for', async () => {
  const capabilities = await probeDevice()
  const entry = {
    tag: '@a/b',
    implementations: (['webgpu', 'wasm'] as const).map((device) => ({
      id: device,
      engine: 'onnx' as const,
      device,
      resources: [],
    })),
  }
  expect(chooseImplementation(entry, capabilities).implementation.id).toBe('wasm')
  expect(chooseImplementation(entry, capabilities, 'webgpu').implementation.id).toBe('webgpu')
})
