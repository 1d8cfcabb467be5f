/**
 * `npm run screenshots`: takes a picture of every page of the built playground at 1280 and 390 pixels,
 * light and dark, into the folder `screenshots`, which git ignores. `-- --only TEXT` takes those
 * whose names contain a text.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium, type Browser } from 'playwright'
import { chromiumLaunch } from '../setup/chromium.ts'
import { serveDemo } from '../setup/demo.ts'
import {
  openPlaygroundPage,
  PLAYGROUND_PAGES,
  type PlaygroundPage,
} from '../support/playground-pages.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'screenshots')
const WIDTHS = { 1280: 800, 390: 844 } as const
const SCHEMES = ['light', 'dark'] as const

/** Takes the pictures of one page in one width and colour scheme. */
async function take(
  browser: Browser,
  url: string,
  shot: PlaygroundPage,
  width: keyof typeof WIDTHS,
) {
  for (const colorScheme of SCHEMES) {
    const viewport = { width: Number(width), height: WIDTHS[width] }
    const context = await browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce' })
    const page = await context.newPage()
    await openPlaygroundPage(page, url, shot)
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
    for (const shot of PLAYGROUND_PAGES.filter(({ name }) => name.includes(values.only))) {
      for (const width of [1280, 390] as const) await take(browser, demo.url, shot, width)
    }
  } finally {
    await browser.close()
  }
} finally {
  await demo.close()
}
