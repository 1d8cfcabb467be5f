/** What becomes of files that no catalog tells of. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { entrySchema } from '../../../src/catalog/schema.ts'
import { checkEntry, draftUnlisted, toEntry } from '../../../src/draft/unlisted.ts'
import type { ChosenFile, ImportProgress, ImportWishes, Tag } from '../../../src/types/index.ts'
import { onnxFile } from '../../support/onnx.ts'
import { MIXED, passing, WEIGHTS } from '../cli/graphs.ts'

const GUIDE = join(import.meta.dirname, '../../../demo/models/guide')

const fileOf = (path: string, content: BlobPart): ChosenFile => ({
  path,
  file: new File([content], path.slice(path.lastIndexOf('/') + 1)),
})

const draft = (files: Record<string, BlobPart>, wishes: ImportWishes = {}, tag = '@me/model') => {
  const { signal } = new AbortController()
  const chosen = Object.entries(files).map(([path, content]) => fileOf(path, content))
  return draftUnlisted(tag as Tag, chosen, wishes, {
    tag: tag as Tag,
    signal,
    onProgress: () => undefined,
  })
}

test('a graph in a folder is a predictor, with its weights by the names that it knows them by', async () => {
  const plan = await draft({
    'mine/m.onnx': onnxFile(MIXED),
    'mine/weights/w.bin': WEIGHTS as BlobPart,
    'mine/.DS_Store': '',
  })
  const [webgpu, wasm] = plan.implementations
  expect([webgpu?.device, wasm?.device]).toEqual(['webgpu', 'wasm'])
  expect(wasm?.items.map(({ name, path }) => [name, path])).toEqual([
    ['m.onnx', 'mine/m.onnx'],
    ['weights/w.bin', 'mine/weights/w.bin'],
  ])
  const hashes = new Map(wasm?.items.map(({ path }) => [path, 'a'.repeat(64)]))
  const entry = toEntry('@me/model', plan, hashes)
  expect(v.is(entrySchema, entry)).toBe(true)
  expect(entry).toMatchObject({
    type: 'predictor',
    tag: '@me/model',
    name: 'M',
    implementations: [{}, {}],
  })
  expect(entry.implementations[0]?.resources.map(({ url }) => url)).toEqual([
    'import:m.onnx',
    'import:weights/w.bin',
  ])
  expect(
    toEntry('@me/model', plan, new Map([['mine/m.onnx', 'a'.repeat(64)]])).implementations,
  ).toEqual([])
})

test('a folder in the layout of exports is a chat model, whatever it lies in', async () => {
  const names = readdirSync(GUIDE, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /\.(json|jinja)$|^onnx.*\.onnx|_data/.test(name) && !name.includes('recipe'),
  )
  const files = Object.fromEntries(
    names.map((name) => [`a/guide/${name}`, readFileSync(join(GUIDE, name)) as BlobPart]),
  )
  const plan = await draft({ ...files, 'a/README.md': '#' })
  expect(plan.entry).toMatchObject({ type: 'model', capabilities: { tools: true } })
  expect(plan.implementations.length).toBeGreaterThan(1)
  expect(plan.implementations[0]?.items.map(({ path }) => path)).toContain('a/guide/tokenizer.json')
  await expect(draft(files, { tensors: ['input_ids'] })).rejects.toThrow(
    "tensors: ['input_ids'] is for the inputs of predictors",
  )
})

test('is called as it is wished, else as its file, else as its tag', async () => {
  const graph = onnxFile(passing({}))
  expect((await draft({ 'super_res.onnx': graph })).entry.name).toBe('Super res')
  expect((await draft({ 'model.onnx': graph }, {}, '@me/edge-finder')).entry.name).toBe(
    'Edge finder',
  )
  expect((await draft({ 'model.onnx': graph }, { name: 'Mine' })).entry.name).toBe('Mine')
})

const graph = onnxFile(passing({}))
test.each<[string, Record<string, BlobPart>, ImportWishes, RegExp]>([
  ['no graph', { 'a.txt': '' }, {}, /The selection has no \.onnx file/],
  ['nothing', {}, {}, /The selection has no \.onnx file/],
  ['several graphs', { 'a.onnx': graph, 'b.onnx': graph }, {}, /has 2 graphs: a\.onnx, b\.onnx/],
  ['something else', { 'a.onnx': 'PK\x03\x04' }, {}, /a\.onnx is a zip archive/],
  ['half a graph', { 'a.onnx': graph.slice(0, 40) }, {}, /a\.onnx ends in the middle of a model/],
  ['an empty file', { 'a.onnx': '' }, {}, /a\.onnx is empty/],
  [
    'no weights',
    { 'm.onnx': onnxFile(MIXED) },
    {},
    /keeps weights in weights\/w\.bin, which is not beside it/,
  ],
  [
    'an input that is not there',
    { 'a.onnx': graph },
    { tensors: ['z'] },
    /tensors: \['z'\]: unknown input/,
  ],
  [
    'a folder without its tokenizer',
    { 'config.json': '{}', 'onnx/a.onnx': graph, 'onnx/b.onnx': graph },
    {},
    /has 2 graphs/,
  ],
  ['MLC without its library', { 'mlc-chat-config.json': '{}' }, {}, /has 0 libraries \(\.wasm\)/],
])('%s is refused by name', async (_, files, wishes, says) => {
  await expect(draft(files, wishes)).rejects.toMatchObject({
    kind: 'invalid_request',
    code: 'import_unfit',
    param: 'files',
    message: expect.stringMatching(says),
  })
})

test.each(['me/model', '@Me/model', '@inorigin/model', ''])('%s is no tag for it', async (tag) => {
  await expect(draft({ 'a.onnx': graph }, {}, tag)).rejects.toMatchObject({
    code: 'import_tag',
    param: 'tag',
  })
})

test.each<[string, unknown]>([
  ['name', ''],
  ['name', '  '],
  ['name', 5],
  ['tensors', 'x'],
  ['tensors', [5]],
  ['tensors', null],
])('%s: %j cannot be wished', async (param, value) => {
  const wishes = { [param]: value } as ImportWishes
  await expect(draft({ 'a.onnx': graph }, wishes)).rejects.toMatchObject({
    kind: 'invalid_request',
    param,
    message: expect.stringContaining(`${param} must be`),
  })
})

test('what no catalog could list is not taken, as nobody would find it', async () => {
  const entryOf = async (name: string) => {
    const plan = await draft({ 'm.onnx': onnxFile(passing({ name })) })
    return toEntry('@me/model', plan, new Map([['m.onnx', 'a'.repeat(64)]]))
  }
  checkEntry(await entryOf('input:0'))
  const nameless = await entryOf('')
  expect(() => checkEntry(nameless)).toThrow(
    /Cannot import @me\/model, .*: implementations\.0\.bindings/,
  )
})

test('what is read is told, given up where it is asked, and refused where it was changed meanwhile', async () => {
  const bytes = onnxFile(MIXED)
  const chosen = [fileOf('m.onnx', bytes), fileOf('weights/w.bin', WEIGHTS as BlobPart)]
  const steps: ImportProgress[] = []
  const over = new AbortController()
  const how = {
    tag: '@me/model',
    signal: over.signal,
    onProgress: (step: ImportProgress) => void steps.push(step),
  } as const
  await draftUnlisted('@me/model', chosen, {}, how)
  expect(steps[0]).toMatchObject({
    tag: '@me/model',
    phase: 'check',
    loadedBytes: 0,
    totalBytes: bytes.length,
  })
  expect(steps.at(-1)).toMatchObject({ loadedBytes: bytes.length, remainingSeconds: 0 })

  const gone = Object.assign(fileOf('m.onnx', bytes).file, {
    slice: () => ({
      arrayBuffer: () => Promise.reject(new DOMException('It was changed.', 'NotReadableError')),
    }),
  })
  await expect(
    draftUnlisted('@me/model', [{ path: 'm.onnx', file: gone }], {}, how),
  ).rejects.toMatchObject({
    kind: 'invalid_request',
    code: 'import_changed',
    message: expect.stringContaining('m.onnx'),
  })
  const reason = new Error('enough')
  const slow = Object.assign(fileOf('m.onnx', bytes).file, {
    slice: () => ({ arrayBuffer: async () => (over.abort(reason), bytes) }),
  })
  await expect(draftUnlisted('@me/model', [{ path: 'm.onnx', file: slow }], {}, how)).rejects.toBe(
    reason,
  )
})
