/**
 * Which implementation of a tag suits a device. Pure: the same device always gets the same answer.
 */
import type { Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import type { Device } from '../types/index.ts'
import type { Entry, Implementation } from './schema.ts'

export type Preference = Device | 'auto'

/** Why an implementation was or was not chosen. */
export interface Reason {
  id: string
  device: Device
  chosen: boolean
  why: string
}

export interface Choice {
  implementation: Implementation
  /** One for every implementation, in the catalog's order. */
  reasons: Reason[]
}

const GIB = 2 ** 30

/** What a 32-bit WebAssembly memory can hold. */
const WASM_MEMORY = 4 * GIB

/** From here on browsers round down so far that it only says "at least". */
const MEMORY_CAP = 8 * GIB

/**
 * The implementation for that device: of those that can run there, the first of the fastest kind,
 * real GPUs before WASM before GPUs made of software; with a preference, only that kind. Throws
 * `unavailable` naming what each one lacks when none can.
 */
export function choose(
  entry: Pick<Entry, 'tag' | 'implementations'>,
  capabilities: Capabilities,
  preference: Preference = 'auto',
): Choice {
  const candidates = entry.implementations.map((implementation) => ({
    implementation,
    obstacles: obstaclesOf(implementation, capabilities, preference),
    rank: rankOf(implementation.device, capabilities),
  }))
  const fitting = candidates.filter(({ obstacles }) => obstacles.length === 0)
  const best = fitting.reduce<(typeof fitting)[number] | undefined>(
    (first, next) => (first && first.rank <= next.rank ? first : next),
    undefined,
  )
  const reasons = candidates.map((candidate): Reason => {
    const { id, device } = candidate.implementation
    if (candidate === best) return { id, device, chosen: true, why: praise(device, capabilities) }
    const why = best && candidate.obstacles.length === 0
      ? comparison(candidate.rank, best.rank, best.implementation)
      : candidate.obstacles.join('; ')
    return { id, device, chosen: false, why }
  })
  if (best) return { implementation: best.implementation, reasons }
  const list = reasons.map(({ id, why }) => `${id}: ${why}`).join('. ')
  throw new InoriginError('unavailable', `${entry.tag} cannot run on this device. ${list}.`, {
    code: 'no_implementation',
    details: { tag: entry.tag, reasons },
  })
}

/** 0 is the fastest kind. */
function rankOf(device: Device, { webgpu }: Capabilities): number {
  if (device === 'wasm') return 1
  return webgpu?.software ? 2 : 0
}

function obstaclesOf(
  implementation: Implementation,
  capabilities: Capabilities,
  preference: Preference,
): string[] {
  const { device, requires = {} } = implementation
  const obstacles: string[] = []
  if (preference !== 'auto' && preference !== device) {
    obstacles.push(`it runs on ${nameOf(device)} and ${nameOf(preference)} was asked for`)
  }
  if (!capabilities.wasm.simd) obstacles.push('this browser has no WebAssembly SIMD')
  if (device === 'webgpu') obstacles.push(...gpuObstacles(requires, capabilities))
  const needed = requires.memory ?? 0
  if (device === 'wasm' && needed > WASM_MEMORY) {
    obstacles.push(`it needs ${gib(needed)} of memory and WebAssembly can have ${gib(WASM_MEMORY)}`)
  }
  const { memory } = capabilities
  if (memory !== null && memory < MEMORY_CAP && needed > memory) {
    obstacles.push(`it needs ${gib(needed)} of memory and the device has ${gib(memory)}`)
  }
  return obstacles
}

function gpuObstacles(
  { features = [], limits = {} }: NonNullable<Implementation['requires']>,
  { webgpu, distrusted }: Capabilities,
): string[] {
  if (distrusted) return ['the GPU here computes wrong numbers']
  if (!webgpu) return ['this browser offers no WebGPU here']
  const lacking = features
    .filter((feature) => !webgpu.features.includes(feature))
    .map((feature) => `the GPU has no ${feature}`)
  const tooLow = Object.entries(limits)
    .filter(([name, least]) => !((webgpu.limits[name] ?? -1) >= least))
    .map(([name, least]) => {
      const has = webgpu.limits[name]
      return `it needs ${name} of ${least} and the GPU has ${has ?? 'none'}`
    })
  return [...lacking, ...tooLow]
}

function praise(device: Device, { webgpu }: Capabilities): string {
  if (device === 'wasm') {
    return webgpu?.software
      ? 'WASM is faster than the software GPU that is here'
      : 'WASM runs everywhere'
  }
  const name = [webgpu?.vendor, webgpu?.architecture].filter(Boolean).join(' ')
  return `the GPU${name && ` (${name})`} has what it needs`
}

function comparison(rank: number, bestRank: number, best: Implementation): string {
  return rank === bestRank
    ? `it could run, ${best.id} comes first in the catalog`
    : `it could run, ${best.id} is faster on this device`
}

function nameOf(device: Device): string {
  return device === 'webgpu' ? 'WebGPU' : 'WASM'
}

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1).replace(/\.0$/, '')} GiB`
}
