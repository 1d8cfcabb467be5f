/** Outputs that the signature does not declare are not computed. */
import { expect, test } from 'vitest'
import type { PredictorEntry } from '../../../src/catalog/schema.ts'
import { openPredictor } from '../../../src/predictor/open-predictor.ts'
import { onnxFile } from '../../support/onnx.ts'
import { runtime } from './embedded.ts'

const { signal } = new AbortController()

/** `y` is `-x`. `side` has the shape that the positions of numbers in `x` make up, and never fits. */
const MODEL = onnxFile({
  inputs: [{ name: 'x', type: 'float32', shape: [4] }],
  outputs: [
    { name: 'y', type: 'float32', shape: [4] },
    { name: 'side', type: 'float32', shape: ['n', 'm', 'o', 'p'] },
  ],
  nodes: [
    { type: 'Neg', inputs: ['x'], outputs: ['y'] },
    { type: 'NonZero', inputs: ['x'], outputs: ['positions'] },
    { type: 'Squeeze', inputs: ['positions', 'axis'], outputs: ['shape'] },
    { type: 'Reshape', inputs: ['x', 'shape'], outputs: ['side'] },
  ],
  weights: [{ name: 'axis', type: 'int64', shape: [1], data: new Uint8Array(8) }],
})

async function predictWith(outputs: readonly string[]) {
  const resource = {
    type: 'onnx',
    url: 'm',
    name: 'm.onnx',
    bytes: MODEL.length,
    sha256: '0'.repeat(64),
  } as const
  const implementation = { id: 'a', engine: 'onnx', device: 'wasm', resources: [resource] } as const
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@test/outputs',
    name: 'Outputs',
    created: '2026-01-01T00:00:00Z',
    signature: {
      inputs: [{ name: 'x', type: 'float32' }],
      outputs: outputs.map((name) => ({ name, type: 'float32' })),
    },
    implementations: [{ ...implementation, resources: [resource] }],
  }
  const files = new Map([['m.onnx', new Blob([MODEL])]])
  const [chosen = { ...implementation, resources: [resource] }] = entry.implementations
  const predictor = await openPredictor(
    { entry, implementation: chosen, files, device: 'wasm', runtime },
    signal,
  )
  try {
    return (await predictor.predict({ x: Float32Array.of(1, 2, 3, 4) }, signal)).outputs
  } finally {
    await predictor.close()
  }
}

test('only the outputs that are declared are computed', async () => {
  await expect(predictWith(['y', 'side'])).rejects.toThrow(/reshape/i)
  expect(await predictWith(['y'])).toEqual({
    y: { data: Float32Array.of(-1, -2, -3, -4), shape: [4] },
  })
})
