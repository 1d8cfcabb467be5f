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

/** Way in which a run updates KV caches. */
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

/** Way in which KV batches are stored. */
interface KvStorage {
  readonly specs: readonly CacheSpec[]
  readonly memory: KvMemory
  readonly layout: KvLayout
  readonly contextWindow: number
}

/** Creates the storage for the KV caches of a graph with these caches. */
export function createKvPool(
  specs: readonly CacheSpec[],
  memory: KvMemory,
  options: { layout: KvLayout; contextWindow: number },
): KvPool {
  const storage: KvStorage = { specs, memory, ...options }
  const isInPlace = options.layout === 'in place'
  return {
    gather(kvRows, newTokens) {
      const longest = Math.max(...kvRows.map(({ length }) => length))
      const tokens = isInPlace ? longest + newTokens : longest
      const batch = kvRows[0]?.batch
      const fits = (capacity: number) => (isInPlace ? capacity >= tokens : capacity === tokens)
      if (batch && isExactly(batch, kvRows) && fits(batch.capacity)) return batch
      return move(storage, kvRows, capacityFor(storage, tokens))
    },
    capacityAfter: ({ batch, length }, newTokens) =>
      Math.max(
        batch?.capacity ?? 0,
        capacityFor(storage, Math.min(length + newTokens, storage.contextWindow)),
      ),
    replace(kvRows, tensors) {
      if (isInPlace) return
      const [spec] = specs
      const capacity = spec ? (tensors[0]?.dims[spec.axis] ?? 0) : 0
      const batch = { tensors, rows: kvRows.length, capacity, kvRows: new Set<KvRow>() }
      assign(
        storage,
        kvRows.toSorted((a, b) => a.row - b.row),
        batch,
      )
    },
    fork({ batch, row }, length) {
      const copy: KvRow = { batch: null, row: 0, length }
      if (!batch || length === 0) return copy
      // In the layout `exact` no run writes to the KV batch, so both sequences can share a row.
      batch.kvRows.add(copy)
      Object.assign(copy, { batch, row })
      if (isInPlace) move(storage, [copy], capacityFor(storage, length))
      return copy
    },
    remove(kvRow) {
      const { batch } = kvRow
      if (!batch) return
      kvRow.batch = null
      batch.kvRows.delete(kvRow)
      compact(storage, batch)
    },
    bytes: ({ batch }) =>
      batch ? batch.tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0) / batch.rows : 0,
  }
}

/** Returns the number of tokens for which a row gets room. */
function capacityFor({ layout, contextWindow }: KvStorage, tokens: number): number {
  if (layout !== 'in place') return tokens
  let capacity = MIN_CAPACITY_TOKENS
  while (capacity < tokens) capacity *= 2
  return Math.max(tokens, Math.min(capacity, contextWindow))
}

/** Copies the sequences to a new KV batch, and frees those that become empty. */
function move(storage: KvStorage, kvRows: readonly KvRow[], capacity: number): KvBatch {
  const { specs, memory } = storage
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
  return assign(storage, kvRows, { tensors, rows: kvRows.length, capacity, kvRows: new Set() })
}

/** Makes the sequences the rows of the KV batch, and compacts those that they leave. */
function assign(storage: KvStorage, kvRows: readonly KvRow[], batch: KvBatch): KvBatch {
  const previous = new Set(kvRows.flatMap((kvRow) => kvRow.batch ?? []))
  kvRows.forEach((kvRow, row) => {
    kvRow.batch?.kvRows.delete(kvRow)
    batch.kvRows.add(kvRow)
    Object.assign(kvRow, { batch, row })
  })
  for (const source of previous) compact(storage, source)
  return batch
}

/** Frees an empty KV batch, and moves each sequence out of one that is at least half empty. */
function compact(storage: KvStorage, batch: KvBatch): void {
  if (batch.kvRows.size === 0) {
    for (const tensor of batch.tensors.splice(0)) tensor.dispose()
  } else if (batch.rows > 1 && batch.kvRows.size * 2 <= batch.rows) {
    for (const kvRow of batch.kvRows) move(storage, [kvRow], capacityFor(storage, kvRow.length))
  }
}

/** Returns `true` if the sequences are exactly the rows of the KV batch. */
function isExactly(batch: KvBatch, kvRows: readonly KvRow[]): boolean {
  const rows = new Set(kvRows.map(({ row }) => row))
  const isFull = rows.size === batch.rows && kvRows.length === batch.rows
  return isFull && kvRows.every((kvRow) => kvRow.batch === batch)
}
