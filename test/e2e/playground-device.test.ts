/**
 * The page of the device, and the playground as an app: installable, and without its web server.
 *
 * @module-tag slow
 */
import type { Page } from 'playwright'
import { expect, test } from 'vitest'
import type { TraceEvent } from '../../src/index.ts'
import { findAccessibilityProblems } from '../support/axe.ts'
import { untilKept } from '../support/offline.ts'
import { type PlaygroundOptions, useSitePlayground } from '../support/playground.ts'
import type { SiteOptions } from '../support/site.ts'

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

const openSitePlayground = useSitePlayground()

const open = (options?: PlaygroundOptions, served?: SiteOptions) =>
  openSitePlayground({ options, served })

async function openDevice(page: Page): Promise<void> {
  const opener = page.locator('#panel-open')
  if (await opener.isVisible()) await opener.click()
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByRole('button', { name: 'All about this device' }).click()
  await page.getByRole('heading', { name: 'Log' }).waitFor()
}

/** Value beside a name in a list of facts. */
const factOf = (page: Page, name: string) =>
  page.locator('.page dt', { hasText: new RegExp(`^${name}$`) }).locator('+ dd')

/** Row of the guide in the table of the models in memory. */
const guideRow = (page: Page) =>
  page
    .locator('section')
    .filter({ has: page.getByRole('heading', { name: 'Host' }) })
    .getByRole('row')
    .filter({ hasText: '@inorigin/guide' })

test('the device page has the adapter, threads, storage, host, loaded models and the log', async () => {
  const { page, ask, faults } = await open({ permissions: ['clipboard-read', 'clipboard-write'] })
  await ask('Who are you?')
  await openDevice(page)
  expect(await factOf(page, 'Adapter').innerText()).toMatch(/swiftshader/)
  expect(await factOf(page, 'Kind').innerText()).toBe('software on the processor')
  expect(await factOf(page, 'Threads of WASM').innerText()).toMatch(/^\d+ of \d+ logical/)
  expect(await factOf(page, 'Models').innerText()).toBe('6.5 MB')
  expect(await factOf(page, 'Hosting tab').innerText()).toBe('this tab')
  await page.getByText(/^Limits of the adapter: \d+$/).click()
  expect(await factOf(page, 'maxBufferSize').innerText()).toMatch(/^\d+(,\d{3})+$/)
  expect(await guideRow(page).innerText()).toMatch(
    /@inorigin\/guide\s+loaded\s+wasm\s+6\.5 MB\s+8\.1 MB\s+0/,
  )

  await page.evaluate(() => {
    const { inorigin: server } =
      window as unknown as import('../support/playground.ts').PlaygroundWindow
    return server?.predict('@inorigin/digits', { image: new ImageData(28, 28) })
  })
  const log = page.getByRole('region', { name: 'Log' })
  await log.getByText(/^predict, /).waitFor()
  await page.getByRole('button', { name: 'Copy as JSON' }).click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  const copied = JSON.parse(
    await page.evaluate(() => navigator.clipboard.readText()),
  ) as TraceEvent[]
  expect(copied.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['request', 'choice', 'load', 'response']),
  )
  expect(await findAccessibilityProblems(page)).toEqual([])
  expect(faults).toEqual([])
})

test('a model in memory has its users, also those that wait for it', async () => {
  let isReleased = false
  const { page } = await open(undefined, {
    slow: { '/inorigin/models/guide/onnx/model.onnx': () => isReleased },
  })
  await page.getByLabel('Your question').fill('Who are you?')
  await page.keyboard.press('Enter')
  await page.getByText(/^Downloading guide · /).waitFor()
  await openDevice(page)
  const row = guideRow(page)
  await expect.poll(() => row.innerText()).toMatch(/loading\s+wasm\s+6\.5 MB\s+8\.1 MB\s+[1-9]$/)
  isReleased = true
  await expect.poll(() => row.innerText()).toMatch(/loaded\s+wasm\s+6\.5 MB\s+8\.1 MB\s+0$/)
})

test('another tab is said to be the host', async () => {
  const { page } = await open()
  const other = await page.context().newPage()
  await other.goto(page.url())
  await other.waitForFunction(() => 'inorigin' in window)
  await openDevice(other)
  expect(await factOf(other, 'Hosting tab').innerText()).toBe('another tab')
})

test('the page of a device fits a phone in the dark, and the panel has no finding of axe', async () => {
  const { page } = await open({ ...PHONE, colorScheme: 'dark' })
  await openDevice(page)
  const width = await page.locator('.page-body').evaluate((body) => body.scrollWidth)
  expect(width).toBeLessThanOrEqual(PHONE.viewport.width)
  expect(await findAccessibilityProblems(page)).toEqual([])
  await page.keyboard.press('Escape')
  for (const tab of await page.getByRole('tab').all()) {
    await tab.click()
    expect(await findAccessibilityProblems(page), await tab.innerText()).toEqual([])
  }
})

test('the manifest makes the page installable, and its icons have their sizes', async () => {
  const { page, site } = await open()
  const session = await page.context().newCDPSession(page)
  const { errors, data } = await session.send('Page.getAppManifest')
  expect(errors).toEqual([])
  const { icons, start_url } = JSON.parse(data ?? '{}') as {
    icons: { src: string; sizes: string }[]
    start_url: string
  }
  expect(new URL(start_url, `${site.url}/manifest.webmanifest`).pathname).toBe('/')
  const sizes = await page.evaluate(
    (sources) =>
      Promise.all(
        sources.map(async (src) => {
          const image = Object.assign(new Image(), { src })
          await image.decode()
          return `${image.naturalWidth}x${image.naturalHeight}`
        }),
      ),
    icons.map(({ src }) => src),
  )
  expect(sizes).toEqual(icons.map((icon) => icon.sizes))
  expect(sizes).toContain('512x512')
})

test('the page is opened again and answers after its web server has ended', async () => {
  const { page, site, ask, answer } = await open()
  await ask('Who are you?')
  await untilKept(site, page)
  // The page keeps its own files by itself.
  await expect
    .poll(() => page.evaluate(async () => (await caches.match('./')) !== undefined))
    .toBe(true)
  await site.endServer()
  await page.reload()
  await ask('What is 2 + 3?')
  expect(await answer()).not.toBe('')
  // The pages, whose code is loaded when they are opened, are there, too.
  await page.locator('#models-open').click()
  await page.getByText(/^\d+ of \d+ entries of the catalog$/).waitFor()
})
