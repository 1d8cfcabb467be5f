/** What was learnt of a GPU: with which features it computes right numbers. */
import type { AdapterDescription } from './adapter.ts'
import type { Capabilities } from './capabilities.ts'

/** Plain data: it can cross a thread and be kept. */
export interface GpuVerdict {
  /** The optional features with which its numbers were right; `null`: they never were. */
  features: readonly string[] | null
  /**
   * A trial with more did not come to an end in time, which another may on a day that is less busy: such a
   * verdict holds as long as the thread that has it, and is not kept.
   */
  late?: boolean
}

/** What it was tried with; another one may have other kernels, and is tried anew. */
export const TRIED_WITH = 'onnxruntime-web 1.30.0'

/** Features that make a device faster where it has them, and that some drivers get wrong. */
const OPTIONAL = ['shader-f16']

/** The subject under which the verdict is kept: one for each GPU, driver, browser and runtime. */
export function verdictSubject(adapter: AdapterDescription, userAgent: string): string {
  const { vendor, architecture, device, description, features } = adapter
  const parts = [vendor, architecture, device, description, features.join(' '), userAgent]
  return ['gpu', TRIED_WITH, ...parts].join(' | ')
}

export function isGpuVerdict(value: unknown): value is GpuVerdict {
  if (typeof value !== 'object' || value === null || !('features' in value)) return false
  const { features } = value
  return (
    features === null ||
    (Array.isArray(features) && features.every((feature) => typeof feature === 'string'))
  )
}

/**
 * Optional features to try a device with, one set after the other: all that are there first, then
 * without those that drivers are most likely to get wrong.
 */
export function rungs(available: ReadonlySet<string>): string[][] {
  const wanted = OPTIONAL.filter((name) => available.has(name))
  return Array.from({ length: wanted.length + 1 }, (_, dropped) => wanted.slice(dropped))
}

/** What this device can do as far as its GPU is to be trusted. */
export function trusted(capabilities: Capabilities, verdict: GpuVerdict | undefined): Capabilities {
  const { webgpu } = capabilities
  if (!webgpu || !verdict) return capabilities
  const { features: right, late = false } = verdict
  const doubt = late ? 'late' : 'wrong'
  if (right === null) return { ...capabilities, webgpu: null, doubt }
  const isRight = (name: string): boolean => !OPTIONAL.includes(name) || right.includes(name)
  const unsound = webgpu.features.filter((name) => !isRight(name))
  if (unsound.length === 0) return capabilities
  const features = webgpu.features.filter(isRight)
  return { ...capabilities, webgpu: { ...webgpu, features }, doubt, unsound }
}
