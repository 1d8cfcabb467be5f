/** The graphs of `test/models/values.py` as predictors of a catalog, on a site of their own. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Binding, Catalog, PredictorEntry, Signature } from '../../src/index.ts'

const FOLDER = join(import.meta.dirname, '../models/values')

/** Folders of a site that serves them, which its options take. */
export const VALUES = { '/values/': FOLDER }

/** An entry `@values/<name>`, on WASM. */
export function valuesEntry(
  name: string,
  signature: Signature,
  bindings: Record<string, Binding> = {},
): PredictorEntry {
  const file = readFileSync(join(FOLDER, `${name}.onnx`))
  return {
    type: 'predictor',
    tag: `@values/${name}`,
    name,
    created: '2026-01-01T00:00:00Z',
    signature,
    implementations: [
      {
        id: 'fp32-wasm',
        engine: 'onnx',
        device: 'wasm',
        resources: [
          {
            type: 'onnx',
            url: `/values/${name}.onnx`,
            name: `${name}.onnx`,
            bytes: file.length,
            sha256: createHash('sha256').update(file).digest('hex'),
          },
        ],
        bindings,
      },
    ],
  }
}

/** Everything that goes in and out of `mixed`. */
export const MIXED = valuesEntry('mixed', {
  inputs: [
    { name: 'matrix', type: 'float32' },
    { name: 'scale', type: 'float32', optional: true, defaultValue: 1, range: { min: 0, max: 10 } },
    { name: 'count', type: 'int64' },
    { name: 'flag', type: 'bool', optional: true, defaultValue: false },
    { name: 'texts', type: 'string' },
  ],
  outputs: [
    { name: 'scaled', type: 'float32' },
    { name: 'total', type: 'float32' },
    { name: 'half', type: 'float16' },
    { name: 'double', type: 'float64' },
    { name: 'next', type: 'int64' },
    { name: 'opposite', type: 'bool' },
    { name: 'said', type: 'string' },
  ],
})

/** Some tens of milliseconds of work. */
export const SLOW = valuesEntry(
  'slow',
  { inputs: [{ name: 'picture', type: 'image' }], outputs: [{ name: 'means', type: 'float32' }] },
  {
    picture: {
      tensor: 'picture',
      image: { width: 224, height: 224, channels: 'rgb', order: 'nchw' },
    },
  },
)

export const valuesCatalog = (...entries: PredictorEntry[]): Catalog => ({ version: 1, entries })
