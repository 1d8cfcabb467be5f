/** The work of a page's main thread, as the browser's own trace reports it. */
import type { Page } from 'playwright'

const MARK = 'watch-main-thread'

interface TraceEvent {
  name: string
  pid: number
  tid: number
  /** Microseconds of wall-clock time. */
  dur?: number
  /** Microseconds of CPU time. */
  tdur?: number
}

export interface MainThread {
  /** Milliseconds that the CPU spent on each task. */
  tasks: number[]
  /** Sum of the layout shifts. */
  shift: number
}

/**
 * Watches the main thread of a page. On a busy machine, other processes take the CPU away in the
 * middle of a task. So its length is the time that the CPU spent on it, and not what the Long
 * Tasks API says.
 */
export async function watchMainThread(page: Page): Promise<{ end(): Promise<MainThread> }> {
  const browser = page.context().browser()
  if (!browser) throw new Error('A persistent context has no browser that could trace the page.')
  const categories = ['toplevel', 'blink.user_timing', 'disabled-by-default-devtools.timeline']
  await browser.startTracing(page, { categories })
  await page.evaluate((mark) => {
    const shifts: number[] = []
    Object.assign(window, { shifts })
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) shifts.push(Number(Reflect.get(entry, 'value')))
    }).observe({ type: 'layout-shift' })
    performance.mark(mark)
  }, MARK)
  return {
    async end() {
      const shift = await page.evaluate(() =>
        (Reflect.get(window, 'shifts') as number[]).reduce((sum, one) => sum + one, 0),
      )
      const trace = JSON.parse((await browser.stopTracing()).toString()) as {
        traceEvents: TraceEvent[]
      }
      const mark = trace.traceEvents.find(({ name }) => name === MARK)
      if (!mark) throw new Error('The trace does not name the main thread of the page.')
      const tasks = trace.traceEvents.flatMap(({ name, pid, tid, tdur }) =>
        name === 'RunTask' && pid === mark.pid && tid === mark.tid ? [(tdur ?? 0) / 1_000] : [],
      )
      return { tasks, shift }
    },
  }
}
