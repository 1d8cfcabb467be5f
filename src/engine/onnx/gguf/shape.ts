/** Reads from the metadata of a GGUF file how its decoder is built. */
import type { Gguf, Metadata, MetadataValue, NumberArray } from '../../gguf/header.ts'
import { shorten } from '../../../values/text.ts'
import { modelUnusable } from '../../failure.ts'
import type { Yarn } from './rope.ts'

/** Traits of an architecture that neither the metadata nor the tensors show. */
interface Architecture {
  /** `true` if the halves of each head of queries and keys alternate in the file. */
  interleaved?: boolean
  /** `true` for GELU between the matrices of a feed-forward layer, instead of SiLU. */
  gelu?: boolean
  /** `true` if embeddings are multiplied by the square root of their size. */
  scalesEmbeddings?: boolean
  /** Every layer whose number is a multiple of this one differs from those between. */
  period?: number
  /**
   * `true` if the layers between have a sliding window, if the metadata has its size. Their rope is
   * not scaled.
   */
  slides?: boolean
  /** Base of the frequencies of layers with a sliding window. Default: that of the others. */
  slidingBase?: number
  /** `true` if the layers that are a multiple have no rope. */
  skipsRope?: boolean
  /** Name of the last norm. Default: `output_norm`. */
  lastNorm?: string
}

const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  llama: { interleaved: true },
  qwen2: {},
  qwen3: {},
  gemma3: { gelu: true, scalesEmbeddings: true, period: 6, slides: true, slidingBase: 10_000 },
  phi3: {},
  lfm2: { lastNorm: 'token_embd_norm' },
  smollm3: { interleaved: true, period: 4, skipsRope: true },
  granite: { interleaved: true },
  // The third OLMo has this name, too, and is the one with windows.
  olmo2: { period: 4, slides: true },
}

/** A layer of a decoder. */
export interface Layer {
  /** Number of heads of keys and values; 0 if the layer has a convolution instead of attention. */
  kvHeads: number
  /** Base of the rotation frequencies; `null` if the layer has no rope. */
  ropeBase: number | null
  /** `true` if the layer's rope is scaled as the metadata says. */
  scalesRope: boolean
  /** Number of tokens that the layer attends to, including its own; `null` for all. */
  window: number | null
}

/** Sizes and constants of a decoder. */
export interface DecoderShape {
  layers: readonly Layer[]
  /** Size of an embedding. */
  hidden: number
  /** Size of the middle of a feed-forward layer. */
  feedForward: number
  vocabulary: number
  heads: number
  headSize: number
  /** Number of values of a head that are rotated. */
  ropeSize: number
  /** Scaling of the rope. Default: none. */
  ropeScaling: RopeScaling
  /** Number that norms add to the mean of squares. */
  epsilon: number
  /** Number of tokens that the model was trained for. */
  contextTokens: number
  interleaved: boolean
  gelu: boolean
  lastNorm: string
  /** Factors of embeddings, of what a layer adds, of attention scores, and divisor of logits. */
  embeddingScale: number
  residualScale: number
  attentionScale: number
  logitDivisor: number
  /** Number of tokens that a convolution reaches. */
  convolution: number
}

/** Scaling of a rope. */
export interface RopeScaling {
  /** Divisor of all frequencies. */
  divisor: number
  /** Length in tokens up to which a long rope uses its short factors. */
  originalTokens: number
  /** Factor of cosines and sines of a long rope, or of one with the method YaRN. */
  attentionFactor: number
  /** The method YaRN; `null` for others. */
  yarn: Yarn | null
}

/** Limit of layers, of heads and of sizes; a guess. */
const [MAX_LAYERS, MAX_SIZE] = [512, 2 ** 20]

/** Reads the shape. Throws `model_unusable` if the architecture is unknown or a key is wrong. */
export function readShape({ metadata, tensors }: Pick<Gguf, 'metadata' | 'tensors'>): DecoderShape {
  const name = metadata.get('general.architecture')
  if (typeof name !== 'string' || !Object.hasOwn(ARCHITECTURES, name)) {
    const known = Object.keys(ARCHITECTURES).join(', ')
    const shown = typeof name === 'string' ? `\`${shorten(name)}\`` : 'missing'
    throw modelUnusable(
      `the architecture of the GGUF file is ${shown}, and only these are supported: ${known}.`,
    )
  }
  const { period, slides, slidingBase, skipsRope, ...architecture } = ARCHITECTURES[
    name
  ] as Architecture
  const keys = new Keys(metadata, name)
  const count = keys.size('block_count', MAX_LAYERS)
  const hidden = keys.size('embedding_length')
  const heads = keys.size('attention.head_count')
  const headSize = keys.size('attention.key_length', MAX_SIZE, hidden / heads)
  if (keys.size('attention.value_length', MAX_SIZE, headSize) !== headSize)
    throw keys.failure('attention.value_length', `must be ${headSize}, the size of keys`)
  const kvHeads = keys.sizes('attention.head_count_kv', count, heads)
  const ropeBase = keys.number('rope.freq_base', 10_000)
  const window = slides ? keys.number('attention.sliding_window', 0) : 0
  const localBase = keys.number('rope.freq_base_swa', slidingBase ?? ropeBase)
  const sliding = keys.pattern('attention.sliding_window_pattern', count, period)
  const layers = kvHeads.map((each, layer): Layer => {
    const skips = skipsRope === true && (layer + 1) % (period ?? 1) === 0
    const isSliding = window > 0 && sliding[layer] === true
    return {
      kvHeads: each,
      ropeBase: skips ? null : isSliding ? localBase : ropeBase,
      scalesRope: !isSliding,
      window: isSliding ? window : null,
    }
  })
  if (layers.some((layer) => layer.kvHeads > 0 && heads % layer.kvHeads !== 0))
    throw keys.failure('attention.head_count_kv', `must divide ${heads}, the number of heads`)
  // The largest model of this architecture is the only one whose scale differs.
  const isLargestGemma = name === 'gemma3' && count === 62
  const ropeSize = keys.size('rope.dimension_count', headSize, headSize)
  return {
    layers,
    hidden,
    heads,
    headSize,
    ropeSize: ropeSize - (ropeSize % 2),
    feedForward: keys.size('feed_forward_length'),
    vocabulary: vocabularyOf(tensors, hidden),
    ropeScaling: readRopeScaling(keys),
    epsilon: keys.number('attention.layer_norm_rms_epsilon'),
    contextTokens: keys.size('context_length', MAX_CONTEXT_TOKENS),
    interleaved: architecture.interleaved ?? false,
    gelu: architecture.gelu ?? false,
    lastNorm: architecture.lastNorm ?? 'output_norm',
    embeddingScale: architecture.scalesEmbeddings
      ? Math.fround(Math.sqrt(hidden))
      : keys.number('embedding_scale', 1),
    residualScale: keys.number('residual_scale', 1),
    attentionScale: keys.number(
      'attention.scale',
      1 / Math.sqrt(isLargestGemma ? hidden / heads : headSize),
    ),
    logitDivisor: keys.number('logit_scale', 1),
    convolution: keys.number('shortconv.l_cache', 0),
  }
}

/** Limit of the length that a model was trained for; a guess. */
const MAX_CONTEXT_TOKENS = 2 ** 24

function readRopeScaling(keys: Keys): RopeScaling {
  const type = keys.text('rope.scaling.type', 'none')
  if (!['none', 'linear', 'longrope', 'yarn'].includes(type))
    throw keys.failure('rope.scaling.type', `is "${shorten(type)}", which is not supported`)
  const originalTokens = keys.number('rope.scaling.original_context_length', 0)
  const attentionFactor = keys.number('rope.scaling.attn_factor', 1)
  const divisor = type === 'linear' ? keys.number('rope.scaling.factor', 1) : 1
  if (type !== 'yarn') return { divisor, originalTokens, attentionFactor, yarn: null }
  const yarn = {
    factor: keys.number('rope.scaling.factor', 1),
    originalTokens: originalTokens || keys.size('context_length', MAX_CONTEXT_TOKENS),
    fastTurns: keys.number('rope.scaling.yarn_beta_fast', 32),
    slowTurns: keys.number('rope.scaling.yarn_beta_slow', 1),
  }
  if (yarn.factor < 1) throw keys.failure('rope.scaling.factor', 'must be at least 1')
  // By this much, the scores of a longer context are raised.
  const usual = 1 + 0.1 * Math.log(yarn.factor)
  const stated = keys.number('rope.scaling.yarn_attn_factor', usual)
  return { divisor, originalTokens, attentionFactor: attentionFactor * stated, yarn }
}

function vocabularyOf(tensors: Gguf['tensors'], hidden: number): number {
  const embeddings = tensors.find(({ name }) => name === EMBEDDINGS)
  const [columns, rows = 0, ...others] = embeddings?.shape ?? []
  if (columns === hidden && others.length === 0) return rows
  throw modelUnusable(
    `the GGUF file has no tensor \`${EMBEDDINGS}\` with two dimensions, of which one is ${hidden}.`,
  )
}

/** Name of the tensor of embeddings. */
export const EMBEDDINGS = 'token_embd.weight'

/** Reads keys of an architecture. */
class Keys {
  readonly #metadata: Metadata
  readonly #architecture: string

  constructor(metadata: Metadata, architecture: string) {
    this.#metadata = metadata
    this.#architecture = architecture
  }

  /** Returns the error for a wrong value. */
  failure(key: string, why: string): Error {
    return modelUnusable(`the metadata \`${this.#architecture}.${key}\` of the GGUF file ${why}.`)
  }

  /** Returns a text. */
  text(key: string, otherwise: string): string {
    const value = this.#get(key) ?? otherwise
    if (typeof value !== 'string') throw this.failure(key, 'must be a text')
    return value
  }

  /** Returns a finite number. Throws if it is missing, unless there is a default. */
  number(key: string, otherwise?: number): number {
    const value = this.#get(key) ?? otherwise
    if (value === undefined) throw this.failure(key, 'is missing')
    if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
      throw this.failure(key, 'must be a number of at least 0')
    return value
  }

  /** Returns an integer from 1 to `max`. */
  size(key: string, max = MAX_SIZE, otherwise?: number): number {
    return this.#assertSize(key, this.number(key, otherwise), 1, max)
  }

  /** Returns an integer for each of `count` layers, which are a list or one for all. */
  sizes(key: string, count: number, otherwise: number): number[] {
    const value = this.#get(key) ?? otherwise
    if (!isNumberArray(value)) return Array<number>(count).fill(this.size(key, MAX_SIZE, otherwise))
    if (value.length !== count)
      throw this.failure(key, `has ${value.length} values, and there are ${count} layers`)
    return Array.from<number | bigint, number>(value, (each) =>
      this.#assertSize(key, Number(each), 0, MAX_SIZE),
    )
  }

  /**
   * Returns for each layer whether it has a trait that the layers between those of a period have. The
   * metadata may have the period, or a list of booleans.
   */
  pattern(key: string, count: number, period: number | undefined): readonly boolean[] {
    const value = this.#get(key)
    if (Array.isArray(value)) {
      if (value.length === count && value.every((each) => typeof each === 'boolean')) return value
      throw this.failure(key, `must have ${count} booleans, one for each layer`)
    }
    const length = value === undefined ? period : this.size(key, MAX_LAYERS)
    return Array.from({ length: count }, (_, layer) => !!length && (layer + 1) % length !== 0)
  }

  #assertSize(key: string, value: number, min: number, max: number): number {
    if (Number.isInteger(value) && value >= min && value <= max) return value
    throw this.failure(key, `is ${value}, and must be an integer from ${min} to ${max}`)
  }

  #get(key: string): MetadataValue | undefined {
    return this.#metadata.get(`${this.#architecture}.${key}`)
  }
}

const isNumberArray = (value: MetadataValue): value is NumberArray => ArrayBuffer.isView(value)
