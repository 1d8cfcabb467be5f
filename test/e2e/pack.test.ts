/**
 * The packed package in an app of its own: with Vite, and with no bundler at all.
 *
 * @module-tag slow
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, extname, join, normalize } from 'node:path'
import type { Browser } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makePatient, openBrowser } from '../support/browser.ts'

const ROOT = join(import.meta.dirname, '../..')
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
}

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

let app: string
let browser: Browser

beforeAll(async () => {
  app = mkdtempSync(join(tmpdir(), 'inorigin-pack-'))
  write('package.json', '{ "name": "app", "private": true, "type": "module" }\n')
  write('index.html', page('/main.js'))
  write('main.js', code('inorigin'))
  write('public/plain.html', page('/plain.js'))
  write('public/plain.js', code('/inorigin/index.js'))
  install(pack())
  npm('exec', '--offline', '--', 'inorigin', 'init', 'public')
  browser = await openBrowser()
}, 240_000)

afterAll(async () => {
  await browser?.close()
  rmSync(app, { recursive: true, force: true })
})

function npm(...args: string[]): string {
  const options = { cwd: app, encoding: 'utf8', shell: process.platform === 'win32' } as const
  return execFileSync('npm', args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Packs what is built already. */
function pack(): string {
  const [packed] = JSON.parse(
    npm('pack', ROOT, '--ignore-scripts', '--json', '--pack-destination', app),
  ) as { filename: string }[]
  if (!packed) throw new Error('npm pack made no tarball.')
  return join(app, packed.filename)
}

/** From the registry; without a network, what this repository has installed stands in for it. */
function install(tarball: string): void {
  const flags = [
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    '--fetch-retries=0',
  ]
  const here = (name: string): string => join(ROOT, 'node_modules', name)
  const { version } = JSON.parse(readFileSync(here('vite/package.json'), 'utf8')) as {
    version: string
  }
  try {
    npm('install', ...flags, tarball, `vite@${version}`)
  } catch {
    const local = ['vite', 'onnxruntime-web', 'valibot'].map(here)
    npm('install', ...flags, '--offline', '--install-links=false', tarball, ...local)
  }
}

function write(path: string, text: string): void {
  const to = join(app, path)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, text)
}

/** Runs the app's Vite until it says where it serves. */
async function vite(...args: string[]): Promise<{ url: string; stop(): void }> {
  const script = join(app, 'node_modules/vite/bin/vite.js')
  const { VITEST: _, NODE_ENV: __, ...env } = process.env
  const child = spawn(process.execPath, [script, ...args, '--port', '0', '--strictPort'], {
    cwd: app,
    env: { ...env, NO_COLOR: '1', FORCE_COLOR: '0' },
  })
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    const hear = (chunk: Buffer): void => {
      output += chunk.toString()
      const found = /http:\/\/localhost:\d+\//.exec(output)
      if (found) resolve(found[0])
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', () => reject(new Error(`vite ${args.join(' ')} ended:\n${output}`)))
  })
  return { url, stop: () => child.kill() }
}

/** A static server as plain as they come: files by name, no header but the type. */
async function serveFiles(folder: string): Promise<{ url: string; stop(): void }> {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? '/', 'http://localhost').pathname)
    try {
      const content = readFileSync(join(folder, path))
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream')
      response.end(content)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://localhost:${port}/`, stop: () => server.close() }
}

/** What the model said to the app, in a browser that has never seen it. */
async function answerAt(url: string): Promise<string> {
  const context = await browser.newContext()
  try {
    const tab = makePatient(await context.newPage())
    const failed = new Promise<never>((_, reject) => {
      tab.on('pageerror', (error) => reject(error))
      tab.on('console', (line) => {
        if (line.type() === 'error') reject(new Error(`${line.location().url}: ${line.text()}`))
      })
    })
    await tab.goto(url)
    const shown = tab.locator('#answer:not(:empty)').textContent()
    const completion = JSON.parse((await Promise.race([shown, failed])) ?? '')
    return completion.choices[0].message.content
  } finally {
    await context.close()
  }
}

test('answers in vite dev', async () => {
  const { url, stop } = await vite()
  try {
    expect(await answerAt(url)).toMatch(/\w+/)
  } finally {
    stop()
  }
})

test('answers from vite build', async () => {
  execFileSync(process.execPath, [join(app, 'node_modules/vite/bin/vite.js'), 'build'], {
    cwd: app,
  })
  const { url, stop } = await vite('preview')
  try {
    expect(await answerAt(url)).toMatch(/\w+/)
  } finally {
    stop()
  }
})

test('answers without a bundler, from a plain static server', async () => {
  const { url, stop } = await serveFiles(join(app, 'public'))
  try {
    expect(await answerAt(`${url}plain.html`)).toMatch(/\w+/)
  } finally {
    stop()
  }
})

test('has types that resolve, in every library they mention', () => {
  write('typed.ts', TYPED)
  npm('exec', '--offline', '--', 'inorigin', 'types', '-o', 'predictors.d.ts')
  write(
    'tsconfig.json',
    JSON.stringify({
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
    }),
  )
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', app], {
    encoding: 'utf8',
  })
  expect(stdout).toBe('')
  expect(status).toBe(0)
})
