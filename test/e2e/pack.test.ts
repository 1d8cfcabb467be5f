/**
 * The packed package in an app of its own: with Vite but without its plugin, and with no bundler at all.
 *
 * @module-tag slow
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBrowser } from '../support/browser.ts'
import { ROOT } from '../support/cli-app.ts'
import { serveStatic } from '../support/static.ts'
import { openApp, visit, type App } from '../templates/app.ts'

const page = (script: string): string =>
  `<!doctype html><title>App</title><link rel="icon" href="data:,"><p id="answer"></p>` +
  `<script type="module" src="${script}"></script>`

const code = (inorigin: string): string => `
import { serve } from '${inorigin}'
await serve()
const response = await fetch('/v1/chat/completions', {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    model: '@inorigin/guide',
    max_tokens: 12,
    messages: [{ role: 'user', content: 'Hello' }],
  }),
})
document.querySelector('#answer').textContent = JSON.stringify(await response.json())
`

const TYPED = `
import { InoriginError, serve, type Catalog, type Server } from 'inorigin'
import mlc from 'inorigin/catalogs/mlc'
import { attach } from 'inorigin/sw'
const server: Server = await serve({ device: 'wasm', apiKeys: ['key'] })
export const catalog: Catalog = { version: 1, entries: [...mlc.entries, { tag: '@me/mlc', mlc: 'Qwen3-0.6B-q4f16_1-MLC' }] }
export const failed = new InoriginError('internal', 'no').kind satisfies string
export const base: string = server.baseURL
const { outputs } = await server.predict('@inorigin/edges', { image: new Blob(), mode: 'sobel' })
export const edges: ImageData | ImageData[] = outputs.edges
// @ts-expect-error There is no such mode.
await server.predict('@inorigin/edges', { image: new Blob(), mode: 'nothing' })
export { attach }
`

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    types: [],
    target: 'ES2023',
    module: 'ESNext',
    moduleResolution: 'bundler',
    lib: ['ES2023', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
  },
  files: ['typed.ts', 'predictors.d.ts'],
}

const app: App = openApp()
let browser: Browser

beforeAll(async () => {
  app.write('package.json', '{ "name": "app", "private": true, "type": "module" }\n')
  app.write('index.html', page('/main.js'))
  app.write('main.js', code('inorigin'))
  app.write('public/plain.html', page('/plain.js'))
  app.write('public/plain.js', code('/inorigin/index.js'))
  await install(await pack())
  await app.run('npm', 'exec', '--offline', '--', 'inorigin', 'init', 'public')
  browser = await openBrowser()
}, 240_000)

afterAll(async () => {
  await browser?.close()
  app.remove()
})

/** Packs what is built already. Resolves with the path of the tarball. */
async function pack(): Promise<string> {
  const flags = ['--ignore-scripts', '--json', '--pack-destination', app.folder]
  const printed = await app.run('npm', 'pack', ROOT, ...flags)
  const [packed] = JSON.parse(printed.slice(printed.indexOf('['))) as { filename: string }[]
  if (!packed) throw new Error('npm pack made no tarball.')
  return join(app.folder, packed.filename)
}

/** Installs from the registry, or without a network what this repository has installed. */
async function install(tarball: string): Promise<void> {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  const here = (name: string): string => join(ROOT, 'node_modules', name)
  const { version } = JSON.parse(readFileSync(here('vite/package.json'), 'utf8')) as {
    version: string
  }
  try {
    await app.run('npm', 'install', ...flags, '--fetch-retries=0', tarball, `vite@${version}`)
  } catch {
    const local = ['vite', 'onnxruntime-web', 'valibot'].map(here)
    const offline = ['--offline', '--install-links=false']
    await app.run('npm', 'install', ...flags, ...offline, tarball, ...local)
  }
}

/** Resolves with the answer that the app shows in a browser that has never seen it. */
async function answerAt(url: string): Promise<string> {
  const context = await browser.newContext()
  try {
    const tab = await visit(context, url)
    const shown = tab.locator('#answer:not(:empty)')
    await shown.waitFor({ timeout: 120_000 })
    return JSON.parse((await shown.textContent()) ?? '').choices[0].message.content
  } finally {
    await context.close()
  }
}

const vite = (...args: string[]) =>
  app.start('node', 'node_modules/vite/bin/vite.js', ...args, '--port', '0', '--strictPort')

test.each([
  ['vite dev', async () => vite()],
  [
    'vite build',
    async () => {
      await app.run('node', 'node_modules/vite/bin/vite.js', 'build')
      return vite('preview')
    },
  ],
])('answers from %s', async (_how, start) => {
  const { url, stop } = await start()
  try {
    expect(await answerAt(url)).toMatch(/\w+/)
  } finally {
    stop()
  }
})

test('answers without a bundler, from a plain static server', async () => {
  const site = await serveStatic({ folders: { '/': join(app.folder, 'public') } })
  try {
    expect(await answerAt(`${site.url}/plain.html`)).toMatch(/\w+/)
  } finally {
    await site.close()
  }
})

test('has types that resolve, in every library they mention', async () => {
  app.write('typed.ts', TYPED)
  app.write('tsconfig.json', JSON.stringify(TSCONFIG))
  await app.run('npm', 'exec', '--offline', '--', 'inorigin', 'types', '-o', 'predictors.d.ts')
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  expect(await app.run('node', compiler, '-p', app.folder)).toBe('')
})
