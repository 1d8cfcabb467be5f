/** Runs a decoder's graph once, for one sequence or for a batch with one token each. */
import type { Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../../failure.ts'
import type { Session } from '../runtime.ts'
import type { EmbedTokens } from '../vision/embed.ts'
import type { KvBatch, KvPool, KvLayout, KvRow } from './kv-pool.ts'
import type { Feeds } from './feeds.ts'
import type { Graph } from './graph.ts'
import type { Positions } from './positions.ts'
import type { StateHistory } from './states.ts'

/** KV cache and states of a sequence. */
export interface SequenceCache {
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
export type ForwardPass = (entries: readonly ForwardEntry[], keep: number) => Promise<Tensor | null>

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
export function createForwardPass(options: ForwardPassOptions): ForwardPass {
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
