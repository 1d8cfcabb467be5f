import { expect, test } from 'vitest'
import { readGraph, staysOnDevice } from '../../../src/engine/onnx/decoder/graph.ts'
import type { Session } from '../../../src/engine/onnx/runtime.ts'

type Shape = (number | string)[]
type Type = 'float32' | 'float16' | 'int64' | 'bool'
type Inputs = Record<string, [Type, Shape]>

function session(inputs: Inputs, outputs: readonly string[]): Session {
  const unused = (): never => {
    throw new Error('not run')
  }
  return {
    inputs: Object.entries(inputs).map(([name, [type, shape]]) => ({
      name,
      isTensor: true,
      type,
      shape,
    })),
    outputs: outputs.map((name) => ({ name, isTensor: true, type: 'float32', shape: [] })),
    run: unused,
    release: unused,
  }
}

const IDS: [Type, Shape] = ['int64', ['batch_size', 'sequence_length']]
const CACHE: [Type, Shape] = ['float16', ['batch_size', 2, 'past_sequence_length', 64]]
const ONE_LAYER = { 'past_key_values.0.key': CACHE, 'past_key_values.0.value': CACHE }
const PRESENT = ['logits', 'present.0.key', 'present.0.value']

test('reads the usual export', () => {
  const inputs: Inputs = {
    input_ids: IDS,
    attention_mask: IDS,
    position_ids: IDS,
    num_logits_to_keep: ['int64', []],
    ...ONE_LAYER,
  }
  expect(readGraph(session(inputs, PRESENT))).toEqual({
    tokens: true,
    embedded: [],
    attentionMask: true,
    positions: { copies: 0 },
    logitsToKeep: [],
    cacheBranch: null,
    grouped: false,
    ragged: false,
    states: [],
    kvCaches: ['key', 'value'].map((part) => ({
      input: `past_key_values.0.${part}`,
      output: `present.0.${part}`,
      type: 'float16',
      dims: [1, 2, 0, 64],
      axis: 2,
    })),
  })
})

test('tells caches that grow from states that are replaced', () => {
  const graph = readGraph(
    session(
      {
        input_ids: IDS,
        position_ids: ['int64', [3, 'batch_size', 'sequence_length']],
        'past_conv.0': ['float32', ['batch_size', 96, 3]],
        'past_ssm.0': ['float32', ['batch_size', 4, 8, 16]],
        'past_recurrent.1': ['float32', ['batch_size', 4, 16, 16]],
        'past_indexer.2': ['float32', ['batch_size', 'length', 8]],
        'past_key_values.1.conv_state': ['float32', ['batch_size', 4]],
        'past_key_values.2.key': ['float32', ['batch_size', 2, 'past', 8]],
        'past_key_values.3.key_value': ['float32', ['batch_size', 'past', 16]],
      },
      [
        'logits',
        'present_conv.0',
        'present_ssm.0',
        'present_recurrent.1',
        'present_indexer.2',
        'present.1.conv_state',
        'present.2.key',
        'present.3.key_value',
      ],
    ),
  )
  expect(graph.states.map(({ input, output, dims }) => [input, output, dims])).toEqual([
    ['past_conv.0', 'present_conv.0', [1, 96, 3]],
    ['past_ssm.0', 'present_ssm.0', [1, 4, 8, 16]],
    ['past_recurrent.1', 'present_recurrent.1', [1, 4, 16, 16]],
    ['past_indexer.2', 'present_indexer.2', [1, 0, 8]],
    ['past_key_values.1.conv_state', 'present.1.conv_state', [1, 4]],
  ])
  expect(graph.kvCaches.map(({ input, output, axis }) => [input, output, axis])).toEqual([
    ['past_key_values.2.key', 'present.2.key', 2],
    ['past_key_values.3.key_value', 'present.3.key_value', 1],
  ])
  expect(graph.positions).toEqual({ copies: 3 })
  expect(graph.attentionMask).toBe(false)
  expect(graph.logitsToKeep).toBeNull()
})

test('reads the inputs of older merged exports, and caches shaped by heads', () => {
  const shape: Shape = ['batch_size x num_heads', 16, 'past_length']
  const inputs: Inputs = {
    input_ids: IDS,
    use_cache_branch: ['bool', [1]],
    'past_key_values.0.key': ['float32', shape],
  }
  const graph = readGraph(session(inputs, ['logits', 'present.0.key']), { heads: 12 })
  expect(graph.cacheBranch).toEqual([1])
  expect(graph.kvCaches[0]).toMatchObject({ dims: [12, 16, 0], axis: 2 })
  expect(() => readGraph(session(inputs, ['logits', 'present.0.key']))).toThrow(/num_heads/)
})

test('takes what another graph makes of the tokens', () => {
  const embed = session({ input_ids: IDS }, ['inputs_embeds', 'per_layer_inputs', 'unused'])
  const inputs: Inputs = {
    inputs_embeds: ['float32', ['batch_size', 'sequence_length', 64]],
    per_layer_inputs: ['float32', ['batch_size', 'sequence_length', 2, 8]],
    ...ONE_LAYER,
  }
  const graph = readGraph(session(inputs, PRESENT), { embed })
  expect(graph.tokens).toBe(false)
  expect(graph.embedded).toEqual(['inputs_embeds', 'per_layer_inputs'])
  const pictured = session({ input_ids: IDS, pixel_values: IDS }, ['inputs_embeds'])
  expect(() => readGraph(session(inputs, PRESENT), { embed: pictured })).toThrow(/pixel_values/)
})

const GROUPED = {
  kind: 'GroupQueryAttention',
  inputs: ['q', 'k', 'v', 'past_key_values.0.key', 'past_key_values.0.value'],
  outputs: ['attended', 'present.0.key', 'present.0.value'],
}
const COUNTED = [
  { kind: 'ReduceSum', inputs: ['attention_mask', 'axis'], outputs: ['count'] },
  { kind: 'Shape', inputs: ['attention_mask'], outputs: ['width'] },
]
const CAST = { kind: 'Cast', inputs: ['attention_mask'], outputs: ['numbers'] }

test.each([
  [[], { grouped: false, ragged: false }],
  [[GROUPED, ...COUNTED], { grouped: true, ragged: true }],
  [
    [GROUPED, { kind: 'Concat', inputs: ['past_key_values.0.key', 'k'], outputs: [] }, ...COUNTED],
    { grouped: false, ragged: false },
  ],
  [
    [GROUPED, CAST, { kind: 'ReduceSum', inputs: ['numbers'], outputs: ['count'] }],
    { grouped: true, ragged: true },
  ],
  [
    [GROUPED, ...COUNTED, CAST, { kind: 'Mul', inputs: ['x', 'numbers'], outputs: ['y'] }],
    { grouped: true, ragged: false },
  ],
  [
    [GROUPED, ...COUNTED, { kind: 'If', inputs: ['long'], outputs: [] }],
    { grouped: true, ragged: false },
  ],
  [[GROUPED], { grouped: true, ragged: false }],
])('knows attention that counts by its operations: %#', (operations, known) => {
  const inputs: Inputs = { input_ids: IDS, attention_mask: IDS, ...ONE_LAYER }
  expect(readGraph(session(inputs, PRESENT), { operations })).toMatchObject(known)
})

test.each([
  [{ inputs_embeds: IDS }, ['logits'], 'input_ids'],
  [{ input_ids: IDS }, ['last_hidden_state'], 'logits'],
  [{ input_ids: IDS, token_type_ids: IDS }, ['logits'], 'token_type_ids'],
  // Features of deeper layers of the encoder, in exports of Qwen3-VL for another runtime.
  [{ input_ids: IDS, deepstack_features_0: IDS }, ['logits'], 'deepstack_features_0'],
  [{ input_ids: IDS }, ['logits', 'present.0.key'], 'no inputs for a KV cache'],
])('refuses what it cannot feed: %j', (inputs, outputs, named) => {
  expect(() => readGraph(session(inputs as unknown as Inputs, outputs))).toThrow(
    expect.objectContaining({ kind: 'unavailable', message: expect.stringContaining(named) }),
  )
})

test('leaves on the device what the next run or the sampler takes from there', () => {
  const names = ['logits', 'present.0.key', 'present_conv.0', 'inputs_embeds', 'hidden_states']
  expect(names.filter(staysOnDevice)).toEqual(names.slice(0, 4))
})
