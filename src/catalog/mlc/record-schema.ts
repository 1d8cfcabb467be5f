/** Defines the schema of WebLLM's records of models that MLC compiled. */
import * as v from 'valibot'
import * as values from '../value-schemas.ts'

const sriSchema = v.pipe(
  v.string(),
  v.regex(/^sha(256|384|512)-[A-Za-z0-9+/]+={0,2}$/, 'a hash looks like sha256-<base64>'),
)

const integritySchema = v.strictObject({
  /** Hash of mlc-chat-config.json. */
  config: v.optional(sriSchema),
  /** Hash of the library. */
  model_lib: v.optional(sriSchema),
  /** Hashes of the tokenizer's files, by name. */
  tokenizer: v.optional(v.record(values.textSchema, sriSchema)),
  /** Handling of a file with another hash: rejected or logged as a warning. Default: `error`. */
  onFailure: v.optional(v.picklist(['error', 'warn'])),
})

/** Record in the format of WebLLM's `model_list`. Its URLs may be relative to the catalog's. */
const mlcRecordSchema = v.strictObject({
  /** WebLLM's id of the model. It becomes the id of the implementation. */
  model_id: values.textSchema,
  /**
   * URL of the files: `https://huggingface.co/owner/name`, optionally with `/resolve/<commit>/` for
   * one commit, or any folder of a server.
   */
  model: values.textSchema,
  /** URL of the compiled library, a .wasm file. */
  model_lib: values.textSchema,
  /** Values that replace parts of mlc-chat-config.json, such as `context_window_size`. */
  overrides: values.optionalRecord,
  /** Megabytes of GPU memory needed to run. */
  vram_required_MB: v.optional(v.pipe(v.number(), v.minValue(0))),
  /** `true` if it runs on phones. */
  low_resource_required: values.optionalFlag,
  /** Minimum value of the GPU limit `maxStorageBufferBindingSize`. */
  buffer_size_required_bytes: values.optionalCount,
  /** Required WebGPU features. `shader-f16` is implied if the id contains `f16`. */
  required_features: v.optional(v.array(values.textSchema)),
  /** 0: generates text; 1: embeds, which is not supported; 2: accepts images (only text here). */
  model_type: v.optional(v.picklist([0, 1, 2])),
  /** Hashes of small files. */
  integrity: v.optional(integritySchema),
  /** Path of the mlc-model-manifest.json, if the model has one. */
  model_manifest: values.optionalText,
})

export type MlcRecord = v.InferOutput<typeof mlcRecordSchema>

const selectItem = (input: unknown): typeof values.textSchema | typeof mlcRecordSchema =>
  typeof input === 'string' ? values.textSchema : mlcRecordSchema

const mlcListSchema = values.nonEmptyArray(v.lazy(selectItem))

/** Value of `mlc` in an entry: an id of WebLLM's list, a record, or an array, best first. */
export const mlcSchema = v.lazy((input): typeof mlcListSchema | ReturnType<typeof selectItem> =>
  Array.isArray(input) ? mlcListSchema : selectItem(input),
)

/** Same schema for external tools, which cannot inspect the input. */
export const publishedMlcSchema = v.union([
  values.textSchema,
  mlcRecordSchema,
  values.nonEmptyArray(v.union([values.textSchema, mlcRecordSchema])),
])
