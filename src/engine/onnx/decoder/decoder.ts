/**
 * Runs a decoder over conversations, keeping what they are remembered by where it was computed.
 *
 * `graph.ts` reads from the graph what it takes and gives. Of its caches, lists have an entry for each
 * token and states do not. The lists of a conversation are a row of a bank (`banks.ts`), tensors that
 * a run reads and, where its attention knows how long each row is, writes in place; other graphs give
 * new ones with every run. To go back is then to call a row shorter. States are replaced by each run
 * and kept at marked lengths (`states.ts`), which are all that can be gone back to. The memory itself
 * is a GPU's, the wasm runtime's, or plain (`blocks.ts`). A `sequence.ts` is one conversation;
 * `forward.ts` is a run, for one of them or for several of one token each.
 */
import { within } from '../../../store/patience.ts'
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

/** A graph that takes tokens, or one that takes what another makes of them. */
export type Sessions = Session | { decoder: Session; embed: Session }

export interface DecoderOptions extends FeedsOptions, Omit<GraphSources, 'embed'> {
  /** The device of the runtime; on `webgpu` what conversations are remembered by stays there. */
  gpu?: GPUDevice
}

/** Most conversations in one step; what each of them reads of its own is not shared. */
const BATCH = 8

/**
 * A decoder of sessions that stay the caller's to release. Throws `unavailable` for a graph that
 * needs what cannot be given.
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
      if (!memory) throw new InoriginError('internal', 'That conversation was closed.')
      checkRoom(sequence.length + 1, contextWindow)
      return { memory, tokens: [token] }
    })
    const tensor = await forward(members, 1)
    if (!tensor) throw new InoriginError('internal', 'The model gave no scores.')
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
    // One that is lost is no reason to wait for ever; the next run tells.
    settled: () => within(PATIENCE, submitted(gpu), undefined),
    async close() {
      for (const sequence of memories.keys()) sequence.close()
      scores.close()
    },
  }
}

/** Milliseconds in which a device that works is done with two chunks. */
const PATIENCE = 10_000

const submitted = async (gpu: GPUDevice | undefined): Promise<void> =>
  gpu?.queue.onSubmittedWorkDone().catch(() => undefined)

/** As many as find room in one buffer of that device when all are as long as can be. */
function batchOf({ lists }: Graph, contextWindow: number, gpu: GPUDevice | undefined): number {
  if (!gpu) return BATCH
  const { maxBufferSize, maxStorageBufferBindingSize } = gpu.limits
  const limit = Math.min(maxBufferSize, maxStorageBufferBindingSize)
  const longest = lists.map(({ type, dims, axis }) =>
    bytesOf({ type, dims: dims.with(axis, contextWindow) }),
  )
  return Math.max(1, Math.min(BATCH, Math.floor(limit / Math.max(...longest))))
}
