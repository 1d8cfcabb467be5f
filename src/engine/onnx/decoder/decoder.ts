/**
 * Runs a decoder over sequences, and keeps their KV caches on the device that computed them.
 *
 * `graph.ts` reads the inputs and outputs of the graph. Its caches are KV caches, which have an
 * entry for each token, and states, which do not. The KV cache of a sequence is a row of a KV batch
 * (`kv-pool.ts`). If the attention gets the length of each row, a run updates a KV batch in place;
 * otherwise each run returns new KV tensors. A sequence is truncated by shortening its row. A run
 * replaces states, so they are saved at checkpoints (`states.ts`). `feeds.ts` makes the other inputs
 * of a run, and `positions.ts` places rows of images on three axes.
 */
import type { Tensor } from 'onnxruntime-web'
import { InoriginError } from '../../../error.ts'
import { withTimeout } from '../../../values/promises.ts'
import type { Decoder, Logits, Sequence } from '../../decoder.ts'
import { modelUnusable } from '../../failure.ts'
import { isImageRow } from '../../images.ts'
import { createCpuLogits } from '../../sampling/logits.ts'
import { areOnGpu, createGpuLogits, rowOf } from '../logits/gpu.ts'
import type { Runtime, Session } from '../runtime.ts'
import { bytesOf, product } from '../tensor.ts'
import { type CapturedRun, Captures } from './captures.ts'
import { computesCaptured } from './capture-check.ts'
import { CHECKED_TOKENS, computesChunks } from './chunk-check.ts'
import { createEmbedTokens, type EmbedTokens } from '../vision/embed.ts'
import type { ImageStore } from '../vision/image-store.ts'
import { Feeds } from './feeds.ts'
import { type Graph, type GraphSources, picksLogits, readGraph } from './graph.ts'
import {
  cpuKvMemory,
  gpuKvMemory,
  heapKvMemory,
  type KvBatch,
  type KvLayout,
  type KvMemory,
  KvPool,
  type KvRow,
} from './kv-pool.ts'
import { AXES, Positions } from './positions.ts'
import { StateHistory } from './states.ts'

/** Session of a graph that takes tokens, or of a graph that takes embeddings and of their graph. */
type Sessions = Session | { decoder: Session; embed: Session }

interface DecoderOptions extends Omit<GraphSources, 'embed'> {
  /** Maximum number of tokens of a sequence. */
  contextWindow: number
  /** Position id of the first token. */
  firstPosition: number
  /** Maximum length in tokens with the short factors of a rope, if an input chooses them. */
  maxShortLength?: number | undefined
  /** Device of the runtime on `webgpu`, where KV caches and logits stay. */
  gpu?: GPUDevice
  /** Rows of images in prompts. Default: prompts have no images. */
  images?: ImageStore
}

/** Maximum number of sequences in a batch, a guess: each one adds its own KV cache. */
const MAX_BATCH_SIZE = 8

/** Timeout in milliseconds of the submitted work; a working device computes two chunks in it. */
const SYNCHRONIZE_TIMEOUT_MS = 10_000

/** A decoder over sessions that the caller releases. */
export class OnnxDecoder implements Decoder {
  readonly maxChunkTokens: number
  readonly maxBatchSize: number
  readonly maxShortLength: number | undefined
  chunksOnlyAtStart = false
  readonly maxRows: number | undefined
  readonly encodeNext?: Decoder['encodeNext']
  readonly #forward: ForwardPass
  readonly #options: DecoderOptions
  readonly #sequences = new Set<GraphSequence>()

  /** Throws `unavailable` if the graph has inputs that are not supported. */
  constructor(runtime: Runtime, sessions: Sessions, options: DecoderOptions) {
    const { contextWindow, gpu, images, maxShortLength } = options
    const forward = new ForwardPass(runtime, sessions, options)
    this.#forward = forward
    this.#options = options
    this.maxChunkTokens = forward.chunkLimit.maxTokens
    this.maxRows = forward.graph.lastLogits ? 1 : undefined
    this.maxBatchSize = maxBatchSizeOf(forward, contextWindow, gpu)
    this.maxShortLength = maxShortLength
    if (images)
      this.encodeNext = (tokens) =>
        forward.whileRunning(() => images.encodeNext(tokens.filter(isImageRow)))
  }

  /**
   * Lets decode steps be captured if that gives the same logits. Resolves with `false` if it does not. Call it before
   * any sequence, with a session whose runs can be captured.
   */
  async checkCaptures(): Promise<boolean> {
    const setCaptures = (captures: boolean): void => void (this.#forward.captures = captures)
    if (!this.#forward.canCapture) return false
    const isSame = await computesCaptured(this, setCaptures)
    setCaptures(isSame)
    return isSame
  }

  /** Finds out whether chunks are computed correctly after a cache. Call it before any sequence. */
  async checkChunks(): Promise<void> {
    const { cacheBranch } = this.#forward.graph
    if (cacheBranch && this.#options.contextWindow >= CHECKED_TOKENS)
      this.chunksOnlyAtStart = !(await computesChunks(this))
  }

  open(isLong = false): Sequence {
    const { images, firstPosition } = this.#options
    const { graph, memory } = this.#forward
    return this.#add({
      kvRow: { batch: null, row: 0, length: 0 },
      history: new StateHistory(() => graph.states.map((spec) => memory.allocate(spec, 1, 0))),
      positions: images?.locate && new Positions(images.locate, firstPosition),
      maxLength: isLong ? Infinity : (this.maxShortLength ?? Infinity),
      isLong,
    })
  }

  async step(entries: Parameters<Decoder['step']>[0]): Promise<Logits> {
    const [single] = entries
    if (single && entries.length === 1) return single.sequence.forward([single.token])
    const batch = entries.map(({ sequence, token }) => {
      if (!this.#sequences.has(sequence as GraphSequence))
        throw new InoriginError('internal', 'The sequence is closed.')
      return { cache: (sequence as GraphSequence).cache, tokens: [token] }
    })
    const logits = await this.#forward.run(batch, 1)
    return this.#forward.wrap(
      logits,
      batch.map(({ cache }) => cache.kvRow.row),
    )
  }

  synchronize(): Promise<void> {
    const submitted = this.#options.gpu?.queue.onSubmittedWorkDone().catch(() => undefined)
    // A lost device may never settle, hence the timeout; the next run reports the loss.
    return withTimeout(SYNCHRONIZE_TIMEOUT_MS, Promise.resolve(submitted), undefined)
  }

  trim(): void {
    this.#forward.whenIdle(() => this.#forward.kvPool.freeSpares())
  }

  async close(): Promise<void> {
    for (const sequence of this.#sequences) sequence.close()
    this.#forward.close()
  }

  #add(cache: SequenceCache): Sequence {
    const sequence: GraphSequence = new GraphSequence(cache, this.#forward, {
      open: (fork) => this.#add(fork),
      onClose: () => this.#sequences.delete(sequence),
    })
    this.#sequences.add(sequence)
    return sequence
  }
}

/**
 * Returns how many sequences of maximum length fit into one GPU buffer, from 1 to
 * `MAX_BATCH_SIZE`; 1 if the graph takes one sequence at a time.
 */
function maxBatchSizeOf(
  { graph: { ragged, kvCaches }, layout }: ForwardPass,
  contextWindow: number,
  gpu: GPUDevice | undefined,
): number {
  if (!ragged || layout !== 'in place') return 1
  if (!gpu) return MAX_BATCH_SIZE
  const limit = maxBindingBytes(gpu)
  const longest = kvCaches.map(({ type, dims, axis }) =>
    bytesOf({ type, dims: dims.with(axis, contextWindow) }),
  )
  return Math.max(1, Math.min(MAX_BATCH_SIZE, Math.floor(limit / Math.max(...longest))))
}

/** KV cache and states of a sequence. */
interface SequenceCache {
  kvRow: KvRow
  history: StateHistory
  /** Positions on three axes, if the model places rows of images so. */
  positions?: Positions | undefined
  isLong: boolean
  /** Largest number of tokens; more need a long sequence. */
  maxLength: number
}

/** One sequence of a decoder. It owns its KV cache. */
class GraphSequence implements Sequence {
  readonly cache: SequenceCache
  readonly #pass: ForwardPass
  readonly #open: (cache: SequenceCache) => Sequence
  readonly #onClose: () => void
  #closed = false

  /** `open` creates a sequence for a forked KV cache. `onClose` is called at the first `close`. */
  constructor(
    cache: SequenceCache,
    pass: ForwardPass,
    { open, onClose }: { open: (cache: SequenceCache) => Sequence; onClose: () => void },
  ) {
    this.cache = cache
    this.#pass = pass
    this.#open = open
    this.#onClose = onClose
  }

  get length(): number {
    return this.cache.kvRow.length
  }

  get bytes(): number {
    return this.#pass.kvPool.bytes(this.cache.kvRow) + this.cache.history.bytes
  }

  get isLong(): boolean {
    return this.cache.isLong
  }

  get maxChunkTokens(): number {
    return this.#pass.chunkLimit.maxTokensFor(this.cache.kvRow)
  }

  async extend(tokens: readonly number[]): Promise<void> {
    if (tokens.length > 0) await this.#pass.run([{ cache: this.cache, tokens }], 0)
  }

  async forward(tokens: readonly number[], rows = 1): Promise<Logits> {
    if (!picksLogits(this.#pass.graph) && tokens.length > rows) {
      // Such a run would compute and store the logits of all positions only to use the last ones.
      await this.extend(tokens.slice(0, -rows))
      return this.forward(tokens.slice(-rows), rows)
    }
    const logits = await this.#pass.run([{ cache: this.cache, tokens }], rows)
    // Shapes may be wrong, so a graph may return more rows than it says, or fewer.
    const first = logits ? countRows(logits) - rows : 0
    if (first < 0) {
      logits?.dispose()
      throw modelUnusable(`it returned logits for ${first + rows} of ${rows} tokens.`)
    }
    return this.#pass.wrap(
      logits,
      Array.from({ length: rows }, (_, index) => first + index),
    )
  }

  async forwardBest(logits: Logits): Promise<Logits | null> {
    const tensor = await this.#pass.runBest(this.cache, logits)
    return tensor && this.#pass.wrap(tensor, [0])
  }

  reusableLength(length: number): number {
    const { kvRow, history } = this.cache
    if (this.#pass.graph.states.length > 0) return history.restorableLength(length)
    return Math.min(length, kvRow.length)
  }

  checkpoint(): void {
    this.cache.history.save()
  }

  async truncate(length: number): Promise<void> {
    this.#assertReusable(length)
    this.cache.history.restore(length)
    this.cache.kvRow.length = length
  }

  async fork(length: number): Promise<Sequence> {
    this.#assertReusable(length)
    const { kvRow, history, positions, isLong, maxLength } = this.cache
    return this.#open({
      isLong,
      maxLength,
      kvRow: this.#pass.kvPool.fork(kvRow, length),
      history: history.fork(length),
      positions: positions?.fork(length),
    })
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#onClose()
    this.#pass.whenIdle(() => {
      this.#pass.kvPool.remove(this.cache.kvRow)
      this.cache.history.close()
    })
  }

  #assertReusable(length: number): void {
    if (length === this.reusableLength(length)) return
    throw new InoriginError('internal', `The sequence cannot be cut to ${length} tokens.`)
  }
}

const countRows = ({ dims }: Tensor): number => product(dims.slice(0, -1))

/** A sequence and the tokens to append to it. */
interface ForwardEntry {
  cache: SequenceCache
  tokens: readonly number[]
}

/** Runs a decoder's graph for one sequence, or for a batch with one token each. */
class ForwardPass {
  readonly graph: Graph
  readonly layout: KvLayout
  readonly memory: KvMemory
  readonly kvPool: KvPool
  readonly chunkLimit: ReturnType<typeof createChunkLimit>
  /** `true` to capture runs that recur, if that is possible. */
  captures = false
  readonly #captures: Captures | null
  readonly #session: Session
  /** Function of the graph that makes embeddings, if it is a separate one. */
  readonly #embed: EmbedTokens | undefined
  readonly #feeds: Feeds
  readonly #contextWindow: number
  readonly #gpu: GPUDevice | undefined
  /** Number of runs in progress, and the tasks that wait for their end. */
  #running = 0
  readonly #deferred: (() => void)[] = []
  /** Tensors of logits that were not released. */
  readonly #unreleased = new Set<Tensor>()

  constructor(runtime: Runtime, sessions: Sessions, options: DecoderOptions) {
    const { contextWindow, gpu, images } = options
    const { ort } = runtime
    const { decoder: session, embed } =
      'decoder' in sessions ? sessions : { decoder: sessions, embed: undefined }
    const graph = readGraph(session, { ...options, embed })
    if (images?.locate && graph.positions?.copies !== AXES)
      throw modelUnusable(`its decoder takes no positions on ${AXES} axes.`)
    const { heap } = session
    const layout = graph.grouped && (gpu ?? heap) ? 'in place' : 'exact'
    const memory = gpu ? gpuKvMemory(ort, gpu) : heap ? heapKvMemory(heap) : cpuKvMemory(ort)
    this.graph = graph
    this.layout = layout
    this.memory = memory
    this.#captures = gpu && graph.lengths ? createCaptures(runtime, session, gpu) : null
    const keepsSpares = this.#captures !== null
    this.kvPool = new KvPool(graph.kvCaches, memory, { layout, contextWindow, keepsSpares })
    this.chunkLimit = createChunkLimit(graph, this.kvPool, options)
    this.#session = session
    this.#embed = embed && createEmbedTokens(runtime, embed, graph.embedded, images)
    this.#feeds = new Feeds(ort, graph, options)
    this.#contextWindow = contextWindow
    this.#gpu = gpu
  }

  /**
   * Appends tokens to sequences, equally many to each. Resolves with the logits of the last `keep`
   * tokens, or with `null` if `keep` is 0. Its rows are in the order of the KV batch. Rejects with
   * `internal` if a sequence exceeds the context window, after which the model knows no positions,
   * or the length up to which it need not be a long one.
   */
  async run(entries: readonly ForwardEntry[], keep: number): Promise<Tensor | null> {
    for (const { cache, tokens } of entries) {
      const length = cache.kvRow.length + tokens.length
      const most = Math.min(this.#contextWindow, cache.maxLength)
      if (length <= most) continue
      const what = `${length} tokens exceed the ${most} tokens of the sequence.`
      throw new InoriginError('internal', what)
    }
    return this.whileRunning(() => this.#run(entries, keep))
  }

  /**
   * Appends the best token of the logits, whose id was not read back, and resolves with the logits after it. Resolves
   * with `null` unless the run can be captured.
   */
  async runBest(cache: SequenceCache, logits: Logits): Promise<Tensor | null> {
    const most = Math.min(this.#contextWindow, cache.maxLength)
    if (!this.captures || !areOnGpu(logits) || cache.kvRow.length >= most) return null
    // Any id will do, which the best one replaces on the GPU.
    return this.whileRunning(() =>
      this.#run([{ cache, tokens: [0] }], 1, (ids) => logits.copyBest(ids)),
    )
  }

  /**
   * Resolves with logits whose rows are the tensor's rows in `order`, and takes ownership of the
   * tensor. If it is in GPU memory, candidates are selected there. Rejects with `internal` if the
   * model returned none.
   */
  async wrap(tensor: Tensor | null, order: readonly number[]): Promise<Logits> {
    if (!tensor) throw new InoriginError('internal', 'The model returned no logits.')
    if (!this.#gpu || tensor.location !== 'gpu-buffer')
      return createCpuLogits(order.map((row) => rowOf(tensor, row)))
    this.#unreleased.add(tensor)
    const logits = await createGpuLogits(this.#gpu)
    return logits({
      buffer: tensor.gpuBuffer,
      type: tensor.type === 'float16' ? 'float16' : 'float32',
      order,
      vocabulary: tensor.dims.at(-1) ?? 0,
      release: () => {
        // The runtime keeps its output tensors until they are disposed of.
        this.#unreleased.delete(tensor)
        tensor.dispose()
      },
    })
  }

  /** `true` if runs can be captured. */
  get canCapture(): boolean {
    return this.#captures !== null
  }

  /** Runs a task that uses the memory of sequences, so that nothing is freed meanwhile. */
  async whileRunning<T>(task: () => Promise<T>): Promise<T> {
    this.#running += 1
    try {
      return await task()
    } finally {
      this.#running -= 1
      if (this.#running === 0) for (const each of this.#deferred.splice(0)) each()
    }
  }

  /** Calls a task now, or as soon as no run is in progress. */
  whenIdle(task: () => void): void {
    if (this.#running > 0) this.#deferred.push(task)
    else task()
  }

  /** Frees the logits that were not released, and memory that is kept for later runs. */
  close(): void {
    for (const tensor of this.#unreleased) tensor.dispose()
    this.#unreleased.clear()
    this.#captures?.close()
    this.kvPool.freeSpares()
  }

  /** With `writeIds`, which writes the ids into the buffer of a captured run, only such a run is made. */
  async #run(
    entries: readonly ForwardEntry[],
    keep: number,
    writeIds?: (ids: GPUBuffer) => void,
  ): Promise<Tensor | null> {
    const { kvCaches, states, tokens: takesTokens } = this.graph
    const newTokens = entries[0]?.tokens.length ?? 0
    const batch = this.kvPool.gather(
      entries.map(({ cache }) => cache.kvRow),
      newTokens,
    )
    const ordered = entries.toSorted((one, other) => one.cache.kvRow.row - other.cache.kvRow.row)
    const kvRows = ordered.map(({ cache }) => cache.kvRow)
    const rows = ordered.map(({ tokens, cache }) => ({
      tokens,
      pastLength: cache.kvRow.length,
      positions: cache.positions,
      isLong: cache.isLong,
    }))
    const longest = Math.max(...rows.map(({ pastLength }) => pastLength)) + newTokens

    const tokenIds = this.#feeds.tokens(rows)
    const allTokens = rows.flatMap(({ tokens }) => tokens)
    const embedded = this.#embed ? await this.#embed(tokenIds, allTokens) : {}
    const inputs = {
      ...(takesTokens ? { input_ids: tokenIds } : {}),
      ...this.#feeds.otherInputs(rows, keep),
    }
    const captured = this.#embed ? null : this.#capture({ batch, inputs, tokens: newTokens, keep })
    const ids = captured?.inputs['input_ids']
    if (writeIds && !ids) return null
    if (writeIds && ids) writeIds(ids.gpuBuffer)
    const results = await this.#session
      .run(
        {
          ...(captured?.inputs ?? inputs),
          ...embedded,
          ...this.#cacheInputs(batch, ordered[0]),
        },
        this.#fetches(batch, keep, captured),
        captured?.id,
      )
      .catch((thrown: unknown) => {
        captured?.forget()
        throw thrown
      })
      .finally(() => {
        for (const tensor of Object.values(embedded)) tensor.dispose()
      })

    if (this.layout !== 'in place') {
      const newTensors = kvCaches.map(({ output }) => results[output] as Tensor)
      assertGrown(this.graph, newTensors, longest, results)
      this.kvPool.replace(kvRows, newTensors)
    }
    for (const { cache } of ordered) {
      cache.kvRow.length += newTokens
      cache.history.advance(
        states.map(({ output }) => results[output] as Tensor),
        cache.kvRow.length,
      )
    }
    return keep > 0 ? (results['logits'] ?? null) : null
  }

  #cacheInputs(batch: KvBatch, entry: ForwardEntry | undefined): Record<string, Tensor> {
    const tensors = [...batch.tensors, ...(entry?.cache.history.current.tensors ?? [])]
    const caches = [...this.graph.kvCaches, ...this.graph.states]
    return Object.fromEntries(caches.map(({ input }, index) => [input, tensors[index] as Tensor]))
  }

  #capture(request: Parameters<Captures['prepare']>[0]): CapturedRun | null {
    return (this.captures && this.#captures?.prepare(request)) || null
  }

  #fetches(
    { tensors }: KvBatch,
    keep: number,
    captured: CapturedRun | null,
  ): Record<string, Tensor | null> {
    const inPlace = this.layout === 'in place' ? tensors : []
    const outputs = [...this.graph.kvCaches, ...this.graph.states].map(
      ({ output }, index) => [output, inPlace[index] ?? null] as const,
    )
    const logits = captured?.logits ?? null
    return Object.fromEntries(keep > 0 ? [...outputs, ['logits', logits]] : outputs)
  }
}

/** Returns what captures runs of the session; `null` if the size of its logits is unknown. */
function createCaptures({ ort }: Runtime, session: Session, gpu: GPUDevice): Captures | null {
  const logits = session.outputs.find(({ name }) => name === 'logits')
  const vocabulary = logits?.isTensor ? logits.shape.at(-1) : undefined
  if (!logits?.isTensor || typeof vocabulary !== 'number') return null
  return new Captures(ort, gpu, { type: logits.type, vocabulary })
}

/** Throws `unavailable` if a KV tensor lacks tokens; it could not be truncated or shared. */
function assertGrown(
  { kvCaches }: Graph,
  newTensors: readonly Tensor[],
  size: number,
  results: Record<string, Tensor>,
): void {
  const other = kvCaches.findIndex(({ axis }, index) => newTensors[index]?.dims[axis] !== size)
  if (other < 0) return
  for (const tensor of Object.values(results)) tensor.dispose()
  throw modelUnusable(`its KV cache ${kvCaches[other]?.output} does not grow with each token.`)
}

/** Largest chunk in tokens on WASM of a graph that computes the logits of the last token only; a guess. */
const MAX_CHUNK_TOKENS = 256

/**
 * The same on WebGPU, where each run costs the CPU the time of its dispatches, however many tokens it computes. On
 * an H100, 2,048 tokens of a model of 0.5 B weights took 342 ms in eight chunks, where one run took 73 ms in
 * transformers.js. A slow GPU gets shorter chunks, because the times of chunks are measured.
 */
const MAX_CHUNK_TOKENS_ON_GPU = 2_048

/** Largest chunk in tokens of a graph that computes the logits of all tokens; a guess. */
const MAX_CHUNK_TOKENS_WITH_LOGITS = 64

/** Maximum size in bytes of the attention scores of a layer on WASM; a guess. */
const MAX_SCORE_BYTES = 64 * 2 ** 20

/** Number of attention heads if it is unknown; few models that fit in a browser have more. */
const DEFAULT_HEADS = 32

/**
 * Limits the length of prefill chunks, so that logits and attention scores fit in memory. Attention stores
 * `heads x chunk x capacity` scores of 4 bytes, where the capacity is the number of tokens that the KV cache has
 * room for. A layer frees them before the next one runs. On a GPU, it depends on the kernel whether they are stored;
 * if they are, one buffer has to hold them.
 */
export function createChunkLimit(
  graph: Graph,
  kvPool: KvPool,
  { gpu, heads = DEFAULT_HEADS }: { gpu?: GPUDevice; heads?: number },
) {
  const longest = gpu ? MAX_CHUNK_TOKENS_ON_GPU : MAX_CHUNK_TOKENS
  const maxTokens = picksLogits(graph) ? longest : MAX_CHUNK_TOKENS_WITH_LOGITS
  const maxScoreBytes = gpu ? maxBindingBytes(gpu) : MAX_SCORE_BYTES
  return {
    /** Largest number of tokens in a chunk of any sequence. */
    maxTokens,
    /** Returns the largest number of tokens in the next chunk of a sequence, at least 1. */
    maxTokensFor(kvRow: KvRow): number {
      const capacity = kvPool.capacityAfter(kvRow, maxTokens)
      const bytesPerToken = heads * capacity * Float32Array.BYTES_PER_ELEMENT
      return Math.max(1, Math.min(maxTokens, Math.floor(maxScoreBytes / bytesPerToken)))
    },
  }
}

/** Returns the size in bytes of the largest buffer that a shader of the device takes. */
const maxBindingBytes = ({ limits }: GPUDevice): number =>
  Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize)
