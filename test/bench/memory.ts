/** How much memory a load takes at its peak, over the size of what is loaded. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Site } from '../support/site.ts'
import { MODELS, openSide, prepareModel } from './compare.ts'
import { SMALL } from './decode.ts'

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
  if (!existsSync('/proc/self/clear_refs')) return null
  prepareModel('small', 'fp32')
  prepareModel('large', 'fp32')
  const side = await openSide(site, 'inorigin')
  const load = async (): Promise<number> => {
    const before = new Map<number, number>()
    for (const pid of await renderers(site)) {
      before.set(pid, memory(pid, 'VmRSS'))
      // Begins a new peak.
      writeFileSync(`/proc/${pid}/clear_refs`, '5')
    }
    await side.order({ type: 'open', ...SMALL, model: 'large', device: 'wasm' })
    const growth = Array.from(before, ([pid, resting]) => memory(pid, 'VmHWM') - resting)
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

async function renderers({ browser }: Site): Promise<number[]> {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  return processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id)
}

/** In bytes. */
function memory(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1] ?? 0) * 1024
}

function sizeOf(model: string): number {
  const files = ['onnx/model.onnx', 'onnx/model.onnx_data']
  return files.reduce((sum, name) => sum + statSync(join(MODELS, model, name)).size, 0)
}
