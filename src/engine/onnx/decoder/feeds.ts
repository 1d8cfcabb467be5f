/** What a run is told beside its caches: tokens, and where in their conversations they stand. */
import type { Tensor } from 'onnxruntime-web'
import type { Ort } from '../ort.ts'
import type { Graph } from './graph.ts'

/** Tokens of one conversation, and how many it has before them. */
export interface Row {
  tokens: readonly number[]
  past: number
}

export interface Feeds {
  tokens(rows: readonly Row[]): Tensor
  /** For rows of equally many tokens, with scores of the last `keep`. */
  beside(rows: readonly Row[], keep: number): Record<string, Tensor>
}

export interface FeedsOptions {
  /** Most tokens of a conversation. */
  contextWindow: number
  /** Number of the first position. */
  firstPosition: number
}

export function createFeeds(
  { Tensor: OrtTensor }: Pick<Ort, 'Tensor'>,
  graph: Graph,
  { contextWindow, firstPosition }: FeedsOptions,
): Feeds {
  // Filled once: a run of one conversation is given the beginning, however long that is.
  const ones = new BigInt64Array(graph.attentionMask ? contextWindow : 0).fill(1n)
  const positions = BigInt64Array.from(
    { length: graph.positions ? contextWindow : 0 },
    (_, index) => BigInt(index + firstPosition),
  )
  const int64 = (values: BigInt64Array, dims: readonly number[]): Tensor =>
    new OrtTensor('int64', values, dims)

  const tokens: Feeds['tokens'] = (rows) =>
    int64(
      BigInt64Array.from(
        rows.flatMap((row) => row.tokens),
        BigInt,
      ),
      [rows.length, width(rows)],
    )

  const mask = (rows: readonly Row[]): Tensor => {
    const ends = rows.map(({ tokens: { length }, past }) => past + length)
    const longest = Math.max(...ends)
    if (rows.length === 1) return int64(ones.subarray(0, longest), [1, longest])
    // Shorter ones are filled up at the end: attention that counts takes the rest to be nothing.
    const values = new BigInt64Array(rows.length * longest)
    ends.forEach((end, row) => values.fill(1n, row * longest, row * longest + end))
    return int64(values, [rows.length, longest])
  }

  const positionIds = (rows: readonly Row[], copies: number): Tensor => {
    const count = width(rows)
    const values = new BigInt64Array(Math.max(copies, 1) * rows.length * count)
    for (let at = 0; at < values.length; at += count) {
      const past = rows[(at / count) % rows.length]?.past ?? 0
      values.set(positions.subarray(past, past + count), at)
    }
    const dims = [rows.length, count]
    return int64(values, copies === 0 ? dims : [copies, ...dims])
  }

  const beside: Feeds['beside'] = (rows, keep) => {
    const inputs: Record<string, Tensor> = {}
    if (graph.attentionMask) inputs['attention_mask'] = mask(rows)
    if (graph.positions) inputs['position_ids'] = positionIds(rows, graph.positions.copies)
    if (graph.logitsToKeep) {
      // Of nothing kept an export gives everything.
      const count = BigInt64Array.of(BigInt(Math.max(keep, 1)))
      inputs['num_logits_to_keep'] = int64(count, graph.logitsToKeep)
    }
    if (graph.cacheBranch) {
      const hasPast = rows.some(({ past }) => past > 0)
      inputs['use_cache_branch'] = new OrtTensor('bool', [hasPast], graph.cacheBranch)
    }
    return inputs
  }
  return { tokens, beside }
}

const width = (rows: readonly Row[]): number => rows[0]?.tokens.length ?? 0
