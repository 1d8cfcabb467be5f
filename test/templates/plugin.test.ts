/** The Vite plugin in a plain app: updates, source maps, own models, own service worker. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openBrowser } from '../support/browser.ts'
import { serveStatic } from '../support/static.ts'
import { type App, install, openApp, visit } from './app.ts'

let app: App
let browser: Browser
let stops: (() => unknown)[] = []

const PAGE = (script: string) => `<!doctype html><title>App</title><link rel="icon" href="data:,">
<p id="state"></p><script type="module" src="${script}"></script>\n`

const main = (text: string) => `import { serve } from 'inorigin'
globalThis.server = await serve()
document.querySelector('#state').textContent = '${text}'
import.meta.hot?.accept()
`

const config = (options: string, rest = '') => `import { inorigin } from 'inorigin/vite'
export default { plugins: [inorigin(${options})], ${rest} }
`

beforeAll(async () => {
  browser = await openBrowser()
  app = openApp()
  app.write('package.json', '{ "name": "app", "private": true, "type": "module" }\n')
  app.write('index.html', PAGE('/main.js'))
  app.write('nested/other.html', PAGE('/main.js'))
  app.write('main.js', main('first'))
  await install(app)
  await app.run('npm', 'install', '--no-save', '--ignore-scripts', '--prefer-offline', 'vite@8')
})

afterEach(async () => {
  for (const stop of stops) await stop()
  stops = []
})

afterAll(async () => {
  await browser?.close()
  app?.remove()
})

/** Opens the page of an address in a browser that has never seen it. */
async function open(url: string): Promise<Page> {
  const context = await browser.newContext()
  stops.push(() => context.close())
  return visit(context, url)
}

const untilState = (page: Page, text: string) =>
  page.locator('#state', { hasText: text }).waitFor({ timeout: 120_000 })

async function serveBuild(base = '/'): Promise<string> {
  await app.run('npx', 'vite', 'build')
  const site = await serveStatic({ folders: { [base]: join(app.folder, 'dist') }, pages: {} })
  stops.push(() => site.close())
  return site.url + base
}

/** Locks of the election of this origin's host: one is held, and others wait. */
const countCandidates = (page: Page) =>
  page.evaluate(async () => {
    const { held = [], pending = [] } = await navigator.locks.query()
    const names = [...held, ...pending].map(({ name }) => name ?? '')
    return names.filter((name) => name.endsWith('/:host')).length
  })

test('keeps one server and one service worker over hot updates', async () => {
  app.write('vite.config.js', config('{}'))
  const { url, stop } = await app.start('npx', 'vite', '--port', '0')
  stops.push(stop)
  const page = await open(url)
  await untilState(page, 'first')
  const before = { candidates: await countCandidates(page), workers: page.workers().length }
  expect(before.candidates).toBe(1)
  for (const text of ['second', 'third']) {
    app.write('main.js', main(text))
    await untilState(page, text)
  }
  const after = { candidates: await countCandidates(page), workers: page.workers().length }
  expect(after).toEqual(before)
  const count = () => navigator.serviceWorker.getRegistrations().then(({ length }) => length)
  expect(await page.evaluate(count)).toBe(1)
})

test('finds its files from every entry, below any base, with source maps', async () => {
  app.write('main.js', main('built'))
  const pages = `{ input: ['index.html', 'nested/other.html'] }`
  app.write(
    'vite.config.js',
    config('{ guide: false }', `base: './', build: { sourcemap: true, rolldownOptions: ${pages} }`),
  )
  const url = await serveBuild('/some/where/')
  for (const name of ['guide', 'glance'])
    expect(existsSync(join(app.folder, 'dist/inorigin/models', name))).toBe(false)
  const maps = readdirSync(join(app.folder, 'dist/assets')).filter((name) => name.endsWith('.map'))
  const read = (name: string) => readFileSync(join(app.folder, 'dist/assets', name), 'utf8')
  expect(maps.some((name) => JSON.parse(read(name)).sources.includes('../../main.js'))).toBe(true)
  for (const path of ['', 'nested/other.html']) {
    const page = await open(url + path)
    await untilState(page, 'built')
    const base = () => (globalThis as unknown as { server: { baseURL: string } }).server.baseURL
    expect(await page.evaluate(base)).toBe(`${url}v1`)
  }
})

test('serves models of a folder, and passes their catalog', async () => {
  app.write('main.js', main('built'))
  app.write('models/inorigin/@me/model/readme.txt', 'mine')
  const entry = `{ "type": "model", "tag": "@me/model", "huggingface": "me/model" }`
  app.write('models/inorigin/catalog.json', `{ "version": 1, "entries": [${entry}] }`)
  app.write('vite.config.js', config(`{ models: 'models' }`))
  const list = () =>
    fetch('/v1/models')
      .then((response) => response.json())
      .then(({ data }) => data.map(({ id }: { id: string }) => id))
  const started = await app.start('npx', 'vite', '--port', '0')
  stops.push(started.stop)
  for (const url of [started.url, await serveBuild()]) {
    const page = await open(url)
    await untilState(page, 'built')
    expect(await page.evaluate(list)).toContain('@me/model')
    const read = () => fetch('/inorigin/@me/model/readme.txt').then((found) => found.text())
    expect(await page.evaluate(read)).toBe('mine')
  }
})

test('answers from `vite preview`, in an isolated page', async () => {
  app.write('main.js', main('built'))
  app.write('vite.config.js', config('{}', `base: '/app/'`))
  await app.run('npx', 'vite', 'build')
  const { url, stop } = await app.start('npx', 'vite', 'preview', '--port', '0')
  stops.push(stop)
  const page = await open(url)
  await untilState(page, 'built')
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true)
  const read = () => fetch('/app/v1/models').then((response) => response.text())
  expect(await page.evaluate(read)).toContain('@inorigin/guide')
})

test('calls attach() in a service worker of the app', async () => {
  app.write('main.js', main('built'))
  app.write(
    'src/sw.js',
    `addEventListener('fetch', (event) => {
      if (event.request.url.endsWith('/mine')) event.respondWith(new Response('from my worker'))
    })\n`,
  )
  app.write(
    'vite.config.js',
    config(`{ serviceWorker: 'src/sw.js', keepApp: true }`, 'build: { sourcemap: true }'),
  )
  const started = await app.start('npx', 'vite', '--port', '0')
  stops.push(started.stop)
  for (const url of [started.url, await serveBuild()]) {
    const page = await open(url)
    await untilState(page, 'built')
    const read = (path: string) => fetch(path).then((response) => response.text())
    expect(await page.evaluate(read, '/mine')).toBe('from my worker')
    expect(await page.evaluate(read, '/v1/models')).toContain('@inorigin/guide')
  }
  const read = (name: string) => readFileSync(join(app.folder, 'dist', name), 'utf8')
  expect(read('sw.js')).toContain('from my worker')
  expect(read('sw.js')).toMatch(/\/\/# sourceMappingURL=sw\.js\.map\s*$/)
  expect(JSON.parse(read('sw.js.map')).sources).toContain('../src/sw.js')
})

test.each([
  [`{ guid: false }`, 'inorigin() of Vite has no option guid. Options: guide, mlc'],
  [`{ isolate: 'yes' }`, 'isolate of inorigin() must be a boolean.'],
  [`{ mlc: true, webgpu: false }`, 'mlc of inorigin() needs WebGPU, but webgpu is false.'],
  [`{ serviceWorker: true }`, 'must be the path of a script or false, not true'],
])('refuses %s', async (options, message) => {
  app.write('vite.config.js', config(options))
  await expect(app.run('npx', 'vite', 'build')).rejects.toThrow(message)
})

test('refuses to replace a script of the public folder', async () => {
  app.write('public/sw.js', '// mine\n')
  app.write('vite.config.js', config('{}'))
  await expect(app.run('npx', 'vite', 'build')).rejects.toThrow(
    'sw.js exists, and inorigin() would replace it. Move it out of the public folder',
  )
})
