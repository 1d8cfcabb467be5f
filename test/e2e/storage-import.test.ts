/** Files of the user's own as a tag: found by what they hold, stored and run without the network. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Page } from 'playwright'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import type { Imported, ImportProgress, Server } from '../../src/index.ts'
import { CHAT, fetchIn } from '../support/requests.ts'
import { onnxFile, type Graph } from '../support/onnx.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

const SLOW = { tags: ['slow'] }

const MODELS = join(import.meta.dirname, '../../demo/models')
const DIGITS = readFileSync(join(MODELS, 'digits/model.onnx'))

let site: Site
let page: Page

beforeEach(async () => {
  site = await openSite({
    pages: {
      '/import.html': `<!doctype html><meta charset="utf-8"><title>import</title>
        <input id="files" type="file" multiple><input id="folder" type="file" webkitdirectory>
        <script type="module">
          import { serve } from './inorigin/index.js'
          globalThis.serve = serve
        </script>`,
    },
  })
  page = await site.open('/import.html')
  await serveIn(page, {
    device: 'wasm',
    catalog: {
      version: 1,
      // Nobody listens there.
      entries: [{ tag: '@me/guide', huggingface: 'me/guide', host: 'http://127.0.0.1:9/' }],
    },
  })
})

afterEach(() => site?.close())

interface Outcome {
  imported?: Imported
  code?: string
  message?: string
  steps: ImportProgress[]
}

interface InPage {
  server: Server
}

/** Imports what was chosen in that input. */
const importFrom = (input: string, tag: string, abort = false): Promise<Outcome> =>
  page.evaluate(
    async ([id, name, isAborted]) => {
      const { server } = globalThis as unknown as InPage
      const { files } = document.getElementById(id) as HTMLInputElement
      const steps: ImportProgress[] = []
      const onProgress = (step: ImportProgress) => steps.push(step)
      const signal = isAborted ? AbortSignal.abort() : undefined
      return server.storage.import(name, files ?? [], { onProgress, signal }).then(
        (imported): Outcome => ({ imported, steps }),
        ({ code, kind, message }): Outcome => ({ code: code ?? kind, message, steps }),
      )
    },
    [input, tag, abort] as const,
  )

/** Expects that the model chats. */
async function expectAnswer(model: string): Promise<void> {
  const messages = [{ role: 'user', content: 'Hello' }]
  const { status, text } = await fetchIn(page, CHAT, { model, max_tokens: 8, messages })
  expect([status, JSON.parse(text).choices?.[0].message.content]).toEqual([
    200,
    expect.stringMatching(/./),
  ])
}

const listStored = () =>
  page.evaluate(() => (globalThis as unknown as InPage).server.storage.list())

const asFile = (name: string, buffer: Buffer) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer,
})

test('a folder in the layout of a hub is the model, and no hub is asked', async () => {
  await page.setInputFiles('#folder', join(MODELS, 'guide'))
  const { imported, steps, message } = await importFrom('folder', '@me/guide')
  expect(message).toBeUndefined()
  expect(imported).toMatchObject({ tag: '@me/guide', complete: true })
  expect(imported?.files).toContain('guide/config.json')
  expect(imported?.ignored).toContain('guide/README.md')
  expect(imported?.bytes).toBeGreaterThan(1e6)
  expect(new Set(steps.map(({ phase }) => phase))).toEqual(new Set(['check', 'store']))
  expect(steps.at(-1)).toMatchObject({
    phase: 'store',
    loadedBytes: imported?.bytes,
    remainingSeconds: 0,
  })

  const asked = site.requests.length
  await expectAnswer('@me/guide')
  expect(site.requests.slice(asked).filter((path) => path.includes('/models/'))).toEqual([])

  // The same again writes nothing.
  expect((await importFrom('folder', '@me/guide')).imported).toMatchObject({
    bytes: 0,
    complete: true,
  })
})

test('a folder of ONNX Runtime GenAI chats, with the configuration that is made from it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'genai-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const name of ['onnx/model.onnx', 'tokenizer.json', 'tokenizer_config.json'])
    cpSync(join(MODELS, 'guide', name), join(folder, basename(name)))
  const decoder = { filename: 'model.onnx', num_attention_heads: 6 }
  const model = { type: 'llama', context_length: 2048, eos_token_id: 2034, decoder }
  writeFileSync(join(folder, 'genai_config.json'), JSON.stringify({ model }))
  await page.setInputFiles('#folder', folder)
  const { imported, message } = await importFrom('folder', '@me/genai')
  expect(message).toBeUndefined()
  expect(imported).toMatchObject({ complete: true, notes: [] })
  const names = imported?.files.map((path) => basename(path)).toSorted()
  expect(names).toEqual(['model.onnx', 'tokenizer.json', 'tokenizer_config.json'])
  await expectAnswer('@me/genai')
  expect((await importFrom('folder', '@me/genai')).imported).toMatchObject({ complete: true })
})

test('files are told by what they hold; what is something else is refused', SLOW, async () => {
  await page.setInputFiles('#files', [asFile('model.onnx', DIGITS.subarray(1))])
  const refused = await importFrom('files', '@inorigin/digits')
  expect(refused).toMatchObject({ code: 'import_mismatch' })
  expect(refused.message).toContain(
    `model.onnx has ${DIGITS.length - 1} bytes and should have ${DIGITS.length}`,
  )

  const flipped = Buffer.from(DIGITS)
  flipped[100] = (flipped[100] ?? 0) ^ 1
  await page.setInputFiles('#files', [asFile('model.onnx', flipped)])
  expect((await importFrom('files', '@inorigin/digits')).message).toContain('a different sha256')
  expect(await listStored()).toEqual([])

  await page.setInputFiles('#files', [
    asFile('renamed.bin', DIGITS),
    asFile('notes.txt', Buffer.from('?')),
  ])
  expect(await importFrom('files', '@inorigin/digits', true)).toMatchObject({ code: 'aborted' })
  expect(await importFrom('files', '@me/unknown')).toMatchObject({
    code: 'import_unfit',
    message: expect.stringMatching(/@me\/unknown, which is in no catalog: .* has no \.onnx file/),
  })
  const { imported } = await importFrom('files', '@inorigin/digits')
  expect(imported).toEqual({
    tag: '@inorigin/digits',
    files: ['renamed.bin'],
    ignored: ['notes.txt'],
    bytes: DIGITS.length,
    complete: true,
    notes: [],
  })
  const asked = site.requests.length
  await page.evaluate(() =>
    (globalThis as unknown as InPage).server.models.load('@inorigin/digits'),
  )
  expect(site.requests.slice(asked).filter((path) => path.includes('/models/'))).toEqual([])
})

/** `y = x * w + sum(ids)` and an image as it is, with weights in a file beside it. */
const ADDS: Graph = {
  inputs: [
    { name: 'x', type: 'float32', shape: ['batch', 4] },
    { name: 'ids', type: 'int64', shape: ['n'] },
    { name: 'pixels', type: 'float32', shape: [1, 1, 32, 32] },
  ],
  outputs: [
    { name: 'y', type: 'float32', shape: ['batch', 2] },
    { name: 'same', type: 'float32', shape: [1, 1, 32, 32] },
  ],
  nodes: [
    { type: 'MatMul', inputs: ['x', 'w'], outputs: ['xw'] },
    { type: 'Cast', inputs: ['ids'], outputs: ['floats'], attributes: { to: 1 } },
    { type: 'ReduceSum', inputs: ['floats'], outputs: ['sum'], attributes: { keepdims: 0 } },
    { type: 'Add', inputs: ['xw', 'sum'], outputs: ['y'] },
    { type: 'Identity', inputs: ['pixels'], outputs: ['same'] },
  ],
  weights: [
    {
      name: 'w',
      type: 'float32',
      shape: [4, 2],
      data: { location: 'w.bin', offset: 0, length: 32 },
    },
  ],
}
const WEIGHTS = Buffer.from(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8).buffer)
const GRAPH = Buffer.from(onnxFile(ADDS))

const runAdds = () =>
  page.evaluate(async () => {
    const { server } = globalThis as unknown as InPage
    const inputs = {
      x: [[1, 1, 1, 1]],
      ids: [1n, 2n],
      pixels: { data: new Float32Array(1024), shape: [1, 1, 32, 32] },
    }
    const { outputs } = await server.predict('@me/adds', inputs)
    return Array.from((outputs['y'] as { data: Float32Array }).data)
  })

test(
  'a graph that no catalog lists becomes a tag of its own, until it is removed',
  SLOW,
  async () => {
    const files = [
      asFile('adds.onnx', GRAPH),
      asFile('w.bin', WEIGHTS),
      asFile('notes.txt', Buffer.from('?')),
    ]
    await page.setInputFiles('#files', files.slice(0, 1))
    expect(await importFrom('files', '@me/adds')).toMatchObject({
      code: 'import_unfit',
      message: expect.stringContaining('keeps weights in w.bin, which is not beside it'),
    })
    expect(await importFrom('files', '@inorigin/adds')).toMatchObject({ code: 'import_tag' })
    expect(await importFrom('files', 'adds')).toMatchObject({ code: 'import_tag' })
    await page.setInputFiles('#files', files)
    expect((await importFrom('files', '@me/adds')).imported).toEqual({
      tag: '@me/adds',
      files: ['adds.onnx', 'w.bin'],
      ignored: ['notes.txt'],
      bytes: GRAPH.length + WEIGHTS.length,
      complete: true,
      notes: [expect.stringContaining('pixels is treated as an image')],
    })
    // It replaces what it was, by what the user knows better.
    const again = await page.evaluate(() => {
      const { files: given } = document.getElementById('files') as HTMLInputElement
      const { server } = globalThis as unknown as InPage
      return server.storage
        .remove('@me/adds')
        .then(() =>
          server.storage.import('@me/adds', given ?? [], { tensors: ['pixels'], name: 'Adder' }),
        )
    })
    expect(again).toMatchObject({ complete: true, notes: [] })
    expect(await runAdds()).toEqual([19, 23])

    const asked = site.requests.length
    await page.reload()
    await serveIn(page, { device: 'wasm' })
    expect(await runAdds()).toEqual([19, 23])
    const told = JSON.parse((await fetchIn(page, '/v1/predictors/@me/adds')).text)
    expect(told).toMatchObject({
      tag: '@me/adds',
      name: 'Adder',
      signature: { inputs: [{ name: 'x' }, {}, { type: 'float32' }] },
    })
    const bytes = (data: ArrayBufferView, shape: number[], dtype = 'float32') => {
      const content = Buffer.from(data.buffer as ArrayBuffer).toString('base64')
      return { data: `data:application/octet-stream;base64,${content}`, dtype, shape }
    }
    const remote = await fetchIn(page, '/v1/predictions/remote', {
      tag: '@me/adds',
      clientId: 'test',
      inputs: {
        x: bytes(Float32Array.of(0, 0, 0, 1), [1, 4]),
        ids: bytes(BigInt64Array.of(3n), [1], 'int64'),
        pixels: bytes(new Float32Array(1024), [1, 1, 32, 32]),
      },
    })
    expect(remote.status, remote.text).toBe(200)
    const prediction = await fetchIn(page, '/v1/predictions', { tag: '@me/adds', clientId: 'test' })
    const { resources } = JSON.parse(prediction.text) as {
      resources: { url: string; name: string }[]
    }
    const weights = resources.find(({ name }) => name === 'w.bin')?.url ?? ''
    expect(
      await page.evaluate(
        async (url) => [...new Float32Array(await (await fetch(url)).arrayBuffer())],
        weights,
      ),
    ).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    const [stored] = await listStored()
    expect(stored).toMatchObject({ tag: '@me/adds', status: 'stored', pinned: true })
    expect(site.requests.slice(asked).filter((path) => /w\.bin|adds\.onnx/.test(path))).toEqual([])

    await page.evaluate(() => (globalThis as unknown as InPage).server.storage.remove('@me/adds'))
    expect((await fetchIn(page, '/v1/predictors/@me/adds')).status).toBe(404)
    // A prediction still knows of it, but nobody can send it again until it is imported.
    const lost = await fetchIn(page, new URL(weights).pathname)
    expect([lost.status, lost.text]).toEqual([404, expect.stringContaining('import_lost')])
    expect(lost.text).toContain('w.bin of @me/adds was imported from a local file')
    expect(
      await page.evaluate(() => (globalThis as unknown as InPage).server.storage.resources()),
    ).toEqual([])
    await page.setInputFiles('#files', files)
    expect((await importFrom('files', '@me/adds')).imported).toMatchObject({ complete: true })
    expect((await fetchIn(page, new URL(weights).pathname)).status).toBe(200)
  },
)

test(
  'a folder of a chat model that no catalog lists is one of the models, after a reload too',
  SLOW,
  async () => {
    await page.setInputFiles('#folder', join(MODELS, 'guide'))
    const { imported, message } = await importFrom('folder', '@me/mine')
    expect(message).toBeUndefined()
    expect(imported).toMatchObject({ tag: '@me/mine', complete: true, notes: [] })
    await page.reload()
    await serveIn(page, { device: 'wasm' })
    const listed = JSON.parse((await fetchIn(page, '/v1/models/@me/mine')).text)
    expect(listed).toMatchObject({ id: '@me/mine' })
    await expectAnswer('@me/mine')
    await page.evaluate(() => (globalThis as unknown as InPage).server.storage.clear())
    expect((await fetchIn(page, '/v1/models/@me/mine')).status).toBe(404)
  },
)

test(
  'what is handed over and cannot be meant is refused by its name, and nothing is thrown at once',
  SLOW,
  async () => {
    const said = await page.evaluate(async () => {
      type Calls = Record<string, (...given: unknown[]) => Promise<unknown>>
      const { server } = globalThis as unknown as {
        server: Calls & { storage: Calls; models: Calls }
      }
      const { remove, unpin, pin, repair, import: take } = server.storage
      const { predict, explain } = server
      const { load } = server.models
      const file = new File(['x'], 'm.onnx')
      const handle = await (
        await navigator.storage.getDirectory()
      ).getFileHandle('m.onnx', { create: true })
      const calls = {
        'tag undefined': remove!(),
        'tag function': pin!(() => 1),
        'tag Array': pin!(['@inorigin/digits']),
        'tag Object': unpin!({}),
        'tag number': predict!(5, {}),
        'options null': repair!('@inorigin/digits', null),
        'signal number': explain!('@inorigin/digits', { signal: 5 }),
        'onProgress number': load!('@inorigin/digits', { onProgress: 5 }),
        'files undefined': take!('@me/x'),
        'files string': take!('@me/x', 'm.onnx'),
        'files File': take!('@me/x', file),
        'files Object': take!('@me/x', {}),
        'files Array': take!('@me/x', [file, null]),
        'files FileSystemFileHandle': take!('@me/x', handle),
      }
      return Promise.all(
        Object.entries(calls).map(([name, call]) =>
          call.then(
            () => [name, 'taken'],
            ({ kind, param, message }) => [name, `${kind} ${param}`, message],
          ),
        ),
      )
    })
    for (const [name = '', what, message] of said) {
      const [param, kind] = name.split(' ')
      expect([name, what]).toEqual([name, `invalid_request ${param}`])
      expect(message).toContain(`not ${kind}`)
    }
  },
)

test('the handle of a folder will do', SLOW, async () => {
  const imported = await page.evaluate(
    async (bytes) => {
      const { server } = globalThis as unknown as InPage
      const root = await navigator.storage.getDirectory()
      const folder = await root.getDirectoryHandle('mine', { create: true })
      const below = await folder.getDirectoryHandle('below', { create: true })
      const writable = await (
        await below.getFileHandle('m.onnx', { create: true })
      ).createWritable()
      await writable.write(new Uint8Array(bytes))
      await writable.close()
      return server.storage.import('@inorigin/digits', folder)
    },
    [...DIGITS],
  )
  expect(imported).toMatchObject({ files: ['below/m.onnx'], ignored: [], complete: true })
})
