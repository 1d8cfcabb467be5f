/** Catalogs for tests. */
import type { Catalog, ModelEntry, PredictorEntry } from '../../../src/catalog/schema.ts'
import { validateCatalog } from '../../../src/catalog/validate.ts'
import { InoriginError } from '../../../src/error.ts'

type ValidateOptions = Parameters<typeof validateCatalog>[1]

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

const OPTIONS = {
  source: 'here',
  base: 'https://app.test/models/catalog.json',
  embedded: false,
}

/** Validates a document as the catalog of an app. */
export const validate = (document: unknown, options: Partial<ValidateOptions> = {}): Catalog =>
  validateCatalog(document, { ...OPTIONS, ...options })

/** Returns a valid catalog with one value changed, such as that of `entries[0].tag`. */
export function changed(path: string, value: unknown): unknown {
  const document = structuredClone(catalog(model(), predictor()))
  const keys = path.split(/[.[\]]+/)
  let place: unknown = document
  for (const key of keys.slice(0, -1)) place = Reflect.get(place as object, key)
  Reflect.set(place as object, keys.at(-1) ?? '', value)
  return document
}

export const IMPLEMENTATION = 'entries[0].implementations[0]'
export const RESOURCE = `${IMPLEMENTATION}.resources[0]`

/** Returns the error that the work throws, and fails if it throws none. */
export function thrownBy(work: () => unknown): InoriginError {
  try {
    work()
  } catch (thrown) {
    if (thrown instanceof InoriginError) return thrown
    throw thrown
  }
  throw new Error('It did not throw.')
}
