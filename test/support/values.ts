/** The graphs of `test/models/values.py` as predictors of a catalog, on a site of their own. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Binding, Catalog, Device, PredictorEntry, Signature, Tag } from '../../src/index.ts'

const FOLDER = join(import.meta.dirname, '../models/values')

/** Folders of a site that serves them, which its options take. */
export const VALUES = { '/values/': FOLDER }

export interface PredictorOptions {
  signature: Signature
  bindings?: Record<string, Binding>
  /** Default: WASM alone. */
  devices?: readonly Device[]
}

/** An entry of a predictor whose graph the site serves at the path. */
export function predictorEntry(
  tag: Tag,
  url: string,
  file: Uint8Array,
  { signature, bindings = {}, devices = ['wasm'] }: PredictorOptions,
): PredictorEntry {
  const [, name = ''] = tag.split('/')
  const sha256 = createHash('sha256').update(file).digest('hex')
  const graph = { type: 'onnx', url, name: `${name}.onnx`, bytes: file.length, sha256 } as const
  const implementations = devices.map((device) => ({
    id: `fp32-${device}`,
    engine: 'onnx' as const,
    device,
    resources: [graph],
    bindings,
  }))
  const created = '2026-01-01T00:00:00Z'
  return { type: 'predictor', tag, name, created, signature, implementations }
}

/** An entry `@values/<name>`, on WASM. */
function valuesEntry(
  name: string,
  signature: Signature,
  bindings?: Record<string, Binding>,
): PredictorEntry {
  const file = readFileSync(join(FOLDER, `${name}.onnx`))
  const options = { signature, bindings }
  return predictorEntry(`@values/${name}`, `/values/${name}.onnx`, file, options)
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
