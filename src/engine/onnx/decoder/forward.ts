/** Runs a decoder's graph once, for one sequence or for a batch with one token each. */
import type { Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../../failure.ts'
import type { Session } from '../runtime.ts'
import type { Bank, Banks, Layout, Seat } from './banks.ts'
import type { Feeds } from './feeds.ts'
import type { Graph } from './graph.ts'
import type { History } from './states.ts'

/** KV cache and states of a sequence. */
export interface Memory {
  seat: Seat
  history: History
}

/** A sequence and the tokens to append to it. */
export interface Entry {
  memory: Memory
  tokens: readonly number[]
}

/** Results of a run by name. */
type Tensors = Record<string, Tensor>

/**
 * Function that appends tokens to sequences, equally many to each. It resolves with the logits of
 * the last `keep` tokens, or with `null` if `keep` is 0. Its rows are in the order of the bank.
 */
export type Forward = (entries: readonly Entry[], keep: number) => Promise<Tensor | null>

export interface ForwardOptions {
  graph: Graph
  session: Session
  embed?: Session
  feeds: Feeds
  banks: Banks
  layout: Layout
}

/** Creates the forward pass of a graph. */
export function createForward(options: ForwardOptions): Forward {
  const { graph, session, embed, feeds, banks, layout } = options
  const { lists, states } = graph

  return async (entries, keep) => {
    const count = entries[0]?.tokens.length ?? 0
    const bank = banks.gather(
      entries.map(({ memory }) => memory.seat),
      count,
    )
    const ordered = entries.toSorted((one, other) => one.memory.seat.row - other.memory.seat.row)
    const seats = ordered.map(({ memory }) => memory.seat)
    const rows = ordered.map(({ tokens, memory }) => ({ tokens, past: memory.seat.length }))
    const longest = Math.max(...rows.map(({ past }) => past)) + count

    const ids = feeds.tokens(rows)
    const embedded = embed ? await embed.run({ input_ids: ids }, [...graph.embedded]) : {}
    const results = await session
      .run(
        {
          ...(graph.tokens ? { input_ids: ids } : {}),
          ...feeds.beside(rows, keep),
          ...embedded,
          ...caches(bank, ordered),
        },
        fetches(bank, keep),
      )
      .finally(() => {
        for (const tensor of Object.values(embedded)) tensor.dispose()
      })

    if (layout !== 'in place') {
      const grown = lists.map(({ output }) => results[output] as Tensor)
      checkGrowth(grown, longest, results)
      banks.replace(seats, grown)
    }
    for (const { memory } of ordered) {
      memory.seat.length += count
      memory.history.advance(
        states.map(({ output }) => results[output] as Tensor),
        memory.seat.length,
      )
    }
    return keep > 0 ? (results['logits'] ?? null) : null
  }

  function caches(bank: Bank, entries: readonly Entry[]): Tensors {
    const inputs: Tensors = {}
    lists.forEach(({ input }, index) => {
      inputs[input] = bank.tensors[index] as Tensor
    })
    const now = entries[0]?.memory.history.now.tensors ?? []
    states.forEach(({ input }, index) => {
      inputs[input] = now[index] as Tensor
    })
    return inputs
  }

  function fetches(bank: Bank, keep: number): Record<string, Tensor | null> {
    const outputs: Record<string, Tensor | null> = {}
    lists.forEach(({ output }, index) => {
      outputs[output] = layout === 'in place' ? (bank.tensors[index] as Tensor) : null
    })
    for (const { output } of states) outputs[output] = null
    if (keep > 0) outputs['logits'] = null
    return outputs
  }

  /** Throws `unavailable` if a KV tensor lacks tokens; such a cache could not be cut or shared. */
  function checkGrowth(grown: readonly Tensor[], size: number, results: Tensors): void {
    const other = lists.findIndex(({ axis }, index) => grown[index]?.dims[axis] !== size)
    if (other < 0) return
    for (const tensor of Object.values(results)) tensor.dispose()
    throw modelUnusable(`its KV cache ${lists[other]?.output} does not grow with each token.`)
  }
}
