import { expect, test } from 'vitest'
import { readGraph } from '../../../src/engine/onnx/decoder/graph.ts'
import type { Session } from '../../../src/engine/onnx/runtime.ts'

type Shape = (number | string)[]
type Type = 'float32' | 'float16' | 'int64'

function session(inputs: Record<string, [Type, Shape]>, outputs: readonly string[]): Session {
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

test('reads the usual export', () => {
  const cache: [Type, Shape] = ['float16', ['batch_size', 2, 'past_sequence_length', 64]]
  const graph = readGraph(
    session(
      {
        input_ids: IDS,
        attention_mask: IDS,
        position_ids: IDS,
        num_logits_to_keep: ['int64', []],
        'past_key_values.0.key': cache,
        'past_key_values.0.value': cache,
      },
      ['logits', 'present.0.key', 'present.0.value'],
    ),
  )
  expect(graph).toEqual({
    attentionMask: true,
    positions: { copies: 0 },
    logitsToKeep: [],
    caches: ['key', 'value'].map((part) => ({
      input: `past_key_values.0.${part}`,
      output: `present.0.${part}`,
      type: 'float16',
      dims: [1, 2, 0, 64],
    })),
  })
})

test('reads caches that are states rather than lists of keys', () => {
  const graph = readGraph(
    session(
      {
        input_ids: IDS,
        position_ids: ['int64', [3, 'batch_size', 'sequence_length']],
        'past_conv.0': ['float32', ['batch_size', 96, 3]],
        'past_key_values.1.key': ['float32', ['batch_size', 2, 'past', 8]],
      },
      ['logits', 'present_conv.0', 'present.1.key'],
    ),
  )
  expect(graph.caches.map(({ input, output, dims }) => [input, output, dims])).toEqual([
    ['past_conv.0', 'present_conv.0', [1, 96, 3]],
    ['past_key_values.1.key', 'present.1.key', [1, 2, 0, 8]],
  ])
  expect(graph.positions).toEqual({ copies: 3 })
  expect(graph.attentionMask).toBe(false)
  expect(graph.logitsToKeep).toBeNull()
})

test.each([
  [{ inputs_embeds: IDS }, ['logits'], 'input_ids'],
  [{ input_ids: IDS }, ['last_hidden_state'], 'logits'],
  [{ input_ids: IDS, token_type_ids: IDS }, ['logits'], 'token_type_ids'],
])('refuses what it cannot feed: %j', (inputs, outputs, named) => {
  expect(() =>
    readGraph(session(inputs as unknown as Record<string, [Type, Shape]>, outputs)),
  ).toThrow(
    expect.objectContaining({ kind: 'unavailable', message: expect.stringContaining(named) }),
  )
})
