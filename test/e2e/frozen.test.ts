/**
 * Hosts that stand still in the middle of an answer, with their process or with the whole computer.
 *
 * @module-tag slow
 */
import { findProcesses } from '../support/process-memory.ts'
import { test } from 'vitest'
import type { Page, Browser } from 'playwright'
import type { Server } from '../../src/index.ts'
import { askBriefly, beginEndless, readEndless, streamEnd, textOf } from '../support/requests.ts'
import { threadsOf } from '../support/dying.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

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
async function findProcessOf(page: Page): Promise<number> {
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
async function sleep(browser: Browser, milliseconds: number): Promise<void> {
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

/** Silence after which a host counts as gone, with the search for the next one, in milliseconds. */
const TAKEOVER_MS = 45_000

/**
 * A tab that hosts, one that can, and one that only asks. The service worker runs in the process of
 * the last one, because that one registered it.
 */
async function openTabs(site: Site): Promise<{ host: Page; next: Page; asker: Page }> {
  const asker = await site.open()
  await serveIn(asker)
  await asker.evaluate(() => (globalThis as unknown as { server: Server }).server.close())
  const [host, next] = [await site.open(), await site.open()]
  for (const page of [host, next]) await serveIn(page, { device: 'wasm' })
  return { host, next, asker }
}

test.concurrent('a stream goes on in a visible tab when its host is frozen, which ends its workers when it thaws', async ({
  expect,
  onTestFinished,
}) => {
  const site = await openSite({ ownBrowser: true })
  onTestFinished(() => site.close())
  const { host, next, asker } = await openTabs(site)
  const whole = await readEndless(asker)
  const frozen = await findProcessOf(host)
  await beginEndless(asker, 'open')
  process.kill(frozen, 'SIGSTOP')
  onTestFinished(() => void process.kill(frozen, 'SIGCONT'))
  await expect
    .poll(() => threadsOf(next), { timeout: 2 * TAKEOVER_MS })
    .toContain('/inorigin/worker.js')
  expect(textOf(await streamEnd(asker, 'open'))).toBe(whole)
  expect(threadsOf(next)).toContain('/inorigin/model-worker.js')
  process.kill(frozen, 'SIGCONT')
  await expect.poll(() => threadsOf(host)).toEqual([])
  expect((await askBriefly(asker)).status).toBe(200)
  expect(threadsOf(host)).toEqual([])
})

test.concurrent('a call to a host that is frozen before its result fails within a bound', async ({
  expect,
  onTestFinished,
}) => {
  const slow = { '/inorigin/models/guide/onnx/model.onnx': () => false }
  const site = await openSite({ slow, ownBrowser: true })
  onTestFinished(() => site.close())
  const { host, next } = await openTabs(site)
  const frozen = await findProcessOf(host)
  const loading = next.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const onProgress = () => void fetch('/report', { method: 'POST', body: 'progress' })
    return server.models.load('@inorigin/guide', { onProgress }).catch((error) => error.code)
  })
  await expect.poll(() => site.reports.length).toBeGreaterThan(0)
  process.kill(frozen, 'SIGSTOP')
  onTestFinished(() => void process.kill(frozen, 'SIGCONT'))
  expect(await loading).toBe('host_gone')
})

test.concurrent('a stream goes on in the same worker after the computer slept', async ({
  expect,
  onTestFinished,
}) => {
  const site = await openSite({ ownBrowser: true })
  onTestFinished(() => site.close())
  const { host, next, asker } = await openTabs(site)
  const whole = await readEndless(asker)
  const workers = host.workers()
  await beginEndless(asker, 'open')
  // Longer than the silence after which a host counts as gone.
  await sleep(site.browser, TAKEOVER_MS)
  expect(textOf(await streamEnd(asker, 'open'))).toBe(whole)
  expect((await askBriefly(asker)).status).toBe(200)
  expect(host.workers()).toEqual(workers)
  expect(threadsOf(next)).toEqual([])
})
