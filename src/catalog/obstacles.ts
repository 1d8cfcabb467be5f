/** Finds the reasons why an implementation cannot run on a device, as texts. */
import type { Capabilities } from '../device/capabilities.ts'
import type { Device } from '../types/index.ts'
import { estimateVocabularyBytes, getMemoryBytes } from './memory-bytes.ts'
import type { Implementation } from './schema.ts'

const GIB = 2 ** 30

/** Maximum size of a 32-bit WebAssembly memory in bytes. */
const MAX_WASM_MEMORY_BYTES = 4 * GIB

/** Maximum values that older and newer browsers report. They mean "at least this much". */
const REPORTED_MEMORY_CAPS: readonly number[] = [8 * GIB, 32 * GIB]

/** Returns the obstacles; the array is empty if the implementation can run. */
export function listObstacles(
  implementation: Implementation,
  capabilities: Capabilities,
  preference: Device | 'auto' = 'auto',
): string[] {
  const { device, requires = {} } = implementation
  const obstacles: string[] = []
  if (preference !== 'auto' && preference !== device) {
    obstacles.push(
      `it runs on ${toDeviceName(device)}, but ${toDeviceName(preference)} was requested`,
    )
  }
  if (!capabilities.wasm.simd) obstacles.push('this browser has no WebAssembly SIMD')
  const lacking = device === 'webgpu' ? listGpuObstacles : listWasmObstacles
  obstacles.push(...lacking(requires, capabilities))
  const needed = getMemoryBytes(implementation)
  if (device === 'wasm' && needed > MAX_WASM_MEMORY_BYTES) {
    obstacles.push(
      `it needs ${formatGib(needed)} of memory and WebAssembly can have ${formatGib(MAX_WASM_MEMORY_BYTES)}`,
    )
  }
  const { memory } = capabilities
  const neededInAll = needed + estimateVocabularyBytes(implementation)
  if (memory !== null && neededInAll > memory && !REPORTED_MEMORY_CAPS.includes(memory)) {
    obstacles.push(
      `it needs ${formatGib(neededInAll)} of memory and the device has ${formatGib(memory)}`,
    )
  }
  return obstacles
}

type ImplementationRequirements = NonNullable<Implementation['requires']>

function listGpuObstacles(
  { features = [], limits = {} }: ImplementationRequirements,
  { webgpu, doubt, unsound = [] }: Capabilities,
): string[] {
  if (doubt === 'no-runtime') return ['this app was set up without WebGPU']
  const fault = doubt === 'late' ? 'timed out in the self-test' : 'computes wrong numbers'
  if (!webgpu && doubt) return [`the GPU here ${fault}`]
  if (!webgpu) return ['this browser offers no WebGPU here']
  const lacking = features
    .filter((feature) => !webgpu.features.includes(feature))
    .map((feature) =>
      unsound.includes(feature)
        ? `the GPU here ${fault} with ${feature}`
        : `the GPU has no ${feature}`,
    )
  const tooLow = Object.entries(limits)
    .filter(([name, least]) => !((webgpu.limits[name] ?? -1) >= least))
    .map(([name, least]) => {
      const has = webgpu.limits[name]
      return `it needs ${name} of ${least} and the GPU has ${has ?? 'none'}`
    })
  return [...lacking, ...tooLow]
}

/** Returns the missing WebAssembly features, by their names in a catalog. */
function listWasmObstacles(
  { features = [] }: ImplementationRequirements,
  { wasm }: Capabilities,
): string[] {
  const has: Record<string, boolean> = { ...wasm }
  return features
    .filter((feature) => feature !== 'simd' && has[feature] !== true)
    .map((feature) =>
      feature === 'threads'
        ? 'WebAssembly has no threads here, because the page is not cross-origin isolated'
        : `WebAssembly has no ${feature} here`,
    )
}

function toDeviceName(device: Device): string {
  return device === 'webgpu' ? 'WebGPU' : 'WASM'
}

function formatGib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1).replace(/\.0$/, '')} GiB`
}
