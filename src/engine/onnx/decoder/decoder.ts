/**
 * Runs a decoder over sequences, and keeps their KV caches on the device that computed them.
 *
 * `graph.ts` reads the inputs and outputs of the graph. Its caches are KV caches, which have an
 * entry for each token, and states, which do not. The KV cache of a sequence is a row of a KV batch
 * (`kv-pool.ts`). If the attention gets the length of each row, a run updates a KV batch in place;
 * otherwise each run returns new KV tensors. A sequence is truncated by shortening its row.
 *
 * A run replaces states. They are saved at checkpoints (`states.ts`), and a sequence with states
 * can be truncated only to these. `kv-memory.ts` allocates memory on the GPU, in the WebAssembly
 * runtime, or on the CPU. `chunk-limit.ts` limits prefill chunks. `sequence.ts` is one sequence.
 * `forward.ts` runs the graph for one sequence, or for a batch with one token each. `positions.ts` places
 * rows of images on three axes.
 */
import type { Tensor } from 'onnxruntime-web'
import { InoriginError } from '../../../error.ts'
import { withTimeout } from '../../../values/promises.ts'
import type { Decoder, Logits, Sequence } from '../../decoder.ts'
import { modelUnusable } from '../../failure.ts'
import { isImageRow } from '../../images.ts'
import { createCpuLogits } from '../../sampling/logits.ts'
import { createGpuLogits, rowOf } from '../logits/gpu.ts'
import type { Runtime, Session } from '../runtime.ts'
import { bytesOf } from '../tensor.ts'
import { createEmbedTokens, type EmbedTokens } from '../vision/embed.ts'
import type { ImageRows } from '../vision/image-store.ts'
import { createFeeds, type Feeds, type FeedsOptions } from './feeds.ts'
import { type Graph, type GraphSources, readGraph } from './graph.ts'
import {
  cpuKvMemory,
  createKvPool,
  gpuKvMemory,
  heapKvMemory,
  type KvBatch,
  type KvLayout,
  type KvMemory,
  type KvPool,
  type KvRow,
} from './kv-pool.ts'
import { AXES, createPositions, type Positions } from './positions.ts'
import { createStateHistory, type StateHistory } from './states.ts'

/** Session of a graph that takes tokens, or of a graph that takes embeddings and of their graph. */
type Sessions = Session | { decoder: Session; embed: Session }

/** Options of {@link createDecoder}. */
interface DecoderOptions extends FeedsOptions, Omit<GraphSources, 'embed'> {
  /** Device of the runtime on `webgpu`, where KV caches and logits stay. */
  gpu?: GPUDevice
  /** Rows of images in prompts. Default: prompts have no images. */
  images?: ImageRows
}

/** Maximum number of sequences in a batch; larger ones gain little, as KV caches are not shared. */
const MAX_BATCH_SIZE = 8

/**
 * Creates a decoder over sessions that the caller releases. Throws `unavailable` if the graph has
 * inputs that are not supported.
 */
export function createDecoder(
  runtime: Runtime,
  sessions: Sessions,
  options: DecoderOptions,
): Decoder {
  const { contextWindow, firstPosition, gpu, images } = options
  const opened = openGraph(runtime, sessions, options)
  const { graph, memory, kvPool, idleQueue, forwardPass } = opened
  const chunkLimit = createChunkLimit(graph, kvPool, options)
  const logitsWrapper = createLogitsWrapper(gpu)
  const caches = new Map<Sequence, SequenceCache>()

  const addSequence = (cache: SequenceCache): Sequence => {
    const sequence = createSequence(cache, {
      forwardPass,
      kvPool,
      logitsWrapper,
      whenIdle: idleQueue.whenIdle,
      selectsLogits: graph.logitsToKeep !== null,
      hasStates: graph.states.length > 0,
      contextWindow,
      maxChunkTokens: chunkLimit.maxTokensFor,
      open: addSequence,
      onClose: () => caches.delete(sequence),
    })
    caches.set(sequence, cache)
    return sequence
  }

  const step: Decoder['step'] = async (entries) => {
    const [single] = entries
    if (single && entries.length === 1) return single.sequence.forward([single.token])
    const batch = toBatch(entries, caches, contextWindow)
    const logits = await forwardPass(batch, 1)
    const rows = batch.map(({ cache }) => cache.kvRow.row)
    return logitsWrapper.wrap(logits, rows)
  }

  return {
    ...(images && {
      encodeNext: (tokens: readonly number[]) =>
        idleQueue.run(() => images.encodeNext(tokens.filter(isImageRow))),
    }),
    maxChunkTokens: chunkLimit.maxTokens,
    maxBatchSize: maxBatchSizeOf(opened, contextWindow, gpu),
    open: () =>
      addSequence({
        kvRow: { batch: null, row: 0, length: 0 },
        history: createStateHistory(() => graph.states.map((spec) => memory.allocate(spec, 1, 0))),
        positions: images?.locate && createPositions(images.locate, firstPosition),
      }),
    step,
    // A lost device may never settle, hence the timeout; the next run reports the loss.
    synchronize: () => withTimeout(SYNCHRONIZE_TIMEOUT_MS, submitted(gpu), undefined),
    async close() {
      for (const sequence of caches.keys()) sequence.close()
      logitsWrapper.close()
    },
  }
}

/** A graph with the memory of its caches, as all sequences use it. */
interface OpenGraph {
  graph: Graph
  memory: KvMemory
  layout: KvLayout
  kvPool: KvPool
  idleQueue: IdleQueue
  forwardPass: ForwardPass
}

function openGraph(runtime: Runtime, sessions: Sessions, options: DecoderOptions): OpenGraph {
  const { contextWindow, gpu, images } = options
  const { decoder: session, embed } =
    'decoder' in sessions ? sessions : { decoder: sessions, embed: undefined }
  const graph = readGraph(session, { ...options, embed })
  if (images?.locate && graph.positions?.copies !== AXES)
    throw modelUnusable(`its decoder takes no positions on ${AXES} axes.`)
  const { heap } = session
  const layout: KvLayout = graph.grouped && (gpu ?? heap) ? 'in place' : 'exact'
  const memory = gpu
    ? gpuKvMemory(runtime.ort, gpu)
    : heap
      ? heapKvMemory(heap)
      : cpuKvMemory(runtime.ort)
  const kvPool = createKvPool(graph.kvCaches, memory, { layout, contextWindow })
  const feeds = createFeeds(runtime.ort, graph, options)
  const idleQueue = createIdleQueue()
  const embedTokens = embed && createEmbedTokens(runtime, embed, graph.embedded, images)
  const run = createForwardPass({ graph, session, embed: embedTokens, feeds, kvPool, layout })
  const forwardPass: ForwardPass = (entries, keep) => idleQueue.run(() => run(entries, keep))
  return { graph, memory, layout, kvPool, idleQueue, forwardPass }
}

/** Timeout in milliseconds of the submitted work; a working device computes two chunks in it. */
const SYNCHRONIZE_TIMEOUT_MS = 10_000

const submitted = async (gpu: GPUDevice | undefined): Promise<void> =>
  gpu?.queue.onSubmittedWorkDone().catch(() => undefined)

/** Returns the batch of a step, of sequences that are open and have room for a token. */
function toBatch(
  entries: Parameters<Decoder['step']>[0],
  caches: ReadonlyMap<Sequence, SequenceCache>,
  contextWindow: number,
) {
  return entries.map(({ sequence, token }) => {
    const cache = caches.get(sequence)
    if (!cache) throw new InoriginError('internal', 'The sequence is closed.')
    assertFits(sequence.length + 1, contextWindow)
    return { cache, tokens: [token] }
  })
}

/**
 * Returns how many sequences of maximum length fit into one GPU buffer, from 1 to
 * `MAX_BATCH_SIZE`; 1 if the graph takes one sequence at a time.
 */
function maxBatchSizeOf(
  { graph: { ragged, kvCaches }, layout }: OpenGraph,
  contextWindow: number,
  gpu: GPUDevice | undefined,
): number {
  if (!ragged || layout !== 'in place') return 1
  if (!gpu) return MAX_BATCH_SIZE
  const { maxBufferSize, maxStorageBufferBindingSize } = gpu.limits
  const limit = Math.min(maxBufferSize, maxStorageBufferBindingSize)
  const longest = kvCaches.map(({ type, dims, axis }) =>
    bytesOf({ type, dims: dims.with(axis, contextWindow) }),
  )
  return Math.max(1, Math.min(MAX_BATCH_SIZE, Math.floor(limit / Math.max(...longest))))
}

// One sequence of a decoder.

interface SequenceOptions {
  forwardPass: ForwardPass
  kvPool: KvPool
  logitsWrapper: LogitsWrapper
  /** Calls a task now, or after the run that is in progress. */
  whenIdle(task: () => void): void
  /** `true` if a run can compute the logits of only some positions. */
  selectsLogits: boolean
  /** `true` if the sequence can be truncated only to its checkpoints. */
  hasStates: boolean
  /** Maximum number of tokens. */
  contextWindow: number
  /** Returns the largest number of tokens in the next run. */
  maxChunkTokens(kvRow: KvRow): number
  /** Creates a sequence for a forked KV cache. */
  open(cache: SequenceCache): Sequence
  /** Callback of the first `close`. */
  onClose(): void
}

/** Creates a sequence over a KV cache, which it owns from now on. */
function createSequence(cache: SequenceCache, options: SequenceOptions): Sequence {
  const { forwardPass, kvPool, hasStates, contextWindow } = options
  const { kvRow, history } = cache
  let closed = false

  const run = (tokens: readonly number[], keep: number): ReturnType<ForwardPass> => {
    assertFits(kvRow.length + tokens.length, contextWindow)
    return forwardPass([{ cache, tokens }], keep)
  }

  const reusableLength = (length: number): number =>
    hasStates ? history.restorableLength(length) : Math.min(length, kvRow.length)

  const assertReusable = (length: number): void => {
    if (length === reusableLength(length)) return
    throw new InoriginError('internal', `The sequence cannot be cut to ${length} tokens.`)
  }

  return {
    get length() {
      return kvRow.length
    },
    get bytes() {
      return kvPool.bytes(kvRow) + history.bytes
    },
    get maxChunkTokens() {
      return options.maxChunkTokens(kvRow)
    },
    ...createRuns(run, options),
    reusableLength,
    checkpoint: () => history.save(),
    async truncate(length) {
      assertReusable(length)
      history.restore(length)
      kvRow.length = length
    },
    async fork(length) {
      assertReusable(length)
      return options.open({
        kvRow: kvPool.fork(kvRow, length),
        history: history.fork(length),
        positions: cache.positions?.fork(length),
      })
    },
    close() {
      if (closed) return
      closed = true
      options.onClose()
      options.whenIdle(() => {
        kvPool.remove(kvRow)
        history.close()
      })
    },
  }
}

/** Creates the calls that append tokens, with `run`, which computes the logits of the last `keep`. */
function createRuns(
  run: (tokens: readonly number[], keep: number) => ReturnType<ForwardPass>,
  { logitsWrapper, selectsLogits }: Pick<SequenceOptions, 'logitsWrapper' | 'selectsLogits'>,
): Pick<Sequence, 'extend' | 'forward'> {
  const extend: Sequence['extend'] = async (tokens) => {
    if (tokens.length > 0) await run(tokens, 0)
  }

  const forward: Sequence['forward'] = async (tokens, rows = 1) => {
    if (!selectsLogits && tokens.length > rows) {
      // Such a run would compute and store the logits of all positions only to use the last ones.
      await extend(tokens.slice(0, -rows))
      return forward(tokens.slice(-rows), rows)
    }
    return logitsWrapper.wrap(await run(tokens, rows), [...Array(rows).keys()])
  }
  return { extend, forward }
}

/** Throws `internal` if a length exceeds the context window; the model knows no later positions. */
function assertFits(length: number, contextWindow: number): void {
  if (length <= contextWindow) return
  const what = `${length} tokens exceed the context window of ${contextWindow}.`
  throw new InoriginError('internal', what)
}

// Runs a decoder's graph once, for one sequence or for a batch with one token each.

/** KV cache and states of a sequence. */
interface SequenceCache {
  kvRow: KvRow
  history: StateHistory
  /** Positions on three axes, if the model places rows of images so. */
  positions?: Positions | undefined
}

/** A sequence and the tokens to append to it. */
interface ForwardEntry {
  cache: SequenceCache
  tokens: readonly number[]
}

/** Results of a run by name. */
type NamedTensors = Record<string, Tensor>

/**
 * Function that appends tokens to sequences, equally many to each. It resolves with the logits of
 * the last `keep` tokens, or with `null` if `keep` is 0. Its rows are in the order of the KV batch.
 */
type ForwardPass = (entries: readonly ForwardEntry[], keep: number) => Promise<Tensor | null>

interface ForwardPassOptions {
  graph: Graph
  session: Session
  /** Function of the graph that makes embeddings, if it is a separate one. */
  embed?: EmbedTokens
  feeds: Feeds
  kvPool: KvPool
  layout: KvLayout
}

/** Creates the forward pass of a graph. */
function createForwardPass(options: ForwardPassOptions): ForwardPass {
  const { graph, session, embed, feeds, kvPool, layout } = options
  const { kvCaches, states } = graph

  return async (entries, keep) => {
    const newTokens = entries[0]?.tokens.length ?? 0
    const batch = kvPool.gather(
      entries.map(({ cache }) => cache.kvRow),
      newTokens,
    )
    const ordered = entries.toSorted((one, other) => one.cache.kvRow.row - other.cache.kvRow.row)
    const kvRows = ordered.map(({ cache }) => cache.kvRow)
    const rows = ordered.map(({ tokens, cache }) => ({
      tokens,
      pastLength: cache.kvRow.length,
      positions: cache.positions,
    }))
    const longest = Math.max(...rows.map(({ pastLength }) => pastLength)) + newTokens

    const ids = feeds.tokens(rows)
    const allTokens = rows.flatMap(({ tokens }) => tokens)
    const embedded = embed ? await embed(ids, allTokens) : {}
    const results = await session
      .run(
        {
          ...(graph.tokens ? { input_ids: ids } : {}),
          ...feeds.otherInputs(rows, keep),
          ...embedded,
          ...cacheInputs(graph, batch, ordered[0]),
        },
        fetches(batch, keep),
      )
      .finally(() => {
        for (const tensor of Object.values(embedded)) tensor.dispose()
      })

    if (layout !== 'in place') {
      const newTensors = kvCaches.map(({ output }) => results[output] as Tensor)
      assertGrown(graph, newTensors, longest, results)
      kvPool.replace(kvRows, newTensors)
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

  function fetches(batch: KvBatch, keep: number): Record<string, Tensor | null> {
    const tensors = layout === 'in place' ? batch.tensors : []
    const outputs = [...kvCaches, ...states].map(
      ({ output }, index) => [output, tensors[index] ?? null] as const,
    )
    return Object.fromEntries(keep > 0 ? [...outputs, ['logits', null]] : outputs)
  }
}

function cacheInputs(
  { kvCaches, states }: Graph,
  batch: KvBatch,
  entry: ForwardEntry | undefined,
): NamedTensors {
  const tensors = [...batch.tensors, ...(entry?.cache.history.current.tensors ?? [])]
  return Object.fromEntries(
    [...kvCaches, ...states].map(({ input }, index) => [input, tensors[index] as Tensor]),
  )
}

/** Throws `unavailable` if a KV tensor lacks tokens; it could not be truncated or shared. */
function assertGrown(
  { kvCaches }: Graph,
  newTensors: readonly Tensor[],
  size: number,
  results: NamedTensors,
): void {
  const other = kvCaches.findIndex(({ axis }, index) => newTensors[index]?.dims[axis] !== size)
  if (other < 0) return
  for (const tensor of Object.values(results)) tensor.dispose()
  throw modelUnusable(`its KV cache ${kvCaches[other]?.output} does not grow with each token.`)
}

// Limits the length of prefill chunks, so that logits and attention scores fit in memory. On the
// CPU, attention stores `heads x chunk x capacity` scores of 4 bytes, where the capacity is the
// number of tokens that the KV cache has room for. A layer frees them before the next one runs. On
// the GPU, attention stores none.

interface ChunkLimit {
  /** Largest number of tokens in a chunk of any sequence. */
  readonly maxTokens: number
  /** Returns the largest number of tokens in the next chunk of a sequence, at least 1. */
  maxTokensFor(kvRow: KvRow): number
}

/** Largest chunk in tokens of a graph that computes the logits of the last token only. */
const MAX_CHUNK_TOKENS = 256

/** Largest chunk in tokens of a graph that computes the logits of all tokens. */
const MAX_CHUNK_TOKENS_WITH_LOGITS = 64

/** Maximum size in bytes of the attention scores of a layer. */
const MAX_SCORE_BYTES = 64 * 2 ** 20

/** Number of attention heads if it is unknown; few models that fit in a browser have more. */
const DEFAULT_HEADS = 32

/** Creates the limit of a graph. `gpu` is the device on `webgpu`, `heads` those of attention. */
export function createChunkLimit(
  graph: Graph,
  kvPool: KvPool,
  { gpu, heads = DEFAULT_HEADS }: { gpu?: GPUDevice; heads?: number },
): ChunkLimit {
  const maxTokens = graph.logitsToKeep ? MAX_CHUNK_TOKENS : MAX_CHUNK_TOKENS_WITH_LOGITS
  const maxTokensFor: ChunkLimit['maxTokensFor'] = (kvRow) => {
    if (gpu) return maxTokens
    const capacity = kvPool.capacityAfter(kvRow, maxTokens)
    const bytesPerToken = heads * capacity * Float32Array.BYTES_PER_ELEMENT
    return Math.max(1, Math.min(maxTokens, Math.floor(MAX_SCORE_BYTES / bytesPerToken)))
  }
  return { maxTokens, maxTokensFor }
}

// Defers tasks while a run is in progress, such as freeing memory that the run uses.

interface IdleQueue {
  /** Runs a task, during which others are deferred. */
  run<T>(task: () => Promise<T>): Promise<T>
  /** Calls a task now, or as soon as no run is in progress. */
  whenIdle(task: () => void): void
}

/** Creates a queue without any runs. */
function createIdleQueue(): IdleQueue {
  const deferred: (() => void)[] = []
  let running = 0
  return {
    async run(task) {
      running += 1
      try {
        return await task()
      } finally {
        running -= 1
        if (running === 0) for (const each of deferred.splice(0)) each()
      }
    },
    whenIdle(task) {
      if (running > 0) deferred.push(task)
      else task()
    },
  }
}

// Wraps the logits tensor that a run returned, for the sampler.

interface LogitsWrapper {
  /**
   * Resolves with logits whose rows are the tensor's rows in `order`. It takes ownership of the
   * tensor. Rejects with `internal` if the model returned none.
   */
  wrap(tensor: Tensor | null, order: readonly number[]): Promise<Logits>
  /** Frees the tensors of logits that were not released. */
  close(): void
}

/** Creates the wrapper. If a tensor is in GPU memory, candidates are selected there. */
function createLogitsWrapper(gpu: GPUDevice | undefined): LogitsWrapper {
  const unreleased = new Set<Tensor>()

  const wrap: LogitsWrapper['wrap'] = async (tensor, order) => {
    if (!tensor) throw new InoriginError('internal', 'The model returned no logits.')
    if (!gpu || tensor.location !== 'gpu-buffer') {
      return createCpuLogits(order.map((row) => rowOf(tensor, row)))
    }
    unreleased.add(tensor)
    const logits = await createGpuLogits(gpu)
    return logits({
      buffer: tensor.gpuBuffer,
      type: tensor.type === 'float16' ? 'float16' : 'float32',
      order,
      vocabulary: tensor.dims.at(-1) ?? 0,
      release() {
        // The runtime keeps its output tensors until they are disposed of.
        unreleased.delete(tensor)
        tensor.dispose()
      },
    })
  }

  const close = (): void => {
    for (const tensor of unreleased) tensor.dispose()
    unreleased.clear()
  }
  return { wrap, close }
}
