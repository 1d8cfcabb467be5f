/** What holds for every page and state of the playground: access for all, and the size of a phone. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { findAccessibilityProblems } from '../support/axe.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { openPlaygroundPage, PLAYGROUND_PAGES } from '../support/playground-pages.ts'

const DEMO = join(import.meta.dirname, '../../dist-demo')

/** Bytes of script, as it is before it is compressed. */
const MAX_FIRST_SCRIPT_BYTES = 100_000

let browser: Browser

beforeAll(async () => {
  browser = await openBrowser()
})

afterAll(() => browser?.close())

describe.each([
  { width: 1280, height: 800, colorScheme: 'light' },
  { width: 390, height: 844, colorScheme: 'dark' },
] as const)('at $width pixels, $colorScheme', ({ width, height, colorScheme }) => {
  test.each(PLAYGROUND_PAGES)(
    'the page "$name" has no finding of axe and no overflow',
    { tags: ['slow'] },
    async (given) => {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme })
      try {
        const page = makePatient(await context.newPage())
        await openPlaygroundPage(page, inject('demo'), given)
        expect(await findAccessibilityProblems(page)).toEqual([])
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
        expect(await page.locator('h1').filter({ visible: true }).count()).toBeGreaterThan(0)
      } finally {
        await context.close()
      }
    },
  )
})

test('the selection is visible with the colors of the system only', async () => {
  const context = await browser.newContext({ forcedColors: 'active' })
  try {
    const page = makePatient(await context.newPage())
    await page.goto(inject('demo'))
    const background = (selector: string): Promise<string> =>
      page.locator(selector).evaluate((found) => getComputedStyle(found).backgroundColor)
    expect(await background('#tab-wire')).not.toBe(await background('#tab-settings'))
    const style = '#style input:checked + span'
    expect(await background(style)).not.toBe(
      await background('#style input:not(:checked) + span >> nth=0'),
    )
  } finally {
    await context.close()
  }
})

test('the first paint needs less than 100 kB of script', () => {
  const html = readFileSync(join(DEMO, 'index.html'), 'utf8')
  const scripts = Array.from(
    html.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/g),
    ([, path]) => path,
  )
  expect(scripts.length).toBeGreaterThan(0)
  const bytes = scripts.map((path = '') => readFileSync(join(DEMO, path)).length)
  expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(MAX_FIRST_SCRIPT_BYTES)
})
