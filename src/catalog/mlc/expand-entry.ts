/** Expands a short entry of MLC models into a full one: into WebLLM's records, and by defaults. */
import { sortBySimilarity } from '../../values/text.ts'
import { expandHubEntry, PUBLIC_HUB_URL, UNKNOWN_CREATION_TIME } from '../hub/resolve-hub.ts'
import type { CatalogDocument, Implementation, MlcEntry, ModelEntry } from '../schema.ts'
import type { MlcList } from './list.ts'
import { toRequiredFeatures, DEFAULT_MAX_TOKENS, findMlcContextTokens } from './model-files.ts'
import type { MlcRecord } from './record-schema.ts'
import type { MlcFiles } from './resolve-mlc.ts'

/** Limits that WebLLM requires of every GPU. It throws if they are not met. */
const REQUIRED_LIMITS = {
  maxStorageBuffersPerShaderStage: 10,
  maxComputeWorkgroupStorageSize: 32_768,
}

const MIB = 2 ** 20

/**
 * Returns a full entry: one implementation for each record, best first, then the other ones of the
 * entry. `records` must have absolute URLs, and so must `host` if given.
 */
export function expandMlcEntry(
  entry: MlcEntry,
  records: readonly MlcRecord[],
  host: string | undefined,
): ModelEntry {
  const { mlc: _, huggingface, implementations = [], host: __, ...described } = entry
  const [first] = records
  const maxInputTokens =
    entry.maxInputTokens ?? findMlcContextTokens(first?.overrides ?? {}) ?? DEFAULT_MAX_TOKENS
  const isRecord = (id: string) => records.some((record) => record.model_id === id)
  const shared = {
    ...described,
    mlc: records,
    implementations: [
      ...records.map(
        (record) =>
          implementations.find(({ id }) => id === record.model_id) ??
          toMlcImplementation(record, []),
      ),
      ...implementations.filter(({ id }) => !isRecord(id)),
    ],
  }
  if (huggingface !== undefined) {
    const hub = expandHubEntry({ ...described, huggingface, maxInputTokens }, host)
    return { ...hub, ...shared, type: 'model' }
  }
  const { revision: ___, dtypes: ____, ...own } = shared
  return {
    ...own,
    type: 'model',
    name: entry.name ?? toMlcTitle(first?.model_id ?? entry.tag),
    created: entry.created ?? UNKNOWN_CREATION_TIME,
    maxInputTokens,
    maxOutputTokens: Math.min(maxInputTokens, entry.maxOutputTokens ?? DEFAULT_MAX_TOKENS),
  }
}

/** Returns the entry with the files of one record. Token limits are lowered to that model's. */
export function completeMlcEntry(
  entry: ModelEntry,
  record: MlcRecord,
  { created = UNKNOWN_CREATION_TIME, context, features, resources }: MlcFiles,
): ModelEntry {
  const listed = toMlcImplementation(record, resources, features)
  const maxInputTokens = Math.min(entry.maxInputTokens, context ?? entry.maxInputTokens)
  return {
    ...entry,
    maxInputTokens,
    maxOutputTokens: Math.min(entry.maxOutputTokens, maxInputTokens),
    created: entry.created === UNKNOWN_CREATION_TIME ? created : entry.created,
    implementations: entry.implementations.map((one) => (one.id === listed.id ? listed : one)),
  }
}

/** Returns the implementation of a record. Empty `resources` mean files not looked up yet. */
function toMlcImplementation(
  record: MlcRecord,
  resources: Implementation['resources'],
  others: readonly string[] = [],
): Implementation {
  const { model_id: id, model_lib, overrides, required_features = [], vram_required_MB } = record
  const { buffer_size_required_bytes: maxStorageBufferBindingSize } = record
  const named = [id, model_lib].flatMap(toRequiredFeatures)
  const features = [...new Set([...required_features, ...named, ...others])]
  const requires = {
    ...(features.length > 0 && { features }),
    limits: {
      ...REQUIRED_LIMITS,
      ...(maxStorageBufferBindingSize && { maxStorageBufferBindingSize }),
    },
    ...(vram_required_MB && { memory: Math.ceil(vram_required_MB * MIB) }),
  }
  const kind = { id, engine: 'mlc', device: 'webgpu' } as const
  return { ...kind, requires, ...(overrides && { overrides }), resources }
}

/** Returns `SmolLM2-360M-Instruct` of `SmolLM2-360M-Instruct-q4f16_1-MLC`. */
const toMlcTitle = (id: string): string =>
  id.replace(/-MLC(?=-|$)/, '').replace(/-q\d+f(16|32)(_\d+)?(?=-|$)/, '')

/**
 * Returns the records, best first, with absolute URLs. The URL of a folder ends with a slash.
 * Problems are reported to `report` with a path below `path`. `host` is the URL of the hub that
 * replaces the public one, with a trailing slash. `absoluteUrl` returns `null` for anything but an
 * http or https URL.
 */
export function expandRecords(
  entry: MlcEntry,
  list: MlcList | undefined,
  host: string,
  absoluteUrl: (url: string) => string | null,
  path: string,
  report: (path: string, problem: string) => void,
): MlcRecord[] {
  for (const key of ['revision', 'dtypes', 'precision'] as const) {
    if (entry[key] === undefined || entry.huggingface !== undefined) continue
    const instead = "a record's `model` contains its commit as /resolve/<commit>/"
    report(`${path}.${key}`, `applies only to \`huggingface\`; ${instead}`)
  }
  const several = Array.isArray(entry.mlc)
  const records = [entry.mlc].flat().flatMap((written, index) => {
    const at = several ? `${path}.mlc[${index}]` : `${path}.mlc`
    const found = typeof written === 'string' ? findRecord(list, written) : written
    if (typeof found === 'string') {
      report(at, found)
      return []
    }
    if (isEmbeddingRecord(found)) {
      const instead = 'which is not supported; use a predictor with `embeddings`'
      report(at, `${found.model_id} turns texts into vectors, ${instead}`)
    }
    // An id alone should run everywhere, but an array is an explicit choice.
    const isAlone = !several && typeof written === 'string'
    const sibling = isAlone ? findFloat32Variant(list?.records ?? [], found) : undefined
    return [found, ...(sibling ? [sibling] : [])].map((record) => locateRecord(record, at))
  })
  const ids = records.map((record) => record.model_id)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined) report(`${path}.mlc`, `${twice} is listed twice`)
  return records

  function locateRecord(record: MlcRecord, at: string): MlcRecord {
    const urlOf = (key: 'model' | 'model_lib') => {
      const url = absoluteUrl(record[key])
      const place = typeof entry.mlc === 'string' ? at : `${at}.${key}`
      if (!url) report(place, `"${record[key]}" is not an http or https URL`)
      return url ?? ''
    }
    const model = urlOf('model').replace(/\/*$/, '/').replace(PUBLIC_HUB_URL, host)
    return { ...record, model, model_lib: urlOf('model_lib') }
  }
}

const EMBEDDING_MODEL_TYPE = 1
const MAX_SUGGESTED_IDS = 3

const isEmbeddingRecord = ({ model_type }: MlcRecord): boolean =>
  model_type === EMBEDDING_MODEL_TYPE

/** Returns the record of that id, or a message that describes the problem with the id. */
function findRecord(list: MlcList | undefined, id: string): MlcRecord | string {
  if (!list) return `"${id}" is an id of WebLLM's list, which is not loaded`
  const found = list.records.find((record) => record.model_id === id)
  if (found) return found
  const ids = list.records.map((record) => record.model_id)
  const alike = sortBySimilarity(ids, id)
  // Often a part of the name is missing, which is a large edit distance.
  const wider = alike.filter((one) => one.toLowerCase().includes(id.toLowerCase()))
  const listed = [...new Set([...wider, ...alike])].slice(0, MAX_SUGGESTED_IDS)
  return `WebLLM ${list.version} has no model ${JSON.stringify(id)}. Similar: ${listed.join(', ')}`
}

/** Returns the variant of the model with 32-bit floats, if the list has one. */
function findFloat32Variant(
  records: readonly MlcRecord[],
  { model_id: id }: MlcRecord,
): MlcRecord | undefined {
  const wider = id.replace(/(-q\d+)f16(?=[_-])/, '$1f32')
  return wider === id ? undefined : records.find((record) => record.model_id === wider)
}

// Converts WebLLM's model list into a catalog that apps can serve or merge into their own.

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
