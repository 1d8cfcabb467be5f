/** The Vite plugin in apps of frameworks that are built on Vite: in development, and built. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openBrowser } from '../support/browser.ts'
import { serveStatic } from '../support/static.ts'
import { type App, openFixture, visit } from './app.ts'

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
})

afterAll(() => browser?.close())

const FRAMEWORKS = [
  { name: 'react', base: '/app/', dev: ['vite'], output: 'dist' },
  { name: 'react-router', base: '/', dev: ['react-router', 'dev'], output: 'build/client' },
  { name: 'sveltekit', base: '/', dev: ['vite', 'dev'], output: 'build' },
]

describe.each(FRAMEWORKS)('$name', ({ name, base, dev, output }) => {
  let app: App

  beforeAll(async () => {
    app = await openFixture(name)
  })

  afterAll(() => app?.remove())

  /** What a page of that address shows, in a browser that has never seen it. */
  async function readAnswer(url: string): Promise<string | null> {
    const context = await browser.newContext()
    try {
      const page = await visit(context, url)
      const shown = page.locator('#answer:not(:empty)').textContent({ timeout: 180_000 })
      const answer = await shown
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
      return answer
    } finally {
      await context.close()
    }
  }

  test('answers while developing', async () => {
    const { url, stop } = await app.start('npx', ...dev, '--port', '0')
    try {
      expect(await readAnswer(new URL(base, url).href)).toMatch(/browser|inorigin/)
    } finally {
      stop()
    }
  })

  test('answers when built, from a static server', async () => {
    expect(await app.run('npm', 'run', 'build')).toMatch(
      /inorigin [\d.]+: added sw\.js and inorigin\/ to \S+: \d+ files, [\d.]+ MB/,
    )
    const built = join(app.folder, output)
    const script = readFileSync(join(app.folder, 'node_modules/inorigin/dist/sw.js'), 'utf8')
    expect(readFileSync(join(built, 'sw.js'), 'utf8')).toBe(script)
    expect(existsSync(join(built, 'inorigin/files.json'))).toBe(true)
    const site = await serveStatic({ folders: { [base]: built }, pages: {} })
    try {
      expect(await readAnswer(site.url + base)).toMatch(/browser|inorigin/)
    } finally {
      await site.close()
    }
  })
})
