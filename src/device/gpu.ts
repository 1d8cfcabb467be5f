/**
 * Requests a GPUDevice for the engines. They request it themselves to choose its features and to
 * learn of its loss.
 */
import { InoriginError, messageOf } from '../error.ts'
import { describeAdapter, findAdapter, isTrusted } from './adapter.ts'

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
 * Resolves with a device that has the adapter's limits, the required `features`, and those of
 * `optional` that the adapter has. Rejects with `unavailable` if there is no adapter, it lacks a
 * required feature, or the request fails.
 */
export async function requestGpu({
  features = [],
  optional = ['shader-f16'],
}: { features?: readonly string[]; optional?: readonly string[] } = {}) {
  const adapter = await findAdapter()
  if (!adapter) throw noGpu('This browser offers no WebGPU here.')
  const description = describeAdapter(adapter)
  const missing = features.filter((feature) => !description.features.includes(feature))
  if (missing.length > 0) {
    const untrusted = missing.filter((feature) => !isTrusted(feature))
    const why = untrusted.length > 0 ? ` (${untrusted.join(', ')} is not enabled on request)` : ''
    throw noGpu(`The GPU has no ${missing.join(', ')}${why}.`)
  }
  const wanted = new Set([...optional, ...features])
  const requiredFeatures = [...adapter.features].filter((feature) => wanted.has(feature))
  const { limits } = description
  const requiredLimits = Object.fromEntries(
    RAISED_LIMITS.filter((name) => name in limits).map((name) => [name, limits[name]]),
  )
  const descriptor = { label: 'inorigin', requiredFeatures, requiredLimits }
  const device = await adapter
    .requestDevice(descriptor as GPUDeviceDescriptor)
    .catch((thrown: unknown) => {
      throw noGpu(`The GPU device request failed: ${messageOf(thrown)}`, thrown)
    })
  return { device, adapter: description }
}

const noGpu = (what: string, cause?: unknown): InoriginError =>
  new InoriginError('unavailable', `${what} Use device: "wasm".`, { code: 'no_webgpu', cause })
