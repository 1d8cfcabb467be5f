/** WebLLM's own list as a catalog, to be served or added to one. */
import type { CatalogDocument } from '../schema.ts'
import { implementationOf, titleOf } from './entry.ts'
import { embeds, siblingOf } from './find.ts'
import { MOST_PROMISED, tokensOf } from './layout.ts'
import type { MlcList } from './list.ts'
import type { MlcRecord } from './record.ts'

/** What the most usual weights are named by, which tags leave out. */
const USUAL = '-q4f16_1'

/**
 * An entry for every model of the list that writes text, with the one of 32-bit floats behind it where
 * there is one. Sizes are those of the list.
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
 * `@mlc-ai/smollm2-360m-instruct` of `SmolLM2-360M-Instruct-q4f16_1-MLC`; other weights than those keep
 * their name.
 */
export function tagOf(id: string): string {
  const name = id.replace(/-MLC(?=-|$)/, '').replace(new RegExp(`${USUAL}(?=-|$)`), '')
  return `@mlc-ai/${name.toLowerCase()}`
}

/** `SmolLM2-360M-Instruct (q4f32_1)`; a short context is in the name, too. */
function nameOf(id: string): string {
  const [, weights] = /-(q\d+f(?:16|32)(?:_\d+)?)(?=-|$)/.exec(id) ?? []
  return weights === undefined || `-${weights}` === USUAL
    ? titleOf(id)
    : `${titleOf(id)} (${weights})`
}

/** With the features that the list forgets to name. */
function complete(record: MlcRecord): MlcRecord {
  const { features } = implementationOf(record, []).requires ?? {}
  return { ...record, ...(features && { required_features: features }) }
}
