/** Memory of a browser's processes. Only Linux tells. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Browser } from 'playwright'

/** `true` if this system tells the peak of a process's memory and can begin a new one. */
export const canReadPeaks = (): boolean => existsSync('/proc/self/clear_refs')

/** Resolves with the ids of the browser's processes of these kinds, such as `renderer`. */
export async function findProcesses(browser: Browser, kinds: readonly string[]): Promise<number[]> {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  return processInfo.filter(({ type }) => kinds.includes(type)).map(({ id }) => id)
}

/** Returns the resident memory of a process in bytes: now (`VmRSS`) or its peak (`VmHWM`). */
export function readMemory(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1] ?? 0) * 1024
}

/** Begins a new peak. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}
