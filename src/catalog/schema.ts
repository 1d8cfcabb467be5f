/**
 * The catalog: the JSON document that lists tags. Everything hosted is a tag with implementations,
 * and an implementation is resources plus what a device must have. The types are inferred from the
 * schema; `dist/catalog.schema.json` is the same schema as JSON Schema.
 */
import * as v from 'valibot'
import type {
  bindingSchema,
  imageLayoutSchema,
  requirementsSchema,
  resourceSchema,
  textLayoutSchema,
} from './implementation.ts'
import { implementationSchema } from './implementation.ts'
import { mlcSchema, publishedMlcSchema, type MlcRecord } from './mlc/record.ts'
import { embeddingsSchema, signatureSchema } from './signature.ts'
import { tag, text, timestamp, tokens } from './values.ts'

/** Precisions of weights as exports on a hub are named by. */
export const DTYPES = [
  'fp32',
  'fp16',
  'q8',
  'int8',
  'uint8',
  'q4',
  'q4f16',
  'bnb4',
  'q2',
  'q2f16',
  'q1',
  'q1f16',
] as const

/** Families of chat models by how they write a call of a tool. */
export const TOOL_FORMATS = [
  'hermes',
  'llama',
  'mistral',
  'mistral-args',
  'lfm',
  'granite',
  'xml',
] as const

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

const repository = v.pipe(
  v.string(),
  v.regex(/^[\w.-]+\/[\w.-]+$/, 'a repository looks like owner/name'),
)

/** What an entry need not say that is looked up when the model is first loaded. */
const found = {
  /** A language model. */
  type: v.optional(v.literal('model')),
  ...described,
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
}

/**
 * A language model of a hub that speaks Hugging Face's protocol. `tag` and `huggingface` are enough;
 * what is left out is taken from the hub when the model is first loaded, or written into the catalog
 * before by `inorigin catalog refresh`.
 */
const hubEntrySchema = v.strictObject({
  ...found,
  /** The repository, such as `onnx-community/Qwen3-0.6B-ONNX`. */
  huggingface: repository,
})

const mlcEntryOf = <const T extends v.GenericSchema>(mlc: T) =>
  v.strictObject({
    ...found,
    /**
     * A model that MLC compiled: its id in WebLLM's own list, which brings the one with 32-bit floats along
     * for GPUs without 16-bit ones; or WebLLM's record of it, or several of both, best first.
     */
    mlc,
    /** The repository of the same model for devices that run none of them. */
    huggingface: v.optional(repository),
  })

/** A language model by what WebLLM knows it by. `tag` and `mlc` are enough. */
const mlcEntrySchema = mlcEntryOf(mlcSchema)

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
  v.lazy((input): typeof mlcEntrySchema | typeof hubEntrySchema | typeof entrySchema => {
    const has = (key: string) => typeof input === 'object' && input !== null && key in input
    if (has('mlc')) return mlcEntrySchema
    return has('huggingface') ? hubEntrySchema : entrySchema
  }),
)

/** The same for readers that cannot look at the input: one of all kinds. */
export const publishedCatalogSchema = catalogOf(
  v.union([mlcEntryOf(publishedMlcSchema), hubEntrySchema, entrySchema]),
)

export type Resource = v.InferOutput<typeof resourceSchema>
export type Requirements = v.InferOutput<typeof requirementsSchema>
export type ImageLayout = v.InferOutput<typeof imageLayoutSchema>
export type TextLayout = v.InferOutput<typeof textLayoutSchema>
export type Binding = v.InferOutput<typeof bindingSchema>
export type Dtype = (typeof DTYPES)[number]
export type Implementation = v.InferOutput<typeof implementationSchema>
export type HubEntry = v.InferOutput<typeof hubEntrySchema>
export type MlcEntry = v.InferOutput<typeof mlcEntrySchema>
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

/**
 * A language model; one of a hub has no implementations until its files have been listed. One of MLC has
 * an implementation for each of its records, without resources until those have been listed.
 */
export type ModelEntry = v.InferOutput<typeof modelEntrySchema> & {
  hub?: HubSource
  mlc?: readonly MlcRecord[]
}
export type Entry = ModelEntry | PredictorEntry

/** A catalog that has been checked: URLs are absolute and defaults are there. */
export interface Catalog {
  version: 1
  entries: Entry[]
}
