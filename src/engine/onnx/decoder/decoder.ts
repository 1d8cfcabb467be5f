/**
 * Runs a decoder over sequences, and keeps their KV caches on the device that computed them.
 *
 * `graph.ts` reads the inputs and outputs of the graph. Its caches are lists (KV tensors), which
 * have an entry for each token, and states, which do not. The KV tensors of a sequence are a row of
 * a bank (`banks.ts`). If the attention gets the length of each row, a run updates a bank in place;
 * otherwise each run returns new KV tensors. A sequence is cut by shortening its row.
 *
 * A run replaces states. They are kept at marked lengths (`states.ts`), and a sequence with states
 * can be cut only to these. `blocks.ts` allocates memory on the GPU, in the WebAssembly runtime, or
 * on the CPU. `sequence.ts` is one sequence. `forward.ts` runs the graph for one sequence, or for a
 * batch with one token each.
 */
import { withTimeout } from '../../../store/timeouts.ts'
import { InoriginError } from '../../../error.ts'
import type { Runtime, Session } from '../runtime.ts'
import { bytesOf } from '../tensor.ts'
import { createBanks, type Layout } from './banks.ts'
import { cpuBlocks, gpuBlocks, heapBlocks } from './blocks.ts'
import type { Decoder, Sequence } from '../../decoder.ts'
import { createFeeds, type FeedsOptions } from './feeds.ts'
import { createForward, type Forward, type Memory } from './forward.ts'
import { readGraph, type Graph, type GraphSources } from './graph.ts'
import { createIdle } from './idle.ts'
import { createScores } from './scores.ts'
import { checkRoom, createSequence } from './sequence.ts'
import { createHistory } from './states.ts'

/** Session of a graph that takes tokens, or of a graph that takes embeddings and of their graph. */
export type Sessions = Session | { decoder: Session; embed: Session }

/** Options of {@link createDecoder}. */
export interface DecoderOptions extends FeedsOptions, Omit<GraphSources, 'embed'> {
  /** Device of the runtime on `webgpu`, where KV caches and logits stay. */
  gpu?: GPUDevice
}

/** Maximum number of sequences in a batch; larger ones gain little, as KV caches are not shared. */
const BATCH = 8

/**
 * Creates a decoder over sessions that the caller releases. Throws `unavailable` if the graph has
 * inputs that are not supported.
 */
export function createDecoder(
  runtime: Runtime,
  sessions: Sessions,
  options: DecoderOptions,
): Decoder {
  const { contextWindow, gpu } = options
  const { decoder: session, embed } =
    'decoder' in sessions ? sessions : { decoder: sessions, embed: undefined }
  const graph = readGraph(session, { ...options, embed })
  const { heap } = session
  const layout: Layout = graph.grouped && (gpu ?? heap) ? 'in place' : 'exact'
  const blocks = gpu
    ? gpuBlocks(runtime.ort, gpu)
    : heap
      ? heapBlocks(heap)
      : cpuBlocks(runtime.ort)
  const banks = createBanks(graph.lists, blocks, { layout, contextWindow })
  const feeds = createFeeds(runtime.ort, graph, options)
  const idle = createIdle()
  const run = createForward({ graph, session, embed, feeds, banks, layout })
  const forward: Forward = (entries, keep) => idle.during(() => run(entries, keep))
  const scores = createScores(gpu)
  const memories = new Map<Sequence, Memory>()
  const blank = () => graph.states.map((slot) => blocks.allocate(slot, 1, 0))

  const add = (memory: Memory): Sequence => {
    const sequence = createSequence(memory, {
      forward,
      banks,
      scores,
      whenIdle: idle.after,
      keepsSome: graph.logitsToKeep !== null,
      marked: graph.states.length > 0,
      contextWindow,
      open: add,
      onClose: () => memories.delete(sequence),
    })
    memories.set(sequence, memory)
    return sequence
  }

  const step: Decoder['step'] = async (entries) => {
    const [single] = entries
    if (single && entries.length === 1) return single.sequence.predict([single.token])
    const members = entries.map(({ sequence, token }) => {
      const memory = memories.get(sequence)
      if (!memory) throw new InoriginError('internal', 'The sequence is closed.')
      checkRoom(sequence.length + 1, contextWindow)
      return { memory, tokens: [token] }
    })
    const tensor = await forward(members, 1)
    if (!tensor) throw new InoriginError('internal', 'The model returned no logits.')
    return scores.of(
      tensor,
      members.map(({ memory }) => memory.seat.row),
    )
  }

  return {
    chunk: graph.logitsToKeep ? 256 : 64,
    batch: graph.ragged && layout === 'in place' ? batchOf(graph, contextWindow, gpu) : 1,
    open: () => add({ seat: { bank: null, row: 0, length: 0 }, history: createHistory(blank) }),
    step,
    // A lost device may never settle, hence the timeout; the next run reports the loss.
    settled: () => withTimeout(PATIENCE, submitted(gpu), undefined),
    async close() {
      for (const sequence of memories.keys()) sequence.close()
      scores.close()
    },
  }
}

/** Timeout in milliseconds of the submitted work; a working device computes two chunks in it. */
const PATIENCE = 10_000

const submitted = async (gpu: GPUDevice | undefined): Promise<void> =>
  gpu?.queue.onSubmittedWorkDone().catch(() => undefined)

/** Returns how many sequences of maximum length fit into one GPU buffer, from 1 to `BATCH`. */
function batchOf({ lists }: Graph, contextWindow: number, gpu: GPUDevice | undefined): number {
  if (!gpu) return BATCH
  const { maxBufferSize, maxStorageBufferBindingSize } = gpu.limits
  const limit = Math.min(maxBufferSize, maxStorageBufferBindingSize)
  const longest = lists.map(({ type, dims, axis }) =>
    bytesOf({ type, dims: dims.with(axis, contextWindow) }),
  )
  return Math.max(1, Math.min(BATCH, Math.floor(limit / Math.max(...longest))))
}
