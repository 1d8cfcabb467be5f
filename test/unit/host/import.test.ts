/** Files of the user that no catalog lists: how they are found, described and refused. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { entrySchema } from '../../../src/catalog/schema.ts'
import { checkEntry, draftUnlisted, listFolder, toEntry } from '../../../src/draft/unlisted.ts'
import type { ChosenFile, ImportProgress, ImportWishes, Tag } from '../../../src/types/index.ts'
import { onnxFile } from '../../support/onnx.ts'
import { MIXED, passing, WEIGHTS } from '../cli/graphs.ts'

const GUIDE = join(import.meta.dirname, '../../../demo/models/guide')
const TAG = '@me/model'
const HASH = 'a'.repeat(64)
const GRAPH = onnxFile(passing({}))

type Files = Record<string, BlobPart>

const fileOf = (path: string, content: BlobPart): ChosenFile => ({
  path,
  file: new File([content], path.slice(path.lastIndexOf('/') + 1)),
})

function draft(
  files: Files | readonly ChosenFile[],
  wishes: ImportWishes = {},
  tag: string = TAG,
  { signal = new AbortController().signal, onProgress = (_step: ImportProgress) => {} } = {},
) {
  const chosen = Array.isArray(files)
    ? (files as ChosenFile[])
    : Object.entries(files as Files).map(([path, content]) => fileOf(path, content))
  return draftUnlisted(tag as Tag, chosen, wishes, { tag: tag as Tag, signal, onProgress })
}

describe('a folder', () => {
  type Tree = { [name: string]: Tree | File }

  /** The handle of a folder with those files and folders. */
  function folderOf(tree: Tree): FileSystemDirectoryHandle {
    async function* values() {
      for (const [name, inside] of Object.entries(tree))
        yield inside instanceof File
          ? { kind: 'file', name, getFile: async () => inside }
          : { ...folderOf(inside), kind: 'directory', name }
    }
    return { values } as never
  }

  const list = (tree: Tree, signal = new AbortController().signal) =>
    listFolder(folderOf(tree), signal)

  const file = new File(['a'], 'a')
  const many = (count: number, inside: Tree | File): Tree =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${index}`, inside]))

  test('has files with their paths in it', async () => {
    const found = await list({ 'a.json': file, onnx: { 'm.onnx': file, deep: { b: file } } })
    expect(found).toEqual(['a.json', 'onnx/m.onnx', 'onnx/deep/b'].map((path) => ({ path, file })))
  })

  test.each<[string, Tree]>([
    ['files', many(10_001, file)],
    ['files in its folders', { one: many(6000, file), two: many(6000, file) }],
    ['empty folders', { one: many(10_001, {}) }],
  ])('of too many %s is rejected, and not read in part', async (_, tree) => {
    await expect(list(tree)).rejects.toMatchObject({
      kind: 'invalid_request',
      code: 'too_many_files',
      param: 'files',
    })
  })

  test('is not read for a caller that left', async () => {
    await expect(list({ a: file }, AbortSignal.abort())).rejects.toMatchObject({
      name: 'AbortError',
    })
  })
})

test('a graph in a folder is a predictor, with its weights by the names that it refers to', async () => {
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
  const entry = toEntry(TAG, plan, new Map(wasm?.items.map(({ path }) => [path, HASH])))
  expect(v.is(entrySchema, entry)).toBe(true)
  expect(entry).toMatchObject({
    type: 'predictor',
    tag: TAG,
    name: 'M',
    implementations: [{}, {}],
  })
  expect(entry.implementations[0]?.resources.map(({ url }) => url)).toEqual([
    'import:m.onnx',
    'import:weights/w.bin',
  ])
  const partial = toEntry(TAG, plan, new Map([['mine/m.onnx', HASH]]))
  expect(partial.implementations).toEqual([])
})

test('a folder in the layout of exports is a chat model, at any depth', async () => {
  const names = readdirSync(GUIDE, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /\.(json|jinja)$|^onnx.*\.onnx|_data/.test(name) && !name.includes('recipe'),
  )
  const files = Object.fromEntries(
    names.map((name) => [`a/guide/${name}`, readFileSync(join(GUIDE, name)) as BlobPart]),
  )
  const steps: ImportProgress[] = []
  const onProgress = (step: ImportProgress) => steps.push(step)
  const plan = await draft({ ...files, 'a/README.md': '#' }, {}, TAG, { onProgress })
  expect(plan.entry).toMatchObject({ type: 'model', capabilities: { tools: true } })
  // Files that are read again count once.
  const last = steps.at(-1)
  expect(last?.loadedBytes).toBeLessThanOrEqual(last?.totalBytes ?? 0)
  expect(plan.implementations.length).toBeGreaterThan(1)
  expect(plan.implementations[0]?.items.map(({ path }) => path)).toContain('a/guide/tokenizer.json')
  await expect(draft(files, { tensors: ['input_ids'] })).rejects.toThrow(
    "tensors: ['input_ids'] is for the inputs and outputs of predictors",
  )
})

test.each<[string, ImportWishes, string, string]>([
  ['super_res.onnx', {}, TAG, 'Super res'],
  ['model.onnx', {}, '@me/edge-finder', 'Edge finder'],
  ['model.onnx', { name: 'Mine' }, TAG, 'Mine'],
])('%s with the options %j and the tag %s is named %s', async (path, wishes, tag, name) => {
  expect((await draft({ [path]: GRAPH }, wishes, tag)).entry.name).toBe(name)
})

describe('refusals', () => {
  test.each<[string, Files, ImportWishes, RegExp]>([
    ['no graph', { 'a.txt': '' }, {}, /The selection has no \.onnx file/],
    ['nothing', {}, {}, /The selection has no \.onnx file/],
    ['several graphs', { 'a.onnx': GRAPH, 'b.onnx': GRAPH }, {}, /has 2 graphs: a\.onnx, b\.onnx/],
    ['something else', { 'a.onnx': 'PK\x03\x04' }, {}, /a\.onnx is a zip archive/],
    ['half a graph', { 'a.onnx': GRAPH.slice(0, 40) }, {}, /a\.onnx ends in the middle of a model/],
    ['an empty file', { 'a.onnx': '' }, {}, /a\.onnx is empty/],
    [
      'no weights',
      { 'm.onnx': onnxFile(MIXED) },
      {},
      /keeps weights in weights\/w\.bin, which is not beside it/,
    ],
    [
      'an input that is not there',
      { 'a.onnx': GRAPH },
      { tensors: ['z'] },
      /tensors: \['z'\]: unknown input/,
    ],
    [
      'a folder of graphs with other names',
      { 'config.json': '{}', 'onnx/a.onnx': GRAPH, 'onnx/b.onnx': GRAPH },
      {},
      /has no onnx\/model\*\.onnx for webgpu or wasm\. It has a\.onnx, b\.onnx\./,
    ],
    ['MLC without its library', { 'mlc-chat-config.json': '{}' }, {}, /has 0 libraries \(\.wasm\)/],
  ])('name the fault: %s', async (_, files, wishes, message) => {
    await expect(draft(files, wishes)).rejects.toMatchObject({
      kind: 'invalid_request',
      code: 'import_unfit',
      param: 'files',
      message: expect.stringMatching(message),
    })
  })

  test.each(['me/model', '@Me/model', '@inorigin/model', ''])('name the tag "%s"', async (tag) => {
    const refused = { code: 'import_tag', param: 'tag' }
    await expect(draft({ 'a.onnx': GRAPH }, {}, tag)).rejects.toMatchObject(refused)
  })

  test.each<[string, unknown]>([
    ['name', ''],
    ['name', '  '],
    ['name', 5],
    ['tensors', 'x'],
    ['tensors', [5]],
    ['tensors', null],
  ])('name the option %s: %j', async (param, value) => {
    await expect(draft({ 'a.onnx': GRAPH }, { [param]: value })).rejects.toMatchObject({
      kind: 'invalid_request',
      param,
      message: expect.stringContaining(`${param} must be`),
    })
  })

  test('include an entry that no catalog could list', async () => {
    const entryOf = async (name: string) => {
      const plan = await draft({ 'm.onnx': onnxFile(passing({ name })) })
      return toEntry(TAG, plan, new Map([['m.onnx', HASH]]))
    }
    checkEntry(await entryOf('input:0'))
    const nameless = await entryOf('')
    expect(() => checkEntry(nameless)).toThrow(
      /Cannot import @me\/model, .*: implementations\.0\.bindings/,
    )
  })
})

test('reading reports its progress, and ends with the signal or a file that was changed', async () => {
  const bytes = onnxFile(MIXED)
  const steps: ImportProgress[] = []
  const files = { 'm.onnx': bytes, 'weights/w.bin': WEIGHTS as BlobPart }
  await draft(files, {}, TAG, { onProgress: (step) => void steps.push(step) })
  const first = { tag: TAG, phase: 'check', loadedBytes: 0, totalBytes: bytes.length }
  expect(steps[0]).toMatchObject(first)
  expect(steps.at(-1)).toMatchObject({ loadedBytes: bytes.length, remainingSeconds: 0 })

  /** Drafts a file that is read by the function. */
  const draftRead = (arrayBuffer: () => Promise<unknown>, signal?: AbortSignal) => {
    const { path, file } = fileOf('m.onnx', bytes)
    const chosen = { path, file: Object.assign(file, { slice: () => ({ arrayBuffer }) }) }
    return draft([chosen], {}, TAG, { signal })
  }
  const changed = new DOMException('It was changed.', 'NotReadableError')
  await expect(draftRead(() => Promise.reject(changed))).rejects.toMatchObject({
    kind: 'invalid_request',
    code: 'import_changed',
    message: expect.stringContaining('m.onnx'),
  })
  const leaving = new AbortController()
  const reason = new Error('enough')
  const slow = draftRead(async () => (leaving.abort(reason), bytes), leaving.signal)
  await expect(slow).rejects.toBe(reason)
})
