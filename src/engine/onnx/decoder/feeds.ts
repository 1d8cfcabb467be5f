/** Creates the inputs of a run besides its caches: tokens, attention mask and positions. */
import type { Tensor } from 'onnxruntime-web'
import { isImageRow } from '../../images.ts'
import type { Ort } from '../tensor.ts'
import type { Graph } from './graph.ts'
import { AXES, type Positions } from './positions.ts'

/** One sequence of a run. */
interface FeedRow {
  /** Tokens to compute. */
  tokens: readonly number[]
  /** Number of tokens before them. */
  pastLength: number
  /** Positions on three axes. Default: a token's index is its position. */
  positions?: Positions | undefined
}

export interface Feeds {
  /** Creates the tensor of token ids. */
  tokens(rows: readonly FeedRow[]): Tensor
  /**
   * Creates the other inputs for rows with equally many tokens. `keep` is the number of last tokens
   * of each row whose logits are needed.
   */
  otherInputs(rows: readonly FeedRow[], keep: number): Record<string, Tensor>
}

export interface FeedsOptions {
  /** Maximum number of tokens of a sequence. */
  contextWindow: number
  /** Position id of the first token. */
  firstPosition: number
}

/** Creates the feeds of a graph. */
export function createFeeds(
  { Tensor: OrtTensor }: Pick<Ort, 'Tensor'>,
  graph: Graph,
  { contextWindow, firstPosition }: FeedsOptions,
): Feeds {
  const int64: CreateInt64 = (values, dims) => new OrtTensor('int64', values, dims)
  const mask = createMask(int64, graph.attentionMask ? contextWindow : 0)
  const positionIds = createPositionIds(int64, graph.positions ? contextWindow : 0, firstPosition)

  const tokens: Feeds['tokens'] = (rows) =>
    int64(
      BigInt64Array.from(
        rows.flatMap((row) => row.tokens),
        // Any valid id will do for a row of an image, which replaces its embedding.
        (token) => BigInt(isImageRow(token) ? 0 : token),
      ),
      [rows.length, tokensPerRow(rows)],
    )

  const otherInputs: Feeds['otherInputs'] = (rows, keep) => {
    const inputs: Record<string, Tensor> = {}
    if (graph.attentionMask) inputs['attention_mask'] = mask(rows)
    if (graph.positions) inputs['position_ids'] = positionIds(rows, graph.positions.copies)
    if (graph.logitsToKeep) {
      // Exports interpret 0 as the logits of all tokens.
      const count = BigInt64Array.of(BigInt(Math.max(keep, 1)))
      inputs['num_logits_to_keep'] = int64(count, graph.logitsToKeep)
    }
    if (graph.cacheBranch) {
      const hasPast = rows.some(({ pastLength }) => pastLength > 0)
      inputs['use_cache_branch'] = new OrtTensor('bool', [hasPast], graph.cacheBranch)
    }
    return inputs
  }
  return { tokens, otherInputs }
}

const tokensPerRow = (rows: readonly FeedRow[]): number => rows[0]?.tokens.length ?? 0

type CreateInt64 = (values: BigInt64Array, dims: readonly number[]) => Tensor

/** Returns a function that creates the attention mask of rows with at most `maxLength` tokens. */
function createMask(int64: CreateInt64, maxLength: number): (rows: readonly FeedRow[]) => Tensor {
  // The mask of a single sequence is a view of this array, so that no run has to fill one.
  const onesMask = new BigInt64Array(maxLength).fill(1n)
  return (rows) => {
    const ends = rows.map(({ tokens: { length }, pastLength }) => pastLength + length)
    const longest = Math.max(...ends)
    if (rows.length === 1) return int64(onesMask.subarray(0, longest), [1, longest])
    // Shorter rows are padded at the end, because batched attention uses only the count of ones.
    const values = new BigInt64Array(rows.length * longest)
    ends.forEach((end, row) => values.fill(1n, row * longest, row * longest + end))
    return int64(values, [rows.length, longest])
  }
}

/** Returns a function that creates the position ids of rows, in so many copies. */
function createPositionIds(
  int64: CreateInt64,
  maxLength: number,
  firstPosition: number,
): (rows: readonly FeedRow[], copies: number) => Tensor {
  const positions = BigInt64Array.from({ length: maxLength }, (_, index) =>
    BigInt(index + firstPosition),
  )
  return (rows, copies) => {
    const count = tokensPerRow(rows)
    const values = new BigInt64Array(Math.max(copies, 1) * rows.length * count)
    const part = (copy: number, row: number): BigInt64Array => {
      const start = (copy * rows.length + row) * count
      return values.subarray(start, start + count)
    }
    for (const [index, { pastLength, positions: placed, ...row }] of rows.entries()) {
      const parts = Array.from({ length: Math.max(copies, 1) }, (_, copy) => part(copy, index))
      if (placed && copies === AXES) placed.write(row.tokens, pastLength, parts)
      else for (const each of parts) each.set(positions.subarray(pastLength, pastLength + count))
    }
    const dims = [rows.length, count]
    return int64(values, copies === 0 ? dims : [copies, ...dims])
  }
}
