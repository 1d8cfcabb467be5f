/** A short entry of models that MLC compiled, with its defaults. */
import { expandHubEntry } from '../hub/entry.ts'
import type { Implementation, MlcEntry, ModelEntry, Requirements } from '../schema.ts'
import { featuresOf, MOST_PROMISED, tokensOf } from './layout.ts'
import type { MlcRecord } from './record.ts'
import type { MlcFiles } from './resolve.ts'

/** What WebLLM asks of every GPU; it would throw for want of it. */
const LIMITS = { maxStorageBuffersPerShaderStage: 10, maxComputeWorkgroupStorageSize: 32_768 }

const MIB = 2 ** 20

/** When nobody says when it was made. */
const EPOCH = '1970-01-01T00:00:00Z'

/**
 * As a full entry: an implementation for each record, best first, then those that the entry has besides.
 * `records` have absolute URLs, `host` is absolute or absent.
 */
export function expandMlcEntry(
  entry: MlcEntry,
  records: readonly MlcRecord[],
  host: string | undefined,
): ModelEntry {
  const { mlc: _, huggingface, implementations = [], host: __, ...described } = entry
  const [first] = records
  const maxInputTokens = entry.maxInputTokens ?? tokensOf(first?.overrides ?? {}) ?? MOST_PROMISED
  const ids = new Set(records.map((record) => record.model_id))
  const listed = (record: MlcRecord) => implementations.find(({ id }) => id === record.model_id)
  const shared = {
    ...described,
    mlc: records,
    implementations: [
      ...records.map((record) => listed(record) ?? implementationOf(record, [])),
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
    name: entry.name ?? titleOf(first?.model_id ?? entry.tag),
    created: entry.created ?? EPOCH,
    maxInputTokens,
    maxOutputTokens: Math.min(maxInputTokens, entry.maxOutputTokens ?? MOST_PROMISED),
  }
}

/** The entry with the files of one of its records; it promises no more tokens than that model has. */
export function completeMlcEntry(
  entry: ModelEntry,
  record: MlcRecord,
  { created, context, features, resources }: MlcFiles,
): ModelEntry {
  const listed = implementationOf(record, resources, features)
  const maxInputTokens = Math.min(entry.maxInputTokens, context ?? entry.maxInputTokens)
  return {
    ...entry,
    maxInputTokens,
    maxOutputTokens: Math.min(entry.maxOutputTokens, maxInputTokens),
    created: entry.created === EPOCH ? (created ?? EPOCH) : entry.created,
    implementations: entry.implementations.map((one) => (one.id === listed.id ? listed : one)),
  }
}

/** With those files; without any, they have yet to be looked up. */
export function implementationOf(
  record: MlcRecord,
  resources: Implementation['resources'],
  features: readonly string[] = [],
): Implementation {
  const { model_id: id, overrides } = record
  const requires = requirementsOf(record, features)
  return {
    id,
    engine: 'mlc',
    device: 'webgpu',
    requires,
    ...(overrides && { overrides }),
    resources,
  }
}

/** What the record says and what it forgets to say. */
function requirementsOf(
  {
    model_id,
    model_lib,
    required_features = [],
    vram_required_MB,
    buffer_size_required_bytes,
  }: MlcRecord,
  others: readonly string[],
): Requirements {
  const named = [model_id, model_lib].flatMap(featuresOf)
  const features = [...new Set([...required_features, ...named, ...others])]
  const binding = buffer_size_required_bytes && {
    maxStorageBufferBindingSize: buffer_size_required_bytes,
  }
  return {
    ...(features.length > 0 && { features }),
    limits: { ...LIMITS, ...binding },
    ...(vram_required_MB && { memory: Math.ceil(vram_required_MB * MIB) }),
  }
}

/** `SmolLM2-360M-Instruct` of `SmolLM2-360M-Instruct-q4f16_1-MLC`. */
export function titleOf(id: string): string {
  return id.replace(/-MLC(?=-|$)/, '').replace(/-q\d+f(16|32)(_\d+)?(?=-|$)/, '')
}
