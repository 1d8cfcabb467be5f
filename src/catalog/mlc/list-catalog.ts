/** Converts WebLLM's model list into a catalog that apps can serve or merge into their own. */
import type { CatalogDocument } from '../schema.ts'
import {
  findFloat32Variant,
  isEmbeddingRecord,
  toMlcImplementation,
  toMlcTitle,
} from './expand-entry.ts'
import { DEFAULT_MAX_TOKENS, findMlcContextTokens } from './model-files.ts'
import type { MlcList } from './list.ts'
import type { MlcRecord } from './record-schema.ts'

/** Name of the most common weights, which tags omit. */
const DEFAULT_WEIGHTS = 'q4f16_1'

/**
 * Returns a catalog with an entry for every model of the list that generates text. The entry lists
 * the variant with 32-bit floats second, if there is one.
 */
export function toMlcCatalog({ records }: MlcList): CatalogDocument {
  const entries = records
    .filter((record) => !isEmbeddingRecord(record))
    .map((record) => {
      const sibling = findFloat32Variant(records, record)
      const context = findMlcContextTokens(record.overrides ?? {}) ?? DEFAULT_MAX_TOKENS
      return {
        tag: toMlcTag(record.model_id),
        name: toMlcName(record.model_id),
        maxInputTokens: context,
        mlc: (sibling ? [record, sibling] : [record]).map(withImpliedFeatures),
      }
    })
  return { version: 1, entries }
}

/**
 * Returns `@mlc-ai/smollm2-360m-instruct` of `SmolLM2-360M-Instruct-q4f16_1-MLC`. Other weights
 * remain in the name.
 */
export function toMlcTag(id: string): string {
  const name = id.replace(/-MLC(?=-|$)/, '').replace(/-q4f16_1(?=-|$)/, '')
  return `@mlc-ai/${name.toLowerCase()}`
}

/** Returns a name such as `SmolLM2-360M-Instruct (q4f32_1)`. A short context stays in the name. */
function toMlcName(id: string): string {
  const [, weights = DEFAULT_WEIGHTS] = /-(q\d+f(?:16|32)(?:_\d+)?)(?=-|$)/.exec(id) ?? []
  return weights === DEFAULT_WEIGHTS ? toMlcTitle(id) : `${toMlcTitle(id)} (${weights})`
}

function withImpliedFeatures(record: MlcRecord): MlcRecord {
  const { features } = toMlcImplementation(record, []).requires ?? {}
  return { ...record, ...(features && { required_features: features }) }
}
