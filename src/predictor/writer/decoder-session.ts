/** Runs the decoder of an encoder-decoder, and keeps its caches of keys and values between runs. */
import type { InferenceSession, Tensor } from 'onnxruntime-web'
import type { TextDecoderLayout } from '../../catalog/decoder-schema.ts'
import type { Runtime, Session } from '../../engine/onnx/runtime.ts'
import { ARRAYS, countElements, isElementType, toReadableData } from '../../values/elements.ts'
import { throwPredictorUnusable } from '../../values/input-errors.ts'
import { toAttentionOutput } from '../speech.ts'
import { fromTensor, isFixedLength, type RawTensor } from '../tensor.ts'

/** Files of a graph: the graph, and its weights by the path that it refers to. */
export interface GraphFiles {
  graph: Blob
  externalData: { path: string; data: Blob }[]
}

/** Decoder of a predictor, with access to its files. */
export interface DecoderSetup {
  tag: string
  layout: TextDecoderLayout
  runtime: Runtime
  /** Returns the files of a graph among the resources. */
  graphFiles(name: string): GraphFiles
}

/** Result of a step. */
export interface DecoderStep {
  /** Scores of the token after each of the given ones; of graphs that return fewer, after the last. */
  rows: Float32Array[]
  /** Weights with which the last of the given tokens attends to what the encoder returned, by head. */
  attention: Float32Array[]
}

/** Head of a layer whose attention to what the encoder returned is wanted. */
export type AttentionHead = readonly [layer: number, head: number]

/** Throws `unavailable`, because the graph is none of a decoder. */
type Fail = (why: string) => never

const IDS = 'input_ids'
const STATES = 'encoder_hidden_states'
const MASK = 'encoder_attention_mask'
const BRANCH = 'use_cache_branch'
const POSITIONS = 'cache_position'
const LOGITS = 'logits'
const PAST = 'past_key_values.'
const PRESENT = 'present.'

const isPast = (name: string): boolean => name.startsWith(PAST)
const isPresent = (name: string): boolean => name.startsWith(PRESENT)
const toPast = (present: string): string => PAST + present.slice(PRESENT.length)
/** Returns `true` for a cache of what the encoder returned, which the first run makes for all. */
const isOfEncoder = (name: string): boolean => name.includes('.encoder.')

const KNOWN_INPUTS = [IDS, STATES, MASK, BRANCH, POSITIONS]

/**
 * Decoder with its caches. A text begins with {@link DecoderSession.begin}, and each step takes further
 * tokens of it. A decoder without caches takes all tokens each time.
 */
export class DecoderSession {
  readonly #runtime: Runtime
  readonly #first: Session
  readonly #next: Session
  readonly #caches = new Map<string, Tensor>()
  #heads: readonly AttentionHead[] = []
  #states: Tensor | null = null
  #mask: Tensor | null = null
  #tokens: number[] = []

  /** Opens the graphs of a predictor. Rejects with `unavailable` if they cannot be used. */
  static openFor({ tag, layout, runtime, graphFiles }: DecoderSetup): Promise<DecoderSession> {
    const next = layout.nextGraph === undefined ? null : graphFiles(layout.nextGraph)
    const fail = (why: string) => throwPredictorUnusable(tag, `resources.${layout.graph}`, why)
    return DecoderSession.open(runtime, graphFiles(layout.graph), next, layout, fail)
  }

  private static async open(
    runtime: Runtime,
    first: GraphFiles,
    next: GraphFiles | null,
    { speech }: TextDecoderLayout,
    fail: Fail,
  ): Promise<DecoderSession> {
    const open = ({ graph, externalData }: GraphFiles): Promise<Session> =>
      // A step is little work, and caches on a GPU would need its check: so it runs on the CPU.
      runtime.createSession(graph, { externalData, onCpu: true, keepInHeap: isPresent })
    const session = await open(first)
    try {
      const opened = new DecoderSession(runtime, session, next ? await open(next) : session)
      opened.#check(speech?.alignment ?? [], fail)
      return opened
    } catch (thrown) {
      await session.release()
      throw thrown
    }
  }

  private constructor(runtime: Runtime, first: Session, next: Session) {
    this.#runtime = runtime
    this.#first = first
    this.#next = next
  }

  /** Begins a text from what the encoder returned, `[1, length, size]`. Its steps return these heads. */
  begin(encoded: RawTensor, heads: readonly AttentionHead[] = []): void {
    this.#clear()
    this.#heads = heads
    const { Tensor: Own } = this.#runtime.ort
    const type = typeOf(this.#first.inputs, STATES) ?? 'float32'
    const data = type === 'float32' ? toReadableData(encoded) : encoded.data
    this.#states = new Own(type as 'float32', data as Float32Array, encoded.shape)
    this.#mask = this.#ofIntegers(MASK, Array<number>(encoded.shape[1] ?? 0).fill(1))
  }

  /** Feeds tokens that follow those of earlier steps. */
  async step(tokens: readonly number[]): Promise<DecoderStep> {
    const before = this.#tokens.length
    this.#tokens.push(...tokens)
    const isFirst = before === 0
    const session = isFirst ? this.#first : this.#next
    const isCached = isFirst || this.#caches.size > 0
    const feeds = this.#toFeeds(session, isCached ? tokens : this.#tokens, isCached ? before : 0)
    // A graph may return caches that no input takes.
    const keeps = this.#next.inputs.some(({ name }) => isPast(name))
    const kept = session.outputs
      .map(({ name }) => name)
      .filter((name) => keeps && isPresent(name) && (isFirst || !isOfEncoder(name)))
    const layers = new Set(this.#heads.map(([layer]) => toAttentionOutput(layer)))
    const results = await session.run(feeds, [LOGITS, ...layers, ...kept])
    for (const name of kept) {
      const tensor = results[name]
      if (tensor) this.#keep(toPast(name), tensor)
    }
    const logits = results[LOGITS]
    if (!logits) throw new Error(`The decoder returned no ${LOGITS}.`)
    return {
      rows: rowsOf(logits).slice(-tokens.length),
      attention: this.#heads.map(([layer, head]) => {
        const weights = results[toAttentionOutput(layer)]
        // The weights of a layer are `[1, heads, tokens, length]`.
        const count = weights?.dims[2] ?? 1
        return (weights && rowsOf(weights)[head * count + count - 1])?.slice() ?? new Float32Array()
      }),
    }
  }

  /** Frees the graphs and the caches. */
  async release(): Promise<void> {
    this.#clear()
    await this.#first.release()
    if (this.#next !== this.#first) await this.#next.release()
  }

  #toFeeds(session: Session, tokens: readonly number[], before: number): Record<string, Tensor> {
    const { Tensor: Own } = this.#runtime.ort
    const positions = BigInt64Array.from(tokens, (_, at) => BigInt(before + at))
    const own: Record<string, Tensor | null> = {
      [IDS]: this.#ofIntegers(IDS, tokens),
      [STATES]: this.#states,
      [MASK]: this.#mask,
      [BRANCH]: new Own('bool', [before > 0], [1]),
      [POSITIONS]: new Own('int64', positions, [tokens.length]),
    }
    const feeds = session.inputs.map((input) => {
      const tensor = own[input.name] ?? this.#caches.get(input.name) ?? this.#ofNothing(input)
      return [input.name, tensor] as const
    })
    return Object.fromEntries(feeds)
  }

  /** Returns a cache before the first token. */
  #ofNothing(input: InferenceSession.ValueMetadata): Tensor {
    const { type, shape } = input.isTensor ? input : { type: 'float32', shape: [] }
    const lengths = shape.map((length, axis) =>
      isFixedLength(length) && length > 0 ? length : axis === 0 ? 1 : 0,
    )
    const array = isElementType(type) && type !== 'string' ? ARRAYS[type] : Float32Array
    const data = new array(countElements(lengths))
    return new this.#runtime.ort.Tensor(type as 'float32', data as Float32Array, lengths)
  }

  #ofIntegers(name: string, numbers: readonly number[]): Tensor {
    const { Tensor: Own } = this.#runtime.ort
    const shape = [1, numbers.length]
    return typeOf(this.#first.inputs, name) === 'int32'
      ? new Own('int32', Int32Array.from(numbers), shape)
      : new Own('int64', BigInt64Array.from(numbers, BigInt), shape)
  }

  #keep(name: string, tensor: Tensor): void {
    this.#caches.get(name)?.dispose()
    this.#caches.set(name, tensor)
  }

  #clear(): void {
    for (const tensor of this.#caches.values()) tensor.dispose()
    this.#caches.clear()
    this.#tokens = []
  }

  /** Checks that the graphs have the inputs and outputs of a decoder. */
  #check(heads: readonly AttentionHead[], fail: Fail): void {
    for (const { inputs, outputs } of [this.#first, this.#next]) {
      const unknown = inputs.find(({ name }) => !KNOWN_INPUTS.includes(name) && !isPast(name))
      if (unknown) fail(`the decoder has an input ${unknown.name}, which is not supported.`)
      if (!inputs.some(({ name }) => name === IDS)) fail(`the decoder has no input ${IDS}.`)
      if (!outputs.some(({ name }) => name === LOGITS)) fail(`the decoder has no output ${LOGITS}.`)
      const wanted = heads.map(([layer]) => toAttentionOutput(layer))
      const unmade = wanted.find((output) => !outputs.some(({ name }) => name === output))
      if (unmade) fail(`the decoder has no output ${unmade}, which \`alignment\` needs.`)
    }
    const made = this.#first.outputs.map(({ name }) => toPast(name))
    const lacking = this.#next.inputs.find(({ name }) => isPast(name) && !made.includes(name))
    if (lacking) fail(`no output of the decoder is kept for ${lacking.name}.`)
  }
}

/** Returns the rows of the last dimension of a tensor. */
function rowsOf(tensor: Tensor): Float32Array[] {
  const data = toReadableData(fromTensor(tensor)) as Float32Array
  const size = tensor.dims.at(-1) ?? 1
  return Array.from({ length: data.length / size }, (_, row) =>
    data.subarray(row * size, (row + 1) * size),
  )
}

function typeOf(
  values: readonly InferenceSession.ValueMetadata[],
  wanted: string,
): string | undefined {
  const found = values.find(({ name }) => name === wanted)
  return found?.isTensor ? found.type : undefined
}
