/** The WebGPU adapter: whether there is one, and what it says of itself. */
import { within } from '../store/patience.ts'

/** What an adapter says of itself. */
export interface AdapterDescription {
  vendor: string
  architecture: string
  /** Empty in most browsers, which keep it from pages. */
  device: string
  description: string
  /** It computes on the CPU, and slower than WASM does there. */
  software: boolean
  /** Features a device of ours may have. */
  features: string[]
  limits: Record<string, number>
}

/** Milliseconds after which an adapter that was asked for counts as absent. */
const PATIENCE = 10_000

const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|\bwarp\b/i

/** The adapter that computes fastest; `null` where there is no WebGPU or it does not answer. */
export async function findAdapter(): Promise<GPUAdapter | null> {
  const gpu: GPU | undefined = navigator.gpu
  if (!gpu) return null
  // A GPU process that hangs or a driver on a blocklist must not keep WASM from being used.
  const adapter = gpu.requestAdapter({ powerPreference: 'high-performance' }).catch(() => null)
  return within(PATIENCE, adapter, null)
}

/** What is known of an adapter, as plain data. */
export function describeAdapter(adapter: GPUAdapter): AdapterDescription {
  const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info
  const names = [vendor, architecture, device, description].join(' ')
  // Until 2025 browsers said it on the adapter itself.
  const older = (adapter as { isFallbackAdapter?: boolean }).isFallbackAdapter
  return {
    vendor,
    architecture,
    device,
    description,
    software: isFallbackAdapter || older || SOFTWARE.test(names),
    features: [...adapter.features].filter(isTrusted).toSorted(),
    limits: limitsOf(adapter.limits),
  }
}

/**
 * Whether a device of ours may have that feature. Never `subgroups`: with it, a driver that is in
 * use (SwiftShader, and who knows which others) makes onnxruntime-web's attention kernels compute
 * wrong numbers, without any error; without it the same kernels take another way and are right. Nor
 * anything a browser calls experimental.
 */
export function isTrusted(feature: string): boolean {
  return !feature.startsWith('subgroup') && !feature.includes('experimental')
}

function limitsOf(limits: GPUSupportedLimits): Record<string, number> {
  const found: Record<string, number> = {}
  // They are accessors of the prototype: only for..in lists them.
  for (const name in limits) {
    const value: unknown = limits[name as keyof GPUSupportedLimits]
    if (typeof value === 'number') found[name] = value
  }
  return found
}
