/** The workers of a tab, and how a worker or a tab dies. */
import type { Page, Worker } from 'playwright'

/** Paths of the dedicated workers that the browser runs for a tab. */
export const threadsOf = (page: Page): string[] =>
  page.workers().map((worker) => new URL(worker.url()).pathname)

/** Script of the host's worker, or of a worker of the host that runs a model. */
export type WorkerScript = 'worker.js' | 'model-worker.js'

/** The workers of a tab that run this script. */
export const workersOf = (page: Page, script: WorkerScript): Worker[] =>
  page.workers().filter((worker) => worker.url().endsWith(`/${script}`))

/** Ends a worker from within: nobody calls `terminate`, and no error event is fired. */
export async function endWorker(worker: Worker): Promise<void> {
  const ended = worker.waitForEvent('close')
  await worker.evaluate(() => self.close()).catch(() => undefined)
  await ended
}

/** Crashes the renderer of a tab, as a lack of memory does. The tab keeps its place until it is closed. */
export async function crash(page: Page): Promise<void> {
  const crashed = page.waitForEvent('crash')
  page.goto('chrome://crash').catch(() => undefined)
  await crashed
}
