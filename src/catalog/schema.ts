/**
 * Defines the schema of the catalog, the JSON document that lists tags. Each tag has
 * implementations, each with resources and requirements on the device. The types are inferred from
 * the schema; `dist/catalog.schema.json` is the same schema as JSON Schema.
 */
import * as v from 'valibot'
import type { Precision } from '../types/index.ts'
import { ARRAYS, SAMPLE_RATES } from '../values/elements.ts'
import { decoderSchema } from './decoder-schema.ts'
import { type Dtype, DTYPE_SUFFIXES } from './hub/variants.ts'
import { type MlcRecord, mlcSchema, publishedMlcSchema } from './mlc/record-schema.ts'
import { stepSchema } from './step-schema.ts'
import { type Upstream, upstreamSchema } from './upstream-schema.ts'
import * as values from './value-schemas.ts'

export type { Labels, Step } from './step-schema.ts'

const ARRAY_TYPES = Object.keys(ARRAYS) as (keyof typeof ARRAYS)[]
const OTHER_TYPES = ['string', 'list', 'dict', 'image', 'binary', 'null'] as const
const parameterTypeSchema = v.picklist([...ARRAY_TYPES, ...OTHER_TYPES])

const enumerationSchema = v.array(
  v.strictObject({
    /** Name that clients send and receive. */
    name: values.textSchema,
    /** Value in the model's tensor. */
    value: v.any(),
  }),
)

const jsonSchema = v.record(v.string(), v.unknown())

const inputParameterSchema = v.strictObject({
  /** Name of the parameter. */
  name: values.textSchema,
  /** Type of its values. */
  type: parameterTypeSchema,
  /** Purpose of the parameter. */
  description: values.optionalString,
  /** `true` if it may be omitted. It then needs a default value. */
  optional: values.optionalFlag,
  /** Bounds of a number. */
  range: v.optional(
    v.strictObject({
      /** Minimum, inclusive. */
      min: v.optional(v.number()),
      /** Maximum, inclusive. */
      max: v.optional(v.number()),
    }),
  ),
  /** Named values that it accepts. */
  enumeration: v.optional(enumerationSchema),
  /** Value used if the parameter is omitted. */
  defaultValue: v.optional(v.unknown()),
  /** JSON Schema of a `list` or `dict`. */
  schema: v.optional(jsonSchema),
})

const outputParameterSchema = v.strictObject({
  /** Name of the parameter. */
  name: values.textSchema,
  /** Type of its values. */
  type: parameterTypeSchema,
  /** Meaning of the output. */
  description: values.optionalString,
  /** Named values that it can have. */
  enumeration: v.optional(enumerationSchema),
  /** JSON Schema of a `list` or `dict`. */
  schema: v.optional(jsonSchema),
})

/** Parameters of a predictor that turns texts into comparable vectors. */
const embeddingsSchema = v.strictObject({
  /** Input that takes the texts. Every implementation must bind it with `text` and a `mask`. */
  input: values.textSchema,
  /** Output with one row of numbers for each text. */
  output: values.textSchema,
  /** Length of a vector. */
  dimensions: values.countSchema,
  /**
   * `true` if the first part of a vector is a usable vector too (Matryoshka). Requests can then ask
   * for fewer dimensions. Default: false.
   */
  shortens: values.optionalFlag,
  /** Maximum number of tokens of a text. */
  maxInputTokens: values.countSchema,
  /** Texts to put before each text, by the names that requests use as `prompt_name`. */
  prompts: v.optional(v.record(values.textSchema, v.string())),
  /** Name of the prompt of requests that name none. Default: no prompt. */
  defaultPrompt: values.optionalText,
})

/** Parameters of a predictor that scores how well a document answers a query. */
const rerankSchema = v.strictObject({
  /** Input that takes the query. Every implementation must bind it with `text` and a `pair`. */
  input: values.textSchema,
  /** Output with one number for each document. */
  output: values.textSchema,
})

/** Parameters of a predictor that speaks texts. */
const speechSchema = v.strictObject({
  /** Input that takes one text. Every implementation must bind it with `text`. */
  input: values.textSchema,
  /** Output with the samples, from -1 to 1. */
  output: values.textSchema,
  /** Samples per second. */
  rate: v.pipe(values.countSchema, v.minValue(SAMPLE_RATES[0]), v.maxValue(SAMPLE_RATES[1])),
  /** Number that makes speech longer. Default: the graph has a fixed speed. */
  speed: v.optional(
    v.strictObject({
      /** Input of numbers with a default value, which is that of the speed 1. */
      input: values.textSchema,
      /** Place of the number among them. */
      index: values.wholeNumberSchema,
    }),
  ),
  /** Input whose enumeration has the voices. Its default value is the default voice. Default: one voice. */
  voice: values.optionalText,
})

// Defines the schema of an implementation: its files, requirements and tensor layouts.

const resourceSchema = v.strictObject({
  /** Kind of file: graph, external weights, GGUF, tokenizer, configuration, wasm module, or MLC. */
  type: v.picklist(['onnx', 'data', 'gguf', 'tokenizer', 'config', 'wasm', 'mlc']),
  /** Absolute URL, or a URL relative to the catalog's own. */
  url: values.textSchema,
  /** Path within the implementation, such as `onnx/model.onnx`. */
  name: values.pathSchema,
  /** Length in bytes. */
  bytes: values.wholeNumberSchema,
  /** SHA-256 of the file, in lower-case hex digits. */
  sha256: values.sha256Schema,
  /** Hashes of consecutive 16 MiB chunks. With them, a damaged chunk is downloaded again alone. */
  chunks: v.optional(v.array(values.sha256Schema)),
  /**
   * Length in bytes of each part of a file that is split for hosts with a size limit. The last part
   * is shorter. The parts are at `url` with the suffixes `.0`, `.1`, and so on.
   */
  partBytes: values.optionalCount,
})

const requirementsSchema = v.strictObject({
  /** WebGPU features, such as `shader-f16`; for `wasm`: `simd`, `threads`, `jspi`. */
  features: v.optional(v.array(values.textSchema)),
  /** Minimum values of WebGPU limits. */
  limits: v.optional(v.record(values.textSchema, v.pipe(v.number(), v.minValue(0)))),
  /** Bytes of memory needed to run. */
  memory: values.optionalCount,
})

/** Fields of a size that make its sides multiples. */
const roundedFields = {
  /** Number of pixels of which the sides become multiples. Default: 1. */
  multipleOf: values.optionalCount,
  /** Multiple that a side becomes. Default: `nearest`. */
  round: v.optional(v.picklist(['nearest', 'down', 'up'])),
}

/**
 * Conversion of an image to a tensor: resize, then `(value * scale - mean) / std` per channel. A
 * side that is not set follows from the other one by the aspect ratio. Without both sides, the image
 * keeps its own size.
 */
const imageLayoutSchema = v.strictObject({
  /** Width in pixels. Default: it follows from the height or is the image's own. */
  width: values.optionalCount,
  /** Height in pixels. Default: it follows from the width or is the image's own. */
  height: values.optionalCount,
  /**
   * Number of pixels of which the sides that are not set become multiples: the nearest one if the
   * image is stretched, the next larger one if it is padded, the next smaller one if it is cropped.
   */
  multipleOf: values.optionalCount,
  /** Channels of each pixel, in the order of the tensor. */
  channels: v.picklist(['gray', 'rgb', 'bgr', 'rgba']),
  /** Memory order of the channels: planes (`nchw`) or interleaved in each pixel (`nhwc`). */
  order: v.picklist(['nchw', 'nhwc']),
  /** Factor of the pixels' bytes. Default: 1 / 255, so that values are from 0 to 1. */
  scale: v.optional(v.pipe(v.number(), v.minValue(Number.MIN_VALUE))),
  /** Mean to subtract: one number, or one for each channel of the tensor. Default: 0. */
  mean: v.optional(v.array(v.number())),
  /** Standard deviation to divide by: one number, or one for each channel. Default: 1. */
  std: v.optional(v.array(v.pipe(v.number(), v.minValue(Number.MIN_VALUE)))),
  /**
   * Resize mode: `contain` centers the image on the background, `cover` crops, `stretch` distorts,
   * `pad` keeps the aspect ratio and fills the rest with `padding`. A batch of images of different
   * sizes needs `pad`, which fills up to the largest. Default: `stretch`.
   */
  fit: v.optional(v.picklist(['stretch', 'contain', 'cover', 'pad'])),
  /**
   * Size to which the whole image is scaled. Then its middle of `width` x `height` pixels is cut out,
   * and what it lacks is filled with the background. Not possible with `fit`. Default: the image is
   * scaled to `width` and `height`.
   */
  resize: v.optional(
    v.union([
      v.strictObject({
        /** Width in pixels. */
        width: values.countSchema,
        /** Height in pixels. */
        height: values.countSchema,
        /** `true` to scale both sides alike, by the factor of that side which changes less. */
        keepsRatio: values.optionalFlag,
        ...roundedFields,
      }),
      v.strictObject({
        /** Length of the shorter side in pixels. The other one follows, rounded down. */
        shortest: values.countSchema,
        /** Maximum length of the longer side. Default: none. */
        longest: values.optionalCount,
        /**
         * `true` if a side that `longest` shortens is rounded to the nearest pixel, as DETR does. Default:
         * down.
         */
        nearest: values.optionalFlag,
        ...roundedFields,
      }),
      v.strictObject({
        ...roundedFields,
        /** Number of pixels of which both sides become multiples. The image keeps its size otherwise. */
        multipleOf: values.countSchema,
      }),
    ]),
  ),
  /** Padding of `fit: 'pad'`. */
  padding: v.optional(
    v.strictObject({
      /** Side of the padding: after the image (right, bottom), before it, or both. Default: `end`. */
      side: v.optional(v.picklist(['start', 'end', 'both'])),
      /**
       * Value of the padding as if it were a pixel, from 0 to 255, before it is normalized: one
       * number, or one for each channel. Default: 0.
       */
      value: v.optional(v.array(v.number())),
    }),
  ),
  /**
   * Filter that gives the same pixels as Pillow. Not possible with `rgba`. Default: the browser's
   * own, which differs between browsers.
   */
  resample: v.optional(v.picklist(['nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos'])),
  /** CSS color behind transparent pixels, and around the image with `contain`. Default: black. */
  background: values.optionalText,
  /** Name of a tensor that is 1 for pixels of the image. Its free sides are those of the image. */
  mask: values.optionalText,
})

/** Conversion of texts to token tensors: one row for each text, padded to the longest. */
const textLayoutSchema = v.strictObject({
  /**
   * Name of the tokenizer's resource, such as `tokenizer.json`. Of a voice, it is the `vocab.json` of VITS
   * or the configuration of Piper.
   */
  tokenizer: values.pathSchema,
  /** Name of the attention mask tensor: 1 for a token, 0 for padding. */
  mask: values.optionalText,
  /** Name of the token type tensor: 1 for the tokens of the second text of a pair, else 0. */
  types: values.optionalText,
  /** Name of the tensor with the number of tokens of each text. */
  lengths: values.optionalText,
  /** Name of the resource with the pronunciations of words, for a voice that reads phonemes. */
  dictionary: v.optional(values.pathSchema),
  /** Maximum number of tokens of a text, or of both texts of a pair. */
  most: values.countSchema,
  /** Side at which tokens beyond `most` are left out. Default: longer texts are refused. */
  truncate: v.optional(v.picklist(['start', 'end'])),
  /** Token that fills up shorter texts. Default: 0. */
  pad: v.optional(values.wholeNumberSchema),
  /** Name of an input, a `string`, with the second text of each pair. */
  pair: values.optionalText,
  /**
   * Name of an optional input, a `list` of strings, with further second texts. Each of them is paired
   * with the one text.
   */
  labels: values.optionalText,
  /**
   * Name of an optional input, a `string`, in which `{}` stands for each of `labels`, or for each text
   * if there are no `labels`.
   */
  template: values.optionalText,
  /** Number of tokens that each row is filled up to. Default: that of the longest. */
  length: values.optionalCount,
  /**
   * Number of tokens that windows share, into which a longer second text is divided. The steps must
   * read them together. Default: the text is cut or refused.
   */
  overlap: v.optional(values.wholeNumberSchema),
})

const audioLayoutSchema = v.strictObject({
  /** Samples per second that the model expects, 1,000 to 768,000. */
  rate: v.pipe(values.countSchema, v.minValue(SAMPLE_RATES[0]), v.maxValue(SAMPLE_RATES[1])),
  /**
   * Number of new samples that the model takes at once. Longer sound is cut into windows, and each
   * output gets a first dimension for them. Default: the tensor's length if it is fixed, else all.
   */
  window: values.optionalCount,
  /** Number of samples before the window that the model takes too, 0 at first. Default: 0. */
  context: values.optionalCount,
  /** Factor of the samples, such as 32768 for a model that takes 16-bit values. Default: 1. */
  scale: v.optional(v.pipe(v.number(), v.minValue(Number.MIN_VALUE))),
  /** `true` to shift and scale all samples to the mean 0 and the variance 1. Default: false. */
  normalize: values.optionalFlag,
  /**
   * Log-mel spectrogram that the model takes in place of samples: one row of numbers for each band, as
   * Whisper computes it. A decoder with `speech` hears one window of `frames` after the other.
   */
  mel: v.optional(
    v.strictObject({
      /** Number of bands, from 0 Hz to half the rate. */
      bands: values.countSchema,
      /** Number of samples of one Fourier transform. */
      window: values.countSchema,
      /** Number of samples from one frame to the next. */
      hop: values.countSchema,
      /** Number of frames that the model takes at once. */
      frames: values.countSchema,
    }),
  ),
  /**
   * Spectrogram that the tensor takes in place of samples: the logarithm of mel energies in frames of
   * 25 ms, 10 ms apart, as Kaldi computes them. Not possible with `window`.
   */
  fbank: v.optional(
    v.strictObject({
      /** Number of energies of a frame. */
      bins: values.countSchema,
      /** Number of frames. Further ones are left out, and those that are missing are 0. */
      frames: values.countSchema,
      /** Number to subtract from all of them. Default: 0. */
      mean: v.optional(v.number()),
      /** Number to divide by. Default: 1. */
      std: v.optional(v.pipe(v.number(), v.minValue(Number.MIN_VALUE))),
    }),
  ),
})

const bindingSchema = v.strictObject({
  /** Name of the model's input or output. */
  tensor: values.textSchema,
  /** Tensor shape, with `null` for a dynamic dimension. Default: the model's own. */
  shape: v.optional(v.array(v.nullable(values.countSchema))),
  /** Layout of the image, if the tensor holds one. */
  image: v.optional(imageLayoutSchema),
  /** Tokenization, if the tensor holds the tokens of a `string` or a `list` of strings. */
  text: v.optional(textLayoutSchema),
  /** Names of the values of a `dict`, in the order of the tensor. */
  keys: v.optional(values.nonEmptyArray(values.textSchema)),
  /** Conversion of sound, if the tensor holds its samples. */
  audio: v.optional(audioLayoutSchema),
  /** Steps that are applied to the tensor of an output, in order. Only the last returns no tensor. */
  steps: v.optional(values.nonEmptyArray(stepSchema)),
})

const precisionSchema = v.optional(v.picklist(['fast', 'exact']))

const implementationSchema = v.strictObject({
  /** Id that is unique within the tag, such as `fp32-webgpu`. */
  id: values.textSchema,
  /** Engine that runs it. */
  engine: v.picklist(['onnx', 'mlc']),
  /** Device that it runs on. */
  device: v.picklist(['webgpu', 'wasm']),
  /** Requirements on the device. Default: none. */
  requires: v.optional(requirementsSchema),
  /** Files of the implementation. */
  resources: values.nonEmptyArray(resourceSchema),
  /** Bindings of a predictor's parameters by name. Default: the tensor of the parameter's name. */
  bindings: v.optional(v.record(values.textSchema, bindingSchema)),
  /** Decoder that writes a text, token by token, from what an encoder makes of the inputs. */
  decoder: v.optional(decoderSchema),
  /** Values that replace parts of mlc-chat-config.json, for models of MLC. */
  overrides: values.optionalRecord,
  /**
   * `exact` to compute a language model in ONNX with the values of its files. `fast` may round its
   * weights once more on WASM, and its activations. Default: `precision` of `serve()`.
   */
  precision: precisionSchema,
})

/** Precisions of weights, as used in the file names of exports on a hub. */
export const DTYPES = Object.keys(DTYPE_SUFFIXES) as Dtype[]

/** Formats in which families of chat models write tool calls. */
export const TOOL_FORMATS = [
  'hermes',
  'llama',
  'mistral',
  'mistral-args',
  'lfm',
  'granite',
  'xml',
  'deepseek',
  'deepseek-v3.1',
  'kimi',
  'minimax',
  'seed',
  'glm',
  'glm-compact',
  'functionary',
  'gpt-oss',
  'gemma',
  'minimax-m3',
  'solar',
  'hunyuan',
  'functionary-v3.2',
  'minicpm',
  'command',
  'command-plus',
  'apertus',
  'nemotron',
  'phi',
  'tool-calls',
  'pythonic',
  'deepseek-v3.2',
  'deepseek-v4',
] as const

const anyImplementationSchema = v.variant('engine', [implementationSchema, upstreamSchema])

const describedFields = {
  /** Name that requests use as the model: `@owner/name`, in lower case. */
  tag: values.tagSchema,
  /** One sentence about what it does. */
  description: values.optionalString,
  /** Model card in Markdown. */
  card: values.optionalString,
  /** License of the files: an id of SPDX, or the name that the hub has for it, such as `gemma`. */
  license: values.optionalText,
  /** Languages that its makers state, as BCP 47 tags. Absent if they state none. */
  languages: v.optional(values.nonEmptyArray(values.languageSchema)),
  /** Number of its parameters as its makers state it, such as `135M`. */
  parameters: values.optionalText,
  /** Type of most of its weights, such as `Q4_K_M`. */
  quantization: values.optionalText,
  /** Author of the model. Default: the owner in the tag. */
  owner: v.optional(
    v.strictObject({
      /** Name of the owner, as in tags. */
      username: values.textSchema,
      /** Time when the owner was created, in RFC 3339. */
      created: values.timestampSchema,
    }),
  ),
  /** State of the entry. Default: `active`. */
  status: v.optional(v.picklist(['active', 'compiling', 'archived'])),
  /** Visibility of the entry. Default: `public`. */
  access: v.optional(v.picklist(['public', 'private', 'unlisted'])),
}

const createListedFields = <const T extends v.GenericSchema>(implementation: T) => ({
  ...describedFields,
  /** Display name. */
  name: values.textSchema,
  /** Time when it was created or added, in RFC 3339. */
  created: values.timestampSchema,
  /** Ways to run it. Each device uses one that suits it; among equals, the first one. */
  implementations: values.nonEmptyArray(implementation),
})

/** Abilities, and settings of the dialog that override or complete the chat template. */
const dialogFields = {
  /** Abilities beyond text input and text output. */
  capabilities: v.optional(
    v.strictObject({
      /** `true` if it calls tools. */
      tools: values.optionalFlag,
      /** `true` if it writes its reasoning, which requests can switch off or limit. */
      thinking: values.optionalFlag,
      /** `true` if it accepts images in messages. */
      imageInput: values.optionalFlag,
      /** `true` if its output can follow a JSON schema. */
      structuredOutputs: values.optionalFlag,
    }),
  ),
  /** Format of tool calls. Default: the format that the chat template describes. */
  toolFormat: v.optional(v.picklist(TOOL_FORMATS)),
  /** Maximum number of reasoning tokens if a request sets none. Default: 0, no reasoning. */
  reasoningBudget: v.optional(values.wholeNumberSchema),
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
    maxInputTokens: values.tokenCountSchema,
    /** Maximum number of output tokens. */
    maxOutputTokens: values.tokenCountSchema,
  })

const modelEntrySchema = createModelSchema(implementationSchema)

/** Fields of predictors that say what their task is. */
const predictorFields = {
  /** Parameters that embed texts. They make the predictor a model of `/v1/embeddings`. */
  embeddings: v.optional(embeddingsSchema),
  /** Parameters that score documents. They make the predictor a model of `/v1/rerank`. */
  rerank: v.optional(rerankSchema),
  /** Parameters that speak texts. They make the predictor a model of `/v1/audio/speech`. */
  speech: v.optional(speechSchema),
  /** States that are passed from one run to the next, such as those of a recurrent model. */
  states: v.optional(
    values.nonEmptyArray(
      v.strictObject({
        /** Input that takes the state. Its default is the tensor's shape filled with zeros. */
        input: values.textSchema,
        /** Output that returns the next state. */
        output: values.textSchema,
      }),
    ),
  ),
}

const signatureSchema = v.strictObject({
  /** Input parameters. */
  inputs: v.array(inputParameterSchema),
  /** Output parameters. */
  outputs: v.array(outputParameterSchema),
})

const repositorySchema = v.pipe(
  v.string(),
  v.regex(/^[\w.-]+\/[\w.-]+$/, 'a repository looks like owner/name'),
)

/** Fields of an entry that may be omitted, since the first load of the model looks them up. */
const fileFields = {
  /** Marks a language model. */
  type: v.optional(v.literal('model')),
  ...describedFields,
  /**
   * `exact` to compute with the values of the files, and to prefer precisions that change the answers
   * least. `fast` may round weights once more on WASM. Default: `precision` of `serve()`.
   */
  precision: precisionSchema,
  /** Display name. Default: the name of the repository. */
  name: values.optionalText,
  /** Time when it was created or added, in RFC 3339. Default: that of the repository. */
  created: v.optional(values.timestampSchema),
  /**
   * Maximum number of tokens of prompt and output together. Default: the limit in the model's
   * configuration, or 4,096 until that is known.
   */
  maxInputTokens: v.optional(values.tokenCountSchema),
  /** Maximum number of output tokens. Default: `maxInputTokens`, but at most 4,096. */
  maxOutputTokens: v.optional(values.tokenCountSchema),
  ...dialogFields,
  /** Ways to run it. Written by `inorigin catalog refresh`, or looked up at the hub. */
  implementations: v.optional(values.nonEmptyArray(anyImplementationSchema)),
}

/** The same of an entry that names a repository. */
const lookedUpFields = {
  ...fileFields,
  /**
   * Commit, branch or tag. Only a commit always names the same files. Default: `main`, pinned to
   * its commit at the first load.
   */
  revision: values.optionalText,
  /** URL of the hub or a mirror, relative to the catalog's URL. Default: https://huggingface.co */
  host: values.optionalText,
  /** Precisions that may be used, best first. Default: the ones that suit the device. */
  dtypes: v.optional(values.nonEmptyArray(v.picklist(DTYPES))),
}

/**
 * Model of a hub that implements Hugging Face's API: a language model, or a predictor. `tag` and `huggingface` are
 * sufficient. Omitted fields are looked up at the first load of the model, or written into the
 * catalog in advance by `inorigin catalog refresh`.
 */
const hubEntrySchema = v.strictObject({
  ...lookedUpFields,
  /** `predictor` with a `signature`. Default: `model`, or what the files tell once they are looked up. */
  type: v.optional(v.picklist(['model', 'predictor'])),
  ...predictorFields,
  /** Inputs and outputs of a predictor. Written by `inorigin catalog refresh`. */
  signature: v.optional(signatureSchema),
  /** Repository, such as `onnx-community/Qwen3-0.6B-ONNX`. */
  huggingface: repositorySchema,
  /**
   * Path of a GGUF file in the repository; of a split one, that of its first part. Default: the
   * exports in ONNX.
   */
  file: v.optional(values.ggufPathSchema),
})

/** Language model in a GGUF file at a URL. `tag` and `gguf` are sufficient. */
const ggufEntrySchema = v.strictObject({
  ...fileFields,
  /** URL of the file, relative to the catalog's own; of a split one, that of its first part. */
  gguf: values.textSchema,
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
    ...predictorFields,
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
    $schema: values.optionalString,
    /** Version of the catalog format. */
    version: v.literal(1),
    /** Models and predictors to serve. Each tag may appear once. */
    entries: v.array(entry),
    /** Devices that the app has runtimes for; only in the package's own catalog. Default: all. */
    devices: v.optional(v.array(implementationSchema.entries.device)),
  })

type LookedUpSchema = typeof mlcEntrySchema | typeof hubEntrySchema | typeof ggufEntrySchema

/** Schema for validation. It picks the kind of an entry by its keys, so that messages fit it. */
export const catalogSchema = createCatalogSchema(
  v.lazy((input): LookedUpSchema | typeof listedEntrySchema => {
    const has = (key: string) => typeof input === 'object' && input !== null && key in input
    if (has('mlc')) return mlcEntrySchema
    if (has('gguf')) return ggufEntrySchema
    return has('huggingface') ? hubEntrySchema : listedEntrySchema
  }),
)

/** Schema for external tools, which cannot inspect the input: a union of all kinds. */
export const publishedCatalogSchema = createCatalogSchema(
  v.union([
    createMlcEntrySchema(publishedMlcSchema),
    hubEntrySchema,
    ggufEntrySchema,
    listedEntrySchema,
  ]),
)

/** A file of an implementation: its URL, size and digest. */
export type Resource = v.InferOutput<typeof resourceSchema>
/** Features and limits that a device needs for an implementation. */
export type Requirements = v.InferOutput<typeof requirementsSchema>
/** Size, channels and range of the pixels that an input or output has. */
export type ImageLayout = v.InferOutput<typeof imageLayoutSchema>
export type TextLayout = v.InferOutput<typeof textLayoutSchema>
/** Conversion of sound to a tensor of mono samples from -1 to 1. */
export type AudioLayout = v.InferOutput<typeof audioLayoutSchema>
/** Connection of a parameter with an input or output of the graph. */
export type Binding = v.InferOutput<typeof bindingSchema>
/** One way to run a tag: an engine, its requirements and its resources. */
export type Implementation = v.InferOutput<typeof implementationSchema>
/** A catalog entry for a model in a repository of a hub. */
export type HubEntry = WithLocal<v.InferOutput<typeof hubEntrySchema>>
/** A catalog entry for a model in a GGUF file at a URL. */
export type GgufEntry = WithLocal<v.InferOutput<typeof ggufEntrySchema>>
/** A catalog entry for a model that was compiled by MLC. */
export type MlcEntry = WithLocal<v.InferOutput<typeof mlcEntrySchema>>
/** A catalog entry for a predictor, with its signature. */
export type PredictorEntry = v.InferOutput<typeof predictorEntrySchema> &
  Routed & { hub?: HubSource }

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

/** Predictor that scores documents for a query. */
export type Reranker = PredictorEntry & { rerank: v.InferOutput<typeof rerankSchema> }

/** Predictor that speaks texts. */
export type Speaker = PredictorEntry & { speech: v.InferOutput<typeof speechSchema> }

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
export type CatalogInput = Written<v.InferOutput<LookedUpSchema | typeof listedEntrySchema>>

/** Catalog as the package itself writes it: all implementations run on this device. */
export type CatalogDocument = Written<
  MlcEntry | HubEntry | GgufEntry | v.InferOutput<typeof entrySchema>
>

/** Facts of a model that its catalog entry states, because its files are looked up. */
interface Source {
  /** Default: that of the app. */
  precision?: Precision
  /** Limit from the catalog; `null` to use the model's configuration. */
  maxInputTokens: number | null
  maxOutputTokens: number | null
  created: string | null
}

/** Repository that lists the files of a model. */
export interface HubSource extends Source {
  repository: string
  revision: string
  /** Absolute URL with a trailing slash. */
  host: string
  /** Path of a GGUF file, or of its first part. Default: the exports in ONNX. */
  file?: string
  /** Allowed precisions; `null` for those that suit the device. */
  dtypes: readonly Dtype[] | null
  /** `true` if the catalog says that the model accepts images. Default: `false`. */
  imageInput?: boolean
}

/** GGUF file, or first part of one, at a URL. */
export interface GgufSource extends Source {
  /** Absolute URL. */
  url: string
}

/**
 * Language model. One of a hub, or of a GGUF file at a URL, has no implementations until its files
 * are listed. An MLC model has
 * one implementation for each record, without resources until its files are listed.
 */
export type ModelEntry = v.InferOutput<typeof modelEntrySchema> &
  Routed & { hub?: HubSource; gguf?: GgufSource; mlc?: readonly MlcRecord[] }
export type Entry = ModelEntry | PredictorEntry

/** Validated catalog, with absolute URLs and default values filled in. */
export interface Catalog extends Pick<CatalogDocument, 'devices'> {
  version: 1
  entries: Entry[]
}
