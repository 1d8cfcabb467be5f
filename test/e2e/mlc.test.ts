/**
 * Entries of models that MLC compiled, up to a library that can be run: none can be had here.
 *
 * @module-tag slow
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Catalog, Server } from '../../src/index.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { fetchIn } from '../support/answers.ts'
import { LIBRARY, mlcFiles } from '../support/mlc.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'

const ROOT = join(import.meta.dirname, '../..')
const GUIDE = join(ROOT, 'demo/models/guide')
const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/catalog.json' })
</script>`

const read = (name: string): Uint8Array => readFileSync(join(GUIDE, name))

/** No model's library, however well it is downloaded. */
const FILES: Readonly<Record<string, Uint8Array>> = {
  ...mlcFiles({ context_window_size: 128 }),
  'library.wasm': LIBRARY,
}
const ONNX = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'onnx/model.onnx',
]

type Implementation = NonNullable<Catalog['entries'][number]['implementations']>[number]
type Resource = Implementation['resources'][number]

const resource = (
  type: Resource['type'],
  name: string,
  folder: string,
  content: Uint8Array,
): Resource => ({
  type,
  name,
  url: `${folder}/${name}`,
  bytes: content.length,
  sha256: createHash('sha256').update(content).digest('hex'),
})

const typeOf = (name: string): Resource['type'] => {
  if (name.startsWith('tokenizer')) return 'tokenizer'
  if (name.endsWith('.wasm')) return 'wasm'
  if (name.endsWith('.onnx')) return 'onnx'
  return name.endsWith('.bin') || name === 'tensor-cache.json' ? 'mlc' : 'config'
}

const mlc = (features: string[] = []): Implementation => ({
  id: 'mlc',
  engine: 'mlc',
  device: 'webgpu',
  requires: { features },
  resources: Object.entries(FILES).map(([name, content]) =>
    resource(typeOf(name), name, 'mlc', content),
  ),
})

const onnx: Implementation = {
  id: 'onnx',
  engine: 'onnx',
  device: 'wasm',
  resources: ONNX.map((name) => resource(typeOf(name), name, 'guide', read(name))),
}

const entry = (tag: string, implementations: Implementation[]): Catalog['entries'][number] => ({
  type: 'model',
  tag,
  name: tag,
  created: '2026-01-01T00:00:00Z',
  maxInputTokens: 128,
  maxOutputTokens: 64,
  implementations,
})

/** With one file that the server has otherwise than the catalog says. */
const flawed = (change: (library: Resource) => Partial<Resource>): Implementation => {
  const whole = mlc()
  const resources = whole.resources.map((one) =>
    one.type === 'wasm' ? { ...one, ...change(one) } : one,
  )
  return { ...whole, resources }
}
const another = (bytes: number): Pick<Resource, 'bytes' | 'sha256'> => ({
  bytes,
  sha256: createHash('sha256').update(`another of ${bytes}`).digest('hex'),
})

const FLAWED: Readonly<Record<string, Implementation>> = {
  '@me/missing': flawed(() => ({ ...another(8), url: 'mlc/nowhere.wasm' })),
  '@me/truncated': flawed(() => another(64)),
  '@me/corrupt': flawed(({ bytes }) => another(bytes ?? 0)),
}

const CATALOG: Catalog = {
  version: 1,
  entries: [
    ...Object.entries(FLAWED).map(([tag, implementation]) => entry(tag, [implementation])),
    entry('@me/alone', [mlc()]),
    entry('@me/halves', [mlc(['shader-f16'])]),
    entry('@me/both', [mlc(), onnx]),
  ],
}

let app: string
let site: StaticServer
let browser: Browser
let page: Page

const init = (...flags: string[]) =>
  spawnSync(
    process.execPath,
    [join(ROOT, 'dist/cli.js'), 'init', 'public', '--no-guide', ...flags],
    { cwd: app },
  )

beforeAll(async () => {
  app = mkdtempSync(join(tmpdir(), 'inorigin-mlc-'))
  writeFileSync(join(app, 'package.json'), '{}\n')
  init()
  site = await serveStatic({
    folders: { '/guide/': GUIDE, '/mlc/': join(app, 'mlc'), '/': join(app, 'public') },
    pages: { '/app.html': PAGE, '/catalog.json': JSON.stringify(CATALOG) },
  })
  mkdirSync(join(app, 'mlc'))
  for (const [name, content] of Object.entries(FILES))
    writeFileSync(join(app, 'mlc', name), content)
  browser = await openBrowser()
  page = makePatient(await browser.newPage())
  await page.goto(`${site.url}/app.html`)
  await page.waitForFunction(() => 'server' in globalThis)
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  rmSync(app, { recursive: true, force: true })
})

async function ask(model: string): Promise<[status: number, text: string]> {
  const { status, text } = await fetchIn(page, '/v1/chat/completions', {
    model,
    max_tokens: 4,
    messages: [{ role: 'user', content: 'Hello' }],
  })
  const body = JSON.parse(text)
  return [
    status,
    body.error ? `${body.error.code}: ${body.error.message}` : body.choices[0].message.content,
  ]
}

const engines = (): string[] => site.requests.filter((path) => path.includes('/chunks/mlc-'))

test('where it cannot run, another implementation of the same tag does, and the package is not asked for', async () => {
  expect(await ask('@me/both')).toEqual([200, expect.stringMatching(/\w/)])
  expect(engines()).toEqual([])
})

test('where there is no other, what is missing is said', async () => {
  expect(await ask('@me/halves')).toEqual([
    503,
    expect.stringMatching(/no_implementation: .*the GPU has no shader-f16/),
  ])
})

test('an app without the engine is told how to get it', async () => {
  expect(await ask('@me/alone')).toEqual([
    503,
    expect.stringMatching(/engine_missing: .*inorigin init <public folder> --mlc/),
  ])
  init('--mlc')
  await page.reload()
  await page.waitForFunction(() => 'server' in globalThis)
})

test('a library that is none is an error that says so', async () => {
  // Not by a request, whose status is gone where that takes a second to be found out.
  const error = page.evaluate(() =>
    (globalThis as unknown as { server: Server }).server.models
      .load('@me/alone')
      .then(() => null, String),
  )
  expect(await error).toMatch(/The model cannot be used: /)
  expect(engines().length).toBeGreaterThan(0)
})

test.each(Object.keys(FLAWED))(
  'a download of %s is refused, and the model is not there',
  { tags: ['slow'] },
  async (tag) => {
    const [error, states] = await page.evaluate(async (name) => {
      const { models } = (globalThis as unknown as { server: Server }).server
      const thrown = await models.load(name).then(
        () => null,
        (reason: { kind: string; message: string }) => reason,
      )
      return [thrown && `${thrown.kind}: ${thrown.message}`, await models.list()] as const
    }, tag)
    expect(error).toMatch(/^unavailable: .*(library|nowhere)\.wasm/)
    expect(states.find((state) => state.tag === tag)).toMatchObject({ status: 'remote' })
  },
)
