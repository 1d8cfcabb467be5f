/** Every page and state of the playground, and the steps to it. */
import type { Page } from 'playwright'
import {
  ask,
  chooseGuide,
  fakeCamera,
  openHistory,
  openTab,
  scriptAnswers,
  scriptedFetch,
  toolButton,
  visit,
} from './playground.ts'

export interface PlaygroundPage {
  name: string
  /** Path of the document. Default: that of the chat. */
  path?: string
  /** Runs in the page before its own scripts. */
  before?: () => void
  /** `true` for answers by a script. Default: those of the models. */
  isScripted?: boolean
  reach(page: Page): Promise<unknown>
}

export const PLAYGROUND_PAGES: readonly PlaygroundPage[] = [
  { name: 'welcome', reach: async () => {} },
  { name: 'chat', reach: askGuide },
  {
    name: 'versions',
    isScripted: true,
    async reach(page) {
      await openTab(page, 'Settings')
      await page.getByLabel('Max tokens').fill('20')
      await page.getByLabel('Reasoning effort').selectOption('low')
      await page.locator('#panel-close').click()
      const text =
        '## A\n\n[a](https://x.test/) `b`\n\n```js\nlet a = 1 // b\n```\n\n| a |\n|---|\n| b |\n\n'
      await scriptAnswers(page, { reasoning: 'Hm.', text: text + 'word '.repeat(20) })
      await ask(page, 'Show all.')
      await toolButton(page, 'Regenerate').click()
      await page.getByText('2 / 2').waitFor()
      await toolButton(page, 'Previous version').click()
      await toolButton(page, 'Continue').waitFor()
    },
  },
  {
    name: 'camera',
    before: fakeCamera,
    async reach(page) {
      await page.getByRole('button', { name: 'Use the camera' }).click()
      await page.getByText('The picture stays in this page.').waitFor()
    },
  },
  {
    name: 'inspector',
    async reach(page) {
      await askGuide(page)
      await openTab(page, 'Requests')
      await page.locator('summary', { hasText: 'Timeline' }).click()
      await page.locator('summary', { hasText: 'Headers and usage' }).click()
      await page.locator('summary', { hasText: 'The same request as' }).click()
    },
  },
  { name: 'predictors', reach: (page) => openTab(page, 'Predictors') },
  { name: 'settings', reach: (page) => openTab(page, 'Settings') },
  {
    name: 'history',
    async reach(page) {
      await askGuide(page)
      await openHistory(page)
      await page.getByRole('button', { name: 'Options of What is inorigin?' }).click()
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
      await openTab(page, 'Settings')
      await page.locator('#device-open').click()
      await page.getByRole('heading', { name: 'Log' }).waitFor()
    },
  },
  {
    name: 'compare',
    isScripted: true,
    async reach(page) {
      await page.locator('#compare-open').click()
      await page.getByLabel('Prompt for all columns').fill('Count.')
      await page.getByRole('button', { name: 'Run', exact: true }).click()
      await page.getByText('Done', { exact: true }).waitFor()
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
  { path = '', before, isScripted, reach }: PlaygroundPage,
): Promise<void> {
  await page.addInitScript(chooseGuide)
  if (before) await page.addInitScript(before)
  if (isScripted) await page.addInitScript({ content: await scriptedFetch() })
  await visit(page, new URL(path, url).href)
  await page.waitForFunction(
    () =>
      !document.querySelector('select#model:disabled') ||
      document.querySelector('.notice, dialog[open]'),
  )
  await reach(page)
}

function askGuide(page: Page): Promise<void> {
  return ask(page, 'What is inorigin?')
}

/** A site that lacks the service worker script. Runs in the page. */
export function missingScript(): void {
  const real = window.fetch
  window.fetch = async (input, init) =>
    /\/playground-sw\.js(\?|$)/.test(String(input))
      ? new Response(null, { status: 404 })
      : real(input, init)
  navigator.serviceWorker.register = () => Promise.reject(new TypeError('a bad HTTP response code'))
}
