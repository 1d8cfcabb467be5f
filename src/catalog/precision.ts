/** Precision of entries: an exact one keeps the values of its files, a fast one may round them. */
import type { Precision } from '../types/index.ts'
import { DTYPE_SUFFIXES, type Dtype, sortByFidelity } from './hub/variants.ts'
import type { Entry, Implementation } from './schema.ts'

/**
 * Returns the entry for an app that wants that precision where the catalog names none. Of an exact
 * model of a hub, the implementations that `inorigin catalog refresh` wrote come in the order of their
 * fidelity. Others stay in the order of the catalog.
 */
export function withPrecision(entry: Entry, byDefault: Precision): Entry {
  if (entry.type !== 'model') return entry
  const precision = (entry.hub ?? entry.gguf)?.precision ?? byDefault
  if (precision === 'fast') return entry
  const implementations = entry.implementations.map((one): Implementation =>
    one.engine === 'onnx' ? { precision, ...one } : one,
  )
  if (entry.gguf) return { ...entry, gguf: { ...entry.gguf, precision }, implementations }
  if (!entry.hub) return { ...entry, implementations }
  const { dtypes } = entry.hub
  return {
    ...entry,
    hub: { ...entry.hub, precision },
    implementations: dtypes ? implementations : sortByFidelity(implementations, findDtype),
  }
}

/** Returns the precision of weights that an implementation of a hub has in its id. */
function findDtype({ id }: Implementation): Dtype | undefined {
  const [name = ''] = id.split('-')
  return Object.hasOwn(DTYPE_SUFFIXES, name) ? (name as Dtype) : undefined
}

/**
 * Returns the parts of a key that hold what is known of an implementation on a device. Changed files
 * need new knowledge, and so do the same files with another precision.
 */
export const listKeyParts = ({ id, precision, resources }: Implementation): string[] => [
  id,
  ...(precision === 'exact' ? [precision] : []),
  ...resources.map(({ sha256 }) => sha256),
]
