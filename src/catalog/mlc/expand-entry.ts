/** Expands a short entry of MLC models into a full one by filling in defaults. */
import { expandHubEntry, UNKNOWN_CREATION_TIME } from '../hub/resolve-hub.ts'
import type { Implementation, MlcEntry, ModelEntry, Requirements } from '../schema.ts'
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
  const ids = new Set(records.map((record) => record.model_id))
  const listed = (record: MlcRecord) => implementations.find(({ id }) => id === record.model_id)
  const shared = {
    ...described,
    mlc: records,
    implementations: [
      ...records.map((record) => listed(record) ?? toMlcImplementation(record, [])),
      ...implementations.filter(({ id }) => !ids.has(id)),
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
  { created, context, features, resources }: MlcFiles,
): ModelEntry {
  const listed = toMlcImplementation(record, resources, features)
  const maxInputTokens = Math.min(entry.maxInputTokens, context ?? entry.maxInputTokens)
  return {
    ...entry,
    maxInputTokens,
    maxOutputTokens: Math.min(entry.maxOutputTokens, maxInputTokens),
    created:
      entry.created === UNKNOWN_CREATION_TIME ? (created ?? UNKNOWN_CREATION_TIME) : entry.created,
    implementations: entry.implementations.map((one) => (one.id === listed.id ? listed : one)),
  }
}

/** Returns the implementation of a record. Empty `resources` mean files not looked up yet. */
export function toMlcImplementation(
  record: MlcRecord,
  resources: Implementation['resources'],
  features: readonly string[] = [],
): Implementation {
  const { model_id: id, overrides } = record
  const requires = toMlcRequirements(record, features)
  return {
    id,
    engine: 'mlc',
    device: 'webgpu',
    requires,
    ...(overrides && { overrides }),
    resources,
  }
}

function toMlcRequirements(
  {
    model_id,
    model_lib,
    required_features = [],
    vram_required_MB,
    buffer_size_required_bytes,
  }: MlcRecord,
  others: readonly string[],
): Requirements {
  const named = [model_id, model_lib].flatMap(toRequiredFeatures)
  const features = [...new Set([...required_features, ...named, ...others])]
  const binding = buffer_size_required_bytes && {
    maxStorageBufferBindingSize: buffer_size_required_bytes,
  }
  return {
    ...(features.length > 0 && { features }),
    limits: { ...REQUIRED_LIMITS, ...binding },
    ...(vram_required_MB && { memory: Math.ceil(vram_required_MB * MIB) }),
  }
}

/** Returns `SmolLM2-360M-Instruct` of `SmolLM2-360M-Instruct-q4f16_1-MLC`. */
export const toMlcTitle = (id: string): string =>
  id.replace(/-MLC(?=-|$)/, '').replace(/-q\d+f(16|32)(_\d+)?(?=-|$)/, '')
