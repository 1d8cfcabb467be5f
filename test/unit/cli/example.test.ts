/** The code that `inorigin add` prints, and what it says of other formats. */
import { type InferenceSession, Tensor } from 'onnxruntime-web'
import { expect, test } from 'vitest'
import { createSnippet } from '../../../src/cli/add/snippet.ts'
import { tryExample } from '../../../src/cli/onnx/try-example.ts'
import type { BindingWishes } from '../../../src/draft/wishes.ts'
import type { Graph } from '../../support/onnx.ts'
import { addIn, freshFolder } from './graphs.ts'

const toBytes = ({ buffer }: BigInt64Array<ArrayBuffer> | Float32Array<ArrayBuffer>) =>
  new Uint8Array(buffer)

/** Takes sound in multiples of 64 samples, at 16 kHz, and fails otherwise. */
const SPEECH: Graph = {
  inputs: [
    { name: 'x', type: 'float32', shape: ['batch', 'samples'] },
    { name: 'sr', type: 'int64', shape: [] },
    { name: 'state', type: 'float32', shape: [2, 'batch', 4] },
  ],
  outputs: [
    { name: 'y', type: 'float32', shape: null },
    { name: 'stateN', type: 'float32', shape: [2, 'batch', 4] },
  ],
  nodes: [
    { type: 'Reshape', inputs: ['x', 'rows'], outputs: ['frames'] },
    { type: 'Sub', inputs: ['sr', 'expected'], outputs: ['index'] },
    { type: 'Gather', inputs: ['only', 'index'], outputs: ['gain'] },
    { type: 'Mul', inputs: ['frames', 'gain'], outputs: ['y'] },
    { type: 'Identity', inputs: ['state'], outputs: ['stateN'] },
  ],
  weights: [
    { name: 'rows', type: 'int64', shape: [2], data: toBytes(BigInt64Array.of(-1n, 64n)) },
    { name: 'expected', type: 'int64', shape: [], data: toBytes(BigInt64Array.of(16_000n)) },
    { name: 'only', type: 'float32', shape: [1], data: toBytes(Float32Array.of(1)) },
  ],
}

test('the code to begin with has inputs with which the model was run', async () => {
  const folder = freshFolder({ 'm.onnx': SPEECH })
  const { entry, shapes, notes } = await addIn(folder, 'm.onnx')
  expect(notes).toEqual([
    expect.stringContaining('--audio x=16000'),
    expect.stringContaining('--state state=stateN'),
  ])
  const code = createSnippet(entry, '/c.json', shapes)
  expect(code).toContain('x: { data: new Float32Array(64), shape: [1, 64] },')
  expect(code).toContain('sr: 16000n,')
  expect(code).toContain('state: { data: new Float32Array(8), shape: [2, 1, 4] },')
})

test('free lengths without names are tried, and one in a state is a batch', async () => {
  const { inputs, outputs, nodes, weights = [] } = SPEECH
  const shapes: Record<string, (number | string)[]> = { x: ['', ''], sr: [], state: [2, '', 4] }
  const unnamed: Graph = {
    inputs: inputs.map((input) => ({ ...input, shape: shapes[input.name] ?? [] })),
    outputs,
    nodes: nodes.map((node) =>
      node.outputs[0] === 'stateN'
        ? { type: 'Reshape', inputs: ['state', 'cells'], outputs: ['stateN'] }
        : node,
    ),
    weights: [
      ...weights,
      { name: 'cells', type: 'int64', shape: [3], data: toBytes(BigInt64Array.of(2n, 1n, 4n)) },
    ],
  }
  const found = await addIn(freshFolder({ 'm.onnx': unnamed }), 'm.onnx')
  expect(found.notes.join(' ')).toMatch(/--audio x=16000.*--state state=stateN/)
  const code = createSnippet(found.entry, '/c.json', found.shapes)
  expect(code).toContain('x: { data: new Float32Array(64), shape: [1, 64] },')
  expect(code).toContain('state: { data: new Float32Array(8), shape: [2, 1, 4] },')
})

test('tries no further input after an interruption', async () => {
  const interrupt = new AbortController()
  let runs = 0
  const session: Pick<InferenceSession, 'inputMetadata' | 'run'> = {
    inputMetadata: [{ name: 'x', isTensor: true, type: 'float32', shape: ['n'] }],
    async run() {
      runs += 1
      interrupt.abort()
      throw new Error('The input is too short.')
    },
  }
  await expect(tryExample(session, Tensor, interrupt.signal)).rejects.toThrow('aborted')
  expect(runs).toBe(1)
})

test('the code to begin with opens a session for a model with states', async () => {
  const folder = freshFolder({ 'm.onnx': SPEECH })
  const wishes: BindingWishes = {
    images: [],
    layout: {},
    outputs: new Map(),
    steps: new Map(),
    labels: new Map(),
    states: new Map([['state', 'stateN']]),
    sounds: new Map([['x', { rate: 16_000, window: 512 }]]),
  }
  const { entry, shapes, notes } = await addIn(folder, 'm.onnx', { wishes })
  expect(notes).toEqual([])
  const code = createSnippet(entry, '/c.json', shapes)
  expect(code).toContain("const session = await server.session('@me/model')")
  expect(code).toContain('x: new Float32Array(512),')
  expect(code).not.toContain('state:')
})

test('says that the code to begin with fails if no tried input runs', async () => {
  const picky: Graph = {
    inputs: [{ name: 'index', type: 'int64', shape: [] }],
    outputs: [{ name: 'y', type: 'float32', shape: [] }],
    nodes: [
      { type: 'Sub', inputs: ['index', 'seven'], outputs: ['shifted'] },
      { type: 'Gather', inputs: ['only', 'shifted'], outputs: ['y'] },
    ],
    weights: [
      { name: 'seven', type: 'int64', shape: [], data: toBytes(BigInt64Array.of(7n)) },
      { name: 'only', type: 'float32', shape: [1], data: toBytes(Float32Array.of(1)) },
    ],
  }
  const { notes } = await addIn(freshFolder({ 'm.onnx': picky }), 'm.onnx')
  expect(notes).toEqual([expect.stringMatching(/example below fails.*out of.*bounds/)])
})

test.each([
  ['weights.gguf', 'is a GGUF file', 'optimum-cli export onnx --model <owner>/<name> onnx-model'],
  ['model.safetensors', 'is a safetensors file', 'optimum-cli export onnx --model '],
  ['model.tflite', 'is a TensorFlow Lite file', 'tf2onnx.convert --tflite '],
  ['saved_model.pb', 'belongs to a TensorFlow SavedModel', 'tf2onnx.convert --saved-model '],
  ['group1-shard1of2.bin', 'belongs to a model of TensorFlow.js', 'tf2onnx.convert --tfjs '],
  ['net.h5', 'is an HDF5 file', ".export('model.onnx', format='onnx')"],
  ['net.pdmodel', 'is a PaddlePaddle model', '--params_filename net.pdiparams'],
  ['pytorch_model.bin', 'is a PyTorch file', 'torch.onnx.export'],
])('says what a folder has in place of a graph: %s', async (name, what, todo) => {
  const folder = freshFolder({ [`model/${name}`]: 'any', 'model/README.md': 'any' })
  const adding = addIn(folder, 'model')
  await expect(adding).rejects.toMatchObject({ kind: 'invalid_request' })
  await expect(adding).rejects.toThrow(`has no .onnx file. ${name} ${what}`)
  await expect(adding).rejects.toThrow(todo)
})
