/** Graphs whose runs can be captured: which they are, and how they change. */
import { openAsBlob } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  LAST_POSITIONS_INPUT,
  LOGIT_ROWS_INPUT,
  LONGEST_INPUT,
  withCaptureInputs,
} from '../../../src/engine/onnx/capture-inputs.ts'
import { attribute, nodeField, readGraphFile } from '../../../src/engine/onnx/graph-file.ts'
import {
  ATTRIBUTE,
  encode,
  type Fields,
  GRAPH,
  message,
  NODE,
  rewriteGraph,
  textsOf,
} from '../../../src/engine/onnx/protobuf.ts'

const MODELS = join(import.meta.dirname, '../../models')
const TINY = 'tiny/onnx/model.onnx'

const capture = async (model: Blob) => {
  const files = await withCaptureInputs({ model, externalData: [] })
  return files && readGraphFile(files)
}

/** Resolves with the tiny model, to whose attention or to whose graph the fields are added. */
async function change({ attention = [], graph = [] }: { attention?: Fields; graph?: Fields }) {
  const model = await openAsBlob(join(MODELS, TINY))
  return rewriteGraph(
    model,
    async ({ number, from, to }, window) => {
      if (number !== GRAPH.node) return null
      const node = await window.read(from, to)
      if (!textsOf(node, NODE.kind).includes('GroupQueryAttention')) return null
      return message(GRAPH.node, new Blob([node as BlobPart, encode(attention)]))
    },
    [encode(graph)],
  )
}

test.each([
  [TINY, ['input_ids', LAST_POSITIONS_INPUT, LONGEST_INPUT, LOGIT_ROWS_INPUT]],
  ['tiny/older/model.onnx', ['input_ids', 'position_ids', LAST_POSITIONS_INPUT, LONGEST_INPUT]],
  ['layouts/q4/onnx/model_q4.onnx', ['input_ids', LAST_POSITIONS_INPUT, LONGEST_INPUT]],
  [
    '../../demo/models/guide/onnx/model.onnx',
    ['input_ids', LAST_POSITIONS_INPUT, LONGEST_INPUT, LOGIT_ROWS_INPUT],
  ],
])('%s takes lengths and rows, and computes neither', async (path, expected) => {
  const graph = await capture(await openAsBlob(join(MODELS, path)))
  const given = [...(graph?.inputs ?? [])].filter((name) => !name.startsWith('past'))
  expect(given.filter((name) => !graph?.constants.has(name)).toSorted()).toEqual(
    expected.toSorted(),
  )
  const nodes = graph?.nodes ?? []
  expect(nodes.filter(({ kind }) => ['Shape', 'ReduceSum', 'Slice'].includes(kind))).toEqual([])
  for (const { kind, inputs } of nodes) {
    if (kind === 'GroupQueryAttention')
      expect(inputs.slice(5, 7)).toEqual([LAST_POSITIONS_INPUT, LONGEST_INPUT])
  }
})

const float = (name: string, value: number): Fields => [
  [
    NODE.attribute,
    [
      [ATTRIBUTE.name, name],
      [ATTRIBUTE.float, { float: value }],
      [ATTRIBUTE.type, 1],
    ],
  ],
]

test('attributes that say nothing change nothing', async () => {
  const attention = [...attribute('local_window_size', -1), ...float('softcap', 0)]
  expect(await capture(await change({ attention }))).not.toBeNull()
})

test.each([
  ['a sliding window', { attention: attribute('local_window_size', 16) }],
  ['limited scores', { attention: float('softcap', 50) }],
  // They come after the tables of the rotation: positions, and a bias.
  ['a bias', { attention: [[NODE.input, ''] as const, [NODE.input, 'bias'] as const] }],
  ['a state', { graph: [[GRAPH.input, [[1, 'past_conv.0']]] as const] }],
  [
    'another use of the mask',
    {
      graph: [
        nodeField('Cast', ['attention_mask'], ['present.mask']),
        [GRAPH.output, [[1, 'present.mask']]] as const,
      ],
    },
  ],
])('nothing is captured with %s', async (_, changes) => {
  expect(await capture(await change(changes))).toBeNull()
})

test.each(['plain', 'branch', 'conv', 'recurrent'])(
  'nothing is captured without grouped attention, with branches or states: %s',
  async (layout) => {
    const model = await openAsBlob(join(MODELS, `layouts/${layout}/onnx/model.onnx`))
    expect(await capture(model)).toBeNull()
  },
)
