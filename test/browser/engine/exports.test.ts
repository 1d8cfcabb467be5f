/** Graphs as exporters write them whose faults show only in sequences of some length. */
import { expect, onTestFinished, test } from 'vitest'
import type { Decoder } from '../../../src/engine/decoder.ts'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import { Scheduler } from '../../../src/engine/run/scheduler.ts'

import {
  type Graph,
  onnxFile,
  onnxGraph,
  type Operator,
  type Port,
  type Weight,
} from '../../support/onnx.ts'
import { runtimeFolder } from '../../models/tiny.ts'

const VOCABULARY = 5
/** Each token's row, of which the sums are the logits. They depend on all tokens before. */
const EMBEDDINGS = Float32Array.from({ length: VOCABULARY ** 2 }, (_, at) => (at * 7) % 11)

const LIMIT = 6

const int64 = (name: string, ...values: number[]): Weight => ({
  name,
  type: 'int64',
  shape: [values.length],
  data: new Uint8Array(BigInt64Array.from(values, BigInt).buffer),
})
const scalar = (weight: Weight): Weight => ({ ...weight, shape: [] })
const floats = (name: string, shape: readonly number[], values: Float32Array): Weight => ({
  name,
  type: 'float32',
  shape,
  data: new Uint8Array(values.buffer.slice(0)) as Uint8Array<ArrayBuffer>,
})
const op = (type: string, inputs: string[], output: string, attributes = {}): Operator => ({
  type,
  inputs,
  outputs: [output],
  attributes,
})

/** Returns a branch that copies one tensor. */
const branch = (from: string, to: string) =>
  onnxGraph({
    inputs: [],
    outputs: [{ name: to, type: 'float32', shape: null }],
    nodes: [op('Identity', [from], to)],
  })

const chosen = (condition: string, yes: string, no: string, output: string): Operator => ({
  ...op('If', [condition], output),
  graphs: { then_branch: branch(yes, `${output}_then`), else_branch: branch(no, `${output}_else`) },
})

const IDS: Port = { name: 'input_ids', type: 'int64', shape: ['batch', 'sequence'] }

/**
 * A decoder whose cache has the row of each token, times `factor`, and whose logits are sums over the
 * cache: `sum` up to each token, `all` over all tokens, also those after it.
 */
const decoderOf = (
  changes: Pick<Graph, 'inputs' | 'nodes'> & { weights?: readonly Weight[] | undefined },
  ids = IDS,
): Blob => {
  const cache = [1, 1, 'length', VOCABULARY]
  const file = onnxFile({
    inputs: [
      ids,
      {
        name: 'past_key_values.0.key',
        type: 'float32',
        shape: ['batch', 1, 'past', VOCABULARY],
      },
      ...changes.inputs,
    ],
    outputs: [
      { name: 'logits', type: 'float32', shape: ['batch', 'sequence', VOCABULARY] },
      { name: 'present.0.key', type: 'float32', shape: cache },
    ],
    nodes: [
      op('Gather', ['embeddings', 'input_ids'], 'rows'),
      op('Unsqueeze', ['rows', 'one'], 'headed'),
      op('Shape', ['input_ids'], 'shape'),
      op('Gather', ['shape', 'one'], 'count'),
      op('Neg', ['count'], 'start'),
      ...changes.nodes,
      op('Concat', ['past_key_values.0.key', 'new'], 'present.0.key', { axis: 2 }),
      op('CumSum', ['present.0.key', 'two_scalar'], 'sums'),
      op('Slice', ['sums', 'start', 'end', 'two'], 'sum'),
      op('ReduceSum', ['present.0.key', 'two'], 'total', { keepdims: 1 }),
      op('Expand', ['total', 'sum_shape'], 'all'),
      op('Shape', ['sum'], 'sum_shape'),
      op('Squeeze', ['selected', 'one'], 'logits'),
    ],
    weights: [
      floats('embeddings', [VOCABULARY, VOCABULARY], EMBEDDINGS),
      floats('small', [], Float32Array.of(1)),
      floats('large', [], Float32Array.of(-1)),
      int64('one', 1),
      int64('two', 2),
      int64('end', 2 ** 40),
      scalar(int64('one_scalar', 1)),
      scalar(int64('two_scalar', 2)),
      scalar(int64('limit', LIMIT)),
      ...(changes.weights ?? []),
    ],
  })
  return new Blob([file])
}

/** How a graph finds out that a sequence is long, where it differs from the usual way. */
interface Choice {
  /** Operators that make the limit. */
  nodes?: readonly Operator[]
  /** Constants among which the limit is. */
  weights?: readonly Weight[]
  /** Operands of the comparison. */
  sides?: string[]
  /** Operator between the comparison and the choice. */
  after?: Operator
  /** `true` if the comparison is true for short sequences. */
  isTrueIfShort?: boolean
}

/** A decoder whose factor is -1 for long sequences, by a comparison of their length with a limit. */
function longRope(comparison: string, choice: Choice = {}): Blob {
  const { nodes = [], weights, sides = ['length', 'limit'], after } = choice
  const [yes, no] = choice.isTrueIfShort
    ? (['small', 'large'] as const)
    : (['large', 'small'] as const)
  return decoderOf({
    inputs: [{ name: 'attention_mask', type: 'int64', shape: ['batch', 'total'] }],
    nodes: [
      op('Shape', ['attention_mask'], 'mask_shape'),
      op('Gather', ['mask_shape', 'one_scalar'], 'length'),
      op('Cast', ['length'], 'short_length', { to: 6 }),
      ...nodes,
      op(comparison, sides, 'compared'),
      after ?? op('Identity', ['compared'], 'is_chosen'),
      chosen('is_chosen', yes, no, 'factor'),
      op('Mul', ['headed', 'factor'], 'new'),
      op('Identity', ['sum'], 'selected'),
    ],
    weights,
  })
}

const constant = (value: Weight): Operator => ({
  ...op('Constant', [], 'own'),
  tensors: { value: scalar({ ...value, name: '' }) },
})
const own = (integer: number, type: 'int32' | 'int64', data?: Uint8Array): Weight => ({
  name: 'own',
  type,
  shape: [],
  data: data ?? { integers: [integer] },
})

const merged = (withCache: string): Blob =>
  decoderOf({
    inputs: [{ name: 'use_cache_branch', type: 'bool', shape: [1] }],
    nodes: [
      op('Identity', ['headed'], 'new'),
      chosen('use_cache_branch', withCache, 'sum', 'selected'),
    ],
  })

async function open(model: Blob): Promise<Decoder> {
  const loaded = await loadDecoder(
    {
      device: 'wasm',
      runtime: runtimeFolder(),
      contextWindow: 512,
      firstPosition: 0,
    },
    new Map([['onnx/model.onnx', model]]),
    new AbortController().signal,
  )
  onTestFinished(() => loaded.release())
  return loaded.decoder
}

/** Resolves with the greedy tokens after a prompt, which the scheduler computes. */
async function answer(decoder: Decoder, prompt: readonly number[], count: number) {
  const scheduler = new Scheduler({
    decoder,
    budget: { sequences: 4, bytes: 2 ** 20 },
    reopen: () => Promise.reject(new Error('The decoder must not fail.')),
  })
  const slot = scheduler.add({
    prompt: { tokens: prompt, boundaries: [], opening: '' },
    partition: '',
    signal: new AbortController().signal,
    onStart: () => undefined,
  })
  const tokens: number[] = []
  let pending: number[] = []
  while (tokens.length < count) {
    await slot.computeNext(pending, {
      requestCandidates: async () => ({ count: 1, temperature: 0 }),
      readLogits: async ({ ids }) => void tokens.push(ids[0] as number),
      drafter: null,
      maxDraftTokens: 0,
      maxFurtherTokens: 0,
    })
    pending = tokens.slice(-1)
  }
  slot.release()
  await scheduler.close()
  return tokens
}

/** Returns the greedy tokens after a prompt; beyond `limit` tokens, all rows are negative. */
function expected(prompt: readonly number[], count: number, limit = Infinity): number[] {
  const tokens = [...prompt]
  while (tokens.length < prompt.length + count) {
    const factor = tokens.length > limit ? -1 : 1
    const sums = Array.from({ length: VOCABULARY }, (_, column) =>
      tokens.reduce(
        (sum, token) => sum + factor * (EMBEDDINGS[token * VOCABULARY + column] ?? 0),
        0,
      ),
    )
    tokens.push(sums.indexOf(Math.max(...sums)))
  }
  return tokens.slice(prompt.length)
}

const PROMPT = [3, 1, 4, 1, 0, 2, 2, 4, 3]

test.each([2, LIMIT, LIMIT + 1, 9])(
  'a long rope uses the same factors for all tokens after a prompt of %i',
  async (length) => {
    const decoder = await open(longRope('Greater'))
    const prompt = PROMPT.slice(0, length)
    expect(decoder.maxShortLength).toBe(LIMIT)
    expect(await answer(decoder, prompt, 12)).toEqual(expected(prompt, 12, LIMIT))
  },
)

test.each([
  ['Greater', LIMIT, false],
  ['GreaterOrEqual', LIMIT + 1, false],
  ['Less', LIMIT + 1, true],
  ['LessOrEqual', LIMIT, true],
])('%s a constant of %i chooses the factors', async (comparison, value, isTrueIfShort) => {
  const prompt = PROMPT.slice(0, 4)
  const swap = (name: string): string =>
    name.startsWith('Greater') ? name.replace('Greater', 'Less') : name.replace('Less', 'Greater')
  const nodes = [constant(int64('', value))]
  for (const model of [
    longRope(comparison, { nodes, sides: ['length', 'own'], isTrueIfShort }),
    longRope(swap(comparison), { nodes, sides: ['own', 'length'], isTrueIfShort }),
  ]) {
    const decoder = await open(model)
    expect(decoder.maxShortLength).toBe(LIMIT)
    expect(await answer(decoder, prompt, 12)).toEqual(expected(prompt, 12, LIMIT))
  }
})

const inBytes = new Uint8Array(Int32Array.of(LIMIT).buffer)
const long = ['length', 'own']
const short = ['short_length', 'own']

test.each<[what: string, choice: Choice]>([
  [
    'an integer of an operator',
    { nodes: [op('Constant', [], 'own', { value_int: LIMIT })], sides: long },
  ],
  ['a constant without bytes', { weights: [own(LIMIT, 'int64')], sides: long }],
  ['a constant of 32 bits', { weights: [own(LIMIT, 'int32', inBytes)], sides: short }],
  ['a constant of 32 bits without bytes', { weights: [own(LIMIT, 'int32')], sides: short }],
  ['an operator without bytes', { nodes: [constant(own(LIMIT, 'int64'))], sides: long }],
  ['a negation', { after: op('Not', ['compared'], 'is_chosen'), isTrueIfShort: true }],
  ['a conversion', { after: op('Cast', ['compared'], 'is_chosen', { to: 9 }) }],
])('the limit of a long rope is found behind %s', async (_, choice) => {
  const decoder = await open(longRope('Greater', choice))
  const prompt = PROMPT.slice(0, 4)
  expect(decoder.maxShortLength).toBe(LIMIT)
  expect(await answer(decoder, prompt, 12)).toEqual(expected(prompt, 12, LIMIT))
})

test('tokens, mask and positions may be integers of 32 bits, of one sequence', async () => {
  const integers = (name: string): Port => ({ name, type: 'int32', shape: [1, `${name}_length`] })
  const inputs = ['attention_mask', 'position_ids'].map(integers)
  const nodes = [
    op('ReduceMin', ['attention_mask'], 'mask', { keepdims: 0 }),
    op('Cast', ['mask'], 'factor', { to: 1 }),
    op('Mul', ['headed', 'factor'], 'new'),
    op('Identity', ['sum'], 'selected'),
  ]
  const decoder = await open(decoderOf({ inputs, nodes }, integers('input_ids')))
  expect(await answer(decoder, PROMPT, 5)).toEqual(expected(PROMPT, 5))
})

test('a graph without a choice of factors has no limit', async () => {
  const decoder = await open(merged('sum'))
  expect(decoder.maxShortLength).toBe(undefined)
})

test.each([
  ['sum', false],
  ['all', true],
])('a branch for caches with %s logits gets single tokens: %s', async (withCache, only) => {
  const decoder = await open(merged(withCache))
  expect(decoder.chunksOnlyAtStart).toBe(only)
  expect(await answer(decoder, PROMPT, 5)).toEqual(expected(PROMPT, 5))
})

/** Size of the vectors of the attention, one for each token. */
const SIZE = 8

/** A decoder of one attention over the embeddings, with a norm of queries and keys if it is given. */
function attentionOf(attributes: Operator['attributes'], norm = ''): Blob {
  const cache = (name: string) =>
    ({ name, type: 'float32', shape: ['batch', 1, 'length', SIZE] }) as const
  const [past, present] = ['past_key_values.0', 'present.0']
  const inputs = ['rows', 'rows', 'rows', `${past}.key`, `${past}.value`, 'last', 'length']
  const attention: Operator = {
    type: 'GroupQueryAttention',
    domain: 'com.microsoft',
    inputs: norm === '' ? inputs : [...inputs, ...Array<string>(7).fill(''), norm, norm],
    outputs: ['logits', `${present}.key`, `${present}.value`],
    attributes: { num_heads: 1, kv_num_heads: 1, ...attributes },
  }
  const file = onnxFile({
    inputs: [
      { name: 'input_ids', type: 'int64', shape: ['batch', 'sequence'] },
      { name: 'attention_mask', type: 'int64', shape: ['batch', 'total'] },
      cache(`${past}.key`),
      cache(`${past}.value`),
    ],
    outputs: [
      { name: 'logits', type: 'float32', shape: ['batch', 'sequence', SIZE] },
      cache(`${present}.key`),
      cache(`${present}.value`),
    ],
    nodes: [
      op('Gather', ['embeddings', 'input_ids'], 'rows'),
      op('ReduceSum', ['attention_mask', 'one'], 'ones', { keepdims: 0 }),
      op('Sub', ['ones', 'one'], 'before'),
      op('Cast', ['before'], 'last', { to: 6 }),
      op('Shape', ['attention_mask'], 'shape'),
      op('Gather', ['shape', 'one_scalar'], 'total'),
      op('Cast', ['total'], 'length', { to: 6 }),
      attention,
    ],
    weights: [
      floats(
        'embeddings',
        [SIZE, SIZE],
        Float32Array.from({ length: SIZE ** 2 }, (_, at) => ((at * 7) % 11) / 8),
      ),
      floats('norm', [SIZE], new Float32Array(SIZE).fill(1)),
      int64('one', 1),
      scalar(int64('one_scalar', 1)),
    ],
  })
  return new Blob([file])
}

test('attention that WASM has no code for is named', async () => {
  await expect(open(attentionOf({}, 'norm'))).rejects.toMatchObject({
    code: 'operator_unsupported',
    details: { why: expect.stringContaining('q_norm_weight') },
  })
})

/** Resolves with the logits after 310 tokens, after one more, and after another one in its place. */
async function logitsBeyond(decoder: Decoder): Promise<Float32Array[]> {
  const sequence = decoder.open()
  const forward = async (...tokens: number[]): Promise<Float32Array> => {
    const logits = await sequence.forward(tokens)
    const row = (await logits.row(0)).slice()
    logits.release()
    return row
  }
  // The first tokens differ from those behind them, which a smaller window sees more of.
  const tokens = Array.from({ length: 310 }, (_, at) => (at < 40 ? 7 : (at * 5) % 7))
  const rows: Float32Array[] = []
  for (let at = 0; at < tokens.length; at += 64)
    rows.splice(0, 1, await forward(...tokens.slice(at, at + 64)))
  rows.push(await forward(1))
  await sequence.truncate(200)
  rows.push(await forward(2))
  sequence.close()
  return rows
}

test('a cache that could hold its window only holds all tokens', async () => {
  // The window is larger than the room that a sequence has at first.
  const window = { local_window_size: 300 }
  const logits = async (attributes: Operator['attributes']): Promise<Float32Array[]> =>
    logitsBeyond(await open(attentionOf(attributes)))
  const inFullCache = await logits(window)
  expect(await logits({ ...window, sliding_window_cache: 1 })).toEqual(inFullCache)
  expect(await logits({})).not.toEqual(inFullCache)
})
