/** GPU buffers that every selection works with, one after the other as the queue has it. */
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import { powerOfTwo } from './readback.ts'

export interface Scratch {
  job: GPUBuffer
  /** Of the chunks of all rows. */
  records: GPUBuffer
  /** Of the rows. */
  merged: GPUBuffer
}

const NAMES = ['job', 'records', 'merged'] as const

/** Gives buffers of at least these bytes, the same ones until larger ones are needed. */
export function createScratch(
  gpu: GPUDevice,
): (sizes: Readonly<Record<keyof Scratch, number>>) => Scratch {
  const kept: Partial<Scratch> = {}
  return (sizes) => {
    for (const name of NAMES) {
      if ((kept[name]?.size ?? 0) >= sizes[name]) continue
      // What was submitted still has it.
      kept[name]?.destroy()
      const size = powerOfTwo(sizes[name])
      kept[name] = gpu.createBuffer({ label: `candidates: ${name}`, size, usage: STORAGE_USAGE })
    }
    return kept as Scratch
  }
}
