/** Result of the GPU self-test, which finds the features with which a GPU computes correctly. */
import { InoriginError } from '../error.ts'
import { isObject } from '../values/objects.ts'
import type { AdapterDescription } from './adapter.ts'
import type { Capabilities } from './capabilities.ts'

/** Result of the self-test, as plain data that can be cloned to another thread and stored. */
export interface GpuVerdict {
  /** Optional features with which the GPU computes correctly; `null` if it never does. */
  features: readonly string[] | null
  /**
   * `true` if a self-test with more features timed out. It may pass when the machine is less busy,
   * so such a verdict lasts only as long as its thread and is not stored.
   */
  late?: boolean
}

/**
 * Result of comparing a predictor's outputs, or the rows of a model's image encoder, on the GPU with
 * those on the CPU.
 */
export interface GpuComparison {
  agrees: boolean
  /** Description of the difference, or of what was compared, without a period. */
  why: string
  /** `true` if a later load must compare again. */
  isTransient?: boolean
}

/** Runtime of the self-test. Another version may have other kernels and needs a new test. */
export const SELF_TEST_RUNTIME = 'onnxruntime-web 1.30.0'

/** Version of the self-test. Verdicts of an earlier one are void. */
const SELF_TEST = 'gpu 4'

/**
 * Features that make a device faster, but with which some drivers compute wrong numbers. The first ones are most
 * likely to be at fault. On an H100, `subgroups` made decode 3 to 9 % faster.
 */
const OPTIONAL_FEATURES = ['subgroups', 'shader-f16']

/** Features that are not tried on an adapter of software. SwiftShader is wrong with them, and takes seconds to show it. */
const HARDWARE_FEATURES = ['subgroups']

/** Returns the key of the stored verdict, which is unique per GPU, browser and runtime. */
export function toVerdictKey(adapter: AdapterDescription, browser: string): string {
  const { vendor, architecture, device, description, features } = adapter
  const parts = [vendor, architecture, device, description, features.join(' '), browser]
  return [SELF_TEST, SELF_TEST_RUNTIME, ...parts].join(' | ')
}

/** Returns `true` if a stored value has the shape of a {@link GpuVerdict}. */
export function isGpuVerdict(value: unknown): value is GpuVerdict {
  const features = isObject(value) ? value['features'] : undefined
  if (features === null) return true
  return Array.isArray(features) && features.every((feature) => typeof feature === 'string')
}

/** Returns the verdict with which a load rejected the GPU, or `null` for any other error. */
export function verdictFromError(error: unknown): GpuVerdict | null {
  const verdict = detailOf(error, 'verdict')
  return isGpuVerdict(verdict) ? verdict : null
}

/** Returns a detail of the error of a GPU that is not trusted. */
const detailOf = (error: unknown, name: string): unknown =>
  error instanceof InoriginError && error.code === 'gpu_untrusted' ? error.details?.[name] : null

/** Returns the error for a predictor whose outputs on the GPU differ from those of the CPU. */
export function gpuDiffers(comparison: GpuComparison): InoriginError {
  const what = `The GPU computes wrong numbers for this predictor: ${comparison.why}.`
  return new InoriginError('unavailable', `${what} Use device: "wasm", or another browser.`, {
    code: 'gpu_untrusted',
    details: { comparison },
  })
}

/** Returns the comparison for which a prediction rejected the GPU, or `null` for any other error. */
export function comparisonFromError(error: unknown): GpuComparison | null {
  const comparison = detailOf(error, 'comparison')
  return isGpuComparison(comparison) ? comparison : null
}

/** Returns `true` if a stored value has the shape of a {@link GpuComparison}. */
export const isGpuComparison = (value: unknown): value is GpuComparison =>
  isObject(value) && typeof value['agrees'] === 'boolean' && typeof value['why'] === 'string'

/**
 * Returns the sets of optional features to test in turn. The first set has all that the adapter offers; each next
 * set drops the one that drivers are most likely to get wrong.
 */
export function listFeatureSets(available: ReadonlySet<string>, software: boolean): string[][] {
  const wanted = OPTIONAL_FEATURES.filter(
    (name) => available.has(name) && !(software && HARDWARE_FEATURES.includes(name)),
  )
  return Array.from({ length: wanted.length + 1 }, (_, dropped) => wanted.slice(dropped))
}

/** Returns the capabilities without the GPU, or without the GPU features, that failed the test. */
export function withoutUntrusted(
  capabilities: Capabilities,
  verdict: GpuVerdict | undefined,
): Capabilities {
  const { webgpu } = capabilities
  if (!webgpu || !verdict) return capabilities
  const { features: right, late = false } = verdict
  const doubt = late ? 'late' : 'wrong'
  if (right === null) return { ...capabilities, webgpu: null, doubt }
  const isRight = (name: string): boolean =>
    !OPTIONAL_FEATURES.includes(name) || right.includes(name)
  const unsound = webgpu.features.filter((name) => !isRight(name))
  if (unsound.length === 0) return capabilities
  const features = webgpu.features.filter(isRight)
  return { ...capabilities, webgpu: { ...webgpu, features }, doubt, unsound }
}
