/** One run of a decoder's graph, for one conversation or for several of one token each. */
import type { Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../../failure.ts'
import type { Session } from '../runtime.ts'
import type { Bank, Banks, Layout, Seat } from './banks.ts'
import type { Feeds } from './feeds.ts'
import type { Graph } from './graph.ts'
import type { History } from './states.ts'

/** What a conversation is remembered by. */
export interface Memory {
  seat: Seat
  history: History
}

export interface Entry {
  memory: Memory
  tokens: readonly number[]
}

/** Results of a run by name. */
type Tensors = Record<string, Tensor>

/**
 * Takes the tokens of each, equally many. Gives the scores of the last `keep` where that is above 0,
 * by the row that each has now.
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

  /** A cache that keeps fewer tokens than there are could not be cut or shared. */
  function checkGrowth(grown: readonly Tensor[], size: number, results: Tensors): void {
    const other = lists.findIndex(({ axis }, index) => grown[index]?.dims[axis] !== size)
    if (other < 0) return
    for (const tensor of Object.values(results)) tensor.dispose()
    throw modelUnusable(`its cache ${lists[other]?.output} does not grow as the text does.`)
  }
}
