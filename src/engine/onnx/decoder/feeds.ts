/** Creates the inputs of a run besides its caches: tokens, positions, and the attention mask or lengths. */
import type { Tensor } from 'onnxruntime-web'
import { isImageRow } from '../../images.ts'
import { LAST_POSITIONS_INPUT, LOGIT_ROWS_INPUT, LONGEST_INPUT } from '../capture-inputs.ts'
import { LONG_ROPE_INPUT } from '../rope-switch.ts'
import type { Ort } from '../tensor.ts'
import type { Graph } from './graph.ts'
import { AXES, type Positions } from './positions.ts'

/** One sequence of a run. */
export interface FeedRow {
  /** Tokens to compute. */
  tokens: readonly number[]
  /** Number of tokens before them. */
  pastLength: number
  /** Positions on three axes. Default: a token's index is its position. */
  positions?: Positions | undefined
  /** `true` for a long sequence. */
  isLong: boolean
}

/** Creates the inputs of a graph's runs. */
export class Feeds {
  readonly #Tensor: Ort['Tensor']
  readonly #graph: Graph
  /** The mask of a single sequence is a view of these ones, so that no run has to fill one. */
  readonly #ones: BigInt64Array
  /** The position ids of a sequence are copied from these. */
  readonly #positions: BigInt64Array

  /** `firstPosition` is the position id of the first token. */
  constructor(
    { Tensor: OrtTensor }: Pick<Ort, 'Tensor'>,
    graph: Graph,
    { contextWindow, firstPosition }: { contextWindow: number; firstPosition: number },
  ) {
    this.#Tensor = OrtTensor
    this.#graph = graph
    this.#ones = new BigInt64Array(graph.attentionMask ? contextWindow : 0).fill(1n)
    const length = graph.positions ? contextWindow : 0
    this.#positions = BigInt64Array.from({ length }, (_, index) => BigInt(index + firstPosition))
  }

  /** Creates the tensor of token ids. */
  tokens(rows: readonly FeedRow[]): Tensor {
    const tokens = rows.flatMap((row) => row.tokens)
    // Any valid id will do for a row of an image, which replaces its embedding.
    const ids = BigInt64Array.from(tokens, (token) => BigInt(isImageRow(token) ? 0 : token))
    return this.#integers('input_ids', ids, [rows.length, tokensPerRow(rows)])
  }

  /**
   * Creates the other inputs for rows with equally many tokens. `keep` is the number of last tokens
   * of each row whose logits are needed.
   */
  otherInputs(rows: readonly FeedRow[], keep: number): Record<string, Tensor> {
    const { attentionMask, positions, logitsToKeep, cacheBranch, longRope } = this.#graph
    const { lengths, logitRows } = this.#graph
    const inputs: Record<string, Tensor> = {}
    if (lengths) {
      const ends = rows.map(endOf)
      const last = Int32Array.from(ends, (end) => end - 1)
      const longest = Int32Array.of(Math.max(...ends))
      inputs[LAST_POSITIONS_INPUT] = new this.#Tensor('int32', last, [rows.length])
      inputs[LONGEST_INPUT] = new this.#Tensor('int32', longest, [1])
    }
    if (logitRows) {
      // A graph with no row of logits would compute empty tensors, which WebGPU cannot bind.
      const length = Math.max(keep, 1)
      const first = tokensPerRow(rows) - length
      const wanted = BigInt64Array.from({ length }, (_, index) => BigInt(first + index))
      inputs[LOGIT_ROWS_INPUT] = new this.#Tensor('int64', wanted, [length])
    }
    if (attentionMask) inputs['attention_mask'] = this.#mask(rows)
    if (positions) inputs['position_ids'] = this.#positionIds(rows, positions.copies)
    if (logitsToKeep) {
      // Exports interpret 0 as the logits of all tokens.
      const count = BigInt64Array.of(BigInt(Math.max(keep, 1)))
      inputs['num_logits_to_keep'] = this.#integers('num_logits_to_keep', count, logitsToKeep)
    }
    if (cacheBranch) {
      const hasPast = rows.some(({ pastLength }) => pastLength > 0)
      inputs['use_cache_branch'] = new this.#Tensor('bool', [hasPast], cacheBranch)
    }
    if (longRope) {
      const isLong = rows.some((row) => row.isLong)
      inputs[LONG_ROPE_INPUT] = new this.#Tensor('bool', [isLong], [])
    }
    return inputs
  }

  /** Creates the tensor of an input, in the type that the graph takes. Default: int64. */
  #integers(name: string, values: BigInt64Array, dims: readonly number[]): Tensor {
    if (this.#graph.integers.get(name) !== 'int32') return new this.#Tensor('int64', values, dims)
    return new this.#Tensor('int32', Int32Array.from(values, Number), dims)
  }

  #mask(rows: readonly FeedRow[]): Tensor {
    const ends = rows.map(endOf)
    const longest = Math.max(...ends)
    if (rows.length === 1)
      return this.#integers('attention_mask', this.#ones.subarray(0, longest), [1, longest])
    // Shorter rows are padded at the end, because batched attention uses only the count of ones.
    const values = new BigInt64Array(rows.length * longest)
    ends.forEach((end, row) => values.fill(1n, row * longest, row * longest + end))
    return this.#integers('attention_mask', values, [rows.length, longest])
  }

  /** Creates the position ids of rows, in so many copies along a leading dimension, if any. */
  #positionIds(rows: readonly FeedRow[], copies: number): Tensor {
    const count = tokensPerRow(rows)
    const values = new BigInt64Array(Math.max(copies, 1) * rows.length * count)
    for (const [index, { pastLength, positions, tokens }] of rows.entries()) {
      const parts = Array.from({ length: Math.max(copies, 1) }, (_, copy) => {
        const start = (copy * rows.length + index) * count
        return values.subarray(start, start + count)
      })
      const end = pastLength + count
      if (positions && copies === AXES) positions.write(tokens, pastLength, parts)
      else for (const each of parts) each.set(this.#positions.subarray(pastLength, end))
    }
    const dims = [rows.length, count]
    return this.#integers('position_ids', values, copies === 0 ? dims : [copies, ...dims])
  }
}

const tokensPerRow = (rows: readonly FeedRow[]): number => rows[0]?.tokens.length ?? 0

/** Returns the number of a row's tokens after the run. */
const endOf = ({ tokens, pastLength }: FeedRow): number => pastLength + tokens.length
