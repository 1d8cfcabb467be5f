/** Files and graphs of ONNX models. */
import { readFile } from 'node:fs/promises'
import { Tensor } from 'onnxruntime-web'
import { describe, expect, test } from 'vitest'
import { type Session, toChunkedFile } from '../../../src/engine/onnx/runtime.ts'
import { Feeds } from '../../../src/engine/onnx/decoder/feeds.ts'
import { readGraph, staysOnDevice } from '../../../src/engine/onnx/decoder/graph.ts'
import {
  pruneGraph,
  readGraphFile,
  readOperations,
  separateWeights,
} from '../../../src/engine/onnx/graph-file.ts'
import { getModelFiles } from '../../../src/engine/onnx/model-files.ts'
import { onnxFile, onnxGraph, type Operator, type Port } from '../../support/onnx.ts'
import { type Message, type Value, writeMessage } from '../../support/protobuf.ts'

type Shape = (number | string)[]
type Type = 'float32' | 'float16' | 'int32' | 'int64' | 'bool'
type Inputs = Record<string, [Type, Shape]>

/** Shapes and types of outputs. Of those that are given by their names, nothing else is known. */
type Outputs = readonly string[] | Inputs

function session(inputs: Inputs, outputs: Outputs): Session {
  const unused = (): never => {
    throw new Error('not run')
  }
  const isTensor = true
  const ports = (described: Inputs) =>
    Object.entries(described).map(([name, [type, shape]]) => ({ name, isTensor, type, shape }))
  const typeOf = (output: string): Type =>
    inputs[output.replace('present_', 'past_')]?.[0] ??
    inputs[output.replace('present', 'past_key_values')]?.[0] ??
    'float32'
  return {
    inputs: ports(inputs),
    outputs: ports(
      Array.isArray(outputs)
        ? Object.fromEntries((outputs as string[]).map((name) => [name, [typeOf(name), []]]))
        : (outputs as Inputs),
    ),
    run: unused,
    release: unused,
  }
}

const IDS: [Type, Shape] = ['int64', ['batch_size', 'sequence_length']]
const CACHE: [Type, Shape] = ['float16', ['batch_size', 2, 'past_sequence_length', 64]]
const ONE_LAYER = { 'past_key_values.0.key': CACHE, 'past_key_values.0.value': CACHE }
const PRESENT = ['logits', 'present.0.key', 'present.0.value']

test('the usual export is supported', () => {
  const inputs: Inputs = {
    input_ids: IDS,
    attention_mask: IDS,
    position_ids: IDS,
    num_logits_to_keep: ['int64', []],
    ...ONE_LAYER,
  }
  expect(readGraph(session(inputs, PRESENT))).toEqual({
    tokens: true,
    lengths: false,
    logitRows: false,
    embedded: [],
    integers: new Map([
      ['input_ids', 'int64'],
      ['attention_mask', 'int64'],
      ['position_ids', 'int64'],
    ]),
    attentionMask: true,
    positions: { copies: 0 },
    longRope: false,
    logitsToKeep: [],
    lastLogits: false,
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

test('caches that grow differ from states that are replaced', () => {
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
      (
        'logits present_conv.0 present_ssm.0 present_recurrent.1 present_indexer.2 ' +
        'present.1.conv_state present.2.key present.3.key_value'
      ).split(' '),
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

describe('the caches of another exporter', () => {
  const SHAPE: Shape = ['batch_size', 2, 'past_sequence_length', 'kv_cache_dim']
  const GROWN: Shape = ['batch_size', 2, 'total_sequence_length', 'kv_cache_dim']
  const STATE: [Type, Shape] = ['float32', ['batch_size', 256, 2]]
  const LOGITS: [Type, Shape] = ['float32', ['batch_size', 'sequence_length', 99]]

  test('have a length, a size that only the configuration knows, and states', () => {
    const inputs: Inputs = {
      input_ids: IDS,
      'past_key_values.1.key': ['float32', SHAPE],
      'past.2.value': ['float32', SHAPE],
      'past.0.conv': STATE,
      'past.0.recurrent': ['float16', ['batch_size', 4, 16, 16]],
    }
    const outputs: Inputs = {
      logits: LOGITS,
      'present.0.recurrent': ['float16', ['batch_size', 4, 16, 16]],
      'present.0.conv': STATE,
      'present_key_values.2.value': ['float32', GROWN],
      'present.1.key': ['float32', GROWN],
    }
    const graph = readGraph(session(inputs, outputs), { headSize: 32 })
    expect(graph.kvCaches).toEqual([
      expect.objectContaining({ output: 'present.1.key', dims: [1, 2, 0, 32], axis: 2 }),
      expect.objectContaining({ output: 'present_key_values.2.value', dims: [1, 2, 0, 32] }),
    ])
    expect(graph.states.map(({ output, dims }) => [output, dims])).toEqual([
      ['present.0.conv', [1, 256, 2]],
      ['present.0.recurrent', [1, 4, 16, 16]],
    ])
    expect(() => readGraph(session(inputs, outputs))).toThrow(/kv_cache_dim, of past_key_values.1/)
  })

  test.each<[shape: Shape, dims: number[], axis: number]>([
    [['n', 'num_key_value_heads', 'length', 'head_dim'], [1, 2, 0, 32], 2],
    [['batch', 'past', 2, 32], [1, 0, 2, 32], 1],
    [[-1, 2, 2 ** 32 - 1, 32], [1, 2, 0, 32], 2],
    [['batch', 2, 'window', 'head_dim'], [1, 2, 0, 32], 2],
    [[1, 2, 'past_sliding_length', 'kv_cache_dim'], [1, 2, 0, 32], 2],
    [['past.0.key_dynamic_axes_1', 2, 'past.0.key_dynamic_axes_2', 32], [1, 2, 0, 32], 2],
    [['past.0.key_dim_0', 2, 'past.0.key_dim_2', 32], [1, 2, 0, 32], 2],
    [['unk__7', 2, 'unk__8', 32], [1, 2, 0, 32], 2],
    [['s77', 2, 's34', 32], [1, 2, 0, 32], 2],
  ])('have a shape of lengths and sizes: %j', (shape, dims, axis) => {
    const inputs: Inputs = { input_ids: IDS, 'past.0.key': ['float32', shape] }
    const outputs: Inputs = { logits: LOGITS, 'present.0.key': ['float32', shape] }
    const sizes = { heads: 4, kvHeads: 2, headSize: 32 }
    expect(readGraph(session(inputs, outputs), sizes).kvCaches).toEqual([
      expect.objectContaining({ dims, axis }),
    ])
  })

  test.each(['past.0.key', 'past_key_values.0.value', 'past_kv_cache', 'past.value_3'])(
    'are refused if %s has a fixed length',
    (name) => {
      const cache: [Type, Shape] = ['float32', ['batch', 2, 128, 32]]
      const outputs: Inputs = {
        logits: LOGITS,
        [name.replace(/past(_key_values)?/, 'present')]: cache,
      }
      const inputs: Inputs = { input_ids: IDS, [name]: cache }
      expect(() => readGraph(session(inputs, outputs))).toThrow(
        `its KV cache ${name} has the shape [batch, 2, 128, 32]`,
      )
    },
  )

  test('are refused if their length could be one of several dimensions', () => {
    const shape: Shape = ['batch', 'a', 'b', 32]
    const inputs: Inputs = { input_ids: IDS, 'past.0.key': ['float32', shape] }
    const outputs: Inputs = { logits: LOGITS, 'present.0.key': ['float32', shape] }
    expect(() => readGraph(session(inputs, outputs), { headSize: 32 })).toThrow(/dimension a, of/)
  })

  test.each<[name: string, type: Type, shape: Shape]>([
    ['present.1.conv', ...STATE],
    ['present.0.conv', 'float16', STATE[1]],
    ['present.0.conv', 'float32', ['batch_size', 256, 3]],
    ['present.0.conv', 'float32', ['batch_size', 256]],
  ])('are none if the output is another: %s %s %j', (name, type, shape) => {
    const outputs: Inputs = { logits: LOGITS, [name]: [type, shape] }
    const inputs: Inputs = { input_ids: IDS, 'past.0.conv': STATE }
    expect(() => readGraph(session(inputs, outputs))).toThrow(/past.0.conv is not supported/)
  })

  test.each<[Shape, boolean]>([
    [['batch_size', 1, 99], true],
    [['batch_size', 99], true],
    [['batch_size', 'sequence_length', 99], false],
    [['sequence_length', 99], false],
    [[], false],
  ])('come with the logits of one token or of all: %j', (shape, isLast) => {
    const outputs: Inputs = { logits: ['float32', shape], 'present.0.conv': STATE }
    const inputs: Inputs = { input_ids: IDS, 'past.0.conv': STATE }
    expect(readGraph(session(inputs, outputs)).lastLogits).toBe(isLast)
  })
})

test('older merged exports, and caches shaped by heads, are supported', () => {
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

test('a graph may need the outputs of another graph', () => {
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
])('grouped and ragged attention is found by its operations: %#', (operations, known) => {
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
])('an unknown input or a missing output is rejected: %j', (inputs, outputs, named) => {
  expect(() => readGraph(session(inputs as unknown as Inputs, outputs))).toThrow(
    expect.objectContaining({ kind: 'unavailable', message: expect.stringContaining(named) }),
  )
})

test('a graph for one sequence computes no others beside it', () => {
  const read = (batch: number | string) => {
    const inputs: Inputs = {
      input_ids: ['int64', [batch, 'sequence_length']],
      attention_mask: ['int64', ['batch_size', 'total_sequence_length']],
      ...ONE_LAYER,
    }
    return readGraph(session(inputs, PRESENT), { operations: [GROUPED, ...COUNTED] })
  }
  expect(read('batch_size')).toMatchObject({ grouped: true, ragged: true })
  expect(read(1)).toMatchObject({ grouped: true, ragged: false })
})

test.each<[inputs: Inputs, why: string]>([
  [{ input_ids: ['int64', ['batch', 16]] }, 'input_ids has the shape [batch, 16]'],
  [{ input_ids: ['int64', [2, 'length']] }, 'input_ids has the shape [2, length]'],
  [{ input_ids: ['int64', ['length']] }, 'input_ids has the shape [length]'],
  [{ input_ids: ['float32', ['batch', 'length']] }, 'input_ids has the type float32'],
  [
    { input_ids: IDS, attention_mask: ['int64', [1, 1, 'sequence', 'total']] },
    'attention_mask has the shape [1, 1, sequence, total]',
  ],
  [
    { input_ids: IDS, attention_mask: ['bool', ['batch', 'total']] },
    'attention_mask has the type bool',
  ],
  [{ input_ids: IDS, position_ids: ['float32', []] }, 'position_ids has the type float32'],
])('inputs that cannot be filled are refused: %j', (inputs, why) => {
  expect(() => readGraph(session({ ...inputs, ...ONE_LAYER }, PRESENT))).toThrow(why)
})

test('tokens, masks and positions have the type that the graph takes', () => {
  const inputs: Inputs = {
    input_ids: ['int32', ['batch', 'length']],
    attention_mask: ['int32', ['batch', 'total']],
    position_ids: IDS,
    num_logits_to_keep: ['int64', []],
    ...ONE_LAYER,
  }
  const graph = readGraph(session(inputs, PRESENT))
  const feeds = new Feeds({ Tensor }, graph, {
    contextWindow: 8,
    firstPosition: 1,
  })
  const rows = [
    { tokens: [7], pastLength: 2, isLong: false },
    { tokens: [9], pastLength: 1, isLong: false },
  ]
  expect(feeds.tokens(rows)).toEqual(new Tensor('int32', Int32Array.of(7, 9), [2, 1]))
  expect(feeds.otherInputs(rows.slice(0, 1), 1)).toEqual({
    attention_mask: new Tensor('int32', Int32Array.of(1, 1, 1), [1, 3]),
    position_ids: new Tensor('int64', BigInt64Array.of(3n), [1, 1]),
    num_logits_to_keep: new Tensor('int64', BigInt64Array.of(1n), []),
  })
  expect(feeds.otherInputs(rows, 1)).toMatchObject({
    attention_mask: new Tensor('int32', Int32Array.of(1, 1, 1, 1, 1, 0), [2, 3]),
  })
})

test('inputs of the next run or the sampler stay on the device', () => {
  const names = ['logits', 'present.0.key', 'present_conv.0', 'inputs_embeds', 'hidden_states']
  expect(names.filter(staysOnDevice)).toEqual(names.slice(0, 4))
})

describe('the operations of a model', () => {
  const read = async (path: string): Promise<Blob> =>
    new Blob([await readFile(new URL(`../../models/${path}`, import.meta.url))])

  test('have their inputs', async () => {
    const operations = await readOperations(await read('tiny/onnx/model.onnx'))
    const grouped = operations.filter(({ kind }) => kind === 'GroupQueryAttention')
    expect(grouped.map(({ inputs }) => inputs.slice(3, 5))).toEqual([
      ['past_key_values.0.key', 'past_key_values.0.value'],
      ['past_key_values.1.key', 'past_key_values.1.value'],
    ])
  })

  test('include those in branches and loops', async () => {
    const branches = await readOperations(await read('layouts/branch/onnx/model.onnx'))
    const joins = branches.filter(({ inputs }) => inputs[0]?.startsWith('past_key_values'))
    expect(joins.map(({ kind }) => kind)).toEqual(Array(4).fill('Concat'))
    const loop = await readOperations(await read('layouts/recurrent/onnx/model.onnx'))
    expect(loop.filter(({ kind }) => kind === 'Scan')).toHaveLength(1)
    expect(loop.some(({ inputs }) => inputs.includes('state_in'))).toBe(true)
  })

  test('are read without the weights', async () => {
    const weight = 2 ** 24
    // A graph of one node, a tensor of 16 MiB, and another node.
    const node = (kind: string): number[] => [
      10,
      kind.length + 2,
      34,
      kind.length,
      ...Buffer.from(kind),
    ]
    const length = [0x80, 0x80, 0x80, 0x08]
    const graph = [...node('First'), 42, ...length]
    const total = graph.length + weight + node('Second').length
    const head = [58, ...varint(total), ...graph]
    const parts = [Uint8Array.from(head), new Uint8Array(weight), Uint8Array.from(node('Second'))]
    const model = new Blob(parts)
    let bytes = 0
    const slice = model.slice.bind(model)
    model.slice = (from = 0, to = model.size) => {
      bytes += Math.min(to, model.size) - from
      return slice(from, to)
    }
    expect((await readOperations(model)).map(({ kind }) => kind)).toEqual(['First', 'Second'])
    expect(bytes).toBeLessThan(4 * 2 ** 20)
  })

  function varint(value: number): number[] {
    return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
  }

  test.each(['', 'not a model at all', '\u0000\u0001\u0002'])('are none in %j', async (text) => {
    expect(await readOperations(new Blob([text]))).toEqual([])
  })
})

describe('a pruned graph', () => {
  const port = (name: string, type: Port['type'] = 'float32'): Port => ({ name, type, shape: [2] })

  /** Returns a branch that passes on a tensor of the graph around it. */
  const passing = (inner: string, name: string) =>
    onnxGraph({
      inputs: [],
      outputs: [port(name)],
      nodes: [{ type: 'Identity', inputs: [inner], outputs: [name] }],
    })

  const operator = (type: string, input: string, output: string): Operator => ({
    type,
    inputs: [input],
    outputs: [output],
  })

  const MODEL = new Blob([
    onnxFile({
      inputs: [port('x'), port('flag', 'bool')],
      outputs: ['y', 'side', 'chosen'].map((name) => port(name)),
      nodes: [
        operator('Abs', 'x', 'shared'),
        operator('Neg', 'shared', 'inner'),
        operator('Exp', 'x', 'far'),
        operator('Sqrt', 'far', 'side'),
        operator('Relu', 'shared', 'y'),
        {
          ...operator('If', 'flag', 'chosen'),
          graphs: { then_branch: passing('inner', 'a'), else_branch: passing('x', 'b') },
        },
      ],
    }),
  ])

  const kindsFor = async (...wanted: string[]): Promise<string[]> =>
    (await readOperations(await pruneGraph(MODEL, new Set(wanted)))).map(({ kind }) => kind)

  test('has only the wanted outputs and their nodes', async () => {
    expect(await kindsFor('y')).toEqual(['Abs', 'Relu'])
    const pruned = await pruneGraph(MODEL, new Set(['y']))
    const { ports } = await readGraphFile({ model: pruned, externalData: [] })
    expect([...ports]).toEqual(['x', 'flag', 'y'])
  })

  test('has the nodes that a branch reads', async () => {
    expect(await kindsFor('chosen')).toEqual(['Abs', 'Neg', 'Identity', 'Identity', 'If'])
  })

  test('is the same if all outputs are wanted, or none, or if it is no model', async () => {
    for (const wanted of [['y', 'side', 'chosen'], ['unknown'], []])
      expect(await pruneGraph(MODEL, new Set(wanted))).toBe(MODEL)
    const text = new Blob(['not a model'])
    expect(await pruneGraph(text, new Set(['y']))).toBe(text)
  })
})

function find(...names: string[]): unknown {
  const files = new Map(names.map((name) => [name, new Blob([name])]))
  const named = (blob: Blob): string => names.find((name) => files.get(name) === blob) ?? ''
  const { decoder, embed } = getModelFiles(files)
  return [decoder, embed].map(
    (graph) => graph && [named(graph.model), ...graph.externalData.map(({ path }) => path)],
  )
}

describe('the decoder among the files', () => {
  test.each<[names: string, decoder: string, embed?: string]>([
    ['onnx/model.onnx', 'onnx/model.onnx'],
    ['model_q4.onnx model_q4.onnx_data', 'model_q4.onnx model_q4.onnx_data'],
    [
      'onnx/model_q4f16.onnx onnx/model_q4f16.onnx_data onnx/model_q4f16.onnx_data_1',
      'onnx/model_q4f16.onnx model_q4f16.onnx_data model_q4f16.onnx_data_1',
    ],
    ['anything.onnx weights.bin', 'anything.onnx weights.bin'],
    ['onnx/model.onnx onnx/model_q4.onnx', 'onnx/model.onnx'],
    [
      'onnx/embed_tokens_q4.onnx onnx/embed_tokens_q4.onnx_data onnx/decoder_model_merged_q4.onnx ' +
        'onnx/decoder_model_merged_q4.onnx_data onnx/vision_encoder_q4.onnx onnx/vision_encoder_q4.onnx_data',
      'onnx/decoder_model_merged_q4.onnx decoder_model_merged_q4.onnx_data',
      'onnx/embed_tokens_q4.onnx embed_tokens_q4.onnx_data',
    ],
    [
      'onnx/embed_tokens.onnx onnx/embed_tokens_fp16.onnx onnx/decoder_model_merged_fp16.onnx',
      'onnx/decoder_model_merged_fp16.onnx',
      'onnx/embed_tokens_fp16.onnx',
    ],
    [
      'onnx/embed_tokens_quantized.onnx onnx/decoder_model_merged_q4.onnx onnx/audio.onnx',
      'onnx/decoder_model_merged_q4.onnx',
      'onnx/embed_tokens_quantized.onnx',
    ],
    [
      'onnx/embed_tokens_q8.onnx onnx/decoder_model_merged_q8.onnx',
      'onnx/decoder_model_merged_q8.onnx',
      'onnx/embed_tokens_q8.onnx',
    ],
  ])('is found in %s', (names, decoder, embed) => {
    expect(find(...names.split(' '))).toEqual([decoder.split(' '), embed?.split(' ')])
  })

  test('is named if it is missing', () => {
    const missing = expect.objectContaining({
      code: 'model_unusable',
      message: expect.stringContaining('onnx/model.onnx'),
    })
    expect(() => find()).toThrow(missing)
    expect(() => find('vision_encoder.onnx', 'embed_tokens.onnx')).toThrow(missing)
  })

  test('is not chosen from several', () => {
    expect(() => find('model_q4.onnx', 'model_fp16.onnx')).toThrow(
      /more than one decoder, model_q4/,
    )
  })
})

const bytes = async (blob: Blob): Promise<Buffer> => Buffer.from(await blob.arrayBuffer())

const large = Uint8Array.from({ length: 100_000 }, (_, index) => index % 251)
const larger = Uint8Array.from({ length: 3_000_000 }, (_, index) => index % 241)
const small = Uint8Array.from({ length: 80 }, (_, index) => index)

const tensor = (name: string, raw: [number, Value][], length: number): Message => [
  [1, length],
  [2, 2],
  [8, name],
  ...raw,
]

const pair = (key: string, value: string): Message => [
  [1, key],
  [2, value],
]

const file = (first: [number, Value][], second: [number, Value][]): Message => {
  const node: Message = [...pair('x', 'y'), [4, 'MatMul']]
  const graph: Message = [
    [1, node],
    [2, 'graph'],
    [5, tensor('small', [[9, small]], small.length)],
    [5, tensor('large', first, large.length)],
    [11, [[1, 'x']]],
    [5, tensor('larger', second, larger.length)],
    [12, [[1, 'y']]],
  ]
  const opset: Message = [
    [1, ''],
    [2, 17],
  ]
  return [
    [1, 8],
    [7, graph],
    [8, opset],
  ]
}

describe('weights are separated from their graph', () => {
  test('and the graph says where they are', async () => {
    const model = new Blob([writeMessage(file([[9, large]], [[9, larger]]))])
    const { graph, externalData } = await separateWeights(model)
    expect(externalData).toEqual([{ path: '.weights', data: model }])
    const text = (await bytes(graph)).toString('latin1')
    const offsets = [...text.matchAll(/offset\W+(\d+)/g)].map(([, digits]) => Number(digits))
    const [one, other] = offsets as [number, number]
    expect((await bytes(model.slice(one, one + large.length))).equals(large)).toBe(true)
    expect((await bytes(model.slice(other, other + larger.length))).equals(larger)).toBe(true)

    const away = (offset: number, length: number): [number, Value][] => [
      [13, pair('location', '.weights')],
      [13, pair('offset', `${offset}`)],
      [13, pair('length', `${length}`)],
      [14, 1],
    ]
    const expected = file(away(one, large.length), away(other, larger.length))
    expect((await bytes(graph)).equals(writeMessage(expected))).toBe(true)
  })

  test('and nothing else says so', async () => {
    const stale = pair('location', 'model.onnx_data')
    const model = new Blob([
      writeMessage(
        file(
          [
            [9, large],
            [14, 0],
          ],
          [
            [13, stale],
            [14, 0],
            [9, small],
            [9, larger],
            [13, stale],
          ],
        ),
      ),
    ])
    const { graph, externalData } = await separateWeights(model)
    expect(graph.size).toBeLessThan(1000)
    const { constants } = await readGraphFile({ model: graph, externalData })
    expect((await bytes(constants.get('large')?.data as Blob)).equals(large)).toBe(true)
    expect((await bytes(constants.get('larger')?.data as Blob)).equals(larger)).toBe(true)
    const text = (await bytes(graph)).toString('latin1')
    expect([text.split('location').length - 1, text.includes('model.onnx_data')]).toEqual([
      2,
      false,
    ])
    // Both say last that the elements are in another file.
    expect(text.split('p\u0001').length - 1).toBe(2)
    expect(text.includes('p\u0000')).toBe(false)
  })

  test('unless they are in another file already', async () => {
    const away: [number, Value][] = [
      [9, large],
      [13, pair('location', 'model.onnx_data')],
      [14, 1],
    ]
    const model = new Blob([writeMessage(file(away, [[9, small]]))])
    expect((await separateWeights(model)).graph).toBe(model)
  })

  test('only if they are large', async () => {
    const model = new Blob([writeMessage(file([[9, small]], [[9, small]]))])
    expect(await separateWeights(model)).toEqual({ graph: model, externalData: [] })
  })

  test('not in a file that is no model', async () => {
    for (const content of ['', 'not a model', new Uint8Array(200_000).fill(255)]) {
      const model = new Blob([content])
      expect((await separateWeights(model)).graph).toBe(model)
    }
    const cut = new Blob([writeMessage(file([[9, large]], [[9, larger]]))]).slice(0, 1_000_000)
    const { graph } = await separateWeights(cut)
    expect(graph.size).toBeLessThanOrEqual(cut.size)
  })
})

describe('a chunked file', () => {
  const content = Uint8Array.from({ length: 5_000_000 }, (_, index) => index % 251)
  const chunked = toChunkedFile(new Blob([content]))

  async function streamed(blob: Blob): Promise<{ bytes: Buffer; pieces: number }> {
    const pieces: Uint8Array[] = []
    for await (const piece of blob.stream()) pieces.push(piece.slice())
    return { bytes: Buffer.concat(pieces), pieces: pieces.length }
  }

  test('has the content of the file', async () => {
    expect(chunked).toBeInstanceOf(Blob)
    expect(chunked.size).toBe(content.length)
    expect(Buffer.from(await chunked.arrayBuffer()).equals(content)).toBe(true)
    const whole = await streamed(chunked)
    expect(whole.bytes.equals(content)).toBe(true)
    expect(whole.pieces).toBe(3)
  })

  test('has slices', async () => {
    const part = chunked.slice(1_000_001, 4_000_000)
    expect(part.size).toBe(2_999_999)
    expect((await streamed(part)).bytes.equals(content.subarray(1_000_001, 4_000_000))).toBe(true)
    expect((await streamed(chunked.slice(7, 7))).bytes.length).toBe(0)
  })

  test('cannot be read into a buffer of the reader', () => {
    expect(() => chunked.stream().getReader({ mode: 'byob' })).toThrow(TypeError)
  })

  test('reuses the memory of a chunk for the next one', async () => {
    const reader = chunked.stream().getReader()
    const first = (await reader.read()).value
    expect(first?.byteLength).toBe(2 ** 21)
    const second = (await reader.read()).value
    expect([first?.byteLength, second?.byteLength]).toEqual([0, 2 ** 21])
    expect(second?.[0]).toBe(2 ** 21 % 251)
  })
})
