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
import type { Entry, Implementation, Requirements } from './schema.ts'
import { withUpstreamReasons } from './upstreams.ts'

export type Preference = Device | 'auto'

export type Measurement =
  | { milliseconds: number }
  | { failure: string }
  /** Difference of its outputs on the GPU from those on the CPU. It must not be used. */
  | { differs: string }
  /** Part of its graph that the runtime cannot compute on its device. It must not be used. */
  | { unsupported: string }

export interface ImplementationChoice {
  implementation: Implementation
  reasons: Reason[]
}

type Question = [
  entry: Pick<Entry, 'tag' | 'implementations' | 'upstreams'>,
  capabilities: Capabilities,
  preference?: Preference,
  /** Measurements by implementation id. Unmeasured ones are absent. */
  measured?: ReadonlyMap<string, Measurement>,
  /** Reasons not to load implementations that the device could run, by id. */
  refusals?: ReadonlyMap<string, string>,
]

interface Candidate {
  implementation: Implementation
  obstacles: string[]
  /** Rank of the device kind; 0 is the fastest. */
  rank: number
  measurement: Measurement | undefined
  /** Milliseconds of a run: Infinity if it failed, `undefined` if it was not measured. */
  timeMs: number | undefined
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
export function chooseImplementation(...question: Question): ImplementationChoice {
  const { chosen, reasons } = findImplementation(...question)
  if (chosen) return { implementation: chosen, reasons }
  const [entry, , , measured = new Map<string, Measurement>(), refusals] = question
  const all = withUpstreamReasons(entry, reasons).reasons
  const list = all.map(({ id, why }) => `${id}: ${why}`).join('. ')
  const known = [...measured.values()]
  const isUntrusted = known.some((measurement) => 'differs' in measurement)
  const isUnsupported = known.some((measurement) => 'unsupported' in measurement)
  const todo = isUnsupported ? ' Use another precision of it, or another model.' : ''
  const crashed = refusals?.size ? 'load_crashed' : null
  const unsupported = isUnsupported ? 'operator_unsupported' : 'no_implementation'
  throw new InoriginError(
    'unavailable',
    `${entry.tag} cannot run on this device. ${list}.${todo}`,
    {
      code: isUntrusted ? 'gpu_untrusted' : (crashed ?? unsupported),
      details: { tag: entry.tag, reasons: all },
    },
  )
}

/** Chooses like {@link chooseImplementation}, but returns an absent `chosen` if none can run. */
export function findImplementation(...question: Question): {
  chosen: Implementation | undefined
  reasons: Reason[]
} {
  const candidates = toCandidates(...question)
  const best = findFastest(sortRunnable(candidates))
  const reasons = candidates.map((candidate): Reason => {
    const { implementation, obstacles, timeMs = Infinity } = candidate
    const { id, device } = implementation
    const why =
      candidate === best
        ? describeChosen(candidate, question[1])
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
export const listComparable = (...question: Question): Implementation[] =>
  selectComparable(sortRunnable(toCandidates(...question))).map((one) => one.implementation)

const toCandidates = (
  ...[{ implementations }, capabilities, preference, measured, refusals]: Question
): Candidate[] =>
  implementations.map((implementation) => {
    const { id, device } = implementation
    const measurement = measured?.get(id)
    const obstacles = listObstacles(implementation, capabilities, preference)
    if (measurement && 'differs' in measurement)
      obstacles.push(`the GPU computes wrong numbers for it: ${measurement.differs}`)
    if (measurement && 'unsupported' in measurement)
      obstacles.push(`the runtime cannot compute a part of it here: ${measurement.unsupported}`)
    const refusal = refusals?.get(id)
    if (refusal !== undefined) obstacles.push(refusal)
    const gpuRank = capabilities.webgpu?.software ? SOFTWARE_RANK : 0
    const rank = device === 'wasm' ? 1 : gpuRank
    const ran = measurement && 'milliseconds' in measurement
    const timeMs = ran ? measurement.milliseconds : measurement && Infinity
    return { implementation, obstacles, rank, measurement, timeMs }
  })

/** Returns the candidates that can run, the fastest kind first. */
const sortRunnable = (candidates: readonly Candidate[]): Candidate[] =>
  candidates
    .filter(({ obstacles }) => obstacles.length === 0)
    .toSorted((one, other) => one.rank - other.rank)

/** An exact implementation is compared with no other one, which may be faster but less exact. */
const selectComparable = (fitting: readonly Candidate[]): Candidate[] =>
  fitting[0]?.implementation.precision === 'exact'
    ? fitting.slice(0, 1)
    : fitting.filter(({ rank }) => rank < SOFTWARE_RANK || fitting[0]?.rank === SOFTWARE_RANK)

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

function describeRejected({ rank, timeMs, measurement }: Candidate, best: Candidate): string {
  const { id } = best.implementation
  const { timeMs: bestTime = Infinity } = best
  if (rank === SOFTWARE_RANK && best.rank < SOFTWARE_RANK)
    return `it can run, but the GPU here is a software GPU, and ${id} is faster`
  if (measurement && 'failure' in measurement)
    return `its test run failed here: ${measurement.failure}`
  if (timeMs !== undefined && bestTime < Infinity) {
    const is = timeMs > bestTime * EQUAL_TIME_RATIO ? 'slower' : 'no faster'
    const times = [timeMs, bestTime].map(formatMilliseconds)
    return `it can run but is ${is} here: it takes ${times[0]} per run, and ${id} takes ${times[1]}`
  }
  const why = rank === best.rank ? 'comes first in the catalog' : 'uses a faster kind of device'
  return `it can run, but ${id} ${why}; they were not compared here`
}

const formatMilliseconds = (milliseconds: number): string =>
  `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`

const GIB = 2 ** 30

const MAX_WASM_MEMORY_BYTES = 4 * GIB

/** Maximum values that older and newer browsers report. They mean "at least this much". */
const REPORTED_MEMORY_CAPS: readonly number[] = [8 * GIB, 32 * GIB]

export function listObstacles(
  implementation: Implementation,
  capabilities: Capabilities,
  preference: Preference = 'auto',
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
  if (device === 'wasm' && needed > MAX_WASM_MEMORY_BYTES) {
    const most = formatGib(MAX_WASM_MEMORY_BYTES)
    obstacles.push(`it needs ${formatGib(needed)} of memory and WebAssembly can have ${most}`)
  }
  const { memory } = capabilities
  const neededInAll = needed + estimateVocabularyBytes(implementation)
  if (memory !== null && neededInAll > memory && !REPORTED_MEMORY_CAPS.includes(memory))
    obstacles.push(
      `it needs ${formatGib(neededInAll)} of memory and the device has ${formatGib(memory)}`,
    )
  return obstacles
}

function listGpuObstacles(
  { features = [], limits = {} }: Requirements,
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
    .map(
      ([name, least]) =>
        `it needs ${name} of ${least} and the GPU has ${webgpu.limits[name] ?? 'none'}`,
    )
  return [...lacking, ...tooLow]
}

function listWasmObstacles({ features = [] }: Requirements, { wasm }: Capabilities) {
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
