/** A GPUDevice of our own, so that its features are our choice and its loss is our knowledge. */
import { InoriginError } from '../error.ts'
import { describeAdapter, findAdapter, isTrusted, type AdapterDescription } from './adapter.ts'

export interface GpuOptions {
  /** Features without which the device is refused. */
  features?: readonly string[]
  /** Features to have where the adapter has them. Default: `shader-f16`. */
  optional?: readonly string[]
}

export interface Gpu {
  device: GPUDevice
  adapter: AdapterDescription
  /** Resolves when the device is gone; `destroyed` when it was our doing. Never rejects. */
  lost: Promise<{ reason: 'destroyed' | 'unknown'; message: string }>
}

/**
 * Usage of buffers that shaders read and write, and that are copied from and to: numbers of
 * GPUBufferUsage, which is not there where WebGPU is not.
 */
export const STORAGE_USAGE = 0x04 | 0x08 | 0x80

/** Limits whose default is too low for weights and for the kernels that read them. */
const RAISED = [
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
 * A device with the adapter's own limits and no features but those asked for. Rejects with
 * `unavailable` when there is no adapter, it lacks a feature, or it gives no device.
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
    throw new InoriginError('unavailable', `The GPU here has no ${missing.join(', ')}${why}.`, {
      code: 'no_webgpu',
    })
  }
  const wanted = new Set([...optional, ...features])
  const requiredFeatures = [...adapter.features].filter((feature) => wanted.has(feature))
  const { limits } = description
  const requiredLimits = Object.fromEntries(
    RAISED.filter((name) => name in limits).map((name) => [name, limits[name]]),
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
    throw new InoriginError('unavailable', `The GPU gave no device: ${why} Use device: "wasm".`, {
      code: 'no_webgpu',
      cause: thrown,
    })
  }
  const lost = device.lost.then(({ reason, message }) => ({ reason, message }))
  return { device, adapter: description, lost }
}
