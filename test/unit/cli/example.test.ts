/** The example that `inorigin add` prints, and its errors for other formats. */
import { type InferenceSession, Tensor } from 'onnxruntime-web'
import { expect, test } from 'vitest'
import { parseBindingFlags } from '../../../src/cli/commands/add.ts'
import { createSnippet } from '../../../src/cli/report.ts'
import { tryExample } from '../../../src/cli/onnx/test-plan.ts'
import type { Graph } from '../../support/onnx.ts'
import { addIn, freshFolder, toPort, weight } from './graphs.ts'

const integers = (name: string, shape: number[], ...data: bigint[]) =>
  weight(name, shape, new Uint8Array(BigInt64Array.from(data).buffer), 'int64')
const ONE = weight('only', [1], new Uint8Array(Float32Array.of(1).buffer), 'float32')

/** Takes sound in multiples of 64 samples, at 16 kHz, and fails otherwise. */
const SPEECH: Graph = {
  inputs: [
    toPort('x float32 batch,samples'),
    { name: 'sr', type: 'int64', shape: [] },
    toPort('state float32 2,batch,4'),
  ],
  outputs: [toPort('y float32'), toPort('stateN float32 2,batch,4')],
  nodes: [
    { type: 'Reshape', inputs: ['x', 'rows'], outputs: ['frames'] },
    { type: 'Sub', inputs: ['sr', 'expected'], outputs: ['index'] },
    { type: 'Gather', inputs: ['only', 'index'], outputs: ['gain'] },
    { type: 'Mul', inputs: ['frames', 'gain'], outputs: ['y'] },
    { type: 'Identity', inputs: ['state'], outputs: ['stateN'] },
  ],
  weights: [integers('rows', [2], -1n, 64n), integers('expected', [], 16_000n), ONE],
}

/** The same with free lengths that have no name. */
const UNNAMED: Graph = {
  ...SPEECH,
  inputs: SPEECH.inputs.map((input, at) => ({ ...input, shape: [['', ''], [], [2, '', 4]][at]! })),
  nodes: [
    ...SPEECH.nodes.slice(0, -1),
    { type: 'Reshape', inputs: ['state', 'cells'], outputs: ['stateN'] },
  ],
  weights: [...(SPEECH.weights ?? []), integers('cells', [3], 2n, 1n, 4n)],
}

test.each([
  ['named', SPEECH],
  ['unnamed', UNNAMED],
])('The example has inputs with which the model ran, with %s lengths', async (_, graph) => {
  const { entry, shapes, notes } = await addIn(freshFolder({ 'm.onnx': graph }), 'm.onnx')
  expect(notes).toEqual([
    expect.stringContaining('--audio x=16000'),
    expect.stringContaining('--state state=stateN'),
  ])
  const code = createSnippet(entry, '/c.json', shapes)
  expect(code).toContain('x: { data: new Float32Array(64), shape: [1, 64] },')
  expect(code).toContain('state: { data: new Float32Array(8), shape: [2, 1, 4] },')
  expect(code).toContain('sr: 16000n,')
})

test('No further input is tried after an interruption', async () => {
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

test('The example of a model with states opens a session', async () => {
  const folder = freshFolder({ 'm.onnx': SPEECH })
  const flags = { state: ['state=stateN'], audio: ['x=16000'], window: '512' }
  const wishes = parseBindingFlags(flags)
  const { entry, shapes, notes } = await addIn(folder, 'm.onnx', { wishes })
  expect(notes).toEqual([])
  const code = createSnippet(entry, '/c.json', shapes)
  expect(code).toContain("const session = await server.session('@me/model')")
  expect(code).toContain('x: new Float32Array(512),')
  expect(code).not.toContain('state:')
})

test('A note says that the example fails if no tried input runs', async () => {
  const picky: Graph = {
    inputs: [{ name: 'index', type: 'int64', shape: [] }],
    outputs: [{ name: 'y', type: 'float32', shape: [] }],
    nodes: [
      { type: 'Sub', inputs: ['index', 'seven'], outputs: ['shifted'] },
      { type: 'Gather', inputs: ['only', 'shifted'], outputs: ['y'] },
    ],
    weights: [integers('seven', [], 7n), ONE],
  }
  const { notes } = await addIn(freshFolder({ 'm.onnx': picky }), 'm.onnx')
  expect(notes).toEqual([expect.stringMatching(/example below fails.*out of.*bounds/)])
})

test.each([
  ['model.safetensors', 'is a safetensors file', 'optimum-cli export onnx --model '],
  ['model.tflite', 'is a TensorFlow Lite file', 'tf2onnx.convert --tflite '],
  ['saved_model.pb', 'belongs to a TensorFlow SavedModel', 'tf2onnx.convert --saved-model '],
  ['group1-shard1of2.bin', 'belongs to a model of TensorFlow.js', 'tf2onnx.convert --tfjs '],
  ['net.h5', 'is an HDF5 file', ".export('model.onnx', format='onnx')"],
  ['net.pdmodel', 'is a PaddlePaddle model', '--params_filename net.pdiparams'],
  ['pytorch_model.bin', 'is a PyTorch file', 'torch.onnx.export'],
])('The error names what a folder has instead of a graph: %s', async (name, what, todo) => {
  const folder = freshFolder({ [`model/${name}`]: 'any', 'model/README.md': 'any' })
  const adding = addIn(folder, 'model')
  await expect(adding).rejects.toMatchObject({ kind: 'invalid_request' })
  await expect(adding).rejects.toThrow(`has no .onnx file. ${name} ${what}`)
  await expect(adding).rejects.toThrow(todo)
})
