/** From what an entry says of models that MLC compiled to WebLLM's records of them. */
import { HOST } from '../hub/entry.ts'
import type { MlcEntry } from '../schema.ts'
import { embeds, findRecord, siblingOf } from './find.ts'
import type { MlcList } from './list.ts'
import type { MlcRecord } from './record.ts'

export interface RecordsOptions {
  list: MlcList | undefined
  /** The hub that stands in for the public one, with a trailing slash. */
  host: string
  /** `null` for what is no http or https URL. */
  absoluteUrl(url: string): string | null
}

/**
 * The records, best first, with absolute URLs; that of a folder ends with a slash. `say` is told of what
 * is wrong, and where below `path`.
 */
export function recordsOf(
  entry: MlcEntry,
  { list, host, absoluteUrl }: RecordsOptions,
  path: string,
  say: (path: string, problem: string) => void,
): MlcRecord[] {
  for (const key of ['revision', 'dtypes'] as const) {
    if (entry[key] === undefined || entry.huggingface !== undefined) continue
    const instead = "a record's `model` has its commit in it, as /resolve/<commit>/"
    say(`${path}.${key}`, `is of \`huggingface\`; ${instead}`)
  }
  const { mlc } = entry
  const several = Array.isArray(mlc)
  const items = (several ? mlc : [mlc]).map((written, index) => ({
    written,
    path: several ? `${path}.mlc[${index}]` : `${path}.mlc`,
  }))
  const records = items.flatMap((item) => {
    const { written } = item
    const found = typeof written === 'string' ? lookUp(written) : written
    if (typeof found === 'string') {
      say(item.path, found)
      return []
    }
    if (embeds(found)) {
      const instead = 'which a predictor with `embeddings` does here'
      say(item.path, `${found.model_id} turns texts into vectors, ${instead}`)
    }
    const record = located(found, item.path)
    // Who names one alone wants it to run; who names several knows which.
    const sibling =
      several || typeof written !== 'string' ? undefined : siblingOf(list?.records ?? [], found)
    return sibling ? [record, located(sibling, item.path)] : [record]
  })
  const ids = records.map((record) => record.model_id)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined) say(`${path}.mlc`, `${twice} is there twice`)
  return records

  function lookUp(id: string): MlcRecord | string {
    return list ? findRecord(list, id) : `"${id}" is an id of WebLLM's own list, which is not here`
  }

  function located(record: MlcRecord, at: string): MlcRecord {
    const inside = (key: 'model' | 'model_lib') =>
      typeof entry.mlc === 'string' ? at : `${at}.${key}`
    const urlOf = (key: 'model' | 'model_lib') => {
      const url = absoluteUrl(record[key])
      if (!url) say(inside(key), `"${record[key]}" is no http or https URL`)
      return url ?? ''
    }
    const model = urlOf('model').replace(/\/*$/, '/').replace(HOST, host)
    return { ...record, model, model_lib: urlOf('model_lib') }
  }
}
