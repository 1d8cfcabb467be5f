/** A graph without what its wanted outputs do not need. */
import { expect, test } from 'vitest'
import { readOperations } from '../../../src/engine/onnx/decoder/operations.ts'
import { readGraphFile } from '../../../src/engine/onnx/int8/graph-file.ts'
import { pruneGraph } from '../../../src/engine/onnx/pruned-graph.ts'
import { onnxFile, onnxGraph, type Operator, type Port } from '../../support/onnx.ts'

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

test('the nodes of an output that is not wanted are gone, and so is the output', async () => {
  expect(await kindsFor('y')).toEqual(['Abs', 'Relu'])
  const pruned = await pruneGraph(MODEL, new Set(['y']))
  const { ports } = await readGraphFile({ model: pruned, externalData: [] })
  expect([...ports]).toEqual(['x', 'flag', 'y'])
})

test('what only a branch reads stays', async () => {
  expect(await kindsFor('chosen')).toEqual(['Abs', 'Neg', 'Identity', 'Identity', 'If'])
})

test('a model stays the same if all of its outputs are wanted, or none, or if it is none', async () => {
  for (const wanted of [['y', 'side', 'chosen'], ['unknown'], []])
    expect(await pruneGraph(MODEL, new Set(wanted))).toBe(MODEL)
  const text = new Blob(['not a model'])
  expect(await pruneGraph(text, new Set(['y']))).toBe(text)
})
