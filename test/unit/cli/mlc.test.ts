/** Folders of models that MLC compiled, from their files to the catalog. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { addIn, catalogIn, expectWhole, freshFolder, GUIDE } from './graphs.ts'

const CHAT = {
  context_window_size: 131_072,
  quantization: 'q4f16_1',
  tokenizer_files: ['tokenizer.json'],
}

const compiled = () =>
  freshFolder({
    'c/mlc-chat-config.json': JSON.stringify(CHAT),
    'c/tokenizer.json': readFileSync(join(GUIDE, 'tokenizer.json')),
    'c/tokenizer_config.json': readFileSync(join(GUIDE, 'tokenizer_config.json')),
    'c/ndarray-cache.json': JSON.stringify({
      records: [{ dataPath: 'params_shard_0.bin' }, { dataPath: 'params_shard_1.bin' }],
    }),
    'c/params_shard_0.bin': new Uint8Array(100),
    'c/params_shard_1.bin': new Uint8Array(50).fill(1),
    'c/model-webgpu.wasm': Uint8Array.of(0, 0x61, 0x73, 0x6d),
  })

test('A folder of a model that MLC compiled becomes an entry for its engine', async () => {
  const folder = compiled()
  const { notes } = await addIn(folder, 'c')
  const [entry] = catalogIn(folder).entries
  expect(entry).toMatchObject({
    type: 'model',
    maxInputTokens: 4096,
    capabilities: { tools: true },
    implementations: [
      { id: 'q4f16_1', engine: 'mlc', device: 'webgpu', requires: { features: ['shader-f16'] } },
    ],
  })
  const resources = entry?.implementations?.[0]?.resources
  expect(resources?.map(({ type, name }) => `${type} ${name}`)).toEqual([
    'config mlc-chat-config.json',
    'tokenizer tokenizer.json',
    'tokenizer tokenizer_config.json',
    'wasm model-webgpu.wasm',
    'mlc ndarray-cache.json',
    'mlc params_shard_0.bin',
    'mlc params_shard_1.bin',
  ])
  expect(notes.join(' ')).toMatch(/init --mlc.*131072 tokens/)
  expectWhole(folder)
})

test('Without a chat template it needs the conversation template of MLC', async () => {
  const folder = compiled()
  rmSync(join(folder, 'c', 'tokenizer_config.json'))
  await expect(addIn(folder, 'c')).rejects.toThrow('no chat template')
  const told = { ...CHAT, conv_template: { name: 'chatml' } }
  writeFileSync(join(folder, 'c', 'mlc-chat-config.json'), JSON.stringify(told))
  await addIn(folder, 'c')
  const [entry] = catalogIn(folder).entries
  expect(entry).toMatchObject({ capabilities: { structuredOutputs: true } })
  const resources = entry?.implementations?.[0]?.resources
  expect(resources?.filter(({ type }) => type === 'tokenizer')).toMatchObject([
    { name: 'tokenizer.json' },
  ])
  expectWhole(folder)
})

test.each([
  ['params_shard_1.bin', /has no params_shard_1\.bin/],
  ['ndarray-cache.json', /has no tensor-cache\.json/],
  ['model-webgpu.wasm', /has 0 libraries/],
  ['tokenizer.json', /has no tokenizer\.json/],
])('Without %s it is refused', async (name, says) => {
  const folder = compiled()
  rmSync(join(folder, 'c', name))
  await expect(addIn(folder, 'c')).rejects.toThrow(says)
})

test('Options that do not apply to a chat model are refused', async () => {
  const folder = compiled()
  cpSync(GUIDE, join(folder, 'g'), { recursive: true })
  for (const source of ['g', 'c']) {
    const adding = addIn(folder, source, { tensors: ['input_ids'] })
    await expect(adding).rejects.toThrow('this is a chat model')
  }
  await expect(addIn(folder, 'c', { dtypes: ['q4'] })).rejects.toThrow('--dtypes')
  await expect(addIn(folder, 'c', { devices: ['wasm'] })).rejects.toThrow('runs only on WebGPU')
})
