/** Tabs and browsers that stand still and go on. */
import type { Browser, Page } from 'playwright'
import { findProcesses } from './process-memory.ts'

/** Time in milliseconds of work by which the process of a tab is found. */
const WORK_MS = 1_000

async function readCpuTimes(browser: Browser): Promise<Map<number, number>> {
  const session = await browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  return new Map(processInfo.map(({ id, cpuTime }) => [id, cpuTime]))
}

/** Resolves with the process of a tab: the one that computes while the tab works. */
export async function findProcessOf(page: Page): Promise<number> {
  const browser = page.context().browser()!
  const before = await readCpuTimes(browser)
  await page.evaluate((milliseconds) => {
    const end = performance.now() + milliseconds
    while (performance.now() < end);
  }, WORK_MS)
  const used = [...(await readCpuTimes(browser))].map(
    ([id, time]) => [id, time - (before.get(id) ?? time)] as const,
  )
  return used.toSorted(([, one], [, other]) => other - one)[0]![0]
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
