/** GPU buffers that all selections share; the queue of the device runs them one by one. */
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import { powerOfTwo } from './readback.ts'

interface Scratch {
  job: GPUBuffer
  /** Buffer for one record per chunk and row. */
  records: GPUBuffer
  /** Buffer for one record per row. */
  merged: GPUBuffer
}

const NAMES = ['job', 'records', 'merged'] as const

/** Returns a function that returns buffers of at least these sizes in bytes, and reuses them. */
export function createScratch(
  gpu: GPUDevice,
): (sizes: Readonly<Record<keyof Scratch, number>>) => Scratch {
  const kept: Partial<Scratch> = {}
  return (sizes) => {
    for (const name of NAMES) {
      if ((kept[name]?.size ?? 0) >= sizes[name]) continue
      // Commands that were already submitted can still use a destroyed buffer.
      kept[name]?.destroy()
      const size = powerOfTwo(sizes[name])
      kept[name] = gpu.createBuffer({ label: `candidates: ${name}`, size, usage: STORAGE_USAGE })
    }
    return kept as Scratch
  }
}
