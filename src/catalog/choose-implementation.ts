/** Chooses the implementation of a tag for a device. The choice is deterministic. */
import type { Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import type { Device, Reason } from '../types/index.ts'
import { sumResourceBytes, hasResources } from './memory-bytes.ts'
import { listObstacles } from './obstacles.ts'
import type { Entry, Implementation } from './schema.ts'

export type Preference = Device | 'auto'

/** Result of a test run of an implementation on this device. */
export type Measurement =
  | { milliseconds: number }
  /** Error message of a run that failed. */
  | { failure: string }

/** Measurements by implementation id. Unmeasured ones are absent. */
export type Measurements = ReadonlyMap<string, Measurement>

export interface ImplementationChoice {
  implementation: Implementation
  /** One reason for each implementation, in the catalog's order. */
  reasons: Reason[]
}

type TagImplementations = Pick<Entry, 'tag' | 'implementations'>

/** Implementation with the reasons why it cannot run here, if any. */
interface Candidate {
  implementation: Implementation
  obstacles: string[]
  /** Rank of the device kind; 0 is the fastest. */
  rank: number
}

/** Ratio of times up to which two are considered equal, since measurements fluctuate. */
const EQUAL_TIME_RATIO = 1.1

const SOFTWARE_RANK = 2

/**
 * Chooses the implementation for a device. The order is: real GPUs, WASM, software GPUs, then the
 * catalog's order. With a preference, only that device is considered. If the first one was
 * measured, the fastest of the measured ones is chosen instead. Throws `unavailable` with the
 * obstacles of each one if none can run.
 */
export function chooseImplementation(
  entry: TagImplementations,
  capabilities: Capabilities,
  preference: Preference = 'auto',
  measured: Measurements = new Map(),
): ImplementationChoice {
  const { chosen, reasons } = findImplementation(entry, capabilities, preference, measured)
  if (chosen) return { implementation: chosen, reasons }
  const list = reasons.map(({ id, why }) => `${id}: ${why}`).join('. ')
  throw new InoriginError('unavailable', `${entry.tag} cannot run on this device. ${list}.`, {
    code: 'no_implementation',
    details: { tag: entry.tag, reasons },
  })
}

/** Chooses like {@link chooseImplementation}, but returns an absent `chosen` if none can run. */
export function findImplementation(
  entry: TagImplementations,
  capabilities: Capabilities,
  preference: Preference = 'auto',
  measured: Measurements = new Map(),
): { chosen: Implementation | undefined; reasons: Reason[] } {
  const candidates = toCandidates(entry, capabilities, preference)
  const fitting = sortRunnable(candidates)
  const best = findFastest(fitting, measured)
  const reasons = candidates.map((candidate): Reason => {
    const { implementation, obstacles } = candidate
    const { id, device } = implementation
    const why =
      candidate === best
        ? describeChosen(candidate, capabilities, measured)
        : best && obstacles.length === 0
          ? describeRejected(candidate, best, measured)
          : obstacles.join('; ')
    const measurement = measured.get(id)
    const milliseconds =
      measurement && 'milliseconds' in measurement ? measurement.milliseconds : null
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
): Implementation[] {
  return selectComparable(sortRunnable(toCandidates(entry, capabilities, preference))).map(
    ({ implementation }) => implementation,
  )
}

function toCandidates(
  { implementations }: TagImplementations,
  capabilities: Capabilities,
  preference: Preference,
): Candidate[] {
  return implementations.map((implementation) => ({
    implementation,
    obstacles: listObstacles(implementation, capabilities, preference),
    rank: toRank(implementation.device, capabilities),
  }))
}

/** Returns the candidates that can run, the fastest kind first. */
function sortRunnable(candidates: readonly Candidate[]): Candidate[] {
  return candidates
    .filter(({ obstacles }) => obstacles.length === 0)
    .toSorted((one, other) => one.rank - other.rank)
}

function toRank(device: Device, { webgpu }: Capabilities): number {
  if (device === 'wasm') return 1
  return webgpu?.software ? SOFTWARE_RANK : 0
}

function selectComparable(fitting: readonly Candidate[]): Candidate[] {
  const least = fitting[0]?.rank ?? 0
  return fitting.filter(({ rank }) => rank < SOFTWARE_RANK || least === SOFTWARE_RANK)
}

function findFastest(fitting: readonly Candidate[], measured: Measurements): Candidate | undefined {
  const [first] = fitting
  const known = selectComparable(fitting).filter(
    (rival) => findTimeMs(rival, measured) !== undefined,
  )
  // A missing measurement of the first may mean that it is not downloaded yet. It may be faster.
  if (!first || !known.includes(first)) return first
  const times = known.map((rival) => findTimeMs(rival, measured) ?? Infinity)
  const least = Math.min(...times)
  if (least === Infinity)
    return fitting.find((one) => findTimeMs(one, measured) === undefined) ?? first
  return known.find((_, index) => (times[index] ?? Infinity) <= least * EQUAL_TIME_RATIO)
}

/** Returns the milliseconds of a run: Infinity if it failed, `undefined` if it was not measured. */
function findTimeMs({ implementation }: Candidate, measured: Measurements): number | undefined {
  const measurement = measured.get(implementation.id)
  if (!measurement) return undefined
  return 'milliseconds' in measurement ? measurement.milliseconds : Infinity
}

function describeChosen(
  best: Candidate,
  { webgpu, wasm }: Capabilities,
  measured: Measurements,
): string {
  const time = findTimeMs(best, measured) ?? Infinity
  const speed =
    time === Infinity ? '' : `; nothing is faster than its ${formatMilliseconds(time)} per run`
  if (best.implementation.device === 'wasm') {
    const kind = wasm.threads ? 'with SIMD and threads' : 'with SIMD'
    return webgpu?.software
      ? `WASM is faster than the software GPU of this device${speed}`
      : `WASM runs here, ${kind}${speed}`
  }
  const name = [webgpu?.vendor, webgpu?.architecture].filter(Boolean).join(' ')
  return `the GPU${name && ` (${name})`} meets all requirements${speed}`
}

function describeRejected(candidate: Candidate, best: Candidate, measured: Measurements): string {
  const { id } = best.implementation
  const measurement = measured.get(candidate.implementation.id)
  const bestTime = findTimeMs(best, measured) ?? Infinity
  if (candidate.rank === SOFTWARE_RANK && best.rank < SOFTWARE_RANK) {
    return `it can run, but the GPU here is a software GPU, and ${id} is faster`
  }
  if (measurement && 'failure' in measurement) {
    return `its test run failed here: ${measurement.failure}`
  }
  if (measurement && bestTime < Infinity) {
    const { milliseconds } = measurement
    const than = `${formatMilliseconds(milliseconds)} per run, and ${id} takes ${formatMilliseconds(bestTime)}`
    return milliseconds > bestTime * EQUAL_TIME_RATIO
      ? `it can run but is slower here: it takes ${than}`
      : `it can run but is no faster here: it takes ${than}`
  }
  return candidate.rank === best.rank
    ? `it can run, but ${id} comes first in the catalog; they were not compared here`
    : `it can run, but ${id} uses a faster kind of device; they were not compared here`
}

const formatMilliseconds = (milliseconds: number): string =>
  `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`
