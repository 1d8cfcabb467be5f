/** How much memory a load takes at its peak, over the size of what is loaded. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { canReadPeaks, findProcesses, readMemory, resetPeak } from '../support/process-memory.ts'
import type { Site } from '../support/site.ts'
import { MODELS, prepareModel } from './compare.ts'
import { SMALL } from './decode.ts'
import { openSide } from './open-side.ts'

export interface LoadPeaks {
  /** With the start of the runtime, whose code a browser compiles while weights arrive. */
  first: number
  /** The same model once more beside it: what a load takes by itself. */
  again: number
}

/**
 * The peak of everything that the page's process holds while 200 MB of weights are loaded, the
 * runtime's wasm memory included, over their size. `null` where the system does not tell: Linux does.
 */
export async function measureLoad(site: Site): Promise<LoadPeaks | null> {
  if (!canReadPeaks()) return null
  prepareModel('small', 'fp32')
  prepareModel('large', 'fp32')
  const side = await openSide(site, 'inorigin')
  const load = async (): Promise<number> => {
    const before = new Map<number, number>()
    for (const pid of await findProcesses(site.browser, ['renderer'])) {
      before.set(pid, readMemory(pid, 'VmRSS'))
      resetPeak(pid)
    }
    await side.order({ type: 'open', ...SMALL, model: 'large', device: 'wasm' })
    const growth = Array.from(before, ([pid, resting]) => readMemory(pid, 'VmHWM') - resting)
    return Math.max(...growth) / sizeOf('large')
  }
  try {
    // What all models use is there before: tokenizer, templates, sampling.
    await side.order({ type: 'open', ...SMALL, device: 'wasm' })
    const first = await load()
    // What the first left behind would otherwise be collected meanwhile, and make the second look small.
    await sleep(SETTLED)
    return { first, again: await load() }
  } finally {
    await side.close()
  }
}

/** Milliseconds after which an idle browser has collected what it can. */
const SETTLED = 10_000

function sizeOf(model: string): number {
  const files = ['onnx/model.onnx', 'onnx/model.onnx_data']
  return files.reduce((sum, name) => sum + statSync(join(MODELS, model, name)).size, 0)
}
