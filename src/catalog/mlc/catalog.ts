/** Converts WebLLM's model list into a catalog that apps can serve or merge into their own. */
import type { CatalogDocument } from '../schema.ts'
import { implementationOf, titleOf } from './entry.ts'
import { embeds, siblingOf } from './find.ts'
import { MOST_PROMISED, tokensOf } from './layout.ts'
import type { MlcList } from './list.ts'
import type { MlcRecord } from './record.ts'

/** Name of the most common weights, which tags omit. */
const USUAL = '-q4f16_1'

/**
 * Returns a catalog with an entry for every model of the list that generates text. The entry lists
 * the variant with 32-bit floats second, if there is one.
 */
export function mlcCatalog({ records }: MlcList): CatalogDocument {
  const entries = records
    .filter((record) => !embeds(record))
    .map((record) => {
      const sibling = siblingOf(records, record)
      const context = tokensOf(record.overrides ?? {}) ?? MOST_PROMISED
      return {
        tag: tagOf(record.model_id),
        name: nameOf(record.model_id),
        maxInputTokens: context,
        mlc: (sibling ? [record, sibling] : [record]).map(complete),
      }
    })
  return { version: 1, entries }
}

/**
 * Returns `@mlc-ai/smollm2-360m-instruct` of `SmolLM2-360M-Instruct-q4f16_1-MLC`. Other weights
 * remain in the name.
 */
export function tagOf(id: string): string {
  const name = id.replace(/-MLC(?=-|$)/, '').replace(new RegExp(`${USUAL}(?=-|$)`), '')
  return `@mlc-ai/${name.toLowerCase()}`
}

/** Returns a name such as `SmolLM2-360M-Instruct (q4f32_1)`. A short context stays in the name. */
function nameOf(id: string): string {
  const [, weights] = /-(q\d+f(?:16|32)(?:_\d+)?)(?=-|$)/.exec(id) ?? []
  return weights === undefined || `-${weights}` === USUAL
    ? titleOf(id)
    : `${titleOf(id)} (${weights})`
}

/** Adds the required features that the list omits. */
function complete(record: MlcRecord): MlcRecord {
  const { features } = implementationOf(record, []).requires ?? {}
  return { ...record, ...(features && { required_features: features }) }
}
