/** Tabs and browsers that stand still and go on. */
import type { Browser, Page } from 'playwright'
import { findProcesses } from './process-memory.ts'

/** Freezes a tab with its workers, as browsers do with hidden ones. Returns what thaws it. */
export async function freeze(page: Page): Promise<() => Promise<void>> {
  const session = await page.context().newCDPSession(page)
  await session.send('Page.setWebLifecycleState', { state: 'frozen' })
  return async () => {
    await session.send('Page.setWebLifecycleState', { state: 'active' })
    await session.detach()
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

/** Names of the locks of that kind of thread that live now. */
export function livesOf(page: Page, kind: 'host' | 'model'): Promise<string[]> {
  return page.evaluate(async (prefix) => {
    const { held = [] } = await navigator.locks.query()
    return held.flatMap(({ name = '' }) => (name.startsWith(prefix) ? [name] : []))
  }, `inorigin:life:${kind}:`)
}
