/**
 * A decoder over WebLLM, which holds the KV cache of one sequence and cannot remove tokens from it.
 * A sequence here is only a list of tokens. The sequence that was computed last continues from the
 * KV cache; any other one is computed from its first token.
 */
import { InoriginError } from '../../error.ts'
import type { Decoder, Logits, Sequence } from '../decoder.ts'
import { deviceFailure } from '../failure.ts'
import { createCpuLogits } from '../sampling/logits.ts'

/**
 * The documented low-level calls of WebLLM (0.2.86). None of them removes a part of the KV cache,
 * so a prompt that does not extend the previous one is computed from its first token.
 */
export interface Pipeline {
  /** Appends tokens to the KV cache and resolves with the logits of the next token. */
  forward(tokens: readonly number[]): Promise<Float32Array>
  /** Clears the KV cache. */
  reset(): Promise<void>
}

/** Tokens of one prefill chunk; a larger chunk would block other work for too long. */
const PREFILL_CHUNK_TOKENS = 512

/** A decoder that computes one sequence at a time on the pipeline. */
export class WebllmDecoder implements Decoder {
  readonly maxChunkTokens = PREFILL_CHUNK_TOKENS
  readonly maxBatchSize = 1
  readonly checkpoints = false
  readonly #cache: KvCache

  constructor(pipeline: Pipeline) {
    this.#cache = new KvCache(pipeline)
  }

  open(): Sequence {
    return new TokenSequence(this.#cache, Symbol('conversation'), [])
  }

  async step([entry, ...others]: Parameters<Decoder['step']>[0]): Promise<Logits> {
    if (!entry || others.length > 0)
      throw new InoriginError('internal', 'WebLLM computes one sequence at a time.')
    return entry.sequence.forward([entry.token])
  }

  // Each call resolves after its logits were read back, so no work is pending.
  async synchronize(): Promise<void> {}

  async close(): Promise<void> {}
}

/** The KV cache of the device. */
class KvCache {
  readonly #pipeline: Pipeline
  /** Tokens in the cache and the sequence they belong to; `null` while they are unknown. */
  #resident: { sequenceId: symbol; tokens: readonly number[] } | null = null

  constructor(pipeline: Pipeline) {
    this.#pipeline = pipeline
  }

  /**
   * Returns the number of these tokens that are in the KV cache; 0 unless its whole content is a
   * prefix of them. Another sequence's KV cache is never reused, even for equal tokens: the shorter
   * response time would reveal that prompt.
   */
  cachedLength(sequenceId: symbol, tokens: readonly number[]): number {
    const resident = this.#resident
    if (resident?.sequenceId !== sequenceId || resident.tokens.length > tokens.length) return 0
    return resident.tokens.every((token, at) => tokens[at] === token) ? resident.tokens.length : 0
  }

  /** Computes those of the tokens that are not cached. Resolves with the logits of the next one. */
  async compute(sequenceId: symbol, tokens: readonly number[]): Promise<Float32Array> {
    const cachedTokens = this.cachedLength(sequenceId, tokens)
    // Logits come only with a forward pass, so at least the last token must be computed.
    const from = cachedTokens < tokens.length ? cachedTokens : 0
    // The content of the KV cache is unknown until the forward pass succeeds.
    this.#resident = null
    const scores = await this.#run(tokens, from).catch((thrown: unknown) => {
      throw deviceFailure(thrown) ?? thrown
    })
    this.#resident = { sequenceId, tokens }
    return scores
  }

  async #run(tokens: readonly number[], from: number): Promise<Float32Array> {
    if (from === 0) await this.#pipeline.reset()
    let scores: Float32Array | undefined
    for (let at = from; at < tokens.length; at += PREFILL_CHUNK_TOKENS)
      scores = await this.#pipeline.forward(tokens.slice(at, at + PREFILL_CHUNK_TOKENS))
    if (!scores) throw new InoriginError('internal', 'There were no tokens to compute.')
    return scores
  }
}

/** A sequence that begins with tokens, which are computed with the next ones. */
class TokenSequence implements Sequence {
  /** The KV cache is allocated when the model is loaded, not per sequence. */
  readonly bytes = 0
  readonly #cache: KvCache
  readonly #id: symbol
  #tokens: readonly number[]

  constructor(cache: KvCache, id: symbol, tokens: readonly number[]) {
    this.#cache = cache
    this.#id = id
    this.#tokens = tokens
  }

  get length(): number {
    return this.#tokens.length
  }

  async extend(more: readonly number[]): Promise<void> {
    await this.#append(more)
  }

  async forward(more: readonly number[], rows = 1): Promise<Logits> {
    if (rows !== 1)
      throw new InoriginError('internal', 'WebLLM returns the logits of one token at a time.')
    return createCpuLogits([await this.#append(more)])
  }

  reusableLength(length: number): number {
    const own = this.length
    return length >= own && this.#cache.cachedLength(this.#id, this.#tokens) === own ? own : 0
  }

  checkpoint(): void {}

  async truncate(length: number): Promise<void> {
    this.#tokens = this.#tokens.slice(0, length)
  }

  async fork(length: number): Promise<Sequence> {
    return new TokenSequence(this.#cache, this.#id, this.#tokens.slice(0, length))
  }

  close(): void {}

  async #append(more: readonly number[]): Promise<Float32Array> {
    const all = [...this.#tokens, ...more]
    const scores = await this.#cache.compute(this.#id, all)
    this.#tokens = all
    return scores
  }
}
