/**
 * Hosts that stand still in the middle of an answer, with their process or with the whole computer.
 *
 * @module-tag slow
 */
import { test } from 'vitest'
import type { Page } from 'playwright'
import type { Server } from '../../src/index.ts'
import { fetchIn } from '../support/answers.ts'
import { findProcessOf, sleep } from '../support/frozen.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'
import { beginStream, ENDLESS, streamEnd, streamHas, textOf } from '../support/streamed.ts'

const GUIDE = '@inorigin/guide'

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

async function wholeText(page: Page): Promise<string> {
  await beginStream(page, 'whole', GUIDE, ENDLESS)
  return textOf(await streamEnd(page, 'whole'))
}

/** Begins the answer that is interrupted. It resolves when the first of its words are there. */
async function beginAnswer(page: Page): Promise<void> {
  await beginStream(page, 'open', GUIDE, ENDLESS)
  await streamHas(page, 'open', 'content_block_delta')
}

const ask = (page: Page) =>
  fetchIn(page, '/v1/messages', {
    model: GUIDE,
    max_tokens: 4,
    messages: [{ role: 'user', content: 'Hello' }],
  })

const threads = (page: Page): string[] =>
  page.workers().map((worker) => new URL(worker.url()).pathname)

test.concurrent('a stream goes on in a visible tab when its host is frozen, which ends its workers when it thaws', async ({
  expect,
  onTestFinished,
}) => {
  const site = await openSite({ ownBrowser: true })
  onTestFinished(() => site.close())
  const { host, next, asker } = await openTabs(site)
  const whole = await wholeText(asker)
  const frozen = await findProcessOf(host)
  await beginAnswer(asker)
  process.kill(frozen, 'SIGSTOP')
  onTestFinished(() => void process.kill(frozen, 'SIGCONT'))
  await expect
    .poll(() => threads(next), { timeout: 2 * TAKEOVER_MS })
    .toContain('/inorigin/worker.js')
  expect(textOf(await streamEnd(asker, 'open'))).toBe(whole)
  expect(threads(next)).toContain('/inorigin/model-worker.js')
  process.kill(frozen, 'SIGCONT')
  await expect.poll(() => threads(host)).toEqual([])
  expect((await ask(asker)).status).toBe(200)
  expect(threads(host)).toEqual([])
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
  const whole = await wholeText(asker)
  const workers = host.workers()
  await beginAnswer(asker)
  // Longer than the silence after which a host counts as gone.
  await sleep(site.browser, TAKEOVER_MS)
  expect(textOf(await streamEnd(asker, 'open'))).toBe(whole)
  expect((await ask(asker)).status).toBe(200)
  expect(host.workers()).toEqual(workers)
  expect(threads(next)).toEqual([])
})
