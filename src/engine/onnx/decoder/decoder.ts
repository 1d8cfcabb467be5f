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
import { withTimeout } from '../../../store/timeouts.ts'
import { InoriginError } from '../../../error.ts'
import { modelUnusable } from '../../failure.ts'
import type { Runtime, Session } from '../runtime.ts'
import { bytesOf } from '../tensor.ts'
import { createChunkLimit } from './chunk-limit.ts'
import { createKvPool, type KvLayout, type KvPool } from './kv-pool.ts'
import { cpuKvMemory, gpuKvMemory, heapKvMemory, type KvMemory } from './kv-memory.ts'
import type { Decoder, Sequence } from '../../decoder.ts'
import { isImageRow } from '../../images.ts'
import { createFeeds, type FeedsOptions } from './feeds.ts'
import { createForwardPass, type ForwardPass, type SequenceCache } from './forward.ts'
import { readGraph, type Graph, type GraphSources } from './graph.ts'
import { createIdleQueue, type IdleQueue } from './idle-queue.ts'
import { createLogitsWrapper } from './logits.ts'
import { AXES, createPositions } from './positions.ts'
import { createEmbedTokens } from '../vision/embed.ts'
import type { ImageRows } from '../vision/image-store.ts'
import { assertFits, createSequence } from './sequence.ts'
import { createStateHistory } from './states.ts'

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
