/** The playground lends itself to the real command, under its own policy. */
import type { Browser } from 'playwright'
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { startBridge, TOKEN, type BridgeCommand } from '../support/bridge-command.ts'
import { openBrowser } from '../support/browser.ts'
import { openPlayground, type Playground } from '../support/playground.ts'

let browser: Browser
let command: BridgeCommand
let playground: Playground
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser?.close())
beforeEach(async () => {
  command = await startBridge()
  playground = await openPlayground(browser, inject('demo'))
  const { page } = playground
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByLabel('Address', { exact: true }).fill(command.url)
})
afterEach(async () => {
  await playground?.close()
  await command?.end()
})

const complete = () =>
  fetch(`${command.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: '@inorigin/guide',
      messages: [{ role: 'user', content: 'What is inorigin?' }],
      max_tokens: 2,
    }),
  })

test('the user lends the tab, sees it, and stops', async () => {
  const { page, faults } = playground
  expect(await page.locator('#lent').isVisible()).toBe(false)
  await page.getByLabel('Token', { exact: true }).fill(TOKEN)
  await page.getByRole('button', { name: 'Lend this tab' }).click()
  await page.getByText('This tab is lent.').waitFor()
  expect(await page.locator('#lent').textContent()).toBe('Lent (0)')
  expect((await complete()).status).toBe(200)
  await page.getByText('It answers 0 requests now, and answered 1 before.').waitFor()
  await page.getByRole('button', { name: 'Stop lending' }).click()
  await page.getByText('This tab is not lent anymore. It answered 1 request.').waitFor()
  expect(await page.locator('#lent').isVisible()).toBe(false)
  await expect.poll(async () => (await complete()).status).toBe(503)
  expect(faults).toEqual([])
})

test('a wrong token is said to be one, and can be corrected', async () => {
  const { page } = playground
  await page.getByLabel('Token', { exact: true }).fill('wrong')
  await page.getByRole('button', { name: 'Lend this tab' }).click()
  await page.getByText('Wrong token.').waitFor()
  expect((await complete()).status).toBe(503)
  await page.getByLabel('Token', { exact: true }).fill(TOKEN)
  await page.getByRole('button', { name: 'Lend this tab' }).click()
  await page.getByText('This tab is lent.').waitFor()
  expect((await complete()).status).toBe(200)
})
