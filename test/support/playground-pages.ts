/** Every page and state of the playground, and the steps to it. */
import type { Page } from 'playwright'
import { missingScript } from './fakes.ts'

export interface PlaygroundPage {
  name: string
  /** Path of the document. Default: that of the chat. */
  path?: string
  /** Runs in the page before its own scripts. */
  before?: () => void
  reach(page: Page): Promise<unknown>
}

export const PLAYGROUND_PAGES: readonly PlaygroundPage[] = [
  { name: 'welcome', reach: async () => {} },
  { name: 'chat', reach: ask },
  {
    name: 'inspector',
    async reach(page) {
      await ask(page)
      await openTab(page, 'wire')
      await page.locator('summary', { hasText: 'Time line' }).click()
      await page.locator('summary', { hasText: 'Headers and usage' }).click()
      await page.locator('summary', { hasText: 'The same request as' }).click()
    },
  },
  { name: 'predictors', reach: (page) => openTab(page, 'predictors') },
  { name: 'settings', reach: (page) => openTab(page, 'settings') },
  {
    name: 'history',
    async reach(page) {
      await ask(page)
      await page.locator('#history-open').click()
      await page.locator('.conversations li').waitFor()
    },
  },
  {
    name: 'models',
    async reach(page) {
      await page.locator('#models-open').click()
      await page.locator('.card').first().waitFor()
    },
  },
  {
    name: 'device',
    async reach(page) {
      await openTab(page, 'settings')
      await page.locator('#device-open').click()
      await page.getByRole('heading', { name: 'Log' }).waitFor()
    },
  },
  {
    name: 'compare',
    async reach(page) {
      await page.locator('#compare-open').click()
      await page.getByRole('dialog', { name: 'Compare' }).waitFor()
    },
  },
  {
    name: 'tools',
    async reach(page) {
      await page.locator('#tools-open').click()
      await page.locator('summary', { hasText: 'New tool' }).click()
    },
  },
  {
    name: 'commands',
    async reach(page) {
      await page.locator('#palette-open').click()
      await page.locator('.palette-list li').first().waitFor()
    },
  },
  {
    name: 'keys',
    async reach(page) {
      await page.locator('#theme').focus()
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Shortcuts' }).waitFor()
    },
  },
  {
    name: 'consent',
    path: '?catalog=https://catalog.test/catalog.json',
    reach: (page) => page.locator('#consent[open]').waitFor(),
  },
  {
    name: 'error',
    before: missingScript,
    reach: (page) => page.getByRole('alert').waitFor(),
  },
  { name: 'bench', path: 'bench.html', reach: async () => {} },
]

/** Opens a page and takes the steps to it. */
export async function openPlaygroundPage(
  page: Page,
  url: string,
  { path = '', before, reach }: PlaygroundPage,
): Promise<void> {
  if (before) await page.addInitScript(before)
  await page.goto(new URL(path, url).href)
  // The first visit loads the page again, to isolate it, unless it has to ask or say something first.
  await page.waitForFunction(
    () => crossOriginIsolated || document.querySelector('.notice, dialog[open]'),
  )
  await page.waitForFunction(
    () =>
      !document.querySelector('select#model:disabled') ||
      document.querySelector('.notice, dialog[open]'),
  )
  await reach(page)
}

async function ask(page: Page): Promise<void> {
  await page.locator('#input').fill('What is inorigin?')
  await page.locator('#send').click()
  await page.locator('.turn > :is(.meta, .problem)').waitFor({ timeout: 120_000 })
}

async function openTab(page: Page, name: string): Promise<void> {
  const opener = page.locator('#panel-open')
  if (await opener.isVisible()) await opener.click()
  await page.locator(`[role=tab][aria-controls=${name}]`).click()
}
