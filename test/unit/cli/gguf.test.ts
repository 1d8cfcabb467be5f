/** GGUF files that are added, and those that are refused. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createGgufDecoder, METADATA } from '../../support/gguf-decoder.ts'
import { KIND } from '../../support/gguf-tokenizers.ts'
import type { Written } from '../../support/gguf.ts'
import { addIn, catalogIn, expectWhole, freshFolder } from './graphs.ts'

const TEMPLATE =
  '{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}{{ tools }}'

const TEXTS = [
  '<unk>',
  '<s>',
  '</s>',
  '<|im_start|>',
  '<|im_end|>',
  ...'▁abcdefghijklmnopqrstuvwxyz',
]

/** As many tokens as the tiny decoder has rows. */
const tokens = Array.from({ length: 64 }, (_, id) => TEXTS[id] ?? `token ${id}`)

const CHAT: Record<string, Written> = {
  ...METADATA,
  'general.name': { text: 'Tiny chat' },
  'general.file_type': { uint32: 3 },
  'tokenizer.ggml.model': { text: 'llama' },
  'tokenizer.ggml.tokens': { texts: tokens },
  'tokenizer.ggml.scores': { float32s: tokens.map((_, id) => -id) },
  'tokenizer.ggml.token_type': {
    int32s: tokens.map((_, id) => (id < 5 ? KIND.control : KIND.normal)),
  },
  'tokenizer.chat_template': { text: TEMPLATE },
}

const fileWith = (metadata: Record<string, Written>): Uint8Array =>
  createGgufDecoder('Q4_1', { ...CHAT, ...metadata }).file

test('a GGUF file becomes a chat model with the files that its metadata says', async () => {
  const folder = freshFolder({ 'tiny.gguf': fileWith({}) })
  await addIn(folder, 'tiny.gguf')
  expectWhole(folder)
  const [entry] = catalogIn(folder).entries
  expect(entry).toMatchObject({
    type: 'model',
    name: 'Tiny chat',
    maxInputTokens: 128,
    capabilities: { tools: true, structuredOutputs: true },
    implementations: [
      { id: 'q4_1-webgpu', engine: 'onnx', device: 'webgpu' },
      { id: 'q4_1-wasm', engine: 'onnx', device: 'wasm' },
    ],
  })
  const files = join(folder, 'public/inorigin/@me/model')
  const read = (name: string): unknown => JSON.parse(readFileSync(join(files, name), 'utf8'))
  expect(read('config.json')).toMatchObject({ max_position_embeddings: 128 })
  expect(read('generation_config.json')).toEqual({ eos_token_id: [2, 4] })
  expect(read('tokenizer_config.json')).toMatchObject({
    chat_template: `{{ bos_token }}${TEMPLATE}`,
  })
  expect(readFileSync(join(files, 'tiny.gguf'))).toEqual(readFileSync(join(folder, 'tiny.gguf')))
})

test.each<[why: string, metadata: Record<string, Written>, says: RegExp]>([
  ['another architecture', { 'general.architecture': { text: 'mamba' } }, /mamba.*llama, qwen2/],
  ['no chat template', { 'tokenizer.chat_template': { text: '' } }, /no chat template/],
  [
    'another tokenizer',
    { 'tokenizer.ggml.model': { text: 'bert' } },
    /"gpt2" or "llama", got "bert"/,
  ],
])('a file with %s is refused', async (_, metadata, says) => {
  const folder = freshFolder({ 'tiny.gguf': fileWith(metadata) })
  await expect(addIn(folder, 'tiny.gguf')).rejects.toMatchObject({
    kind: 'invalid_request',
    message: expect.stringMatching(says),
  })
})

test('a file that was cut off, and a missing part, are named', async () => {
  const folder = freshFolder({ 'tiny.gguf': fileWith({}).subarray(0, 5_000) })
  await expect(addIn(folder, 'tiny.gguf')).rejects.toThrow(/tiny\.gguf cannot run.*cut off/)
  writeFileSync(join(folder, 'a-00001-of-00002.gguf'), fileWith({}))
  await expect(addIn(folder, 'a-00001-of-00002.gguf')).rejects.toThrow(
    /no .*a-00002-of-00002\.gguf/,
  )
})
