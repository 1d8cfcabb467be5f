/**
 * What the loop that writes answers needs of a decoder. Calls come one after the other, over all
 * sequences of a decoder; after a failure only `close` is of use.
 */

/** A model in memory, and the conversations it holds. */
export interface Decoder {
  /** Most tokens to give at once, so that nobody is kept waiting and scores fit in memory. */
  readonly chunk: number
  /** Most sequences that {@link Decoder.step} computes together; 1: it computes one at a time. */
  readonly batch: number
  /** Whether {@link Sequence.mark} is of use: prompts are taken up to each length to be marked. Default: yes. */
  readonly marks?: boolean
  /** Begins a conversation of nothing. */
  open(): Sequence
  /** Takes one token in each of these, at most `batch`; gives a row of scores for each. */
  step(entries: readonly { sequence: Sequence; token: number }[]): Promise<Logits>
  /** Resolves once the device has computed what it was given; it may still be at it. */
  settled(): Promise<void>
  /** Frees everything, sequences included. */
  close(): Promise<void>
}

/** One conversation: its tokens' keys and values, or whatever a model remembers by. */
export interface Sequence {
  /** Tokens taken so far. */
  readonly length: number
  /** Bytes of memory it holds. */
  readonly bytes: number
  /** Takes tokens, at most a chunk, that something follows. */
  extend(tokens: readonly number[]): Promise<void>
  /**
   * Takes tokens, at most a chunk; gives a row of scores for each of the last `rows`, default 1.
   */
  predict(tokens: readonly number[], rows?: number): Promise<Logits>
  /** The greatest length, at most this one, to which it can be cut. */
  reach(length: number): number
  /** Keeps what it takes to come back to the present length, where not every length can be had. */
  mark(): void
  /** Forgets all tokens behind this length, which is one of `reach`. */
  cut(length: number): Promise<void>
  /** Another sequence of the first tokens, to a length of `reach`. */
  fork(length: number): Promise<Sequence>
  close(): void
}

/** Changes to one row of scores, in this order: penalties, bias, mask. */
export interface Adjustments {
  /** Ids, each once, whose positive scores are divided and negative ones multiplied. */
  repetition?: { ids: readonly number[]; factor: number }
  /** Added to the scores of these ids, each once. */
  bias?: { ids: readonly number[]; amounts: readonly number[] }
  /** A bit for each id, in 32-bit words from the lowest; those without one score minus infinity. */
  mask?: Int32Array | null
}

/**
 * The highest scores of a row, after its adjustments. One that is not a number is told before all
 * others, whatever the mask.
 */
export interface Candidates {
  /** By falling score, the lower id first where two are equal. */
  ids: Uint32Array
  scores: Float32Array
  /**
   * The logarithm of the sum of the exponentials of all scores of the row, each over `temperature`;
   * NaN where that is 0.
   */
  logSumExp: number
}

export interface Ask {
  /** How many candidates, 1 to 64. */
  count: number
  /** Divides the scores inside `logSumExp`; 0 where that is not wanted, as for greedy choices. */
  temperature: number
  adjustments?: Adjustments
}

/**
 * What a forward gave: a row of scores for each sequence, or for each of the last tokens of one.
 */
export interface Logits {
  readonly rows: number
  /** Scores of a row. */
  readonly vocabulary: number
  /** Candidates of each row; `asks` has one for each. On a GPU they are chosen there. */
  top(asks: readonly Ask[]): Promise<Candidates[]>
  /** A row as it is, without adjustments. */
  row(index: number): Promise<Float32Array>
  release(): void
}
