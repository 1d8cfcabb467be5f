/**
 * Knows the file layout of exports for the web on a hub: which files form a model in one precision,
 * and which precision suits a device.
 */
import type { Device, Precision } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'

/** File of a repository at one commit. */
export interface HubFile {
  path: string
  bytes: number
  /** Digest of the content, if the hub stores it as a large file; `null` for small files. */
  sha256: string | null
  /** Git's blob id: the SHA-1 of `blob`, the length and the content. */
  blobId: string
}

/** File name suffixes of each precision, the most common first. */
export const DTYPE_SUFFIXES = {
  fp32: [''],
  fp16: ['_fp16'],
  q8: ['_quantized', '_q8'],
  int8: ['_int8'],
  uint8: ['_uint8'],
  q4: ['_q4'],
  q4f16: ['_q4f16'],
  bnb4: ['_bnb4'],
  q2: ['_q2'],
  q2f16: ['_q2f16'],
  q1: ['_q1'],
  q1f16: ['_q1f16'],
} as const

/** Precision of the weights, as the hub names it. */
export type Dtype = keyof typeof DTYPE_SUFFIXES

export const PRECISION_SUFFIXES: readonly string[] = Object.values(DTYPE_SUFFIXES)
  .flat()
  .filter((suffix) => suffix !== '')

/**
 * Precisions by device, the best first. WebGPU lists no 8-bit weights, because the runtime has no
 * kernels for them there. WebAssembly lists no 16-bit ones; q4f16 does run. On WebAssembly, 4-bit
 * blocks precede 8-bit weights, which have one scale for a whole matrix and one for its input: they
 * are half the bytes, keep more of the answers and are about as fast.
 * docs/decisions/0011-int8-weights-on-wasm.md has the measurements. fp32 follows because it takes three
 * times the bytes and memory. The places of q2 and q1 are guesses.
 */
const PREFERRED_DTYPES: Readonly<Record<Device, readonly Dtype[]>> = {
  webgpu: ['q4f16', 'q4', 'fp16', 'fp32', 'q2f16', 'q2', 'q1f16', 'q1'],
  wasm: ['q4', 'q8', 'int8', 'uint8', 'bnb4', 'fp32', 'q2', 'q1'],
}

/**
 * Precisions for a model that is to be exact, those first that change the answers least. 4-bit blocks
 * precede 8 bits, because usual exports have a scale for 32 weights in 4 bits, but one for a whole
 * matrix and its input in 8: of SmolLM2-135M, they keep 64 and 58 of 100 next tokens of 32 bits. The
 * places of bnb4 and of fewer bits are guesses. Half precision comes second everywhere.
 */
const EXACT_DTYPES: readonly Dtype[] = [
  'fp32',
  'fp16',
  'q4',
  'q4f16',
  'q8',
  'int8',
  'uint8',
  'bnb4',
  'q2',
  'q2f16',
  'q1',
  'q1f16',
]

const dtypesFor = (device: Device, precision: Precision): readonly Dtype[] => {
  const fast = PREFERRED_DTYPES[device]
  if (precision === 'fast') return fast
  return EXACT_DTYPES.filter((dtype) => fast.includes(dtype))
}

/**
 * Returns the items in the order of the fidelity of their precisions. Those without one come last, in
 * their order.
 */
export function sortByFidelity<T>(
  items: readonly T[],
  dtypeOf: (item: T) => Dtype | undefined,
): T[] {
  const rankOf = (item: T): number => {
    const dtype = dtypeOf(item)
    return dtype === undefined ? EXACT_DTYPES.length : EXACT_DTYPES.indexOf(dtype)
  }
  return items.toSorted((one, other) => rankOf(one) - rankOf(other))
}

/** Names of decoder graphs, newest layout first. The first that exists is used. */
export const DECODER_NAMES = ['model', 'decoder_model_merged', 'decoder_with_past_model']
const EMBEDDING_NAME = 'embed_tokens'
const VISION_NAME = 'vision_encoder'

/** Small files with the configuration, tokenizer and chat template of a model. */
export const TEXT_FILES: readonly { path: string; type: 'config' | 'tokenizer' }[] = [
  { path: 'config.json', type: 'config' },
  { path: 'generation_config.json', type: 'config' },
  { path: 'preprocessor_config.json', type: 'config' },
  { path: 'processor_config.json', type: 'config' },
  { path: 'tokenizer.json', type: 'tokenizer' },
  { path: 'tokenizer_config.json', type: 'tokenizer' },
  { path: 'chat_template.jinja', type: 'tokenizer' },
  { path: 'chat_template.json', type: 'tokenizer' },
]

/** Further files that say how a predictor is used, such as how vectors of texts are pooled. */
const TASK_FILE =
  /^(modules|vocab|sentence_bert_config|config_sentence_transformers|\d+_\w+\/config)\.json$/

/** Returns `true` if a model may need the file at that path. */
export const isModelFile = (path: string): boolean =>
  path.startsWith('onnx/') || TEXT_FILES.some((text) => text.path === path) || TASK_FILE.test(path)

export interface Variant {
  dtype: Dtype
  device: Device
  features: string[]
  files: HubFile[]
}

/**
 * Returns all variants that the files provide, best first. `dtypes` restricts and orders them. With
 * `seesImages`, only those that have an image encoder. `precision` decides which is the best without
 * `dtypes`.
 */
export const findVariants = (
  files: readonly HubFile[],
  dtypes: readonly Dtype[] | null,
  seesImages = false,
  precision: Precision = 'fast',
): Variant[] =>
  (['webgpu', 'wasm'] as const).flatMap((device) =>
    (dtypes ?? dtypesFor(device, precision)).flatMap((dtype): Variant[] => {
      const text = findVariantFiles(files, dtype)
      const vision = seesImages ? findVisionFiles(files, dtype, device) : []
      const found = text && vision && [...vision, ...text]
      return found ? [{ dtype, device, features: featuresOf(dtype, device), files: found }] : []
    }),
  )

/** Returns the precisions of which the files have a decoder, but no other graph that it needs. */
export function findIncomplete(
  files: readonly HubFile[],
  dtypes: readonly Dtype[] | null,
  seesImages: boolean,
): Dtype[] {
  const all = Object.keys(DTYPE_SUFFIXES) as Dtype[]
  const complete = findVariants(files, all, seesImages).map(({ dtype }) => dtype)
  return (dtypes ?? all)
    .filter((dtype) => !complete.includes(dtype))
    .filter((dtype) => DECODER_NAMES.some((name) => findGraphFiles(files, name, [dtype])))
}

const featuresOf = (dtype: Dtype, device: Device): string[] =>
  device === 'webgpu' && dtype.endsWith('16') ? ['shader-f16'] : []

/** Returns the variants of a graph in one precision; `dtypes` as in {@link findVariants}. */
export const toVariants = (
  dtype: Dtype,
  files: HubFile[],
  dtypes: readonly Dtype[] | null,
): Variant[] =>
  (['webgpu', 'wasm'] as const)
    .filter((device) => (dtypes ?? PREFERRED_DTYPES[device]).includes(dtype))
    .map((device) => ({ dtype, device, features: featuresOf(dtype, device), files }))

function findVariantFiles(files: readonly HubFile[], dtype: Dtype): HubFile[] | null {
  const name = DECODER_NAMES.find((decoder) => findGraphFiles(files, decoder, [dtype]))
  if (name === undefined) return null
  const decoder = findGraphFiles(files, name, [dtype]) ?? []
  // Repositories of multimodal models store the embedding table in a separate graph.
  if (name === 'model' || !files.some(({ path }) => path.startsWith(`onnx/${EMBEDDING_NAME}`)))
    return decoder
  const alike: Dtype[] = [dtype, ...halvesOf(dtype), 'q8', 'fp32']
  const embedding = findGraphFiles(files, EMBEDDING_NAME, alike)
  return embedding && [...embedding, ...decoder]
}

/**
 * Finds the image encoder for a decoder's precision. 8-bit encoders come first on WASM, where their
 * matrices are fastest, and never run on WebGPU, where they compute wrong numbers.
 */
function findVisionFiles(files: readonly HubFile[], dtype: Dtype, device: Device) {
  const alike: Dtype[] =
    device === 'wasm' ? ['q8', 'int8', 'uint8', dtype, 'fp32'] : [dtype, ...halvesOf(dtype), 'fp32']
  return findGraphFiles(files, VISION_NAME, alike)
}

const halvesOf = (dtype: Dtype): Dtype[] => (dtype.endsWith('16') ? ['fp16'] : [])

/** Graphs of an encoder-decoder in one precision, with the files of their weights. */
export interface EncoderDecoder {
  dtype: Dtype
  device: Device
  features: string[]
  encoder: HubFile[]
  decoder: HubFile[]
  /** The graph for each token after the first run; `null` if `decoder` takes them. */
  next: HubFile[] | null
}

export const ENCODER_NAME = 'encoder_model'
/** Names of the graphs of decoders: one graph for all tokens, or one of the first run. */
export const WRITER_NAMES = ['decoder_model_merged', 'decoder_model'] as const
const NEXT_NAME = 'decoder_with_past_model'

/**
 * Returns all encoder-decoders that the files provide, best first. `dtypes` and `precision` are as in
 * {@link findVariants}. A decoder runs on the CPU. So beside an encoder on the GPU it has a precision
 * for WebAssembly: the same, or else the best.
 */
export const findEncoderDecoders = (
  files: readonly HubFile[],
  dtypes: readonly Dtype[] | null,
  precision: Precision = 'fast',
): EncoderDecoder[] =>
  (['webgpu', 'wasm'] as const).flatMap((device) =>
    (dtypes ?? dtypesFor(device, precision)).flatMap((dtype): EncoderDecoder[] => {
      const onCpu = dtypes ?? dtypesFor('wasm', precision)
      const alike = device === 'wasm' ? [dtype] : onCpu.includes(dtype) ? [dtype, ...onCpu] : onCpu
      const encoder = findGraphFiles(files, ENCODER_NAME, [dtype])
      for (const name of WRITER_NAMES) {
        const own = alike.find((one) => findGraphFiles(files, name, [one]))
        const decoder = own && findGraphFiles(files, name, [own])
        if (!encoder || !decoder) continue
        const next = name === 'decoder_model' ? findGraphFiles(files, NEXT_NAME, [own]) : null
        return [{ dtype, device, features: featuresOf(dtype, device), encoder, decoder, next }]
      }
      return []
    }),
  )

/**
 * Finds a graph in the first of the precisions, and its files of weights: `x.onnx.data`, or
 * `x.onnx_data`, `x.onnx_data_1`, and so on.
 */
function findGraphFiles(
  files: readonly HubFile[],
  name: string,
  dtypes: readonly Dtype[],
): HubFile[] | null {
  for (const suffix of dtypes.flatMap((dtype): readonly string[] => DTYPE_SUFFIXES[dtype])) {
    const path = `onnx/${name}${suffix}.onnx`
    const main = files.find((file) => file.path === path)
    if (!main) continue
    const data = files.filter((file) =>
      ['_data', '.data'].some((end) => file.path.startsWith(`${path}${end}`)),
    )
    return [main, ...data.toSorted((a, b) => a.path.localeCompare(b.path, 'en', { numeric: true }))]
  }
  return null
}

// Reads the context length of a model from its configuration.

/** Maximum context length to accept. No model has more, and memory is allocated for it. */
export const MAX_CONTEXT_TOKENS = 2 ** 24

const CONTEXT_FIELDS = [
  'max_position_embeddings',
  'n_positions',
  'max_seq_len',
  'n_ctx',
  'seq_length',
]

/** Returns the tokens of prompt and output together from config.json; `undefined` if not given. */
export function findContextTokens(config: Readonly<Record<string, unknown>>): number | undefined {
  const parts = [config['text_config'], config['llm_config'], config].filter(isObject)
  return CONTEXT_FIELDS.flatMap((name) => parts.map((part) => part[name])).find(isTokenCount)
}

/** Returns `true` for a plausible count. Larger values than any model has are ignored. */
export const isTokenCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= MAX_CONTEXT_TOKENS
