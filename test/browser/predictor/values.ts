/** Predictors of the graphs that `test/models/values.py` writes. */
import type { Binding, PredictorEntry } from '../../../src/catalog/schema.ts'
import { openPredictor, type OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import type { Signature } from '../../../src/types/index.ts'
import { runtime } from './embedded.ts'

export async function openValues(
  name: string,
  signature: Signature,
  bindings: Record<string, Binding> = {},
): Promise<OpenPredictor> {
  const resource = {
    type: 'onnx',
    url: 'm',
    name: 'm.onnx',
    bytes: 1,
    sha256: '0'.repeat(64),
  } as const
  const implementation = {
    id: 'one',
    engine: 'onnx',
    device: 'wasm',
    resources: [resource],
    bindings,
  } satisfies PredictorEntry['implementations'][number]
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@test/values',
    name: 'Values',
    created: '2026-01-01T00:00:00Z',
    signature,
    implementations: [implementation],
  }
  const response = await fetch(`/test/models/values/${name}.onnx`)
  const files = new Map([['m.onnx', await response.blob()]])
  return openPredictor({ entry, implementation, files, device: 'wasm', runtime })
}
