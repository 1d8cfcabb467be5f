/** Catalogs for tests, and what a test does with errors. */
import { InoriginError } from '../../../src/error.ts'
import type { Catalog, ModelEntry, PredictorEntry } from '../../../src/catalog/schema.ts'

export const HASH = 'a'.repeat(64)

export function model(changes: Partial<ModelEntry> = {}): ModelEntry {
  return {
    type: 'model',
    tag: '@acme/tiny',
    name: 'Tiny',
    created: '2026-01-02T03:04:05Z',
    maxInputTokens: 2048,
    maxOutputTokens: 1024,
    implementations: [
      {
        id: 'wasm',
        engine: 'onnx',
        device: 'wasm',
        resources: [
          { type: 'onnx', url: 'tiny/m.onnx', name: 'onnx/model.onnx', bytes: 10, sha256: HASH },
        ],
      },
    ],
    ...changes,
  }
}

export function predictor(changes: Partial<PredictorEntry> = {}): PredictorEntry {
  const { type: _, maxInputTokens: __, maxOutputTokens: ___, ...shared } = model()
  return {
    ...shared,
    type: 'predictor',
    tag: '@acme/digits',
    signature: {
      inputs: [{ name: 'image', type: 'image' }],
      outputs: [{ name: 'digit', type: 'int32' }],
    },
    ...changes,
  } as PredictorEntry
}

export function catalog(...entries: Catalog['entries']): Catalog {
  return { version: 1, entries }
}

/** The error that the work throws; not to throw one is an error too. */
export function thrownBy(work: () => unknown): InoriginError {
  try {
    work()
  } catch (thrown) {
    if (thrown instanceof InoriginError) return thrown
    throw thrown
  }
  throw new Error('It did not throw.')
}
