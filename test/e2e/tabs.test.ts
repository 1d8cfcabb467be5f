/** Several tabs, and what happens to them: sharing a host, losing it, reloading, hanging. */
import { afterEach, expect, test } from 'vitest'
import type { Page } from 'playwright'
import { threadsOf } from '../support/dying.ts'
import { askGuide, fetchIn } from '../support/requests.ts'
import { openSite, serveIn, type Site, type SiteOptions } from '../support/site.ts'

const SLOW = { tags: ['slow'] }

let site: Site

afterEach(() => site?.close())

/** Opens tabs that serve, one after the other. */
async function openTabs(count: number, options?: SiteOptions): Promise<Page[]> {
  site = await openSite(options)
  const tabs: Page[] = []
  while (tabs.length < count) {
    const tab = await site.open()
    await serveIn(tab)
    tabs.push(tab)
  }
  return tabs
}

const statusOf = async (page: Page) => (await fetchIn(page, '/v1/models')).status

test('tabs share one host, also with one that never calls serve(), until it is closed', async () => {
  const [one, two] = (await openTabs(2)) as [Page, Page]
  const text = await askGuide(one)
  expect(text).not.toMatch(/^\d{3} /)
  expect(await askGuide(two)).toBe(text)
  expect(await askGuide(await site.open())).toBe(text)
  expect(threadsOf(one)).toContain('/inorigin/worker.js')
  expect(threadsOf(two)).toEqual([])

  // Another tab is elected, and the next request works.
  await one.close()
  expect(await statusOf(two)).toBe(200)
  expect(await askGuide(two)).toBe(text)
  expect(threadsOf(two)).toContain('/inorigin/worker.js')
})

test('a page is controlled again after a hard reload, without another one', SLOW, async () => {
  const [page] = (await openTabs(1)) as [Page]
  const text = await askGuide(page)
  const session = await site.context.newCDPSession(page)
  await Promise.all([page.waitForEvent('load'), session.send('Page.reload', { ignoreCache: true })])
  expect(await page.evaluate(() => navigator.serviceWorker.controller)).toBeNull()
  await serveIn(page)
  expect(await askGuide(page)).toBe(text)
  expect(site.requests.filter((request) => request.includes('/v1/'))).toEqual([])
  // A service worker that was stopped starts with the next request.
  await session.send('ServiceWorker.enable')
  await session.send('ServiceWorker.stopAllWorkers')
  expect(await askGuide(page)).toBe(text)
})

test('the host tab hangs: another takes over, and it gives way when it wakes', SLOW, async () => {
  let isAwake = false
  const slow = { '/inorigin/licenses.md': () => isAwake }
  const [one, two] = (await openTabs(2, { slow })) as [Page, Page]
  await askGuide(two)
  const awake = one.evaluate(() => {
    const request = new XMLHttpRequest()
    // Not asynchronous: the page stands still until it has the whole file.
    request.open('GET', '/inorigin/licenses.md', false)
    request.send()
  })
  expect(await askGuide(two)).not.toMatch(/^\d{3} /)
  expect(threadsOf(two)).toContain('/inorigin/worker.js')
  isAwake = true
  await awake
  await expect.poll(() => threadsOf(one)).toEqual([])
  expect(await askGuide(one)).not.toMatch(/^\d{3} /)
})

test('a worker that cannot start gives the lock to the next tab, for a while', SLOW, async () => {
  const [one, , three] = (await openTabs(3)) as [Page, Page, Page]
  // From now on a worker that is started fails, until the server is mended.
  site.pages['/inorigin/worker.js'] = 'throw new Error("half deployed")'
  await one.close()
  expect(await statusOf(three)).toBe(503)
  delete site.pages['/inorigin/worker.js']
  await expect.poll(() => statusOf(three), { interval: 500 }).toBe(200)
})

test('a host that is slow to start is waited for, not replaced', SLOW, async () => {
  site = await openSite({ slow: { '/inorigin/worker.js': 5_000 } })
  const [one, two] = [await site.open(), await site.open()]
  await Promise.all([serveIn(one), serveIn(two)])
  expect(await statusOf(two)).toBe(200)
  const hosts = [one, two].filter((page) => page.workers().length > 0)
  expect(hosts).toHaveLength(1)
})
