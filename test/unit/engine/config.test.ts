import { expect, test } from 'vitest'
import { readConfig } from '../../../src/engine/text/config.ts'

const TOKENIZER = {
  added_tokens: [{ id: 7, content: '<|end|>', special: true }],
  model: { vocab: { a: 0 } },
}

const TEXTS: Record<string, unknown> = {
  'config.json': { model_type: 'llama', max_position_embeddings: 2048, eos_token_id: 1 },
  'generation_config.json': { eos_token_id: [2, 3] },
  'tokenizer.json': TOKENIZER,
  'tokenizer_config.json': {
    bos_token: '<s>',
    eos_token: { content: '<|end|>' },
    chat_template: 'T',
  },
}

function files(changes: Record<string, unknown>): Map<string, Blob> {
  const all = Object.entries({ ...TEXTS, ...changes }).filter(([, content]) => content !== null)
  return new Map(
    all.map(([name, content]) => [
      name,
      new Blob([typeof content === 'string' ? content : JSON.stringify(content)]),
    ]),
  )
}

test('reads what a model says of itself', async () => {
  const config = await readConfig(files({}))
  expect(config).toMatchObject({
    templates: { plain: 'T', tools: null },
    tokenNames: { bos_token: '<s>', eos_token: '<|end|>' },
    contextWindow: 2048,
    firstPosition: 0,
    sampling: { temperature: 0, topP: 1, topK: 0 },
  })
  expect([...config.endTokens]).toEqual([2, 3, 7])
})

test.each([
  [
    { num_attention_heads: 8, hidden_size: 256 },
    { heads: 8, kvHeads: 8, headSize: 32 },
  ],
  [
    {
      text_config: {
        num_attention_heads: 4,
        num_key_value_heads: 2,
        hidden_size: 96,
        head_dim: 64,
      },
    },
    { heads: 4, kvHeads: 2, headSize: 64 },
  ],
  [
    { n_head: 3, n_embd: 48, head_dim: null },
    { heads: 3, kvHeads: 3, headSize: 16 },
  ],
  [
    { num_attention_heads: 3, hidden_size: 100 },
    { heads: 3, kvHeads: 3 },
  ],
  [{ num_attention_heads: 0, hidden_size: 100 }, {}],
])('reads the heads of attention: %j', async (sizes, expected) => {
  const { heads, kvHeads, headSize } = await readConfig(
    files({ 'config.json': { max_position_embeddings: 2048, eos_token_id: 1, ...sizes } }),
  )
  expect({ heads, kvHeads, headSize }).toEqual({
    heads: undefined,
    kvHeads: undefined,
    headSize: undefined,
    ...expected,
  })
})

const GREEDY = { temperature: 0, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1, suppress: [] }

test.each([
  [{ do_sample: true }, { temperature: 1 }],
  [
    { do_sample: true, temperature: 0.6, top_p: 0.95, top_k: 20, min_p: 0.1 },
    { temperature: 0.6, topP: 0.95, topK: 20, minP: 0.1 },
  ],
  [{ temperature: 0.7 }, { temperature: 0.7 }],
  [{ do_sample: false, temperature: 0.7 }, { temperature: 0 }],
  [{ do_sample: true, temperature: null, top_p: 'x' }, { temperature: 1 }],
  [
    { repetition_penalty: 1.1, suppress_tokens: [7, 9] },
    { repetitionPenalty: 1.1, suppress: [7, 9] },
  ],
  [{ repetition_penalty: 0, suppress_tokens: null }, {}],
])('samples by default as %j says', async (generation, sampling) => {
  const config = await readConfig(
    files({ 'generation_config.json': { ...generation, eos_token_id: 2 } }),
  )
  expect(config.sampling).toEqual({ ...GREEDY, ...sampling })
})

test('takes the end token of config.json where there is no generation_config.json', async () => {
  const config = await readConfig(
    files({ 'generation_config.json': null, 'tokenizer.json': { model: { vocab: {} } } }),
  )
  expect([...config.endTokens]).toEqual([1])
})

test('knows the families that count positions from one, and nested configurations', async () => {
  const nested = {
    model_type: 'gemma3',
    text_config: { max_position_embeddings: 9, eos_token_id: 5 },
  }
  const config = await readConfig(files({ 'config.json': nested, 'generation_config.json': null }))
  expect(config).toMatchObject({ firstPosition: 1, contextWindow: 9 })
  expect([...config.endTokens]).toEqual([5, 7])
})

test.each([
  [{ n_positions: 5 }, 5],
  [{ max_position_embeddings: null, n_ctx: 6 }, 6],
  [{ llm_config: { seq_length: 7 } }, 7],
  [{ text_config: { hidden_size: 1 }, max_position_embeddings: 8 }, 8],
  [{}, Number.POSITIVE_INFINITY],
])('reads how long a context may be: %j', async (config, length) => {
  expect(await readConfig(files({ 'config.json': config }))).toMatchObject({
    contextWindow: length,
  })
})

test('knows added tokens that only the configuration of the tokenizer lists', async () => {
  const decoder = {
    7: { content: 'other', special: false },
    8: { content: '<|turn|>', special: true, lstrip: true },
    9: null,
  }
  const { tokenizer } = await readConfig(
    files({ 'tokenizer_config.json': { chat_template: 'T', added_tokens_decoder: decoder } }),
  )
  expect(tokenizer.added_tokens).toEqual([
    { id: 7, content: '<|end|>', special: true },
    { id: 8, content: '<|turn|>', special: true, lstrip: true },
  ])
})

test('takes the template from its own file first, and tells those of several apart', async () => {
  expect(await readConfig(files({ 'chat_template.jinja': 'own' }))).toMatchObject({
    templates: { plain: 'own', tools: null },
  })
  const older = { chat_template: 'older' }
  expect(await readConfig(files({ 'chat_template.json': older }))).toMatchObject({
    templates: { plain: 'older', tools: null },
  })
  const named = [
    { name: 'tool_use', template: 'A' },
    { name: 'default', template: 'B' },
  ]
  expect(
    await readConfig(files({ 'tokenizer_config.json': { chat_template: named } })),
  ).toMatchObject({ templates: { plain: 'B', tools: 'A' } })
})

test.each([
  [{ 'tokenizer.json': null }, 'tokenizer.json', 'model_unusable'],
  [{ 'config.json': '{"a":' }, 'config.json cannot be read', 'model_unusable'],
  [{ 'config.json': '[]' }, 'config.json cannot be read', 'model_unusable'],
  [{ 'tokenizer.json': { model: {} } }, 'no vocabulary', 'model_unusable'],
  [{ 'tokenizer_config.json': { eos_token: '<|end|>' } }, 'no chat template', 'no_chat_template'],
  [
    { 'config.json': {}, 'generation_config.json': {}, 'tokenizer.json': { model: { vocab: {} } } },
    'no end token',
    'model_unusable',
  ],
])('says what is missing: %j', async (changes, message, code) => {
  await expect(readConfig(files(changes as Record<string, unknown>))).rejects.toMatchObject({
    kind: 'unavailable',
    code,
    message: expect.stringContaining(message),
  })
})
