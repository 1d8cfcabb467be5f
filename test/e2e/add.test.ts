/** A model nobody has seen, from its file to answers in a browser: by `server.predict` and over HTTP. */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { fetchIn } from '../support/answers.ts'
import { type Graph, onnxFile } from '../support/onnx.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'

const ROOT = join(import.meta.dirname, '../..')
const CLI = join(ROOT, 'dist/cli.js')
const PAGE = `<!doctype html><title>App</title><link rel="icon" href="data:,">
<script type="module">
  import { serve } from './inorigin/index.js'
  globalThis.server = await serve({ catalog: '/inorigin/catalog.json', device: 'wasm' })
</script>`

/** `y = x * w + sum(ids)`; the other outputs are the other inputs, as another type where it says so. */
const GRAPH: Graph = {
  inputs: [
    { name: 'x', type: 'float32', shape: ['batch', 4] },
    { name: 'ids', type: 'int64', shape: ['n'] },
    { name: 'flags', type: 'bool', shape: [2] },
    { name: 'halves', type: 'float16', shape: ['m'] },
    { name: 'bytes.in', type: 'uint8', shape: [1] },
    { name: 'words', type: 'string', shape: ['k'] },
  ],
  outputs: [
    { name: 'y', type: 'float32', shape: ['batch', 3000] },
    { name: 'unset', type: 'bool', shape: [2] },
    { name: 'wide', type: 'float64', shape: ['m'] },
    { name: 'byte', type: 'int32', shape: [1] },
    { name: 'same words', type: 'string', shape: ['k'] },
  ],
  nodes: [
    { type: 'MatMul', inputs: ['x', 'w'], outputs: ['xw'] },
    { type: 'Cast', inputs: ['ids'], outputs: ['floats'], attributes: { to: 1 } },
    { type: 'ReduceSum', inputs: ['floats'], outputs: ['sum'], attributes: { keepdims: 0 } },
    { type: 'Add', inputs: ['xw', 'sum'], outputs: ['y'] },
    { type: 'Not', inputs: ['flags'], outputs: ['unset'] },
    { type: 'Cast', inputs: ['halves'], outputs: ['wide'], attributes: { to: 11 } },
    { type: 'Cast', inputs: ['bytes.in'], outputs: ['byte'], attributes: { to: 6 } },
    { type: 'Identity', inputs: ['words'], outputs: ['same words'] },
  ],
  weights: [{ name: 'w', type: 'float32', shape: [4, 3000], data: { location: 'weights/w.bin' } }],
}

/** An image's mean colour. */
const MEAN: Graph = {
  inputs: [{ name: 'picture', type: 'float32', shape: ['batch', 3, 32, 32] }],
  outputs: [{ name: 'colour', type: 'float32', shape: ['batch', 3, 1, 1] }],
  nodes: [{ type: 'GlobalAveragePool', inputs: ['picture'], outputs: ['colour'] }],
}

/** Lines of progress, which a command prints after 5 s, so on a busy machine only. */
const PROGRESS_LINES = /^.*(?: \.\.\.|: \d+ % of .*)\n/gm

let app: string
let site: StaticServer
let browser: Browser
let page: Page

beforeAll(async () => {
  app = mkdtempSync(join(tmpdir(), 'inorigin-added-'))
  writeFileSync(join(app, 'package.json'), '{ "name": "app" }\n')
  mkdirSync(join(app, 'models/weights'), { recursive: true })
  writeFileSync(join(app, 'models/mixed.onnx'), onnxFile(GRAPH))
  writeFileSync(
    join(app, 'models/weights/w.bin'),
    Float32Array.from({ length: 12_000 }, (_, index) => index % 7),
  )
  writeFileSync(join(app, 'models/mean.onnx'), onnxFile(MEAN))
  cpSync(join(ROOT, 'demo/models/guide'), join(app, 'models/guide'), { recursive: true })
  const { code, err } = inorigin('init', 'public', '--no-guide')
  if (code !== 0) throw new Error(err)
  site = await serveStatic({ folders: { '/': join(app, 'public') }, pages: { '/app.html': PAGE } })
  browser = await openBrowser()
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  rmSync(app, { recursive: true, force: true })
})

function inorigin(...args: string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], {
    cwd: app,
    encoding: 'utf8',
  })
  return { code: status, out: stdout, err: stderr.replace(PROGRESS_LINES, '') }
}

test('inorigin add says what it drafted, where it is and how to use it', () => {
  // Parts that end in the middle of a float, to be put together again.
  const added = inorigin(
    'add',
    'models/mixed.onnx',
    '--tag',
    '@me/mixed',
    '--max-file-bytes',
    '10001',
  )
  expect(added).toMatchObject({ code: 0, err: '' })
  expect(added.out).toContain('Split into parts: weights/w.bin')
  expect(added.out).toContain('  x  float32  Shape [batch, 4].')
  expect(added.out).toContain("serve({ catalog: '/inorigin/catalog.json' })")
  expect(added.out).toContain("'bytes.in': { data: new Uint8Array(1), shape: [1] },")
  expect(readdirSync(join(app, 'public/inorigin/@me/mixed/weights')).toSorted()).toEqual([
    'w.bin.0',
    'w.bin.1',
    'w.bin.2',
    'w.bin.3',
    'w.bin.4',
  ])

  const image = inorigin('add', 'models/mean.onnx', '--tag', '@me/mean', '--name', 'Mean colour')
  expect(image).toMatchObject({ code: 0, err: '' })
  expect(image.out).toContain('is treated as an image (rgb, nchw)')
  expect(inorigin('add', 'models/guide', '--tag', '@me/chat')).toMatchObject({ code: 0, err: '' })

  const again = inorigin('add', 'models/mean.onnx', '--tag', '@me/mean')
  expect([again.code, again.err]).toEqual([1, expect.stringContaining('replace it with --force')])
  const { $schema, entries } = JSON.parse(
    readFileSync(join(app, 'public/inorigin/catalog.json'), 'utf8'),
  )
  expect(entries.map(({ tag }: { tag: string }) => tag)).toEqual([
    '@me/mixed',
    '@me/mean',
    '@me/chat',
  ])
  expect(JSON.parse(readFileSync(join(app, 'public/inorigin', $schema), 'utf8'))).toHaveProperty(
    'properties',
  )
})

test('what a model calls itself and its parts takes no control of the terminal', () => {
  const name = 'x\u001b[2J\u009b'
  const port = { name, type: 'float32', shape: ['n'] } as const
  const graph = {
    inputs: [port],
    outputs: [{ ...port, name: 'y' }],
    description: `\u001b]0;title\u0007`,
  }
  const node = { inputs: [name], outputs: ['y'] }
  writeFileSync(
    join(app, 'models/evil.onnx'),
    onnxFile({ ...graph, nodes: [{ ...node, type: 'Identity' }] }),
  )
  const added = inorigin('add', 'models/evil.onnx', '--tag', '@me/evil', '--force')
  expect(added).toMatchObject({
    code: 0,
    out: expect.stringContaining('  x\\u001b[2J\\u009b  float32'),
  })
  writeFileSync(
    join(app, 'models/evil.onnx'),
    onnxFile({ ...graph, nodes: [{ ...node, type: 'Evil\u001b[2J' }] }),
  )
  const refused = inorigin('add', 'models/evil.onnx', '--tag', '@me/evil', '--force')
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('Evil\\u001b[2J') })
  for (const { out, err } of [added, refused]) {
    // oxlint-disable-next-line no-control-regex -- They are what must not be there.
    expect(out + err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
  }
})

test('the model runs through server.predict', async () => {
  page = makePatient(await browser.newPage())
  await page.goto(`${site.url}/app.html`)
  await page.waitForFunction(() => 'server' in globalThis)
  const outputs = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const result = await server.predict('@me/mixed', {
      x: { data: Float32Array.of(1, 0, 0, 0, 0, 1, 0, 0), shape: [2, 4] },
      ids: [1n, 2n, 3n],
      flags: [true, false],
      halves: [0.5, -2],
      'bytes.in': 200,
      words: ['one', 'two'],
    })
    const { y, wide, ...rest } = result.outputs as Record<
      string,
      { data: Float32Array; shape: number[] }
    >
    return {
      shape: y?.shape,
      y: Array.from(y?.data.slice(0, 3) ?? []).concat(Array.from(y?.data.slice(3000, 3003) ?? [])),
      wide: [wide?.data.constructor.name, ...(wide?.data ?? [])],
      unset: Array.from(rest['unset']?.data ?? []),
      byte: rest['byte'],
      words: rest['same words']?.data,
    }
  })
  expect(outputs).toEqual({
    // Rows 0 and 1 of the weights, and 6 for the ids.
    shape: [2, 3000],
    y: [6, 7, 8, ...[3000, 3001, 3002].map((index) => (index % 7) + 6)],
    wide: ['Float64Array', 0.5, -2],
    unset: [0, 1],
    byte: 200,
    words: ['one', 'two'],
  })
})

test('and over HTTP', async () => {
  const inputs = {
    x: [[0, 0, 0, 1]],
    ids: [4],
    flags: [false, false],
    halves: [1.5],
    'bytes.in': 7,
    words: 'three',
  }
  const { status, text } = await fetchIn(page, '/v1/predictions/remote', {
    tag: '@me/mixed',
    clientId: 'test',
    inputs,
  })
  expect(status, text).toBe(200)
  expect(JSON.parse(text).results).toHaveLength(5)
  const { status: refused, text: why } = await fetchIn(page, '/v1/predictions/remote', {
    tag: '@me/mixed',
    clientId: 'test',
    inputs: { ...inputs, x: [[1, 2]] },
  })
  expect([refused, why]).toEqual([400, expect.stringContaining('inputs.x')])
})

test('an image is taken as one', async () => {
  const colour = await page.evaluate(async () => {
    const { server } = globalThis as unknown as { server: Server }
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 100
    const context = canvas.getContext('2d')!
    context.fillStyle = 'rgb(255, 0, 51)'
    context.fillRect(0, 0, 100, 100)
    const { outputs } = await server.predict('@me/mean', { picture: canvas })
    return Array.from(
      (outputs['colour'] as { data: Float32Array }).data,
      (value) => Math.round(value * 10) / 10,
    )
  })
  expect(colour).toEqual([1, 0, 0.2])
})

test('a chat model answers as it did where it came from', async () => {
  const { status, text } = await fetchIn(page, '/v1/chat/completions', {
    model: '@me/chat',
    temperature: 0,
    max_tokens: 8,
    messages: [{ role: 'user', content: 'Hello' }],
  })
  expect(status, text).toBe(200)
  expect(JSON.parse(text).choices[0].message.content).toMatch(/\w+/)
})

test('inorigin types writes what predict takes of it', () => {
  const { code, out } = inorigin('types', '-o', 'src/predictors.d.ts')
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/^src\/predictors\.d\.ts: types of @me\/mixed, @me\/mean, /),
  ])
  const text = readFileSync(join(app, 'src/predictors.d.ts'), 'utf8')
  expect(text).toContain("'bytes.in': InputValue<'uint8'>")
  expect(text).toContain("byte: OutputValue<'int32', 'one'>")
  expect(inorigin('types').out).toBe(text)
})

test.each([
  { args: ['add', 'models/mean.onnx'], says: '--tag @me/name', code: 2 },
  {
    args: ['add', 'models/mean.onnx', '--tag', '@me/x', '--device', 'gpu'],
    says: '--device takes webgpu, wasm',
    code: 2,
  },
  {
    args: ['add', 'models/mean.onnx', '--tag', '@me/x', '--max-file-bytes', '1k'],
    says: 'number of bytes',
    code: 2,
  },
  {
    args: ['add', 'models/mean.onnx', '--tag', '@me/x', '--dtypes', 'q4,q5'],
    says: 'not q5',
    code: 2,
  },
  { args: ['add', 'package.json', '--tag', '@me/x'], says: 'is not an ONNX model', code: 1 },
  { args: ['init', 'public', '--tag', '@me/x'], says: 'inorigin init takes no --tag', code: 2 },
  { args: ['types', '--no-mlc'], says: 'inorigin types takes no --no-mlc', code: 2 },
  { args: ['types', '-o', 'package.json/x.d.ts'], says: 'cannot be written', code: 1 },
  { args: ['types', 'nowhere.json'], says: 'There is no file nowhere.json', code: 1 },
])('exits with $code: $args', ({ args, says, code }) => {
  const result = inorigin(...args)
  expect(result.code).toBe(code)
  expect(result.err).toContain(says)
})
