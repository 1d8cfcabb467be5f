/**
 * Which implementation of a tag suits a device. Pure: the same device always gets the same answer.
 */
import type { Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import type { Device, Reason } from '../types/index.ts'
import { bytesOf, isListed } from './memory.ts'
import { obstaclesOf } from './obstacles.ts'
import type { Entry, Implementation } from './schema.ts'

export type Preference = Device | 'auto'

/** How an implementation ran on this device. */
export type Measurement =
  | { milliseconds: number }
  /** It did not: why. */
  | { failure: string }

/** By the implementation's id; what was not measured is absent. */
export type Measurements = ReadonlyMap<string, Measurement>

export interface Choice {
  implementation: Implementation
  /** One for every implementation, in the catalog's order. */
  reasons: Reason[]
}

type Choosable = Pick<Entry, 'tag' | 'implementations'>

/** An implementation, and what keeps it from running here. */
interface Candidate {
  implementation: Implementation
  obstacles: string[]
  /** 0 is the fastest kind. */
  rank: number
}

/** What is less than this much slower than the fastest is as fast: clocks and devices waver. */
const MARGIN = 1.1

const SOFTWARE_RANK = 2

/**
 * The implementation for that device. Of those that can run there, the first of the fastest kind is
 * it: real GPUs before WASM before GPUs made of software; with a preference, only that kind. Where it
 * was measured, the fastest of those that were takes its place. Throws `unavailable` naming what each
 * one lacks when none can run.
 */
export function choose(
  entry: Choosable,
  capabilities: Capabilities,
  preference: Preference = 'auto',
  measured: Measurements = new Map(),
): Choice {
  const { chosen, reasons } = judge(entry, capabilities, preference, measured)
  if (chosen) return { implementation: chosen, reasons }
  const list = reasons.map(({ id, why }) => `${id}: ${why}`).join('. ')
  throw new InoriginError('unavailable', `${entry.tag} cannot run on this device. ${list}.`, {
    code: 'no_implementation',
    details: { tag: entry.tag, reasons },
  })
}

/** The same, with `chosen` absent when none can run. */
export function judge(
  entry: Choosable,
  capabilities: Capabilities,
  preference: Preference = 'auto',
  measured: Measurements = new Map(),
): { chosen: Implementation | undefined; reasons: Reason[] } {
  const candidates = candidatesOf(entry, capabilities, preference)
  const fitting = inOrder(candidates)
  const best = fastest(fitting, measured)
  const reasons = candidates.map((candidate): Reason => {
    const { implementation, obstacles } = candidate
    const { id, device } = implementation
    const why =
      candidate === best
        ? praise(candidate, capabilities, measured)
        : best && obstacles.length === 0
          ? comparison(candidate, best, measured)
          : obstacles.join('; ')
    const measurement = measured.get(id)
    const milliseconds =
      measurement && 'milliseconds' in measurement ? measurement.milliseconds : null
    const bytes = isListed(implementation) ? bytesOf(implementation) : null
    return { id, device, chosen: candidate === best, why, bytes, milliseconds }
  })
  return { chosen: best?.implementation, reasons }
}

/**
 * Those between which only measuring can decide, the one that is chosen without it first. Rules have
 * the last word on GPUs made of software.
 */
export function rivals(
  entry: Choosable,
  capabilities: Capabilities,
  preference: Preference = 'auto',
): Implementation[] {
  return rivalsOf(inOrder(candidatesOf(entry, capabilities, preference))).map(
    ({ implementation }) => implementation,
  )
}

function candidatesOf(
  { implementations }: Choosable,
  capabilities: Capabilities,
  preference: Preference,
): Candidate[] {
  return implementations.map((implementation) => ({
    implementation,
    obstacles: obstaclesOf(implementation, capabilities, preference),
    rank: rankOf(implementation.device, capabilities),
  }))
}

/** Those that can run, the fastest kind first. */
function inOrder(candidates: readonly Candidate[]): Candidate[] {
  return candidates
    .filter(({ obstacles }) => obstacles.length === 0)
    .toSorted((one, other) => one.rank - other.rank)
}

function rankOf(device: Device, { webgpu }: Capabilities): number {
  if (device === 'wasm') return 1
  return webgpu?.software ? SOFTWARE_RANK : 0
}

function rivalsOf(fitting: readonly Candidate[]): Candidate[] {
  const least = fitting[0]?.rank ?? 0
  return fitting.filter(({ rank }) => rank < SOFTWARE_RANK || least === SOFTWARE_RANK)
}

function fastest(fitting: readonly Candidate[], measured: Measurements): Candidate | undefined {
  const [first] = fitting
  const known = rivalsOf(fitting).filter((rival) => timeOf(rival, measured) !== undefined)
  // What is not here yet may be worth its download: others that are fast say nothing about it.
  if (!first || !known.includes(first)) return first
  const times = known.map((rival) => timeOf(rival, measured) ?? Infinity)
  const least = Math.min(...times)
  if (least === Infinity) return fitting.find((one) => timeOf(one, measured) === undefined) ?? first
  return known.find((_, index) => (times[index] ?? Infinity) <= least * MARGIN)
}

/** Milliseconds; without end where it failed, `undefined` where it was not tried. */
function timeOf({ implementation }: Candidate, measured: Measurements): number | undefined {
  const measurement = measured.get(implementation.id)
  if (!measurement) return undefined
  return 'milliseconds' in measurement ? measurement.milliseconds : Infinity
}

function praise(best: Candidate, { webgpu, wasm }: Capabilities, measured: Measurements): string {
  const time = timeOf(best, measured) ?? Infinity
  const speed = time === Infinity ? '' : `; nothing here is faster than its ${inWords(time)} a run`
  if (best.implementation.device === 'wasm') {
    const kind = wasm.threads ? 'with SIMD and threads' : 'with SIMD'
    return webgpu?.software
      ? `WASM is faster than the software GPU that is here${speed}`
      : `WASM runs here, ${kind}${speed}`
  }
  const name = [webgpu?.vendor, webgpu?.architecture].filter(Boolean).join(' ')
  return `the GPU${name && ` (${name})`} has what it needs${speed}`
}

function comparison(candidate: Candidate, best: Candidate, measured: Measurements): string {
  const { id } = best.implementation
  const measurement = measured.get(candidate.implementation.id)
  const bestTime = timeOf(best, measured) ?? Infinity
  if (candidate.rank === SOFTWARE_RANK && best.rank < SOFTWARE_RANK) {
    return `it could run, but the GPU here is made of software, and ${id} is faster than that`
  }
  if (measurement && 'failure' in measurement) {
    return `it failed when it was tried here: ${measurement.failure}`
  }
  if (measurement && bestTime < Infinity) {
    const { milliseconds } = measurement
    const than = `${inWords(milliseconds)} a run, and ${id} takes ${inWords(bestTime)}`
    return milliseconds > bestTime * MARGIN
      ? `it could run and is slower here: it takes ${than}`
      : `it could run and is no faster here: it takes ${than}`
  }
  return candidate.rank === best.rank
    ? `it could run, ${id} comes first in the catalog; they were not compared here`
    : `it could run, ${id} is of the faster kind; they were not compared here`
}

const inWords = (milliseconds: number): string =>
  `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`
