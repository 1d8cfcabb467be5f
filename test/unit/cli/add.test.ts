/** Models of the user's own, from their files to the catalog. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import { createSnippet } from '../../../src/cli/report.ts'
import { onnxFile } from '../../support/onnx.ts'
import {
  addIn,
  catalogIn,
  expectWhole,
  freshFolder,
  GUIDE,
  MIXED,
  passing,
  toPort,
  weight,
  WEIGHTS,
} from './graphs.ts'

/** Returns the first entry of the catalog in the folder, which is a predictor. */
const predictorIn = (folder: string) => (catalogIn(folder).entries as PredictorEntry[])[0]

test('A predictor is drafted, with its weights in files of their own', async () => {
  const folder = freshFolder({ 'a b/mixed.onnx': MIXED, 'a b/weights/w.bin': WEIGHTS })
  const { notes, splitFiles } = await addIn(folder, 'a b/mixed.onnx')
  expect({ notes, splitFiles }).toEqual({ notes: [], splitFiles: [] })
  const entry = predictorIn(folder)
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
  const devices = entry?.implementations.map(({ id, device }) => `${id} ${device}`)
  expect(devices).toEqual(['webgpu webgpu', 'wasm wasm'])
  const resources = entry?.implementations[0]?.resources
  expect(resources?.map(({ type, name, url }) => `${type} ${name} ${url}`)).toEqual([
    'onnx mixed.onnx @me/model/mixed.onnx',
    'data weights/w.bin @me/model/weights/w.bin',
  ])
  expectWhole(folder)
})

test('A file of any name is found by every server', async () => {
  const name = 'weights é #1 %41?.bin'
  const graph = { ...passing({}), weights: [weight('w', [3], { location: name })] }
  const folder = freshFolder({ 'm.onnx': graph, [name]: Uint8Array.of(1, 2, 3) })
  const { splitFiles } = await addIn(folder, 'm.onnx', { maxFileBytes: 2 })
  expect(splitFiles).toContain(name)
  const data = predictorIn(folder)?.implementations[0]?.resources[1]
  expect(data).toMatchObject({ name, url: '@me/model/weights_20_e9_20_231_20_2541_3f.bin' })
  expectWhole(folder)
})

test('The example has as many texts as the model takes', async () => {
  const folder = freshFolder()
  const write = async (shape: (number | string)[]): Promise<string> => {
    writeFileSync(join(folder, 'm.onnx'), onnxFile(passing({ type: 'string', shape })))
    return createSnippet((await addIn(folder, 'm.onnx', { force: true })).entry, '/c.json')
  }
  expect(await write([2, 3])).toContain("x: { data: Array(6).fill('text'), shape: [2, 3] },")
  expect(await write(['n'])).toContain("x: 'text',")
})

test('Files over the limit are split, and large files have hashes of their chunks', async () => {
  const size = 20_000_000
  const data = new Uint8Array(size)
  for (let at = 0; at < size; at += 4093) data[at] = at
  const graph = { ...passing({}), weights: [weight('w', [size], data)] }
  const folder = freshFolder({ 'm.onnx': graph })
  const steps: number[] = []
  const { splitFiles, files } = await addIn(folder, 'm.onnx', {
    maxFileBytes: 7_000_000,
    onStep: (_, done, total) => done && steps.push(done / (total ?? 0)),
  })
  expect({ splitFiles, files }).toEqual({ splitFiles: ['m.onnx'], files: 3 })
  const resource = predictorIn(folder)?.implementations[0]?.resources[0]
  expect(resource).toMatchObject({ partBytes: 7_000_000, chunks: { length: 2 } })
  expectWhole(folder)
  expect(steps.length).toBeGreaterThan(10)
  expect(steps).toEqual(steps.toSorted((one, other) => one - other))
  expect(steps.at(-1)).toBe(1)
})

test('A model of 16-bit floats needs a GPU that has them', async () => {
  const folder = freshFolder({ 'm.onnx': passing({ type: 'float16' }) })
  await addIn(folder, 'm.onnx')
  const features = predictorIn(folder)?.implementations.map(({ requires }) => requires?.features)
  expect(features).toEqual([['shader-f16'], undefined])
})

test('Other entries stay, and a tag is replaced only on request', async () => {
  const folder = freshFolder({ 'one.onnx': passing({}), 'two.onnx': passing({ name: 'other' }) })
  await addIn(folder, 'one.onnx', { tag: '@me/one' })
  await addIn(folder, 'two.onnx', { tag: '@me/two' })
  const before = catalogIn(folder)
  const tags = ['@me/one', '@me/two']
  expect(before.entries.map(({ tag }) => tag)).toEqual(tags)
  await expect(addIn(folder, 'two.onnx', { tag: '@me/one' })).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringContaining(
      '@me/one is already in the catalog. Choose another tag, or replace it with --force',
    ),
  })
  expect(catalogIn(folder)).toEqual(before)

  await addIn(folder, 'two.onnx', { tag: '@me/one', force: true, name: 'Mine' })
  const after = catalogIn(folder)
  expect(after.entries.map(({ tag }) => tag)).toEqual(tags)
  expect(after.entries[0]).toMatchObject({ name: 'Mine' })
  expect(readdirSync(join(folder, 'public/inorigin/@me/one'))).toEqual(['two.onnx'])
  expectWhole(folder)

  mkdirSync(join(folder, 'public/inorigin/@me/theirs'))
  await expect(addIn(folder, 'one.onnx', { tag: '@me/theirs' })).rejects.toThrow('already exists')
})

test('A folder of a chat model becomes one, in all or the requested precisions', async () => {
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
    implementations: [{ id: 'q4f16-webgpu' }, { id: 'fp32-webgpu' }, { id: 'fp32-wasm' }],
  })
  const features = entry?.implementations?.map(({ requires }) => requires?.features)
  expect(features).toEqual([['shader-f16'], undefined, undefined])
  expect(entry?.implementations?.[1]?.resources.map(({ name }) => name)).toEqual([
    'config.json',
    'generation_config.json',
    'tokenizer.json',
    'tokenizer_config.json',
    'onnx/model.onnx',
  ])
  expectWhole(folder)

  await addIn(folder, 'my-model', { tag: '@me/small', dtypes: ['q4f16'] })
  const ids = catalogIn(folder).entries[1]?.implementations?.map(({ id }) => id)
  expect(ids).toEqual(['q4f16-webgpu', 'q4f16-wasm'])
})

test('A folder of ONNX Runtime GenAI is added with the configuration that is made from it', async () => {
  const read = (name: string) => readFileSync(join(GUIDE, name))
  const decoder = { filename: 'model.onnx', num_attention_heads: 6 }
  const model = { type: 'llama', context_length: 2048, eos_token_id: 2034, decoder }
  const folder = freshFolder({
    'm/genai_config.json': JSON.stringify({ model }),
    'm/model.onnx': read('onnx/model.onnx'),
    'm/tokenizer.json': read('tokenizer.json'),
    'm/tokenizer_config.json': read('tokenizer_config.json'),
  })
  const { entry } = await addIn(folder, 'm')
  expect(entry).toMatchObject({ type: 'model', maxInputTokens: 2048 })
  expectWhole(folder)
  const made = readFileSync(join(folder, 'public/inorigin/@me/model/config.json'), 'utf8')
  expect(JSON.parse(made)).toMatchObject({ model_type: 'llama', eos_token_id: 2034 })
})

test('A chat model that cannot run is refused, and leaves nothing behind', async () => {
  const folder = freshFolder()
  cpSync(GUIDE, join(folder, 'm'), { recursive: true })
  const ids = passing({ name: 'input_ids', type: 'int64', shape: ['batch', 'sequence'] })
  const graph = { ...ids, outputs: [toPort('logits float32 n')] }
  writeFileSync(join(folder, 'm/onnx/model.onnx'), onnxFile(graph))
  await expect(addIn(folder, 'm')).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringContaining('model.onnx cannot run as a chat model: it has no inputs for'),
  })
  expect(existsSync(join(folder, 'public'))).toBe(false)
})

test('A folder whose images no engine reads becomes a model of text, with a note', async () => {
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
  const missing = /but the folder has no onnx\/vision_encoder\*\.onnx\.$/
  expect((await addAs('idefics3')).notes).toEqual([expect.stringMatching(missing)])
})

test('A model without a chat template is refused', async () => {
  const folder = freshFolder({ 'm/tokenizer_config.json': '{"chat_template": ""}' })
  for (const name of ['config.json', 'tokenizer.json', 'onnx/model.onnx']) {
    cpSync(join(GUIDE, name), join(folder, 'm', name))
  }
  await expect(addIn(folder, 'm')).rejects.toThrow(/m has no chat template, .* add its graph alone/)
  writeFileSync(join(folder, 'm/chat_template.jinja'), '{{ messages }}')
  const { entry } = await addIn(folder, 'm')
  expect(entry).toMatchObject({ type: 'model', capabilities: { structuredOutputs: true } })
})

test('A folder of an encoder becomes a predictor of texts', async () => {
  const toGraph = (...names: string[]) => ({
    inputs: names.map((name) => toPort(`${name} int64 batch,n`)),
    outputs: [toPort('y int64 batch,n')],
    nodes: [{ type: 'Mul', inputs: ['input_ids', 'attention_mask'], outputs: ['y'] }],
  })
  const folder = freshFolder({
    'e/onnx/model.onnx': toGraph('input_ids', 'attention_mask'),
    'e/onnx/model_q8.onnx': toGraph('input_ids', 'attention_mask', 'more'),
    'e/config.json': '{"max_position_embeddings": 128}',
    'e/tokenizer.json': readFileSync(join(GUIDE, 'tokenizer.json')),
  })
  const { notes } = await addIn(folder, 'e')
  const entry = predictorIn(folder)
  expect(entry?.signature.inputs).toMatchObject([{ name: 'text', type: 'string' }])
  expect(entry?.implementations[0]?.bindings?.['text']).toEqual({
    tensor: 'input_ids',
    text: {
      tokenizer: 'tokenizer.json',
      mask: 'attention_mask',
      most: 128,
      truncate: 'end',
    },
  })
  expect(entry?.implementations.map(({ id }) => id)).toEqual(['fp32-webgpu', 'fp32-wasm'])
  expect(notes.at(-1)).toBe('q8 has other inputs or outputs, and was left out.')
  expectWhole(folder)

  // Positions of this family begin at 2.
  const roberta = { model_type: 'xlm-roberta', max_position_embeddings: 514, pad_token_id: 1 }
  writeFileSync(join(folder, 'e/config.json'), JSON.stringify(roberta))
  const { entry: another } = await addIn(folder, 'e', { force: true })
  expect(another.implementations[0]?.bindings?.['text']?.text?.most).toBe(512)
})

const plain = { 'm.onnx': passing({}) }
const outside = { ...passing({}), weights: [weight('w', [1], { location: '../w' })] }
const short = { 'm.onnx': MIXED, 'weights/w.bin': WEIGHTS.subarray(0, 4100) }

test.each<[string, Parameters<typeof freshFolder>[0], RegExp, object?]>([
  ['a missing file', {}, /There is no .*m\.onnx\. Name an \.onnx or \.gguf file/],
  ['a tag without an owner', plain, /--tag model: a tag looks like @owner\/name/, { tag: 'model' }],
  ['a tag in capitals', plain, /a tag looks like/, { tag: '@Me/model' }],
  ['a reserved tag', plain, /reserved/, { tag: '@inorigin/guide' }],
  [
    'missing weights',
    { 'm.onnx': MIXED },
    /keeps weights in weights\/w\.bin, which is not beside it/,
  ],
  ['weights outside', { 'm.onnx': outside }, /outside of its folder/],
  ['old operators', { 'm.onnx': { ...passing({}), opset: 3 } }, /supports versions 7 to 26/],
  [
    'an unknown operator',
    { 'm.onnx': passing({}, 'Frobnicate') },
    /The runtime cannot open .*Frobnicate.*--device webgpu/s,
  ],
  ['weights that are too short', short, /The runtime cannot open/],
  ['an unsupported type', { 'm.onnx': passing({ type: 'complex64' }) }, /of type complex64/],
  ['an unknown input', plain, /--tensor z: unknown input\. Expected: x/, { tensors: ['z'] }],
  [
    'precisions of one graph',
    plain,
    /--dtypes chooses among the graphs of a folder/,
    { dtypes: ['q4'] },
  ],
  [
    'a folder of several graphs',
    { 'm.onnx/a.onnx': passing({}), 'm.onnx/b.onnx': passing({}) },
    /has 2 graphs: a\.onnx, b\.onnx\. Choose one/,
  ],
  ['a folder without a graph', { 'm.onnx/readme.md': '' }, /has no \.onnx file/],
])('It refuses %s, and leaves nothing behind', async (_, files, why, options) => {
  const folder = freshFolder(files)
  await expect(addIn(folder, 'm.onnx', options)).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringMatching(why),
  })
  expect(existsSync(join(folder, 'public'))).toBe(false)
})

test('An invalid entry leaves the model that it would replace', async () => {
  const folder = freshFolder({ 'one.onnx': passing({}), 'two.onnx': passing({}) })
  await addIn(folder, 'one.onnx')
  const adding = addIn(folder, 'two.onnx', { force: true, name: '' })
  await expect(adding).rejects.toThrow('entries[0].name')
  expect(readdirSync(join(folder, 'public/inorigin/@me/model'))).toEqual(['one.onnx'])
  expectWhole(folder)
})

test('A model for GPUs alone is not run on WASM', async () => {
  const folder = freshFolder({ 'm.onnx': passing({}, 'Frobnicate') })
  const { entry } = await addIn(folder, 'm.onnx', { devices: ['webgpu'] })
  expect(entry.implementations.map(({ id }) => id)).toEqual(['webgpu'])
})

test.each([
  ['{"version": 1, "entries": [{}]}', /catalog\.json cannot be used:\nentries\[0\]/],
  ['{', /catalog\.json is not JSON/],
])('The broken catalog %s is left alone', async (catalog, why) => {
  const folder = freshFolder({ ...plain, 'public/inorigin/catalog.json': catalog })
  await expect(addIn(folder, 'm.onnx')).rejects.toThrow(why)
  expect(readdirSync(join(folder, 'public/inorigin'))).toEqual(['catalog.json'])
})

test('An interruption leaves everything as it was', async () => {
  const data = new Uint8Array(20 * 2 ** 20)
  const large = { ...passing({}), weights: [weight('w', [data.length], data)] }
  const folder = freshFolder({ 'm.onnx': large, 'small.onnx': passing({}) })
  await addIn(folder, 'small.onnx')
  const before = catalogIn(folder)
  const interrupt = new AbortController()
  const adding = addIn(folder, 'm.onnx', {
    force: true,
    signal: interrupt.signal,
    onStep: (_, done) => done && done > 5e6 && interrupt.abort(),
  })
  const error = { kind: 'aborted', message: 'Interrupted. Nothing was added.' }
  await expect(adding).rejects.toMatchObject(error)
  expect(catalogIn(folder)).toEqual(before)
  expect(readdirSync(join(folder, 'public/inorigin/@me'))).toEqual(['model'])
  expectWhole(folder)
})
