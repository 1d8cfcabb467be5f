/** A model that MLC compiled, in the words that WebLLM has for it. */
import * as v from 'valibot'
import { count, text } from '../values.ts'

const sri = v.pipe(
  v.string(),
  v.regex(
    /^sha(256|384|512)-[A-Za-z0-9+/]+={0,2}$/,
    'a hash looks like sha256- and base64 behind it',
  ),
)

const integritySchema = v.strictObject({
  /** Of mlc-chat-config.json. */
  config: v.optional(sri),
  /** Of the library. */
  model_lib: v.optional(sri),
  /** Of the tokenizer's files, by name. */
  tokenizer: v.optional(v.record(text, sri)),
  /** Whether a file with another hash is refused or only told of. Default: `error`. */
  onFailure: v.optional(v.picklist(['error', 'warn'])),
})

/** As in WebLLM's `model_list`, so that one can be taken from there; URLs may be the catalog's own. */
const mlcRecordSchema = v.strictObject({
  /** What it is called there; here, the id of the implementation that it makes. */
  model_id: text,
  /**
   * Where its files are: `https://huggingface.co/owner/name`, with `/resolve/<commit>/` behind for that
   * commit, or any folder of a server.
   */
  model: text,
  /** URL of the library that it was compiled to, a .wasm file. */
  model_lib: text,
  /** What replaces parts of its mlc-chat-config.json, such as `context_window_size`. */
  overrides: v.optional(v.record(text, v.unknown())),
  /** Megabytes of GPU memory that it needs to run. */
  vram_required_MB: v.optional(v.pipe(v.number(), v.minValue(0))),
  /** Whether it runs on phones. */
  low_resource_required: v.optional(v.boolean()),
  /** The least that the GPU's limit `maxStorageBufferBindingSize` must be. */
  buffer_size_required_bytes: v.optional(count),
  /** WebGPU features that it needs; `shader-f16` goes without saying where its name has `f16`. */
  required_features: v.optional(v.array(text)),
  /** 0: it writes text; 1: it embeds, and cannot be run here; 2: it sees, and is shown text alone here. */
  model_type: v.optional(v.picklist([0, 1, 2])),
  /** What small files must hash to. */
  integrity: v.optional(integritySchema),
  /** Path of its mlc-model-manifest.json, where it is loaded by that. */
  model_manifest: v.optional(text),
})

export type MlcRecord = v.InferOutput<typeof mlcRecordSchema>

/** What an entry says: an id of WebLLM's own list or a record, or several, best first. */
export const mlcSchema = v.lazy(
  (input): typeof text | typeof mlcRecordSchema | typeof severalSchema => {
    if (Array.isArray(input)) return severalSchema
    return typeof input === 'string' ? text : mlcRecordSchema
  },
)

const severalSchema = v.pipe(
  v.array(
    v.lazy((input): typeof text | typeof mlcRecordSchema =>
      typeof input === 'string' ? text : mlcRecordSchema,
    ),
  ),
  v.minLength(1),
)

/** The same for readers that cannot look at the input. */
export const publishedMlcSchema = v.union([
  text,
  mlcRecordSchema,
  v.pipe(v.array(v.union([text, mlcRecordSchema])), v.minLength(1)),
])
