/** The documentation as a site: built for a sub-path, and read in a browser. */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { openBrowser } from '../support/browser.ts'
import { ROOT } from '../support/docs-code/blocks.ts'
import { serveStatic } from '../support/static.ts'
import { visit } from './app.ts'

const BASE = '/any/where/'

const folder = mkdtempSync(join(tmpdir(), 'inorigin-site-'))
const site = join(folder, 'site')

beforeAll(async () => {
  const { VITEST: _, NODE_ENV: __, ...env } = process.env
  const args = ['run', 'docs:site', '--', '--base', BASE, '--out', site]
  await promisify(execFile)('npm', args, { cwd: ROOT, env, maxBuffer: 2 ** 26 })
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const listFiles = (end: string) =>
  readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(end))

test('every address in the pages is below the path, and leads to a file', () => {
  const pages = listFiles('.html')
  expect(pages).toContain('index.html')
  expect(pages).toContain(join('docs', 'start.html'))
  const targets = pages.flatMap((page) =>
    Array.from(
      readFileSync(join(site, page), 'utf8').matchAll(/(?:href|src)="(\/[^"#]*)/g),
      ([, target = '']) => target,
    ),
  )
  const isFound = (target: string) => {
    const path = join(site, decodeURI(target.slice(BASE.length)))
    return target.startsWith(BASE) && (existsSync(path) || existsSync(`${path}.html`))
  }
  expect(targets.length).toBeGreaterThan(1_000)
  expect([...new Set(targets)].filter((target) => !isFound(target))).toEqual([])
})

test('every entry point of the package has a page of the reference', () => {
  const modules = Object.keys(packageJson.exports).filter((name) => !name.endsWith('.json'))
  const pages = modules.map((name) => join('api', `${join('inorigin', name)}.html`))
  expect(listFiles('.html')).toEqual(expect.arrayContaining(pages))
})

test('llms.txt leads to Markdown pages of the site', () => {
  const text = readFileSync(join(site, 'llms.txt'), 'utf8')
  const targets = Array.from(text.matchAll(/\]\((.*?)\)/g), ([, target = '']) => target)
  expect(targets.length).toBeGreaterThan(25)
  expect(targets.filter((target) => !existsSync(join(site, target)))).toEqual([])
})

test('a reader finds a page, and the reference of an entry point', async () => {
  const server = await serveStatic({ folders: { [BASE]: site } })
  const browser = await openBrowser()
  try {
    const page = await visit(await browser.newContext(), server.url + BASE)
    await page.getByRole('link', { name: 'API reference' }).first().click()
    await page.getByRole('link', { name: 'inorigin/store' }).first().click()
    await page
      .getByRole('heading', { name: /createModelStore/ })
      .first()
      .waitFor()
    expect(new URL(page.url()).pathname).toBe(`${BASE}api/inorigin/store.html`)
    expect(await page.locator('main').textContent()).toContain('Pauses the load of the tag')
  } finally {
    await browser.close()
    await server.close()
  }
})
