/**
 * `npm run screenshots`: takes a picture of every page of the built playground at 1280 and 390 pixels,
 * light and dark, into the folder `screenshots`, which git ignores. `-- --only TEXT` takes those
 * whose names contain a text.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium, type Browser, type Page } from 'playwright'
import { chromiumLaunch } from '../test/setup/chromium.ts'
import { serveDemo } from '../test/setup/demo.ts'

const ROOT = join(import.meta.dirname, '..')
const FOLDER = join(ROOT, 'screenshots')
const WIDTHS = { 1280: 800, 390: 844 } as const
const SCHEMES = ['light', 'dark'] as const

/** A page, and the steps to it from the playground. */
interface Shot {
  name: string
  /** Path of the document. */
  path: string
  reach(page: Page): Promise<void>
}

const shots: readonly Shot[] = [
  { name: 'welcome', path: '', reach: async () => {} },
  { name: 'chat', path: '', reach: ask },
  {
    name: 'inspector',
    path: '',
    async reach(page) {
      await ask(page)
      await openTab(page, 'wire')
      await page.locator('summary', { hasText: 'Time line' }).click()
    },
  },
  { name: 'predictors', path: '', reach: (page) => openTab(page, 'predictors') },
  { name: 'settings', path: '', reach: (page) => openTab(page, 'settings') },
  {
    name: 'models',
    path: '',
    async reach(page) {
      await page.locator('#models-open').click()
      await page.locator('.card').first().waitFor()
    },
  },
  {
    name: 'device',
    path: '',
    async reach(page) {
      await openTab(page, 'settings')
      await page.locator('#device-open').click()
      await page.getByRole('heading', { name: 'Log' }).waitFor()
    },
  },
  { name: 'bench', path: 'bench.html', reach: async () => {} },
]

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

/** Takes the pictures of one page in one width and colour scheme. */
async function take(browser: Browser, url: string, shot: Shot, width: keyof typeof WIDTHS) {
  for (const colorScheme of SCHEMES) {
    const viewport = { width: Number(width), height: WIDTHS[width] }
    const context = await browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce' })
    const page = await context.newPage()
    await page.goto(new URL(shot.path, url).href)
    // The first visit loads the page again, to isolate it.
    await page.waitForFunction(() => crossOriginIsolated)
    await page.waitForFunction(() => !document.querySelector('select#model:disabled'))
    await shot.reach(page)
    const path = join(FOLDER, `${shot.name}-${width}-${colorScheme}.png`)
    await page.screenshot({ path })
    process.stdout.write(`${path}\n`)
    await context.close()
  }
}

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } })
if (!existsSync(join(ROOT, 'dist-demo/index.html'))) {
  const vite = join(ROOT, 'node_modules/vite/bin/vite.js')
  execFileSync(process.execPath, [vite, 'build'], { cwd: ROOT, stdio: ['ignore', 2, 2] })
}
mkdirSync(FOLDER, { recursive: true })
const demo = await serveDemo()
try {
  const browser = await chromium.launch(chromiumLaunch())
  try {
    for (const shot of shots.filter(({ name }) => name.includes(values.only))) {
      for (const width of [1280, 390] as const) await take(browser, demo.url, shot, width)
    }
  } finally {
    await browser.close()
  }
} finally {
  await demo.close()
}
