/**
 * The catalog: the JSON document that lists tags. Everything hosted is a tag with implementations,
 * and an implementation is resources plus what a device must have. The types are inferred from the
 * schema; `dist/catalog.schema.json` is the same schema as JSON Schema.
 */
import * as v from 'valibot'
import { embeddingsSchema, signatureSchema } from './signature.ts'
import { count, path, sha256, tag, text, timestamp, tokens } from './values.ts'

const RESOURCE_TYPES = ['onnx', 'data', 'tokenizer', 'config', 'wasm', 'mlc'] as const

/** Precisions of weights as exports on a hub are named by. */
export const DTYPES = [
  'fp32', 'fp16', 'q8', 'int8', 'uint8', 'q4', 'q4f16', 'bnb4', 'q2', 'q2f16', 'q1', 'q1f16',
] as const

/** Families of chat models by how they write a call of a tool. */
export const TOOL_FORMATS = [
  'hermes', 'llama', 'mistral', 'mistral-args', 'lfm', 'granite', 'xml',
] as const

/** A file: where it is, how long, and what it must hash to. */
const resourceSchema = v.strictObject({
  /** What it is: a graph, its external weights, a tokenizer's file, a configuration, a module, MLC's. */
  type: v.picklist(RESOURCE_TYPES),
  /** Relative to the catalog's own URL, or absolute. */
  url: text,
  /** Path within the implementation, such as `onnx/model.onnx`. */
  name: path,
  /** How long it is. */
  bytes: v.pipe(v.number(), v.integer(), v.minValue(0)),
  /** What its bytes must hash to. */
  sha256,
  /** Hashes of consecutive 16 MiB pieces; with them a damaged piece is fetched again alone. */
  chunks: v.optional(v.array(sha256)),
  /**
   * For hosts that refuse large files: it lies there in parts of this many bytes, the last one shorter,
   * at `url` with `.0`, `.1` and so on behind.
   */
  partBytes: v.optional(count),
})

/** What a device must have for an implementation to be considered. */
const requirementsSchema = v.strictObject({
  /** WebGPU features, such as `shader-f16`; on `wasm`: `simd`, `threads`, `jspi`. */
  features: v.optional(v.array(text)),
  /** WebGPU limits that must be at least this. */
  limits: v.optional(v.record(text, v.pipe(v.number(), v.minValue(0)))),
  /** Bytes of memory it needs to run. */
  memory: v.optional(count),
})

/** How an image becomes a tensor: scaled to size, then `(value / 255 - mean) / std` per channel. */
const imageLayoutSchema = v.strictObject({
  /** Width and height go together; without them, an image keeps its own. */
  width: v.optional(count),
  /** Width and height go together; without them, an image keeps its own. */
  height: v.optional(count),
  /** How many numbers a pixel has, and which. */
  channels: v.picklist(['gray', 'rgb', 'rgba']),
  /** Whether the channels of a tensor are planes (`nchw`) or stand together in each pixel (`nhwc`). */
  order: v.picklist(['nchw', 'nhwc']),
  /** One number, or one for each channel; default 0. */
  mean: v.optional(v.array(v.number())),
  /** One number, or one for each channel; default 1. */
  std: v.optional(v.array(v.pipe(v.number(), v.minValue(Number.MIN_VALUE)))),
  /** `contain` pads with the background, `cover` crops, `stretch` distorts. */
  fit: v.optional(v.picklist(['stretch', 'contain', 'cover'])),
  /** CSS colour under transparent pixels and padding; default black. */
  background: v.optional(text),
})

/** How text becomes tensors of tokens, a row for each text, filled up to the longest with zeros. */
const textLayoutSchema = v.strictObject({
  /** Name of the resource that is the tokenizer, such as `tokenizer.json`. */
  tokenizer: path,
  /** Tensor that is 1 where there is a token, 0 where a row is filled up. */
  mask: v.optional(text),
  /** Tensor that tells the parts of a pair of texts apart: zeros. */
  types: v.optional(text),
  /** Most tokens of a text. */
  most: count,
})

/** Which tensor of the model a parameter of the signature is, and its form there. */
const bindingSchema = v.strictObject({
  /** Name of the model's input or output. */
  tensor: text,
  /** Tensor shape, `null` for a free dimension; absent: the model's own. */
  shape: v.optional(v.array(v.nullable(count))),
  /** The tensor holds an image in this layout. */
  image: v.optional(imageLayoutSchema),
  /** The tensor holds the tokens of a `string`, or of a `list` of them. */
  text: v.optional(textLayoutSchema),
  /** Names of the values of a `dict`, as they stand in the tensor. */
  keys: v.optional(v.pipe(v.array(text), v.minLength(1))),
})

/** One way to run it: files, and what they need. */
const implementationSchema = v.strictObject({
  /** Unique within the tag, such as `fp32-webgpu`. */
  id: text,
  /** What runs it. */
  engine: v.picklist(['onnx', 'mlc']),
  /** Where it runs. */
  device: v.picklist(['webgpu', 'wasm']),
  /** What a device must have; without it, any will do. */
  requires: v.optional(requirementsSchema),
  /** Its files. */
  resources: v.pipe(v.array(resourceSchema), v.minLength(1)),
  /**
   * Predictors: by parameter name. A parameter that is not listed binds to the tensor of its name.
   */
  bindings: v.optional(v.record(text, bindingSchema)),
})

const ownerSchema = v.strictObject({
  /** As in tags. */
  username: text,
  /** Since when there is that owner, RFC 3339. */
  created: timestamp,
})

const described = {
  /** What it is asked for by: `@owner/name`, in lower case. */
  tag,
  /** A sentence on what it does. */
  description: v.optional(v.string()),
  /** All there is to say of it, in Markdown. */
  card: v.optional(v.string()),
  /** Who made it. Default: the owner in its tag. */
  owner: v.optional(ownerSchema),
  /** Default: `active`. */
  status: v.optional(v.picklist(['active', 'compiling', 'archived'])),
  /** Default: `public`. */
  access: v.optional(v.picklist(['public', 'private', 'unlisted'])),
}

const shared = {
  ...described,
  /** Its name for people. */
  name: text,
  /** When it was made or added, RFC 3339. */
  created: timestamp,
  /** Ways to run it, best first among equals: each device uses the one that suits it. */
  implementations: v.pipe(v.array(implementationSchema), v.minLength(1)),
}

/** What a model can do beyond text in, text out. */
const capabilitiesSchema = v.strictObject({
  /** Calls tools. */
  tools: v.optional(v.boolean()),
  /** Reasons visibly, which can be switched and budgeted. */
  thinking: v.optional(v.boolean()),
  /** Takes images in messages. */
  imageInput: v.optional(v.boolean()),
  /** Answers as a JSON schema wants it. */
  structuredOutputs: v.optional(v.boolean()),
})

/** How a model is spoken to, where its chat template does not tell or is not to decide. */
const ways = {
  /** The format in which it calls tools. Default: the one its chat template teaches. */
  toolFormat: v.optional(v.picklist(TOOL_FORMATS)),
  /** Most tokens of reasoning when a request does not say. Default: 0, none. */
  reasoningBudget: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))),
}

/** A language model by its files. */
const modelEntrySchema = v.strictObject({
  /** A language model. */
  type: v.literal('model'),
  ...shared,
  ...ways,
  /** Most tokens of prompt and answer together. */
  maxInputTokens: tokens,
  /** Most tokens of an answer. */
  maxOutputTokens: tokens,
  /** What it can do beyond text in, text out. */
  capabilities: v.optional(capabilitiesSchema),
})

/**
 * A language model of a hub that speaks Hugging Face's protocol. `tag` and `huggingface` are enough;
 * what is left out is taken from the hub when the model is first loaded, or written into the catalog
 * before by `inorigin catalog refresh`.
 */
export const hubEntrySchema = v.strictObject({
  /** A language model. */
  type: v.optional(v.literal('model')),
  ...described,
  /** The repository, such as `onnx-community/Qwen3-0.6B-ONNX`. */
  huggingface: v.pipe(
    v.string(),
    v.regex(/^[\w.-]+\/[\w.-]+$/, 'a repository looks like owner/name'),
  ),
  /** A commit, branch or tag. Default: `main`, kept at the commit it was at the first load. */
  revision: v.optional(text),
  /** URL of the hub or of a mirror, from the catalog's own. Default: https://huggingface.co */
  host: v.optional(text),
  /** Which precisions may be used, best first. Default: what suits the device. */
  dtypes: v.optional(v.pipe(v.array(v.picklist(DTYPES)), v.minLength(1))),
  /** Its name for people. Default: the repository's. */
  name: v.optional(text),
  /** When it was made or added, RFC 3339. Default: when the repository was. */
  created: v.optional(timestamp),
  /** Default: what the model's configuration says, 4,096 until that is known. */
  maxInputTokens: v.optional(tokens),
  /** Default: `maxInputTokens`, 4,096 at most. */
  maxOutputTokens: v.optional(tokens),
  /** What it can do beyond text in, text out. */
  capabilities: v.optional(capabilitiesSchema),
  ...ways,
  /** Ways to run it; written by `inorigin catalog refresh`, or taken from the hub. */
  implementations: v.optional(v.pipe(v.array(implementationSchema), v.minLength(1))),
})

/** A compiled model with a typed signature. */
export const predictorEntrySchema = v.strictObject({
  /** A compiled model with a typed signature. */
  type: v.literal('predictor'),
  ...shared,
  /** By which of its parameters it embeds texts, which makes it a model of `/v1/embeddings`. */
  embeddings: v.optional(embeddingsSchema),
  /** What it takes and gives. */
  signature: signatureSchema,
})

/** An entry that lists its implementations. */
export const entrySchema = v.variant('type', [modelEntrySchema, predictorEntrySchema])

const catalogOf = <const T extends v.GenericSchema>(entry: T) =>
  v.strictObject({
    /** Where its schema is, for editors: `inorigin/catalog.schema.json` of the package. */
    $schema: v.optional(v.string()),
    /** Of this format. */
    version: v.literal(1),
    /** What is hosted; every tag once. */
    entries: v.array(entry),
  })

/** As a document is checked: which kind an entry means is told by its keys, so messages fit it. */
export const catalogSchema = catalogOf(
  v.lazy((input): typeof hubEntrySchema | typeof entrySchema =>
    typeof input === 'object' && input !== null && 'huggingface' in input
      ? hubEntrySchema
      : entrySchema,
  ),
)

/** The same for readers that cannot look at the input: one of both kinds. */
export const publishedCatalogSchema = catalogOf(v.union([hubEntrySchema, entrySchema]))

export type Resource = v.InferOutput<typeof resourceSchema>
export type Requirements = v.InferOutput<typeof requirementsSchema>
export type ImageLayout = v.InferOutput<typeof imageLayoutSchema>
export type TextLayout = v.InferOutput<typeof textLayoutSchema>
export type Binding = v.InferOutput<typeof bindingSchema>
export type Dtype = (typeof DTYPES)[number]
export type Implementation = v.InferOutput<typeof implementationSchema>
export type HubEntry = v.InferOutput<typeof hubEntrySchema>
export type PredictorEntry = v.InferOutput<typeof predictorEntrySchema>

/** A predictor that embeds texts. */
export type Embedder = PredictorEntry & { embeddings: v.InferOutput<typeof embeddingsSchema> }

/** A catalog as it is written. */
export type CatalogDocument = v.InferOutput<typeof catalogSchema>

/** Where the files of a model are listed. */
export interface HubSource {
  repository: string
  revision: string
  /** Absolute, with a trailing slash. */
  host: string
  /** `null`: what suits the device. */
  dtypes: readonly Dtype[] | null
  /** What the catalog says itself; `null`: what the model's configuration says. */
  maxInputTokens: number | null
  maxOutputTokens: number | null
  created: string | null
}

/** A language model; one of a hub has no implementations until its files have been listed. */
export type ModelEntry = v.InferOutput<typeof modelEntrySchema> & { hub?: HubSource }
export type Entry = ModelEntry | PredictorEntry

/** A catalog that has been checked: URLs are absolute and defaults are there. */
export interface Catalog {
  version: 1
  entries: Entry[]
}
