/** Finds the WebGPU adapter and describes it as plain data. */
import { withTimeout } from '../values/promises.ts'

/** Plain-data description of a WebGPU adapter, taken from its info, features and limits. */
export interface AdapterDescription {
  vendor: string
  architecture: string
  /** Device name; empty in most browsers, which hide it from pages. */
  device: string
  description: string
  /** `true` if the adapter computes on the CPU, where it is slower than WASM. */
  software: boolean
  /** Sorted names of the trusted features that the adapter supports; see {@link isTrusted}. */
  features: string[]
  limits: Record<string, number>
}

/** Timeout in milliseconds of an adapter request; after it, the adapter counts as absent. */
const ADAPTER_TIMEOUT_MS = 10_000

const SOFTWARE_GPU = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|\bwarp\b/i

/**
 * Resolves with the high-performance adapter, or with `null` if there is no WebGPU or the request
 * fails or times out.
 */
export async function findAdapter(): Promise<GPUAdapter | null> {
  const gpu: GPU | undefined = navigator.gpu
  if (!gpu) return null
  // A hanging GPU process or a blocklisted driver must not prevent the fallback to WASM.
  const adapter = gpu.requestAdapter({ powerPreference: 'high-performance' }).catch(() => null)
  return withTimeout(ADAPTER_TIMEOUT_MS, adapter, null)
}

/** Describes an adapter as plain data. */
export function describeAdapter(adapter: GPUAdapter): AdapterDescription {
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info
  const names = [vendor, architecture, device, description].join(' ')
  // Browsers had this property on the adapter itself until 2025.
  const older = (adapter as { isFallbackAdapter?: boolean }).isFallbackAdapter
  return {
    vendor,
    architecture,
    device,
    description,
    software: isFallbackAdapter || older || SOFTWARE_GPU.test(names),
    features: [...adapter.features].filter(isTrusted).toSorted(),
    limits: toLimits(adapter.limits),
  }
}

/**
 * Returns `true` if a device may be created with the feature without a self-test. Those for subgroups need one: with
 * `subgroups`, onnxruntime-web's attention kernels silently compute wrong numbers on some drivers, such as SwiftShader.
 * Without it, the kernels take another path and are correct. Experimental features are not trusted at all.
 */
export function isTrusted(feature: string): boolean {
  return !feature.startsWith('subgroup') && !feature.includes('experimental')
}

function toLimits(limits: GPUSupportedLimits): Record<string, number> {
  const found: Record<string, number> = {}
  // The limits are accessors of the prototype, so only for..in lists them.
  for (const name in limits) {
    const value: unknown = limits[name as keyof GPUSupportedLimits]
    if (typeof value === 'number') found[name] = value
  }
  return found
}
