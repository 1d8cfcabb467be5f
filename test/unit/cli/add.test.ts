/** Models of the user's own, from their files to the catalog. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSnippet } from '../../../src/cli/add/snippet.ts'
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import { onnxFile } from '../../support/onnx.ts'
import {
  addIn,
  catalogIn,
  expectWhole,
  freshFolder,
  GUIDE,
  MIXED,
  passing,
  WEIGHTS,
} from './graphs.ts'

const mixed = () => freshFolder({ 'a b/mixed.onnx': MIXED, 'a b/weights/w.bin': WEIGHTS })

test('drafts a predictor, with its weights in files of their own', async () => {
  const folder = mixed()
  const { notes, splitFiles } = await addIn(folder, 'a b/mixed.onnx')
  expect({ notes, splitFiles }).toEqual({ notes: [], splitFiles: [] })
  const [entry] = catalogIn(folder).entries as PredictorEntry[]
  expect(entry).toMatchObject({
    type: 'predictor',
    tag: '@me/model',
    name: 'Mixed',
    description: 'Adds and passes on.',
  })
  expect(entry?.signature.inputs.map(({ name, type }) => `${name} ${type}`)).toEqual([
    'x float32',
    'ids int64',
    'flag bool',
    'words.0 string',
    'free uint8',
  ])
  expect(entry?.implementations.map(({ id, device }) => [id, device])).toEqual([
    ['webgpu', 'webgpu'],
    ['wasm', 'wasm'],
  ])
  expect(
    entry?.implementations[0]?.resources.map(({ type, name, url }) => [type, name, url]),
  ).toEqual([
    ['onnx', 'mixed.onnx', '@me/model/mixed.onnx'],
    ['data', 'weights/w.bin', '@me/model/weights/w.bin'],
  ])
  expectWhole(folder)
})

test('lies where every server finds it, whatever it is called', async () => {
  const name = 'weights é #1 %41?.bin'
  const weights = [{ name: 'w', type: 'uint8', shape: [3], data: { location: name } }] as const
  const folder = freshFolder({
    'm.onnx': { ...passing({}), weights },
    [name]: Uint8Array.of(1, 2, 3),
  })
  const { splitFiles } = await addIn(folder, 'm.onnx', { maxFileBytes: 2 })
  expect(splitFiles).toContain(name)
  const data = catalogIn(folder).entries[0]?.implementations?.[0]?.resources[1]
  expect(data).toMatchObject({ name, url: '@me/model/weights_20_e9_20_231_20_2541_3f.bin' })
  expectWhole(folder)
})

test('the code to begin with gives as many texts as the model takes', async () => {
  const folder = freshFolder({ 'm.onnx': passing({ type: 'string', shape: [2, 3] }) })
  const written = async (): Promise<string> =>
    createSnippet((await addIn(folder, 'm.onnx', { force: true })).entry, '/c.json')
  expect(await written()).toContain("x: { data: Array(6).fill('text'), shape: [2, 3] },")
  writeFileSync(join(folder, 'm.onnx'), onnxFile(passing({ type: 'string', shape: ['n'] })))
  expect(await written()).toContain("x: 'text',")
})

test('cuts what is over the limit, and gives large files hashes of their chunks', async () => {
  const size = 20_000_000
  const data = new Uint8Array(size)
  for (let at = 0; at < size; at += 4093) data[at] = at
  const weights = [{ name: 'w', type: 'uint8', shape: [size], data }] as const
  const folder = freshFolder({ 'm.onnx': { ...passing({}), weights } })
  const steps: number[] = []
  const { splitFiles, files } = await addIn(folder, 'm.onnx', {
    maxFileBytes: 7_000_000,
    onStep: (_, done, total) => done && steps.push(done / (total ?? 0)),
  })
  expect({ splitFiles, files }).toEqual({ splitFiles: ['m.onnx'], files: 3 })
  const [entry] = catalogIn(folder).entries
  expect(entry?.implementations?.[0]?.resources[0]).toMatchObject({
    partBytes: 7_000_000,
    chunks: { length: 2 },
  })
  expectWhole(folder)
  expect(steps.length).toBeGreaterThan(10)
  expect(steps).toEqual(steps.toSorted((one, other) => one - other))
  expect(steps.at(-1)).toBe(1)
})

test('a GPU must have 16-bit floats for a model that uses them', async () => {
  const folder = freshFolder({ 'm.onnx': passing({ type: 'float16' }) })
  await addIn(folder, 'm.onnx')
  const [entry] = catalogIn(folder).entries
  expect(entry?.implementations?.map(({ requires }) => requires?.features)).toEqual([
    ['shader-f16'],
    undefined,
  ])
})

test('keeps what is in the catalog, and overwrites nothing unless told to', async () => {
  const folder = freshFolder({ 'one.onnx': passing({}), 'two.onnx': passing({ name: 'other' }) })
  await addIn(folder, 'one.onnx', { tag: '@me/one' })
  await addIn(folder, 'two.onnx', { tag: '@me/two' })
  const before = catalogIn(folder)
  expect(before.entries.map(({ tag }) => tag)).toEqual(['@me/one', '@me/two'])
  await expect(addIn(folder, 'two.onnx', { tag: '@me/one' })).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringContaining(
      '@me/one is already in the catalog. Choose another tag, or replace it with --force',
    ),
  })
  expect(catalogIn(folder)).toEqual(before)

  await addIn(folder, 'two.onnx', { tag: '@me/one', force: true, name: 'Mine' })
  const after = catalogIn(folder)
  expect(after.entries.map(({ tag }) => tag)).toEqual(['@me/one', '@me/two'])
  expect(after.entries[0]).toMatchObject({ name: 'Mine' })
  expect(readdirSync(join(folder, 'public/inorigin/@me/one'))).toEqual(['two.onnx'])
  expectWhole(folder)

  mkdirSync(join(folder, 'public/inorigin/@me/theirs'))
  await expect(addIn(folder, 'one.onnx', { tag: '@me/theirs' })).rejects.toThrow('already exists')
})

test('a folder of a chat model becomes one, in every precision that is there or in those asked for', async () => {
  const folder = freshFolder()
  cpSync(GUIDE, join(folder, 'my-model'), { recursive: true })
  cpSync(join(GUIDE, 'onnx/model.onnx'), join(folder, 'my-model/onnx/model_q4f16.onnx'))
  await addIn(folder, 'my-model', { tag: '@me/chat' })
  const [entry] = catalogIn(folder).entries
  expect(entry).toMatchObject({
    type: 'model',
    name: 'My model',
    maxInputTokens: 2048,
    maxOutputTokens: 2048,
    capabilities: { tools: true, thinking: true, structuredOutputs: true },
  })
  expect(entry?.implementations?.map(({ id, requires }) => [id, requires?.features])).toEqual([
    ['q4f16-webgpu', ['shader-f16']],
    ['fp32-webgpu', undefined],
    ['fp32-wasm', undefined],
  ])
  const names = entry?.implementations?.[1]?.resources.map(({ name }) => name)
  expect(names).toEqual([
    'config.json',
    'generation_config.json',
    'tokenizer.json',
    'tokenizer_config.json',
    'onnx/model.onnx',
  ])
  expectWhole(folder)

  await addIn(folder, 'my-model', { tag: '@me/small', dtypes: ['q4f16'] })
  expect(catalogIn(folder).entries[1]?.implementations?.map(({ id }) => id)).toEqual([
    'q4f16-webgpu',
    'q4f16-wasm',
  ])
})

test('a folder whose images no engine reads becomes a model of text, and says so', async () => {
  const folder = freshFolder()
  cpSync(GUIDE, join(folder, 'm'), { recursive: true })
  const config = JSON.parse(readFileSync(join(GUIDE, 'config.json'), 'utf8'))
  const addAs = async (type: string) => {
    const seeing = { ...config, model_type: type, vision_config: {} }
    writeFileSync(join(folder, 'm/config.json'), JSON.stringify(seeing))
    return addIn(folder, 'm', { force: true })
  }
  const { entry, notes } = await addAs('llava')
  expect(entry).toMatchObject({ type: 'model', capabilities: { structuredOutputs: true } })
  expect(entry).not.toMatchObject({ capabilities: { imageInput: true } })
  expect(notes).toEqual([
    expect.stringMatching(
      /^The model answers text only: .* the layout "llava" is not supported \(supported: idefics3, .*qwen3_5\)\.$/,
    ),
  ])
  expect((await addAs('idefics3')).notes).toEqual([
    expect.stringMatching(/but the folder has no onnx\/vision_encoder\*\.onnx\.$/),
  ])
})

test('a model that nobody can chat with is refused', async () => {
  const folder = freshFolder({ 'm/tokenizer_config.json': '{"chat_template": ""}' })
  for (const name of ['config.json', 'tokenizer.json', 'onnx/model.onnx']) {
    cpSync(join(GUIDE, name), join(folder, 'm', name))
  }
  await expect(addIn(folder, 'm')).rejects.toThrow(/m has no chat template, .* add its graph alone/)
  writeFileSync(join(folder, 'm/chat_template.jinja'), '{{ messages }}')
  const { entry } = await addIn(folder, 'm')
  expect(entry).toMatchObject({ type: 'model', capabilities: { structuredOutputs: true } })
})

test('a folder of an encoder becomes a predictor of texts', async () => {
  const shape = ['batch', 'n']
  const encoder = {
    ...passing({ name: 'input_ids', type: 'int64', shape }),
    nodes: [{ type: 'Mul', inputs: ['input_ids', 'attention_mask'], outputs: ['y'] }],
  } as const
  const inputs = ['input_ids', 'attention_mask'].map(
    (name) => ({ name, type: 'int64', shape }) as const,
  )
  const folder = freshFolder({
    'e/onnx/model.onnx': { ...encoder, inputs },
    'e/onnx/model_q8.onnx': {
      ...encoder,
      inputs: [...inputs, { name: 'more', type: 'int64', shape }],
    },
    'e/config.json': '{"max_position_embeddings": 128}',
    'e/tokenizer.json': readFileSync(join(GUIDE, 'tokenizer.json')),
  })
  const { notes } = await addIn(folder, 'e')
  const [entry] = catalogIn(folder).entries as PredictorEntry[]
  expect(entry?.signature.inputs).toMatchObject([{ name: 'text', type: 'string' }])
  expect(entry?.implementations[0]?.bindings?.['text']).toEqual({
    tensor: 'input_ids',
    text: { tokenizer: 'tokenizer.json', mask: 'attention_mask', most: 128 },
  })
  expect(entry?.implementations.map(({ id }) => id)).toEqual(['fp32-webgpu', 'fp32-wasm'])
  expect(notes.at(-1)).toBe('q8 has other inputs or outputs, and was left out.')
  expectWhole(folder)

  // Positions of this family begin at 2.
  writeFileSync(
    join(folder, 'e/config.json'),
    '{"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}',
  )
  const { entry: another } = await addIn(folder, 'e', { force: true })
  expect(another.implementations[0]?.bindings?.['text']?.text?.most).toBe(512)
})

test.each<[string, Parameters<typeof freshFolder>[0], object, RegExp]>([
  ['nothing there', {}, {}, /There is no .*m\.onnx\. Name an \.onnx file/],
  [
    'a tag without an owner',
    { 'm.onnx': passing({}) },
    { tag: 'model' },
    /--tag model: a tag looks like @owner\/name/,
  ],
  ['a tag in capitals', { 'm.onnx': passing({}) }, { tag: '@Me/model' }, /a tag looks like/],
  ['a tag of ours', { 'm.onnx': passing({}) }, { tag: '@inorigin/guide' }, /reserved/],
  [
    'weights that are not there',
    { 'm.onnx': MIXED },
    {},
    /keeps weights in weights\/w\.bin, which is not beside it/,
  ],
  [
    'weights outside',
    {
      'm.onnx': {
        ...passing({}),
        weights: [{ name: 'w', type: 'uint8', shape: [1], data: { location: '../w' } }],
      },
    },
    {},
    /outside of its folder/,
  ],
  ['old operators', { 'm.onnx': { ...passing({}), opset: 3 } }, {}, /supports versions 7 to 26/],
  [
    'an operator nobody has',
    { 'm.onnx': passing({}, 'Frobnicate') },
    {},
    /The runtime cannot open .*Frobnicate.*--device webgpu/s,
  ],
  [
    'weights that are too short',
    { 'm.onnx': MIXED, 'weights/w.bin': WEIGHTS.subarray(0, 4100) },
    {},
    /The runtime cannot open/,
  ],
  ['a type no value has', { 'm.onnx': passing({ type: 'complex64' }) }, {}, /of type complex64/],
  [
    'an input that is not there',
    { 'm.onnx': passing({}) },
    { tensors: ['z'] },
    /--tensor z: unknown input\. Expected: x/,
  ],
  [
    'precisions of one graph',
    { 'm.onnx': passing({}) },
    { dtypes: ['q4'] },
    /--dtypes chooses among the graphs of a folder/,
  ],
  [
    'a folder of several',
    { 'm.onnx/a.onnx': passing({}), 'm.onnx/b.onnx': passing({}) },
    {},
    /has 2 graphs: a\.onnx, b\.onnx\. Choose one/,
  ],
  ['a folder of none', { 'm.onnx/readme.md': '' }, {}, /has no \.onnx file/],
])('refuses %s, and leaves nothing behind', async (_, files, options, says) => {
  const folder = freshFolder(files)
  await expect(addIn(folder, 'm.onnx', options)).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringMatching(says),
  })
  expect(existsSync(join(folder, 'public'))).toBe(false)
})

test('what cannot be written into the catalog leaves the model that is there', async () => {
  const folder = freshFolder({ 'one.onnx': passing({}), 'two.onnx': passing({}) })
  await addIn(folder, 'one.onnx')
  await expect(addIn(folder, 'two.onnx', { force: true, name: '' })).rejects.toThrow(
    'entries[0].name',
  )
  expect(readdirSync(join(folder, 'public/inorigin/@me/model'))).toEqual(['one.onnx'])
  expectWhole(folder)
})

test('what runs on a GPU alone is not tried without one', async () => {
  const folder = freshFolder({ 'm.onnx': passing({}, 'Frobnicate') })
  const { entry } = await addIn(folder, 'm.onnx', { devices: ['webgpu'] })
  expect(entry.implementations.map(({ id }) => id)).toEqual(['webgpu'])
})

test('leaves a broken catalog alone', async () => {
  const folder = freshFolder({
    'm.onnx': passing({}),
    'public/inorigin/catalog.json': '{"version": 1, "entries": [{}]}',
  })
  await expect(addIn(folder, 'm.onnx')).rejects.toThrow(
    /catalog\.json cannot be used:\nentries\[0\]/,
  )
  writeFileSync(join(folder, 'public/inorigin/catalog.json'), '{')
  await expect(addIn(folder, 'm.onnx')).rejects.toThrow(/catalog\.json is not JSON/)
  expect(readdirSync(join(folder, 'public/inorigin'))).toEqual(['catalog.json'])
})

test('given up in the middle, nothing has changed', async () => {
  const data = new Uint8Array(20 * 2 ** 20)
  const weights = [{ name: 'w', type: 'uint8', shape: [data.length], data }] as const
  const folder = freshFolder({ 'm.onnx': { ...passing({}), weights }, 'small.onnx': passing({}) })
  await addIn(folder, 'small.onnx')
  const before = catalogIn(folder)
  const giving = new AbortController()
  const adding = addIn(folder, 'm.onnx', {
    force: true,
    signal: giving.signal,
    onStep: (_, done) => done && done > 5e6 && giving.abort(),
  })
  await expect(adding).rejects.toMatchObject({
    kind: 'aborted',
    message: 'Interrupted. Nothing was added.',
  })
  expect(catalogIn(folder)).toEqual(before)
  expect(readdirSync(join(folder, 'public/inorigin/@me'))).toEqual(['model'])
  expectWhole(folder)
})
