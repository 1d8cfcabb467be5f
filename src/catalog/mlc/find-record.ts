/** Finds models in WebLLM's list by id, and their variants. */
import { sortBySimilarity } from '../../values/similar-names.ts'
import type { MlcList } from './list.ts'
import type { MlcRecord } from './record-schema.ts'

/** The `model_type` of embedding models. */
const EMBEDDING_MODEL_TYPE = 1

/** Maximum number of ids in a message. */
const MAX_SUGGESTED_IDS = 3

/** Returns `true` for an embedding model. */
export const isEmbeddingRecord = ({ model_type }: MlcRecord): boolean =>
  model_type === EMBEDDING_MODEL_TYPE

/** Returns the record of that id, or a message that describes the problem with the id. */
export function findRecord({ version, records }: MlcList, id: string): MlcRecord | string {
  const found = records.find((record) => record.model_id === id)
  if (found) return found
  const alike = sortBySimilarity(
    records.map((record) => record.model_id),
    id,
  )
  // Often a part of the name is missing, which is a large edit distance.
  const wider = alike.filter((one) => one.toLowerCase().includes(id.toLowerCase()))
  const listed = [...new Set([...wider, ...alike])].slice(0, MAX_SUGGESTED_IDS)
  return `WebLLM ${version} has no model ${JSON.stringify(id)}. Similar: ${listed.join(', ')}`
}

/** Returns the variant of the model with 32-bit floats, if the list has one. */
export function findFloat32Variant(
  records: readonly MlcRecord[],
  { model_id: id }: MlcRecord,
): MlcRecord | undefined {
  const wider = id.replace(/(-q\d+)f16(?=[_-])/, '$1f32')
  return wider === id ? undefined : records.find((record) => record.model_id === wider)
}
