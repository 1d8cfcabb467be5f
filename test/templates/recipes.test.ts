/** The recipes of the documentation: its blocks are the files of apps that are built and used. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBrowser } from '../support/browser.ts'
import { findFile } from '../support/docs-code/blocks.ts'
import { RECIPES, type Recipe } from '../support/docs-code/recipes.ts'
import { serveStatic } from '../support/static.ts'
import { chromiumArgs, findWindowedChromium } from '../setup/chromium.ts'
import { type App, openRecipe, untilKept, visit } from './app.ts'

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
})

afterAll(() => browser?.close())

/** Builds the recipe, and uses it from a static server in a browser that has never seen it. */
async function withRecipe(recipe: Recipe, use: (page: Page) => Promise<void>): Promise<void> {
  const app = await openRecipe(recipe)
  await app.run('npm', 'run', 'build')
  const site = await serveStatic({ folders: { '/': join(app.folder, 'dist') } })
  const context = await browser.newContext()
  try {
    await use(await visit(context, `${site.url}/`))
  } finally {
    await context.close()
    await site.close()
    app.remove()
  }
}

test.each([RECIPES.vue, RECIPES.svelte])('$name: shows the load, and asks', (recipe) =>
  withRecipe(recipe, async (page) => {
    const state = page.locator('#state')
    await expect
      .poll(() => state.textContent(), { timeout: 120_000 })
      .toMatch(/^(remote|stored|loading|loaded)/)
    await page.getByRole('button', { name: 'Ask' }).click()
    const answer = page.locator('#answer:not(:empty)')
    expect(await answer.textContent({ timeout: 180_000 })).toMatch(/browser|inorigin/)
    expect(await state.textContent()).toMatch(/^loaded/)
  }),
)

test('assistant-ui: sends a message, and shows the answer', () =>
  withRecipe(RECIPES.assistantUi, async (page) => {
    await page.getByPlaceholder('Ask something').fill('What is inorigin?', { timeout: 120_000 })
    await page.getByRole('button', { name: 'Send' }).click()
    const answer = page.locator('.assistant')
    await expect
      .poll(() => answer.textContent({ timeout: 180_000 }), { timeout: 180_000 })
      .toMatch(/browser|inorigin/)
    expect(await page.locator('.user').textContent()).toBe('What is inorigin?')
  }))

describe('next', () => {
  let app: App

  beforeAll(async () => {
    app = await openRecipe(RECIPES.next)
    await app.run('npm', 'run', 'build')
  })

  afterAll(() => app?.remove())

  /** Opens that address in a browser that has never seen it, and expects an answer. */
  async function expectAnswer(url: string): Promise<void> {
    const context = await browser.newContext()
    try {
      const page = await visit(context, url)
      const answer = page.locator('p:not(:empty)')
      expect(await answer.textContent({ timeout: 180_000 })).toMatch(/browser|inorigin/)
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
    } finally {
      await context.close()
    }
  }

  async function expectExport(base: string): Promise<void> {
    const site = await serveStatic({ folders: { [base]: join(app.folder, 'out') } })
    try {
      await expectAnswer(site.url + base)
    } finally {
      await site.close()
    }
  }

  test('answers from a static export, in an isolated page', () => expectExport('/'))

  test('answers while developing', async () => {
    const { url, stop } = await app.start('npx', 'next', 'dev', '--port', '0')
    try {
      await expectAnswer(url)
    } finally {
      stop()
    }
  })

  test('answers from a static export below a path', async () => {
    const rewrite = (file: string, from: string, to: string) =>
      app.write(file, findFile(RECIPES.next.page, file).replace(from, to))
    rewrite('next.config.mjs', '{ ', "{ basePath: '/app', ")
    rewrite('app/page.jsx', 'serve({ ', "serve({ worker: '/app/sw.js', ")
    await app.run('npm', 'run', 'build')
    await expectExport('/app/')
  })
})

test('pwa: answers after a reload when the web server is gone', async () => {
  const app = await openRecipe(RECIPES.pwa)
  await app.run('npm', 'run', 'build')
  const site = await serveStatic({ folders: { '/': join(app.folder, 'dist') } })
  const context = await browser.newContext()
  const readAnswer = (page: Page) =>
    page.locator('#answer:not(:empty)').textContent({ timeout: 180_000 })
  try {
    const page = await visit(context, `${site.url}/`)
    const answer = await readAnswer(page)
    expect(answer).toMatch(/browser|inorigin/)
    await untilKept(page)
    const names = () => navigator.serviceWorker.getRegistrations().then(({ length }) => length)
    expect(await page.evaluate(names)).toBe(1)
    await site.close()
    await page.reload()
    expect(await readAnswer(page)).toBe(answer)
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
  } finally {
    await context.close()
    await site.close()
    app.remove()
  }
})

// The headless shell has no extensions.
const windowed = findWindowedChromium()

test.skipIf(windowed === undefined)(
  'extension: a page of it answers, in a Chromium that has extensions',
  async () => {
    const app = await openRecipe(RECIPES.extension)
    await app.run('npx', 'inorigin', 'init', 'ask')
    app.write(
      'background.js',
      `chrome.runtime.onMessage.addListener((_, __, reply) => reply('here'))`,
    )
    const profile = mkdtempSync(join(tmpdir(), 'inorigin-profile-'))
    const context = await openExtension(app, profile, windowed ?? '')
    try {
      const [background = await context.waitForEvent('serviceworker')] = context.serviceWorkers()
      const page = await visit(context, new URL('ask/page.html', background.url()).href)
      const answer = await page.locator('#answer:not(:empty)').textContent({ timeout: 180_000 })
      expect(answer).toMatch(/browser|inorigin/)
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
      const send = `chrome.runtime.sendMessage('Are you here?')`
      expect(await page.evaluate(send)).toBe('here')
    } finally {
      await context.close()
      app.remove()
      rmSync(profile, { recursive: true, force: true })
    }
  },
)

function openExtension(
  { folder }: App,
  profile: string,
  executablePath: string,
): Promise<BrowserContext> {
  const args = [
    ...chromiumArgs(),
    '--headless=new',
    `--disable-extensions-except=${folder}`,
    `--load-extension=${folder}`,
  ]
  // Playwright's own headless mode is that of the shell.
  return chromium.launchPersistentContext(profile, { executablePath, args, headless: false })
}
