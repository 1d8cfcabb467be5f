/** Converts the `mlc` field of an entry into WebLLM records. */
import { sortBySimilarity } from '../../values/text.ts'
import { PUBLIC_HUB_URL } from '../hub/resolve-hub.ts'
import type { MlcEntry } from '../schema.ts'
import type { MlcList } from './list.ts'
import type { MlcRecord } from './record-schema.ts'

interface RecordsOptions {
  list: MlcList | undefined
  /** URL of the hub that replaces the public one, with a trailing slash. */
  host: string
  /** Returns `null` for anything but an http or https URL. */
  absoluteUrl(url: string): string | null
}

/**
 * Returns the records, best first, with absolute URLs. The URL of a folder ends with a slash.
 * Problems are reported to `report` with a path below `path`.
 */
export function expandRecords(
  entry: MlcEntry,
  { list, host, absoluteUrl }: RecordsOptions,
  path: string,
  report: (path: string, problem: string) => void,
): MlcRecord[] {
  for (const key of ['revision', 'dtypes'] as const) {
    if (entry[key] === undefined || entry.huggingface !== undefined) continue
    const instead = "a record's `model` contains its commit as /resolve/<commit>/"
    report(`${path}.${key}`, `applies only to \`huggingface\`; ${instead}`)
  }
  const { mlc } = entry
  const several = Array.isArray(mlc)
  const items = (several ? mlc : [mlc]).map((written, index) => ({
    written,
    path: several ? `${path}.mlc[${index}]` : `${path}.mlc`,
  }))
  const records = items.flatMap((item) => {
    const { written } = item
    const found = typeof written === 'string' ? lookUpRecord(written) : written
    if (typeof found === 'string') {
      report(item.path, found)
      return []
    }
    if (isEmbeddingRecord(found)) {
      const instead = 'which is not supported; use a predictor with `embeddings`'
      report(item.path, `${found.model_id} turns texts into vectors, ${instead}`)
    }
    const record = locateRecord(found, item.path)
    // An id alone should run everywhere, but an array is an explicit choice.
    const sibling =
      several || typeof written !== 'string'
        ? undefined
        : findFloat32Variant(list?.records ?? [], found)
    return sibling ? [record, locateRecord(sibling, item.path)] : [record]
  })
  const ids = records.map((record) => record.model_id)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined) report(`${path}.mlc`, `${twice} is listed twice`)
  return records

  function lookUpRecord(id: string): MlcRecord | string {
    return list ? findRecord(list, id) : `"${id}" is an id of WebLLM's list, which is not loaded`
  }

  function locateRecord(record: MlcRecord, at: string): MlcRecord {
    const inside = (key: 'model' | 'model_lib') =>
      typeof entry.mlc === 'string' ? at : `${at}.${key}`
    const urlOf = (key: 'model' | 'model_lib') => {
      const url = absoluteUrl(record[key])
      if (!url) report(inside(key), `"${record[key]}" is not an http or https URL`)
      return url ?? ''
    }
    const model = urlOf('model').replace(/\/*$/, '/').replace(PUBLIC_HUB_URL, host)
    return { ...record, model, model_lib: urlOf('model_lib') }
  }
}

const EMBEDDING_MODEL_TYPE = 1
const MAX_SUGGESTED_IDS = 3

/** Returns `true` for an embedding model. */
export const isEmbeddingRecord = ({ model_type }: MlcRecord): boolean =>
  model_type === EMBEDDING_MODEL_TYPE

/** Returns the record of that id, or a message that describes the problem with the id. */
function findRecord({ version, records }: MlcList, id: string): MlcRecord | string {
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
