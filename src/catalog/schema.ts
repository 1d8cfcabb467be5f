/**
 * Defines the schema of the catalog, the JSON document that lists tags. Each tag has
 * implementations, each with resources and requirements on the device. The types are inferred from
 * the schema; `dist/catalog.schema.json` is the same schema as JSON Schema.
 */
import * as v from 'valibot'
import {
  type audioLayoutSchema,
  type bindingSchema,
  type imageLayoutSchema,
  type requirementsSchema,
  type resourceSchema,
  type textLayoutSchema,
  implementationSchema,
} from './implementation-schema.ts'
import { mlcSchema, publishedMlcSchema, type MlcRecord } from './mlc/record-schema.ts'
import { embeddingsSchema, signatureSchema, stateSchema } from './signature-schema.ts'
import type { Step } from './step-schema.ts'
import { upstreamSchema, type Upstream } from './upstream-schema.ts'
import {
  nonEmptyArray,
  optionalFlag,
  optionalString,
  optionalText,
  tagSchema,
  textSchema,
  timestampSchema,
  tokenCountSchema,
  wholeNumberSchema,
} from './value-schemas.ts'

/** Precisions of weights, as used in the file names of exports on a hub. */
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

/** Formats in which families of chat models write tool calls. */
export const TOOL_FORMATS = [
  'hermes',
  'llama',
  'mistral',
  'mistral-args',
  'lfm',
  'granite',
  'xml',
] as const

const anyImplementationSchema = v.variant('engine', [implementationSchema, upstreamSchema])

const ownerSchema = v.strictObject({
  /** Name of the owner, as in tags. */
  username: textSchema,
  /** Time when the owner was created, in RFC 3339. */
  created: timestampSchema,
})

const describedFields = {
  /** Name that requests use as the model: `@owner/name`, in lower case. */
  tag: tagSchema,
  /** One sentence about what it does. */
  description: optionalString,
  /** Model card in Markdown. */
  card: optionalString,
  /** Author of the model. Default: the owner in the tag. */
  owner: v.optional(ownerSchema),
  /** State of the entry. Default: `active`. */
  status: v.optional(v.picklist(['active', 'compiling', 'archived'])),
  /** Visibility of the entry. Default: `public`. */
  access: v.optional(v.picklist(['public', 'private', 'unlisted'])),
}

const createListedFields = <const T extends v.GenericSchema>(implementation: T) => ({
  ...describedFields,
  /** Display name. */
  name: textSchema,
  /** Time when it was created or added, in RFC 3339. */
  created: timestampSchema,
  /** Ways to run it. Each device uses one that suits it; among equals, the first one. */
  implementations: nonEmptyArray(implementation),
})

/** Abilities of a model beyond text input and text output. */
const capabilitiesSchema = v.strictObject({
  /** `true` if it calls tools. */
  tools: optionalFlag,
  /** `true` if it writes its reasoning, which requests can switch off or limit. */
  thinking: optionalFlag,
  /** `true` if it accepts images in messages. */
  imageInput: optionalFlag,
  /** `true` if its output can follow a JSON schema. */
  structuredOutputs: optionalFlag,
})

/** Settings of the dialog that override or complete the chat template. */
const dialogFields = {
  /** Format of tool calls. Default: the format that the chat template describes. */
  toolFormat: v.optional(v.picklist(TOOL_FORMATS)),
  /** Maximum number of reasoning tokens if a request sets none. Default: 0, no reasoning. */
  reasoningBudget: v.optional(wholeNumberSchema),
  /**
   * Detail of images whose request gives none: `low` is the whole image at the encoder's size, `high`
   * adds tiles at full resolution, which costs many tokens. Default: `low`.
   */
  imageDetail: v.optional(v.picklist(['low', 'high'])),
}

/** Language model that is listed with its files. */
const createModelSchema = <const T extends v.GenericSchema>(implementation: T) =>
  v.strictObject({
    /** Marks a language model. */
    type: v.literal('model'),
    ...createListedFields(implementation),
    ...dialogFields,
    /** Maximum number of tokens of prompt and output together. */
    maxInputTokens: tokenCountSchema,
    /** Maximum number of output tokens. */
    maxOutputTokens: tokenCountSchema,
    /** Abilities beyond text input and text output. */
    capabilities: v.optional(capabilitiesSchema),
  })

const modelEntrySchema = createModelSchema(implementationSchema)

const repositorySchema = v.pipe(
  v.string(),
  v.regex(/^[\w.-]+\/[\w.-]+$/, 'a repository looks like owner/name'),
)

/** Fields of an entry that may be omitted, since the first load of the model looks them up. */
const lookedUpFields = {
  /** Marks a language model. */
  type: v.optional(v.literal('model')),
  ...describedFields,
  /** Commit, branch or tag. Default: `main`, pinned to its commit at the first load. */
  revision: optionalText,
  /** URL of the hub or a mirror, relative to the catalog's URL. Default: https://huggingface.co */
  host: optionalText,
  /** Precisions that may be used, best first. Default: the ones that suit the device. */
  dtypes: v.optional(nonEmptyArray(v.picklist(DTYPES))),
  /** Display name. Default: the name of the repository. */
  name: optionalText,
  /** Time when it was created or added, in RFC 3339. Default: that of the repository. */
  created: v.optional(timestampSchema),
  /**
   * Maximum number of tokens of prompt and output together. Default: the limit in the model's
   * configuration, or 4,096 until that is known.
   */
  maxInputTokens: v.optional(tokenCountSchema),
  /** Maximum number of output tokens. Default: `maxInputTokens`, but at most 4,096. */
  maxOutputTokens: v.optional(tokenCountSchema),
  /** Abilities beyond text input and text output. */
  capabilities: v.optional(capabilitiesSchema),
  ...dialogFields,
  /** Ways to run it. Written by `inorigin catalog refresh`, or looked up at the hub. */
  implementations: v.optional(nonEmptyArray(anyImplementationSchema)),
}

/**
 * Language model of a hub that implements Hugging Face's API. `tag` and `huggingface` are
 * sufficient. Omitted fields are looked up at the first load of the model, or written into the
 * catalog in advance by `inorigin catalog refresh`.
 */
const hubEntrySchema = v.strictObject({
  ...lookedUpFields,
  /** Repository, such as `onnx-community/Qwen3-0.6B-ONNX`. */
  huggingface: repositorySchema,
})

const createMlcEntrySchema = <const T extends v.GenericSchema>(mlc: T) =>
  v.strictObject({
    ...lookedUpFields,
    /**
     * Model that MLC compiled: an id of WebLLM's model list, a WebLLM record, or an array of both, best
     * first. A single id includes the variant for GPUs without 16-bit floats.
     */
    mlc,
    /** Repository of the same model, for devices that can run none of the records. */
    huggingface: v.optional(repositorySchema),
  })

/** Language model in WebLLM's terms. `tag` and `mlc` are sufficient. */
const mlcEntrySchema = createMlcEntrySchema(mlcSchema)

/** Compiled model with a typed signature. */
const createPredictorSchema = <const T extends v.GenericSchema>(implementation: T) =>
  v.strictObject({
    /** Marks a compiled model with a typed signature. */
    type: v.literal('predictor'),
    ...createListedFields(implementation),
    /** Parameters that embed texts. They make the predictor a model of `/v1/embeddings`. */
    embeddings: v.optional(embeddingsSchema),
    /** States that are passed from one run to the next, such as those of a recurrent model. */
    states: v.optional(nonEmptyArray(stateSchema)),
    /** Inputs and outputs. */
    signature: signatureSchema,
  })

export const predictorEntrySchema = createPredictorSchema(implementationSchema)

/** Entry whose implementations run on this device, as the store keeps it. */
export const entrySchema = v.variant('type', [modelEntrySchema, predictorEntrySchema])

/** Entry of a catalog that lists its implementations, also those on other servers. */
const listedEntrySchema = v.variant('type', [
  createModelSchema(anyImplementationSchema),
  createPredictorSchema(anyImplementationSchema),
])

const createCatalogSchema = <const T extends v.GenericSchema>(entry: T) =>
  v.strictObject({
    /** Location of the schema, for editors: `inorigin/catalog.schema.json` of the package. */
    $schema: optionalString,
    /** Version of the catalog format. */
    version: v.literal(1),
    /** Models and predictors to serve. Each tag may appear once. */
    entries: v.array(entry),
    /** Devices that the app has runtimes for; only in the package's own catalog. Default: all. */
    devices: v.optional(v.array(implementationSchema.entries.device)),
  })

/** Schema for validation. It picks the kind of an entry by its keys, so that messages fit it. */
export const catalogSchema = createCatalogSchema(
  v.lazy((input): typeof mlcEntrySchema | typeof hubEntrySchema | typeof listedEntrySchema => {
    const has = (key: string) => typeof input === 'object' && input !== null && key in input
    if (has('mlc')) return mlcEntrySchema
    return has('huggingface') ? hubEntrySchema : listedEntrySchema
  }),
)

/** Schema for external tools, which cannot inspect the input: a union of all kinds. */
export const publishedCatalogSchema = createCatalogSchema(
  v.union([createMlcEntrySchema(publishedMlcSchema), hubEntrySchema, listedEntrySchema]),
)

/** A file of an implementation: its URL, size and digest. */
export type Resource = v.InferOutput<typeof resourceSchema>
/** Features and limits that a device needs for an implementation. */
export type Requirements = v.InferOutput<typeof requirementsSchema>
/** Size, channels and range of the pixels that an input or output has. */
export type ImageLayout = v.InferOutput<typeof imageLayoutSchema>
export type TextLayout = v.InferOutput<typeof textLayoutSchema>
/** Rate and window of the sound that an input takes. */
export type AudioLayout = v.InferOutput<typeof audioLayoutSchema>
export type { Step }
export type Labels = NonNullable<Extract<Step, { step: 'top-k' }>['labels']>
/** Connection of a parameter with an input or output of the graph. */
export type Binding = v.InferOutput<typeof bindingSchema>
/** Precision of the weights in a repository of a hub. */
export type Dtype = (typeof DTYPES)[number]
/** One way to run a tag: an engine, its requirements and its resources. */
export type Implementation = v.InferOutput<typeof implementationSchema>
/** A catalog entry for a model in a repository of a hub. */
export type HubEntry = WithLocal<v.InferOutput<typeof hubEntrySchema>>
/** A catalog entry for a model that was compiled by MLC. */
export type MlcEntry = WithLocal<v.InferOutput<typeof mlcEntrySchema>>
/** A catalog entry for a predictor, with its signature. */
export type PredictorEntry = v.InferOutput<typeof predictorEntrySchema> & Routed

/** Entry as written, whose list of implementations is divided when a catalog is validated. */
type WithLocal<T extends { implementations?: unknown }> = Omit<T, 'implementations'> & {
  /** Implementations that run on this device. */
  implementations?: Implementation[] | undefined
}

/** Part of an entry that only {@link Catalog} has: its implementations on other servers. */
interface Routed {
  /** Upstream implementations, in the catalog's order. Absent if there are none. */
  upstreams?: readonly Upstream[]
}

/** Predictor that embeds texts. */
export type Embedder = PredictorEntry & { embeddings: v.InferOutput<typeof embeddingsSchema> }

/** Catalog before it is validated. It is not inferred, which is too deep for the compiler of an app. */
interface Written<T> {
  /** Location of the schema, for editors: `inorigin/catalog.schema.json` of the package. */
  $schema?: string | undefined
  /** Version of the catalog format. */
  version: 1
  /** Models and predictors to serve. Each tag may appear once. */
  entries: T[]
  devices?: Implementation['device'][] | undefined
}

/** Catalog as an app writes it in a JSON document, with implementations on other servers. */
export type CatalogInput = Written<
  v.InferOutput<typeof mlcEntrySchema | typeof hubEntrySchema | typeof listedEntrySchema>
>

/** Catalog as the package itself writes it: all implementations run on this device. */
export type CatalogDocument = Written<MlcEntry | HubEntry | v.InferOutput<typeof entrySchema>>

/** Repository that lists the files of a model. */
export interface HubSource {
  repository: string
  revision: string
  /** Absolute URL with a trailing slash. */
  host: string
  /** Allowed precisions; `null` for those that suit the device. */
  dtypes: readonly Dtype[] | null
  /** Limit from the catalog; `null` to use the model's configuration. */
  maxInputTokens: number | null
  maxOutputTokens: number | null
  created: string | null
  /** `true` if the catalog says that the model accepts images. Default: `false`. */
  imageInput?: boolean
}

/**
 * Language model. A hub model has no implementations until its files are listed. An MLC model has
 * one implementation for each record, without resources until its files are listed.
 */
export type ModelEntry = v.InferOutput<typeof modelEntrySchema> &
  Routed & { hub?: HubSource; mlc?: readonly MlcRecord[] }
export type Entry = ModelEntry | PredictorEntry

/** Validated catalog, with absolute URLs and default values filled in. */
export interface Catalog extends Pick<CatalogDocument, 'devices'> {
  version: 1
  entries: Entry[]
}
