/** Files of the user's own as a tag: found by what they hold, stored and run without the network. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Imported, ImportProgress, Server } from '../../src/index.ts'
import { fetchIn } from '../support/answers.ts'
import { openSite, serveIn, type Site } from '../support/site.ts'

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

const asFile = (name: string, buffer: Buffer) => ({ name, mimeType: 'application/octet-stream', buffer })

test('a folder in the layout of a hub is the model, and no hub is asked', async () => {
  await page.setInputFiles('#folder', join(MODELS, 'guide'))
  const { imported, steps, message } = await importFrom('folder', '@me/guide')
  expect(message).toBeUndefined()
  expect(imported).toMatchObject({ tag: '@me/guide', complete: true })
  expect(imported?.files).toContain('guide/config.json')
  expect(imported?.ignored).toContain('guide/README.md')
  expect(imported?.bytes).toBeGreaterThan(1e6)
  expect(new Set(steps.map(({ phase }) => phase))).toEqual(new Set(['check', 'store']))
  expect(steps.at(-1)).toMatchObject({ phase: 'store', loadedBytes: imported?.bytes, remainingSeconds: 0 })

  const asked = site.requests.length
  const { status, text } = await fetchIn(page, '/v1/chat/completions', {
    model: '@me/guide', temperature: 0, max_tokens: 8, messages: [{ role: 'user', content: 'Hello' }],
  })
  expect([status, JSON.parse(text).choices?.[0].message.content.length > 0]).toEqual([200, true])
  expect(site.requests.slice(asked).filter((path) => path.includes('/models/'))).toEqual([])

  // The same again writes nothing.
  expect((await importFrom('folder', '@me/guide')).imported).toMatchObject({ bytes: 0, complete: true })
})

test('files are told by what they hold; what is something else is refused', async () => {
  await page.setInputFiles('#files', [asFile('model.onnx', DIGITS.subarray(1))])
  const refused = await importFrom('files', '@inorigin/digits')
  expect(refused).toMatchObject({ code: 'import_mismatch' })
  expect(refused.message).toContain(`model.onnx has ${DIGITS.length - 1} bytes and should have ${DIGITS.length}`)

  const flipped = Buffer.from(DIGITS)
  flipped[100] = (flipped[100] ?? 0) ^ 1
  await page.setInputFiles('#files', [asFile('model.onnx', flipped)])
  expect((await importFrom('files', '@inorigin/digits')).message).toContain('another sha256')
  expect(await page.evaluate(() => (globalThis as unknown as InPage).server.storage.list())).toEqual([])

  await page.setInputFiles('#files', [asFile('renamed.bin', DIGITS), asFile('notes.txt', Buffer.from('?'))])
  expect(await importFrom('files', '@inorigin/digits', true)).toMatchObject({ code: 'aborted' })
  expect(await importFrom('files', '@me/unknown')).toMatchObject({ code: 'model_not_found' })
  const { imported } = await importFrom('files', '@inorigin/digits')
  expect(imported).toEqual({
    tag: '@inorigin/digits', files: ['renamed.bin'], ignored: ['notes.txt'], bytes: DIGITS.length,
    complete: true,
  })
  const asked = site.requests.length
  await page.evaluate(() => (globalThis as unknown as InPage).server.models.load('@inorigin/digits'))
  expect(site.requests.slice(asked).filter((path) => path.includes('/models/'))).toEqual([])
})

test('the handle of a folder will do', async () => {
  const imported = await page.evaluate(async (bytes) => {
    const { server } = globalThis as unknown as InPage
    const root = await navigator.storage.getDirectory()
    const folder = await root.getDirectoryHandle('mine', { create: true })
    const below = await folder.getDirectoryHandle('below', { create: true })
    const writable = await (await below.getFileHandle('m.onnx', { create: true })).createWritable()
    await writable.write(new Uint8Array(bytes))
    await writable.close()
    return server.storage.import('@inorigin/digits', folder)
  }, [...DIGITS])
  expect(imported).toMatchObject({ files: ['below/m.onnx'], ignored: [], complete: true })
})
