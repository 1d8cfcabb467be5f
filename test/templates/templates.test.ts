/** Each template as a stranger gets it: created, installed, built, deployed, and used in a browser. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openBrowser } from '../support/browser.ts'
import { serveStatic } from '../support/static.ts'
import { type App, askChat, install, openApp, untilKept, visit } from './app.ts'

/** Bytes that static hosts allow for a file: some say 25 MiB, and others 25 MB, which is less. */
const MAX_FILE_BYTES = 25_000_000

/** Lines of code that a template may have, without those that are blank or begin a comment. */
const MAX_LINES = 100

const QUESTION = 'What is inorigin?'

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
})

afterAll(() => browser?.close())

/** Creates an app by the command of the packed package, as `npx` runs it. */
async function createApp(template: string): Promise<App> {
  const app = openApp()
  const from = ['exec', '--yes', `--package=${inject('tarball')}`, '--']
  await app.run('npm', ...from, 'inorigin', 'create', 'my-app', '--template', template)
  return app.in('my-app')
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
}

/** Opens what `npm run dev` serves, and resolves when its model is loaded. */
async function develop(app: App): Promise<void> {
  const { url, stop } = await app.start('npm', 'run', 'dev')
  const context = await browser.newContext()
  try {
    const page = await visit(context, url)
    await page.getByText(/is ready/).waitFor({ timeout: 120_000 })
  } finally {
    await context.close()
    stop()
  }
}

test.each([
  { template: 'vanilla', output: 'dist' },
  { template: 'react', output: 'dist' },
  { template: 'static', output: 'public' },
])('$template: chats, with threads, and without a network', async ({ template, output }) => {
  const app = await createApp(template)
  const scripts = listFiles(app.folder).filter((path) => /(?<!config)\.jsx?$/.test(path))
  const lines = scripts.flatMap((path) => readFileSync(path, 'utf8').split('\n'))
  const isCode = (line: string) => !/^\s*($|\/\/|\/\*\*)/.test(line)
  expect(lines.filter(isCode).length).toBeLessThan(MAX_LINES)
  await install(app)
  await develop(app)
  await app.run('npm', 'run', 'build')
  const built = join(app.folder, output)
  expect(listFiles(built).filter((path) => statSync(path).size > MAX_FILE_BYTES)).toEqual([])
  const site = await serveStatic({ folders: { '/any/where/': built }, pages: {} })
  const context = await browser.newContext()
  try {
    const page = await visit(context, `${site.url}/any/where/`)
    const answer = await askChat(page, QUESTION)
    expect(answer).toMatch(/browser/)
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
