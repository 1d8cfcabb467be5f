/** What the catalog replaces in MLC's own configuration of a model. */
import { expect, test } from 'vitest'
import { readChatConfig, textsOf, withOverrides } from '../../../src/engine/webllm/texts.ts'

const files = new Map([
  ['mlc-chat-config.json', new Blob(['{"context_window_size": 131072, "sliding_window_size": 4096, "vocab_size": 7}'])],
  ['tokenizer.json', new Blob(['{}'])],
])

test('is what the model is told of, and nothing else', async () => {
  const overrides = { context_window_size: 4096, sliding_window_size: -1 }
  const replaced = await withOverrides(files, overrides)
  expect(await readChatConfig(replaced)).toEqual({ ...overrides, vocab_size: 7 })
  expect(replaced.get('tokenizer.json')).toBe(files.get('tokenizer.json'))
  const config = await (await textsOf(replaced)).get('config.json')?.text()
  expect(JSON.parse(config ?? '')).toMatchObject({ max_position_embeddings: 4096 })
  expect(await withOverrides(files, {})).toBe(files)
})
