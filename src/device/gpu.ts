/**
 * Requests a GPUDevice for the engines. They request it themselves to choose its features and to
 * learn of its loss.
 */
import { InoriginError } from '../error.ts'
import { describeAdapter, findAdapter, isTrusted, type AdapterDescription } from './adapter.ts'

interface GpuOptions {
  /** Required features; the request rejects if the adapter lacks one. Default: none. */
  features?: readonly string[]
  /** Features to enable if the adapter supports them. Default: `shader-f16`. */
  optional?: readonly string[]
}

interface Gpu {
  device: GPUDevice
  adapter: AdapterDescription
  /**
   * Resolves when the device is lost, with reason `destroyed` if `destroy()` was called. It never
   * rejects.
   */
  lost: Promise<{ reason: 'destroyed' | 'unknown'; message: string }>
}

/**
 * Usage flags `COPY_SRC | COPY_DST | STORAGE`. They are numbers because `GPUBufferUsage` does not
 * exist without WebGPU.
 */
export const STORAGE_USAGE = 0x04 | 0x08 | 0x80

/** Limits to raise to the adapter's, because the defaults are too low for weights and kernels. */
const RAISED_LIMITS = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
] as const

/**
 * Resolves with a device that has the adapter's limits and only the requested features. Rejects
 * with `unavailable` if there is no adapter, it lacks a required feature, or the request fails.
 */
export async function requestGpu({
  features = [],
  optional = ['shader-f16'],
}: GpuOptions = {}): Promise<Gpu> {
  const adapter = await findAdapter()
  if (!adapter) {
    const what = 'This browser offers no WebGPU here. Use device: "wasm".'
    throw new InoriginError('unavailable', what, { code: 'no_webgpu' })
  }
  const description = describeAdapter(adapter)
  const missing = features.filter((feature) => !description.features.includes(feature))
  if (missing.length > 0) {
    const untrusted = missing.filter((feature) => !isTrusted(feature))
    const why = untrusted.length > 0 ? ` (${untrusted.join(', ')} is never enabled)` : ''
    const what = `The GPU has no ${missing.join(', ')}${why}. Use device: "wasm".`
    throw new InoriginError('unavailable', what, { code: 'no_webgpu' })
  }
  const wanted = new Set([...optional, ...features])
  const requiredFeatures = [...adapter.features].filter((feature) => wanted.has(feature))
  const { limits } = description
  const requiredLimits = Object.fromEntries(
    RAISED_LIMITS.filter((name) => name in limits).map((name) => [name, limits[name]]),
  )
  let device: GPUDevice
  try {
    device = await adapter.requestDevice({
      label: 'inorigin',
      requiredFeatures: requiredFeatures as GPUFeatureName[],
      requiredLimits,
    })
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    const what = `The GPU device request failed: ${why} Use device: "wasm".`
    throw new InoriginError('unavailable', what, { code: 'no_webgpu', cause: thrown })
  }
  const lost = device.lost.then(({ reason, message }) => ({ reason, message }))
  return { device, adapter: description, lost }
}
