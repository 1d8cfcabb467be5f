/** GPU buffers that one selection works with and the next one uses again. */
import { powerOfTwo } from './readback.ts'

export interface Scratch {
  job: GPUBuffer
  /** Of the chunks of all rows. */
  records: GPUBuffer
  /** Of the rows. */
  merged: GPUBuffer
}

/** Sizes in bytes. */
export type Sizes = Readonly<Record<keyof Scratch, number>>

export interface ScratchPool {
  take(sizes: Sizes): Scratch
  giveBack(scratch: Scratch): void
}

const NAMES = ['job', 'records', 'merged'] as const
/** To be copied from and to, and used by shaders: GPUBufferUsage's numbers. */
const USAGE = 0x04 | 0x08 | 0x80

/** Keeps one set, the largest so far: selections rarely overlap. */
export function createScratchPool(gpu: GPUDevice): ScratchPool {
  let kept: Scratch | null = null

  const create = (name: keyof Scratch, bytes: number): GPUBuffer =>
    gpu.createBuffer({ label: `candidates: ${name}`, size: powerOfTwo(bytes), usage: USAGE })

  return {
    take: (sizes) => {
      const taken: Partial<Scratch> = kept ?? {}
      kept = null
      for (const name of NAMES) {
        if ((taken[name]?.size ?? 0) >= sizes[name]) continue
        taken[name]?.destroy()
        taken[name] = create(name, sizes[name])
      }
      return taken as Scratch
    },
    giveBack: (scratch) => {
      if (kept) for (const name of NAMES) scratch[name].destroy()
      else kept = scratch
    },
  }
}
