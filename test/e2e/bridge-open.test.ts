/** The page of `inorigin bridge --open`: what the command opens, and what the page shows and offers. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { startBridge, TOKEN, type BridgeCommand } from '../support/bridge-command.ts'
import { makePatient, openBrowser } from '../support/browser.ts'

let folder: string
let browser: Browser
let command: BridgeCommand
let page: Page

/** A program in the place of the one that opens files in the user's browser. It writes which one. */
const OPENER = '#!/bin/sh\nprintf %s "$1" > "$0.part" && mv "$0.part" "$0.opened"\n'

const readOpened = () => readFileSync(join(folder, 'xdg-open.opened'), 'utf8')

beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser?.close())
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inorigin-opener-'))
  writeFileSync(join(folder, 'xdg-open'), OPENER, { mode: 0o700 })
  vi.stubEnv('PATH', folder + delimiter + process.env['PATH'])
  command = await startBridge('--open')
  await vi.waitFor(readOpened, 20_000)
  page = makePatient(await (await browser.newContext()).newPage())
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await page?.context().close()
  await command?.end()
  rmSync(folder, { recursive: true, force: true })
})

const askStatus = async (): Promise<number> => (await fetch(`${command.url}/v1/models`)).status

test('the user opens it, sees that the tab is lent, and stops', async () => {
  const opened = readOpened()
  expect(opened).toContain('bridge.html')
  // Only the user may read the file, and the arguments of no process have the token.
  expect(statSync(opened).mode & 0o077).toBe(0)
  expect(readFileSync(opened, 'utf8')).toContain(TOKEN)
  expect(opened).not.toContain(TOKEN)
  await page.goto(pathToFileURL(opened).href)
  await page.getByText('This tab is lent to the programs of this machine.').waitFor()
  expect(page.url()).toBe(`${command.url}/`)
  await command.prints('is connected')
  expect(await askStatus()).toBe(200)
  await page.getByText('It answers 0 requests now, and answered 1 before.').waitFor()
  await page.getByRole('button', { name: 'Stop lending this tab' }).click()
  await page.getByText('This tab is not lent anymore. It answered 1 request.').waitFor()
  await command.prints('has left')
  expect(await askStatus()).toBe(503)
})

test('without the token, the page says what to do', async () => {
  await page.goto(command.url)
  await page.getByText('Open the URL that `inorigin bridge` printed.').waitFor()
  expect(await askStatus()).toBe(503)
})
