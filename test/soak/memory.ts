/** Memory of the browser over a soak. Only Linux tells that of processes. */
import type { Page } from 'playwright'
import { canReadPeaks, findProcesses, readMemory } from '../support/process-memory.ts'
import type { Stage } from './stage.ts'

/** Bytes after a step. */
export interface MemorySample {
  /** Resident memory of the browser process; `null` where the system does not tell. */
  browser: number | null
  /** Resident memory of all renderers: tabs, workers, service worker. */
  renderers: number | null
  /** JavaScript heap of the oldest tab after a garbage collection. */
  page: number
}

export async function sampleMemory({ site, tabs }: Stage): Promise<MemorySample> {
  const page = await readHeap(tabs[0]!)
  if (!canReadPeaks()) return { browser: null, renderers: null, page }
  const sum = async (kind: string) =>
    (await findProcesses(site.browser, [kind]))
      .map((pid) => readMemory(pid, 'VmRSS'))
      .reduce((total, bytes) => total + bytes, 0)
  return { browser: await sum('browser'), renderers: await sum('renderer'), page }
}

async function readHeap(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  await session.detach()
  return usedSize
}
