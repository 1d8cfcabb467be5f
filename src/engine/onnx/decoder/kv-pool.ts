/**
 * Stores the KV caches of sequences. A KV batch has one KV tensor per cache of the graph, with a
 * row for each sequence. The sequences of a decode step are gathered in one KV batch. They stay
 * there while the step has the same sequences, so that nothing is copied.
 */
import type { Tensor } from 'onnxruntime-web'
import { bytesOf } from '../tensor.ts'
import type { KvMemory } from './kv-memory.ts'
import type { CacheSpec } from './graph.ts'

/** Location of a sequence's KV cache. */
export interface KvRow {
  /** KV batch with the KV cache; `null` if there is none yet. */
  batch: KvBatch | null
  row: number
  /** Number of the sequence's tokens; the KV batch may have room for more. */
  length: number
}

/** KV tensors with a row for each of their sequences. */
export interface KvBatch {
  /** One KV tensor per cache of the graph. */
  readonly tensors: Tensor[]
  readonly rows: number
  /** Number of tokens for which a row has room. */
  readonly capacity: number
  readonly kvRows: Set<KvRow>
}

/** How a run updates KV caches. */
export type KvLayout =
  /** A run writes into the KV batch that it reads; room is allocated beforehand. */
  | 'in place'
  /** A run returns new KV tensors; the whole length of those that it reads counts as past. */
  | 'exact'

export interface KvPool {
  /**
   * Returns a KV batch whose rows are exactly these sequences; copies them if needed. In the
   * layout `in place`, it has room for `newTokens` tokens.
   */
  gather(kvRows: readonly KvRow[], newTokens: number): KvBatch
  /** Returns the number of tokens that a row has room for after `gather` with `newTokens`. */
  capacityAfter(kvRow: KvRow, newTokens: number): number
  /** Replaces the KV batch of these sequences by the KV tensors that a run returned. */
  replace(kvRows: readonly KvRow[], tensors: Tensor[]): void
  /** Creates another sequence with the first `length` tokens. */
  fork(kvRow: KvRow, length: number): KvRow
  /** Removes a sequence; frees its KV batch if it was the last one there. */
  remove(kvRow: KvRow): void
  /** Returns the size of a row in bytes. */
  bytes(kvRow: KvRow): number
}

/** Tokens that the first KV batch written in place has room for; doubled as a sequence grows. */
const MIN_CAPACITY_TOKENS = 256

/** Creates the storage for the KV caches of a graph with these caches. */
export function createKvPool(
  specs: readonly CacheSpec[],
  memory: KvMemory,
  { layout, contextWindow }: { layout: KvLayout; contextWindow: number },
): KvPool {
  const capacityFor = (tokens: number): number => {
    if (layout !== 'in place') return tokens
    let capacity = MIN_CAPACITY_TOKENS
    while (capacity < tokens) capacity *= 2
    return Math.max(tokens, Math.min(capacity, contextWindow))
  }

  const hasCapacity = ({ capacity }: KvBatch, longest: number, newTokens: number): boolean =>
    layout === 'in place' ? capacity >= longest + newTokens : capacity === longest

  const gather: KvPool['gather'] = (kvRows, newTokens) => {
    const longest = Math.max(...kvRows.map(({ length }) => length))
    const batch = kvRows[0]?.batch
    if (batch && isExactly(batch, kvRows) && hasCapacity(batch, longest, newTokens)) return batch
    return move(kvRows, capacityFor(layout === 'in place' ? longest + newTokens : longest))
  }

  const capacityAfter: KvPool['capacityAfter'] = ({ batch, length }, newTokens) =>
    Math.max(batch?.capacity ?? 0, capacityFor(Math.min(length + newTokens, contextWindow)))

  const move = (kvRows: readonly KvRow[], capacity: number): KvBatch => {
    const sourceBatches = new Set(kvRows.flatMap(({ batch }) => batch ?? []))
    const emptiedBatches = [...sourceBatches].filter((batch) =>
      [...batch.kvRows].every((kvRow) => kvRows.includes(kvRow)),
    )
    const sources = kvRows.map(({ batch }) => [...(batch?.tensors ?? [])])
    const emptiedTensors = emptiedBatches.map(({ tensors }) => tensors.splice(0))
    const tensors: Tensor[] = []
    try {
      for (const [index, spec] of specs.entries()) {
        const tensor = memory.allocate(spec, kvRows.length, capacity)
        tensors.push(tensor)
        kvRows.forEach(({ row, length }, to) => {
          const from = sources[to]?.[index]
          if (from) memory.copy(spec, { tensor: from, row }, { tensor, row: to }, length)
        })
        // Freeing tensor by tensor avoids holding all of them twice.
        memory.flush()
        for (const source of emptiedTensors) source.shift()?.dispose()
      }
    } catch (thrown) {
      for (const tensor of [...tensors, ...emptiedTensors.flat()]) tensor.dispose()
      throw thrown
    }
    return assign(kvRows, { tensors, rows: kvRows.length, capacity, kvRows: new Set() })
  }

  const assign = (kvRows: readonly KvRow[], batch: KvBatch): KvBatch => {
    const previous = kvRows.map((kvRow) => kvRow.batch)
    kvRows.forEach((kvRow, row) => {
      kvRow.batch?.kvRows.delete(kvRow)
      batch.kvRows.add(kvRow)
      Object.assign(kvRow, { batch, row })
    })
    for (const source of new Set(previous)) if (source) compact(source)
    return batch
  }

  /** Frees an empty KV batch, and moves each sequence out of one that is at least half empty. */
  const compact = (batch: KvBatch): void => {
    if (batch.kvRows.size === 0) {
      for (const tensor of batch.tensors.splice(0)) tensor.dispose()
    } else if (batch.rows > 1 && batch.kvRows.size * 2 <= batch.rows) {
      for (const kvRow of batch.kvRows) move([kvRow], capacityFor(kvRow.length))
    }
  }

  const replace: KvPool['replace'] = (kvRows, tensors) => {
    if (layout === 'in place') return
    const [spec] = specs
    const capacity = spec ? (tensors[0]?.dims[spec.axis] ?? 0) : 0
    assign(
      kvRows.toSorted((a, b) => a.row - b.row),
      {
        tensors,
        rows: kvRows.length,
        capacity,
        kvRows: new Set(),
      },
    )
  }

  const fork: KvPool['fork'] = (kvRow, length) => {
    const copy: KvRow = { batch: null, row: 0, length }
    const { batch, row } = kvRow
    if (!batch || length === 0) return copy
    // In the layout `exact` no run writes to the KV batch, so both sequences can share a row.
    batch.kvRows.add(copy)
    Object.assign(copy, { batch, row })
    if (layout === 'in place') move([copy], capacityFor(length))
    return copy
  }

  const remove: KvPool['remove'] = (kvRow) => {
    const { batch } = kvRow
    if (!batch) return
    kvRow.batch = null
    batch.kvRows.delete(kvRow)
    compact(batch)
  }

  const bytes: KvPool['bytes'] = ({ batch }) =>
    batch ? batch.tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0) / batch.rows : 0

  return { gather, capacityAfter, replace, fork, remove, bytes }
}

/** Returns `true` if the sequences are exactly the rows of the KV batch. */
function isExactly(batch: KvBatch, kvRows: readonly KvRow[]): boolean {
  const rows = new Set(kvRows.map(({ row }) => row))
  const isFull = rows.size === batch.rows && kvRows.length === batch.rows
  return isFull && kvRows.every((kvRow) => kvRow.batch === batch)
}
