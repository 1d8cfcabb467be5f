/**
 * Contract between the scheduler and a decoder. The scheduler awaits each call before the next one,
 * across all sequences of a decoder. After a call fails, only `close` may be called.
 */

/** A loaded model and the KV caches of its sequences. */
export interface Decoder {
  /**
   * Largest number of tokens in one call of `extend` or `forward`. It bounds the time that other
   * sequences wait and the memory that logits need.
   */
  readonly maxChunkTokens: number
  /** Largest batch of {@link Decoder.step}. With 1, sequences are computed one at a time. */
  readonly maxBatchSize: number
  /** Largest number of rows that {@link Sequence.forward} can compute. Default: any number. */
  readonly maxRows?: number | undefined
  /**
   * `false` if {@link Sequence.checkpoint} has no use. Otherwise a prefill chunk ends at each
   * length that needs a checkpoint. Default: `true`.
   */
  readonly checkpoints?: boolean
  /**
   * Largest length in tokens of a sequence that is not opened as a long one. A long one is computed
   * in another way from its first token on. Default: there is only one way.
   */
  readonly maxShortLength?: number
  /**
   * `true` if several tokens at once are computed correctly only at the start of a sequence. Then
   * the first run has the whole prompt, and each later one a single token. Default: `false`.
   */
  readonly chunksOnlyAtStart?: boolean
  /**
   * Encodes the first image that these numbers of a prompt have rows of, or a part of it, unless it
   * is encoded. Resolves to `true` if there was something to encode. Absent if prompts have no
   * images.
   */
  encodeNext?(tokens: readonly number[]): Promise<boolean>
  /** Returns a new, empty sequence; with `isLong`, one that may exceed `maxShortLength`. */
  open(isLong?: boolean): Sequence
  /**
   * Runs one decode step: appends one token to each sequence, at most `maxBatchSize` of them.
   * Resolves to one row of logits for each entry.
   */
  step(entries: readonly { sequence: Sequence; token: number }[]): Promise<Logits>
  /** Resolves when the device has finished the work submitted so far. */
  synchronize(): Promise<void>
  /** Frees memory that is kept for later sequences. Absent: none is kept. */
  trim?(): void
  /** Frees the model and all sequences. */
  close(): Promise<void>
}

/** The tokens of one conversation and their KV cache, or another state that the model keeps. */
export interface Sequence {
  /** Number of tokens computed so far. */
  readonly length: number
  /** Memory that the sequence holds, in bytes. */
  readonly bytes: number
  /** `true` if it was opened as a long one. Default: `false`. */
  readonly isLong?: boolean
  /**
   * Largest number of tokens in the next call of `extend` or `forward`, at least 1. It bounds the
   * memory that attention needs. Default: `maxChunkTokens` of the decoder.
   */
  readonly maxChunkTokens?: number
  /** Appends at most `maxChunkTokens` tokens without computing logits. */
  extend(tokens: readonly number[]): Promise<void>
  /** Appends tokens like `extend`, and resolves to the logits of the last `rows`, by default 1. */
  forward(tokens: readonly number[], rows?: number): Promise<Logits>
  /**
   * Appends the token that the latest `top` of these logits ranks first, before its result is there. They must have
   * one row, and that request must be for one candidate. Resolves to the logits after the token, or to `null`, without
   * any change, if such a run cannot be made now. Absent: the tokens of all runs have to be known.
   */
  forwardBest?(logits: Logits): Promise<Logits | null>
  /** Returns the greatest length, at most `length`, to which the sequence can be truncated. */
  reusableLength(length: number): number
  /** Saves the state at the present length, if the sequence cannot be truncated to every length. */
  checkpoint(): void
  /** Removes all tokens after this length, which must be a result of `reusableLength`. */
  truncate(length: number): Promise<void>
  /** Resolves to a new sequence of the first `length` tokens, a result of `reusableLength`. */
  fork(length: number): Promise<Sequence>
  /** Frees the sequence. */
  close(): void
}

/** Changes to a row of logits, applied in the order repetition penalty, logit bias, token mask. */
export interface Adjustments {
  /** Distinct ids. Their positive logits are divided by `factor`, negative ones multiplied. */
  repetition?: { ids: readonly number[]; factor: number }
  /** Amounts to add to the logits of these distinct token ids. */
  bias?: { ids: readonly number[]; amounts: readonly number[] }
  /**
   * Token mask: one bit for each id in 32-bit words, lowest bit first. The logits of ids whose bit
   * is 0 become negative infinity.
   */
  mask?: Int32Array | null
}

/** The highest logits of a row, after its adjustments. Even a masked NaN precedes all others. */
export interface Candidates {
  /** Token ids in descending order of their logits. Of equal logits, the lower id comes first. */
  ids: Uint32Array
  scores: Float32Array
  /** Logarithm of the sum of `exp(logit / temperature)` over the row. NaN if `temperature` is 0. */
  logSumExp: number
}

/** Request for the candidates of one row. */
export interface CandidateRequest {
  /** Number of candidates, 1 to 64. */
  count: number
  /** Temperature of `logSumExp`. 0 skips that sum, as for greedy sampling. */
  temperature: number
  adjustments?: Adjustments
}

/** Result of a forward pass: a row of logits for each sequence, or for the last tokens of one. */
export interface Logits {
  /** Number of rows. */
  readonly rows: number
  /** Number of logits in a row. */
  readonly vocabulary: number
  /** Resolves to the candidates of each row, by its request. On a GPU, the GPU selects them. */
  top(requests: readonly CandidateRequest[]): Promise<Candidates[]>
  /** Resolves to one row of logits, without adjustments. */
  row(index: number): Promise<Float32Array>
  /** Frees the logits. */
  release(): void
}

/** A run that only warms a decoder up: a device compiles what its kind of run needs. It never runs beside another. */
export type IdleRun = () => Promise<void>
