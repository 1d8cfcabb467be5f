/** A model nobody has seen, from its file to answers in a browser: by `server.predict` and over HTTP. */
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Server } from '../../src/index.ts'
import { makePatient, openBrowser } from '../support/browser.ts'
import { CliApp, ROOT } from '../support/cli-app.ts'
import { askModel } from '../support/hub.ts'
import { type Graph, onnxFile } from '../support/onnx.ts'
import { fetchIn } from '../support/requests.ts'
import { serveStatic, type StaticServer } from '../support/static.ts'

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
    { name: 'bytes.in', type: 'uint8', shape: [1] },
    { name: 'words', type: 'string', shape: ['k'] },
  ],
  outputs: [
    { name: 'y', type: 'float32', shape: ['batch', 3000] },
    { name: 'byte', type: 'int32', shape: [1] },
    { name: 'same words', type: 'string', shape: ['k'] },
  ],
  nodes: [
    { type: 'MatMul', inputs: ['x', 'w'], outputs: ['xw'] },
    { type: 'Cast', inputs: ['ids'], outputs: ['floats'], attributes: { to: 1 } },
    { type: 'ReduceSum', inputs: ['floats'], outputs: ['sum'], attributes: { keepdims: 0 } },
    { type: 'Add', inputs: ['xw', 'sum'], outputs: ['y'] },
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

let app: CliApp
let site: StaticServer
let browser: Browser
let page: Page

beforeAll(async () => {
  app = new CliApp()
  app.put('models/mixed.onnx', onnxFile(GRAPH))
  const weights = Float32Array.from({ length: 12_000 }, (_, index) => index % 7)
  app.put('models/weights/w.bin', new Uint8Array(weights.buffer))
  app.put('models/mean.onnx', onnxFile(MEAN))
  for (const folder of ['guide', 'speechless'])
    cpSync(join(ROOT, 'demo/models/guide'), app.path(`models/${folder}`), { recursive: true })
  app.put('models/speechless/tokenizer.json', '{}')
  app.put('models/genai/genai_config.json', '{"model": {"decoder": {}, "vision": {}}}')
  app.init('--no-guide')
  site = await serveStatic({ folders: { '/': app.path('public') }, pages: { '/app.html': PAGE } })
  browser = await openBrowser()
})

afterAll(async () => {
  await browser?.close()
  await site?.close()
  app?.remove()
})

const add = (model: string, tag: string, ...options: string[]) =>
  app.inorigin('add', `models/${model}`, '--tag', tag, ...options)

describe('a model', () => {
  test(
    'is drafted by inorigin add, which prints where it is and how to use it',
    { tags: ['everyday'] },
    () => {
      // Parts that end in the middle of a float, to be put together again.
      const added = add('mixed.onnx', '@me/mixed', '--max-file-bytes', '10001')
      expect(added).toMatchObject({ code: 0, err: '' })
      expect(added.out).toContain('Split into parts: weights/w.bin')
      expect(added.out).toContain('  x  float32  Shape [batch, 4].')
      expect(added.out).toContain("serve({ catalog: '/inorigin/catalog.json' })")
      expect(added.out).toContain("'bytes.in': { data: new Uint8Array(1), shape: [1] },")
      const parts = readdirSync(app.path('public/inorigin/@me/mixed/weights')).toSorted()
      expect(parts).toEqual([0, 1, 2, 3, 4].map((index) => `w.bin.${index}`))

      const image = add('mean.onnx', '@me/mean', '--name', 'Mean colour')
      expect(image).toMatchObject({ code: 0, err: '' })
      expect(image.out).toContain('is treated as an image (rgb, nchw)')
      expect(add('guide', '@me/chat')).toMatchObject({ code: 0, err: '' })

      const again = add('mean.onnx', '@me/mean')
      expect([again.code, again.err]).toEqual([
        1,
        expect.stringContaining('replace it with --force'),
      ])
      const { $schema, entries } = JSON.parse(app.get('public/inorigin/catalog.json'))
      const tags = entries.map(({ tag }: { tag: string }) => tag)
      expect(tags).toEqual(['@me/mixed', '@me/mean', '@me/chat'])
      expect(JSON.parse(app.get(join('public/inorigin', $schema)))).toHaveProperty('properties')
    },
  )

  test('runs through server.predict, and over HTTP', async () => {
    page = makePatient(await browser.newPage())
    await page.goto(`${site.url}/app.html`)
    await page.waitForFunction(() => 'server' in globalThis)
    const outputs = await page.evaluate(async () => {
      const { server } = globalThis as unknown as { server: Server }
      const result = await server.predict('@me/mixed', {
        x: { data: Float32Array.of(1, 0, 0, 0, 0, 1, 0, 0), shape: [2, 4] },
        ids: [1n, 2n, 3n],
        'bytes.in': 200,
        words: ['one', 'two'],
      })
      const { y, byte, ...rest } = result.outputs as Record<
        string,
        { data: Float32Array; shape: number[] }
      >
      const numbers = [...(y?.data ?? [])]
      return {
        shape: y?.shape,
        y: [...numbers.slice(0, 3), ...numbers.slice(3000, 3003)],
        byte,
        words: rest['same words']?.data,
      }
    })
    expect(outputs).toEqual({
      // Rows 0 and 1 of the weights, and 6 for the ids.
      shape: [2, 3000],
      y: [6, 7, 8, ...[3000, 3001, 3002].map((index) => (index % 7) + 6)],
      byte: 200,
      words: ['one', 'two'],
    })

    const inputs = { x: [[0, 0, 0, 1]], ids: [4], 'bytes.in': 7, words: 'three' }
    const body = { tag: '@me/mixed', clientId: 'test', inputs }
    const { status, text } = await fetchIn(page, '/v1/predictions/remote', body)
    expect(status, text).toBe(200)
    expect(JSON.parse(text).results).toHaveLength(3)
    const wrong = { ...body, inputs: { ...inputs, x: [[1, 2]] } }
    const refused = await fetchIn(page, '/v1/predictions/remote', wrong)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('inputs.x')])
  })

  test('takes an image as one', async () => {
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

  test('answers a chat', async () => {
    expect(await askModel(page, '@me/chat')).toEqual([200, expect.stringMatching(/\w/)])
  })

  test('has types by inorigin types', () => {
    const { code, out } = app.inorigin('types', '-o', 'src/predictors.d.ts')
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^src\/predictors\.d\.ts: types of @me\/mixed, @me\/mean, /),
    ])
    const text = app.get('src/predictors.d.ts')
    expect(text).toContain("'bytes.in': InputValue<'uint8'>")
    expect(text).toContain("byte: OutputValue<'int32', 'one'>")
    expect(app.inorigin('types').out).toBe(text)
  })
})

test('what a model calls itself and its parts takes no control of the terminal', () => {
  const name = 'x\u001b[2J\u009b'
  const port = { name, type: 'float32', shape: ['n'] } as const
  const write = (type: string) =>
    app.put(
      'models/evil.onnx',
      onnxFile({
        inputs: [port],
        outputs: [{ ...port, name: 'y' }],
        description: `\u001b]0;title\u0007`,
        nodes: [{ type, inputs: [name], outputs: ['y'] }],
      }),
    )
  write('Identity')
  const added = add('evil.onnx', '@me/evil', '--force')
  expect(added).toMatchObject({
    code: 0,
    out: expect.stringContaining('  x\\u001b[2J\\u009b  float32'),
  })
  write('Evil\u001b[2J')
  const refused = add('evil.onnx', '@me/evil', '--force')
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('Evil\\u001b[2J') })
  for (const { out, err } of [added, refused]) {
    // oxlint-disable-next-line no-control-regex -- They are what must not be there.
    expect(out + err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
  }
})

test.each([
  [2, 'add models/mean.onnx', '--tag @me/name'],
  [2, 'add models/mean.onnx --tag @me/x --device gpu', '--device takes webgpu, wasm'],
  [2, 'add models/mean.onnx --tag @me/x --max-file-bytes 1k', 'number of bytes'],
  [2, 'add models/mean.onnx --tag @me/x --dtypes q4,q5', 'not q5'],
  [1, 'add package.json --tag @me/x', 'is not an ONNX model'],
  [1, 'add models/speechless --tag @me/x', 'cannot run as a chat model: tokenizer.json has no'],
  [1, 'add models/genai --tag @me/x', 'genai_config.json describes a pipeline with "vision"'],
  [2, 'init public --tag @me/x', 'inorigin init takes no --tag'],
  [2, 'types --no-mlc', 'inorigin types takes no --no-mlc'],
  [1, 'types -o package.json/x.d.ts', 'cannot be written'],
  [1, 'types nowhere.json', 'There is no file nowhere.json. Check the path of the catalog.'],
])('exits with %i: inorigin %s', (code, args, says) => {
  const result = app.inorigin(...args.split(' '))
  expect(result.code).toBe(code)
  expect(result.err).toContain(says)
})
