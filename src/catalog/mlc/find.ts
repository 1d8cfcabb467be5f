/** Models of WebLLM's own list by their ids, and what stands in for them. */
import { nearest } from '../resolve.ts'
import type { MlcList } from './list.ts'
import type { MlcRecord } from './record.ts'

/** What a record's `model_type` is where it turns text into vectors. */
const EMBEDS = 1

/** Ids that a message lists at most. */
const LISTED = 3

/** Whether it only turns text into vectors. */
export const embeds = ({ model_type }: MlcRecord): boolean => model_type === EMBEDS

/** The one of that id; what is wrong with the id, where there is none. */
export function findRecord({ version, records }: MlcList, id: string): MlcRecord | string {
  const found = records.find((record) => record.model_id === id)
  if (found) return found
  const alike = nearest(
    records.map((record) => record.model_id),
    id,
  )
  // Mostly a piece of the name is missing, which many letters make.
  const wider = alike.filter((one) => one.toLowerCase().includes(id.toLowerCase()))
  const listed = [...new Set([...wider, ...alike])].slice(0, LISTED)
  return `WebLLM ${version} has no ${JSON.stringify(id)}; there is ${listed.join(', ')}`
}

/** The same weights for GPUs that compute no 16-bit floats, where the list has them. */
export function siblingOf(
  records: readonly MlcRecord[],
  { model_id: id }: MlcRecord,
): MlcRecord | undefined {
  const wider = id.replace(/(-q\d+)f16(?=[_-])/, '$1f32')
  return wider === id ? undefined : records.find((record) => record.model_id === wider)
}
