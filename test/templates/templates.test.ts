/** Each template as a stranger gets it: created, installed, built, deployed, and used in a browser. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openBrowser } from '../support/browser.ts'
import { serveStatic } from '../support/static.ts'
import { type App, askChat, install, openApp, untilKept, visit } from './app.ts'

/** Bytes that static hosts allow for a file: some say 25 MiB, and others 25 MB, which is less. */
const MAX_FILE_BYTES = 25_000_000

/** Lines of scripts that a template may have, with those that are blank and comments. */
const MAX_LINES = 100

const QUESTION = 'What is inorigin?'

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
})

afterAll(() => browser?.close())

interface CreatedApp {
  app: App
  /** Arguments of `npm` in the lines that the command printed, such as `run dev`. */
  commands: readonly string[]
}

/** Creates an app by the command of the packed package, as `npx` runs it. */
async function createApp(template: string): Promise<CreatedApp> {
  const parent = openApp()
  const from = ['exec', '--yes', `--package=${inject('tarball')}`, '--']
  const create = ['inorigin', 'create', 'my-app', '--template', template]
  const printed = await parent.run('npm', ...from, ...create)
  const commands = Array.from(printed.matchAll(/^ {2}npm (.+)$/gm), ([, args = '']) => args)
  return { app: parent.in('my-app'), commands }
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
}

/** Opens what the command serves, and resolves when its model is loaded in an isolated page. */
async function develop(app: App, command: string): Promise<void> {
  const { url, stop } = await app.start('npm', ...command.split(' '))
  const context = await browser.newContext()
  try {
    const page = await visit(context, url)
    await page.getByText(/is ready/).waitFor({ timeout: 120_000 })
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
  } finally {
    await context.close()
    stop()
  }
}

/** Collects in `shares` how much of the load the page shows, each a part of 1. */
function collectShares(): void {
  const shares: number[] = []
  Object.assign(globalThis, { shares })
  new MutationObserver(() => {
    const progress = document.querySelector('progress')
    if (progress) shares.push(progress.position)
  }).observe(document, { attributes: true, childList: true, subtree: true })
}

const readShares = (page: Page) =>
  page.evaluate(() => (globalThis as unknown as { shares: number[] }).shares)

test.each([
  { template: 'vanilla', output: 'dist' },
  { template: 'react', output: 'dist' },
  { template: 'static', output: 'public' },
])('$template: loads, chats, with threads, and without a network', async ({ template, output }) => {
  const { app, commands } = await createApp(template)
  const scripts = listFiles(app.folder).filter((path) => /(?<!config)\.jsx?$/.test(path))
  const lines = scripts.flatMap((path) => readFileSync(path, 'utf8').match(/\n/g) ?? [])
  expect(lines.length).toBeLessThan(MAX_LINES)
  expect(commands).toEqual(['install', expect.any(String)])
  await install(app)
  await develop(app, commands[1] ?? '')
  await app.run('npm', 'run', 'build')
  const built = join(app.folder, output)
  expect(listFiles(built).filter((path) => statSync(path).size > MAX_FILE_BYTES)).toEqual([])
  const site = await serveStatic({ folders: { '/any/where/': built }, pages: {} })
  const context = await browser.newContext()
  await context.addInitScript(collectShares)
  try {
    const page = await visit(context, `${site.url}/any/where/`)
    const answer = await askChat(page, QUESTION)
    expect(answer).toMatch(/browser/)
    expect(Math.max(...(await readShares(page)))).toBeGreaterThan(0)
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
    await untilKept(page)
    await page.close()
    await site.close()

    const offline = await visit(context, `${site.url}/any/where/`)
    expect(await askChat(offline, QUESTION)).toBe(answer)
    expect(await offline.evaluate(() => crossOriginIsolated)).toBe(true)
  } finally {
    await context.close()
    await site.close()
    app.remove()
  }
})
