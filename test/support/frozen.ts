/** Tabs and browsers that stand still and go on. */
import type { Browser, Page } from 'playwright'
import { findProcesses } from './process-memory.ts'

/** Time in milliseconds that a tab works before the processes are compared. */
const WORK_MS = 500
/** Time in seconds of CPU by which the process of a tab must have computed more than any other. */
const LEAD_SECONDS = 0.5

async function readCpuTimes(browser: Browser): Promise<Map<number, number>> {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  return new Map(processInfo.map(({ id, cpuTime }) => [id, cpuTime]))
}

/**
 * Resolves with the process of a tab: the one that computes while the tab works. The tab works until the
 * others are far behind, because on a busy machine it gets little of the CPU.
 */
export async function findProcessOf(page: Page): Promise<number> {
  const browser = page.context().browser()!
  const before = await readCpuTimes(browser)
  for (;;) {
    await page.evaluate((milliseconds) => {
      const end = performance.now() + milliseconds
      while (performance.now() < end);
    }, WORK_MS)
    const used = [...(await readCpuTimes(browser))]
      .map(([id, time]) => ({ id, seconds: time - (before.get(id) ?? time) }))
      .toSorted((one, other) => other.seconds - one.seconds)
    const [first, second] = used
    if (first && first.seconds - (second?.seconds ?? 0) > LEAD_SECONDS) return first.id
  }
}

/** Stops every process of a browser for that long, as a laptop does whose lid is closed. */
export async function sleep(browser: Browser, milliseconds: number): Promise<void> {
  const processes = await findProcesses(browser, ['browser', 'GPU', 'renderer', 'utility'])
  const signal = (name: NodeJS.Signals) => processes.forEach((id) => process.kill(id, name))
  signal('SIGSTOP')
  try {
    // oxlint-disable-next-line tests/no-fixed-wait -- This is how long the computer sleeps.
    await new Promise((resolve) => setTimeout(resolve, milliseconds))
  } finally {
    signal('SIGCONT')
  }
}
