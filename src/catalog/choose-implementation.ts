/** Chooses the implementation of a tag for a device. The choice is deterministic. */
import type { Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import type { Device, Reason } from '../types/index.ts'
import {
  estimateVocabularyBytes,
  getMemoryBytes,
  hasResources,
  sumResourceBytes,
} from './memory-bytes.ts'
import type { Entry, Implementation } from './schema.ts'
import { withUpstreamReasons } from './upstreams.ts'

export type Preference = Device | 'auto'

/** Result of a test run of an implementation on this device. */
export type Measurement =
  | { milliseconds: number }
  | { failure: string }
  /** Difference of its outputs on the GPU from those on the CPU. It must not be used. */
  | { differs: string }

/** Measurements by implementation id. Unmeasured ones are absent. */
type Measurements = ReadonlyMap<string, Measurement>

/** Reasons not to load implementations that the device could run, by id. */
type Refusals = ReadonlyMap<string, string>

export interface ImplementationChoice {
  implementation: Implementation
  reasons: Reason[]
}

type TagImplementations = Pick<Entry, 'tag' | 'implementations' | 'upstreams'>

interface Candidate {
  implementation: Implementation
  obstacles: string[]
  /** Rank of the device kind; 0 is the fastest. */
  rank: number
  /** Milliseconds of a run: Infinity if it failed, `undefined` if it was not measured. */
  timeMs: number | undefined
  failure?: string
}

/** Ratio of times up to which two are considered equal, since measurements fluctuate. */
export const EQUAL_TIME_RATIO = 1.1

const SOFTWARE_RANK = 2

/**
 * Chooses the implementation for a device. The order is: real GPUs, WASM, software GPUs, then the
 * catalog's order. With a preference, only that device is considered. If the first one was
 * measured, the fastest of the measured ones is chosen instead. Throws `unavailable` with the
 * obstacles of each one if none can run; the code is `gpu_untrusted` if the GPU is wrong for one.
 */
export function chooseImplementation(
  entry: TagImplementations,
  capabilities: Capabilities,
  preference: Preference = 'auto',
  measured: Measurements = new Map(),
  refusals: Refusals = new Map(),
): ImplementationChoice {
  const { chosen, reasons } = findImplementation(
    entry,
    capabilities,
    preference,
    measured,
    refusals,
  )
  if (chosen) return { implementation: chosen, reasons }
  const all = withUpstreamReasons(entry, reasons).reasons
  const list = all.map(({ id, why }) => `${id}: ${why}`).join('. ')
  const isUntrusted = [...measured.values()].some((measurement) => 'differs' in measurement)
  throw new InoriginError('unavailable', `${entry.tag} cannot run on this device. ${list}.`, {
    code: isUntrusted ? 'gpu_untrusted' : refusals.size > 0 ? 'load_crashed' : 'no_implementation',
    details: { tag: entry.tag, reasons: all },
  })
}

/** Chooses like {@link chooseImplementation}, but returns an absent `chosen` if none can run. */
export function findImplementation(
  entry: TagImplementations,
  capabilities: Capabilities,
  preference: Preference = 'auto',
  measured: Measurements = new Map(),
  refusals: Refusals = new Map(),
): { chosen: Implementation | undefined; reasons: Reason[] } {
  const candidates = toCandidates(entry, capabilities, preference, measured, refusals)
  const best = findFastest(sortRunnable(candidates))
  const reasons = candidates.map((candidate): Reason => {
    const { implementation, obstacles, timeMs = Infinity } = candidate
    const { id, device } = implementation
    const why =
      candidate === best
        ? describeChosen(candidate, capabilities)
        : best && obstacles.length === 0
          ? describeRejected(candidate, best)
          : obstacles.join('; ')
    const milliseconds = timeMs === Infinity ? null : timeMs
    const bytes = hasResources(implementation) ? sumResourceBytes(implementation) : null
    return { id, device, chosen: candidate === best, why, bytes, milliseconds }
  })
  return { chosen: best?.implementation, reasons }
}

/**
 * Returns the implementations that a measurement must compare, the default choice first. Software
 * GPUs are excluded unless there is nothing else.
 */
export function listComparable(
  entry: TagImplementations,
  capabilities: Capabilities,
  preference: Preference = 'auto',
  refusals: Refusals = new Map(),
  measured: Measurements = new Map(),
): Implementation[] {
  const candidates = toCandidates(entry, capabilities, preference, measured, refusals)
  return selectComparable(sortRunnable(candidates)).map(({ implementation }) => implementation)
}

const toCandidates = (
  { implementations }: TagImplementations,
  capabilities: Capabilities,
  preference: Preference,
  measured: Measurements,
  refusals: Refusals,
): Candidate[] =>
  implementations.map((implementation) => {
    const measurement = measured.get(implementation.id)
    const refusal = refusals.get(implementation.id)
    return {
      implementation,
      obstacles: [
        ...listObstacles(implementation, capabilities, preference),
        ...(measurement && 'differs' in measurement ? [describeDifference(measurement)] : []),
        ...(refusal === undefined ? [] : [refusal]),
      ],
      rank: toRank(implementation.device, capabilities),
      timeMs: measurement && toTimeMs(measurement),
      ...(measurement && 'failure' in measurement && { failure: measurement.failure }),
    }
  })

const describeDifference = ({ differs }: { differs: string }): string =>
  `the GPU computes wrong numbers for it: ${differs}`

const toTimeMs = (measurement: Measurement): number =>
  'milliseconds' in measurement ? measurement.milliseconds : Infinity

/** Returns the candidates that can run, the fastest kind first. */
const sortRunnable = (candidates: readonly Candidate[]): Candidate[] =>
  candidates
    .filter(({ obstacles }) => obstacles.length === 0)
    .toSorted((one, other) => one.rank - other.rank)

function toRank(device: Device, { webgpu }: Capabilities): number {
  if (device === 'wasm') return 1
  return webgpu?.software ? SOFTWARE_RANK : 0
}

function selectComparable(fitting: readonly Candidate[]): Candidate[] {
  const least = fitting[0]?.rank ?? 0
  return fitting.filter(({ rank }) => rank < SOFTWARE_RANK || least === SOFTWARE_RANK)
}

function findFastest(fitting: readonly Candidate[]): Candidate | undefined {
  const [first] = fitting
  const known = selectComparable(fitting).filter(({ timeMs }) => timeMs !== undefined)
  // A missing measurement of the first may mean that it is not downloaded yet. It may be faster.
  if (!first || !known.includes(first)) return first
  const least = Math.min(...known.map(({ timeMs = Infinity }) => timeMs))
  if (least === Infinity) return fitting.find(({ timeMs }) => timeMs === undefined) ?? first
  return known.find(({ timeMs = Infinity }) => timeMs <= least * EQUAL_TIME_RATIO)
}

function describeChosen(
  { implementation, timeMs = Infinity }: Candidate,
  { webgpu, wasm }: Capabilities,
): string {
  const speed =
    timeMs === Infinity ? '' : `; nothing is faster than its ${formatMilliseconds(timeMs)} per run`
  if (implementation.device === 'wasm') {
    const kind = wasm.threads ? 'with SIMD and threads' : 'with SIMD'
    return webgpu?.software
      ? `WASM is faster than the software GPU of this device${speed}`
      : `WASM runs here, ${kind}${speed}`
  }
  const name = [webgpu?.vendor, webgpu?.architecture].filter(Boolean).join(' ')
  return `the GPU${name && ` (${name})`} meets all requirements${speed}`
}

function describeRejected({ rank, timeMs, failure }: Candidate, best: Candidate): string {
  const { id } = best.implementation
  const { timeMs: bestTime = Infinity } = best
  if (rank === SOFTWARE_RANK && best.rank < SOFTWARE_RANK)
    return `it can run, but the GPU here is a software GPU, and ${id} is faster`
  if (failure !== undefined) return `its test run failed here: ${failure}`
  if (timeMs !== undefined && bestTime < Infinity) {
    const than = `${formatMilliseconds(timeMs)} per run, and ${id} takes ${formatMilliseconds(bestTime)}`
    return timeMs > bestTime * EQUAL_TIME_RATIO
      ? `it can run but is slower here: it takes ${than}`
      : `it can run but is no faster here: it takes ${than}`
  }
  return rank === best.rank
    ? `it can run, but ${id} comes first in the catalog; they were not compared here`
    : `it can run, but ${id} uses a faster kind of device; they were not compared here`
}

const formatMilliseconds = (milliseconds: number): string =>
  `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`

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
  if (preference !== 'auto' && preference !== device)
    obstacles.push(
      `it runs on ${toDeviceName(device)}, but ${toDeviceName(preference)} was requested`,
    )
  if (!capabilities.wasm.simd) obstacles.push('this browser has no WebAssembly SIMD')
  const lacking = device === 'webgpu' ? listGpuObstacles : listWasmObstacles
  obstacles.push(...lacking(requires, capabilities))
  const needed = getMemoryBytes(implementation)
  if (device === 'wasm' && needed > MAX_WASM_MEMORY_BYTES)
    obstacles.push(
      `it needs ${formatGib(needed)} of memory and WebAssembly can have ${formatGib(MAX_WASM_MEMORY_BYTES)}`,
    )
  const { memory } = capabilities
  const neededInAll = needed + estimateVocabularyBytes(implementation)
  if (memory !== null && neededInAll > memory && !REPORTED_MEMORY_CAPS.includes(memory))
    obstacles.push(
      `it needs ${formatGib(neededInAll)} of memory and the device has ${formatGib(memory)}`,
    )
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

function listWasmObstacles({ features = [] }: ImplementationRequirements, { wasm }: Capabilities) {
  const has: Record<string, boolean> = { ...wasm }
  return features
    .filter((feature) => feature !== 'simd' && has[feature] !== true)
    .map((feature) =>
      feature === 'threads'
        ? 'WebAssembly has no threads here, because the page is not cross-origin isolated'
        : `WebAssembly has no ${feature} here`,
    )
}

const toDeviceName = (device: Device): string => (device === 'webgpu' ? 'WebGPU' : 'WASM')

const formatGib = (bytes: number): string => `${(bytes / GIB).toFixed(1).replace(/\.0$/, '')} GiB`
