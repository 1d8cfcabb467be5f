/**
 * Limits the length of prefill chunks, so that logits and attention scores fit in memory.
 *
 * On the CPU, attention stores `heads x chunk x capacity` scores of 4 bytes, where the capacity is
 * the number of tokens that the KV cache has room for. A layer frees them before the next one runs.
 * On the GPU, attention stores none.
 */
import type { Graph } from './graph.ts'
import type { KvPool, KvRow } from './kv-pool.ts'

export interface ChunkLimit {
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
