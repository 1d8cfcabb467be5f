/** Models that are too large to be run when they are added. */
import { existsSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openRoot } from '../../../src/cli/add/model-root.ts'
import { openFolder } from '../../../src/cli/onnx/disk-folder.ts'
import { testGraph } from '../../../src/cli/onnx/open-model.ts'
import { stripWeights } from '../../../src/cli/onnx/strip-weights.ts'
import type { Graph, Weight } from '../../support/onnx.ts'
import { addIn, freshFolder, ROOT } from './graphs.ts'

const SIDE = 64
const port = { type: 'float32', shape: ['n', SIDE] } as const
const { signal } = new AbortController()
const RUNTIME = join(ROOT, 'node_modules/onnxruntime-web/dist')

const WEIGHT: Weight = {
  name: 'w',
  type: 'float32',
  shape: [SIDE, SIDE],
  data: new Uint8Array(4 * SIDE * SIDE),
}

const product = (operator: string, weight: Weight = WEIGHT): Graph => ({
  inputs: [{ name: 'x', ...port }],
  outputs: [{ name: 'y', ...port }],
  nodes: [
    { type: 'MatMul', inputs: ['x', 'w'], outputs: ['xw'] },
    { type: operator, inputs: ['xw'], outputs: ['y'] },
  ],
  weights: [weight],
})

async function strip(graph: Graph, maxBytes = 2 ** 20): Promise<Uint8Array | null> {
  const file = await openFolder(openRoot(freshFolder({ 'm.onnx': graph }))).open('m.onnx')
  try {
    return await stripWeights(file, maxBytes, signal)
  } finally {
    await file.close()
  }
}

test('a graph opens without its weights', async () => {
  const stripped = await strip(product('Relu'))
  expect(stripped?.length).toBeLessThan(300)
  const opened = await testGraph(stripped!, { name: 'm.onnx', runtime: RUNTIME })
  expect(opened).toBeNull()
})

test('weights that are inputs as well stay one input', async () => {
  const graph = product('Relu')
  const inputs = [...graph.inputs, { name: 'w', type: 'float32', shape: [SIDE, SIDE] } as const]
  const stripped = await strip({ ...graph, inputs, ir: 3 })
  expect(await testGraph(stripped!, { name: 'm.onnx', runtime: RUNTIME })).toBeNull()
})

test('a graph that is too large without its weights is not opened', async () => {
  expect(await strip(product('Relu'), 16)).toBeNull()
})

test('an interruption ends it', async () => {
  const file = await openFolder(openRoot(freshFolder({ 'm.onnx': product('Relu') }))).open('m.onnx')
  try {
    await expect(stripWeights(file, 2 ** 20, AbortSignal.abort())).rejects.toThrow('aborted')
  } finally {
    await file.close()
  }
})

test('an operator that the runtime lacks is named before a large model is copied', async () => {
  const data = { location: 'weights.bin', offset: 0, length: 4 * SIDE * SIDE }
  const graph = product('Unheard', { ...WEIGHT, data })
  const folder = freshFolder({ 'm.onnx': graph, 'weights.bin': '' })
  // A sparse file, which takes no space.
  truncateSync(join(folder, 'weights.bin'), 600 * 2 ** 20)
  const steps: string[] = []
  const adding = addIn(folder, 'm.onnx', { onStep: (step) => steps.push(step) })
  await expect(adding).rejects.toMatchObject({ kind: 'invalid_request' })
  await expect(adding).rejects.toThrow('No Op registered for Unheard')
  expect(steps).not.toContain('Copying')
  expect(existsSync(join(folder, 'public/inorigin/@me'))).toBe(false)
})
