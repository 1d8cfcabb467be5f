/**
 * A decoder over WebLLM, which holds the KV cache of one sequence and cannot remove tokens from it.
 * A sequence here is only a list of tokens. The sequence that was computed last continues from the
 * KV cache; any other one is computed from its first token.
 */
import { InoriginError } from '../../error.ts'
import type { Decoder, Sequence } from '../decoder.ts'
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

/** Content of the device's KV cache: the tokens, and the sequence they belong to. */
interface Resident {
  sequenceId: symbol
  tokens: readonly number[]
}

/** Creates a decoder that computes one sequence at a time on the pipeline. */
export function createDecoder(pipeline: Pipeline): Decoder {
  const cache = createKvCache(pipeline)
  return {
    maxChunkTokens: PREFILL_CHUNK_TOKENS,
    maxBatchSize: 1,
    checkpoints: false,
    open: () => openSequence(cache, Symbol('conversation'), []),
    async step(entries) {
      const [entry, ...others] = entries
      if (!entry || others.length > 0) {
        throw new InoriginError('internal', 'WebLLM computes one sequence at a time.')
      }
      return entry.sequence.forward([entry.token])
    },
    // Each call resolves after its logits were read back, so no work is pending.
    synchronize: async () => {},
    async close() {},
  }
}

/** The KV cache of the device. */
interface KvCache {
  /**
   * Returns the number of these tokens that are in the KV cache; 0 unless its whole content is a
   * prefix of them. Another sequence's KV cache is never reused, even for equal tokens: the shorter
   * response time would reveal that prompt.
   */
  cachedLength(sequenceId: symbol, tokens: readonly number[]): number
  /** Computes those of the tokens that are not cached. Resolves with the logits of the next one. */
  compute(sequenceId: symbol, tokens: readonly number[]): Promise<Float32Array>
}

function createKvCache(pipeline: Pipeline): KvCache {
  /** Current content of the KV cache; `null` while it is unknown. */
  let resident: Resident | null = null

  const cachedLength: KvCache['cachedLength'] = (sequenceId, tokens) => {
    if (resident?.sequenceId !== sequenceId || resident.tokens.length > tokens.length) return 0
    return resident.tokens.every((token, at) => tokens[at] === token) ? resident.tokens.length : 0
  }

  async function run(tokens: readonly number[], from: number): Promise<Float32Array> {
    if (from === 0) await pipeline.reset()
    let scores: Float32Array | undefined
    for (let at = from; at < tokens.length; at += PREFILL_CHUNK_TOKENS) {
      scores = await pipeline.forward(tokens.slice(at, at + PREFILL_CHUNK_TOKENS))
    }
    if (!scores) throw new InoriginError('internal', 'There were no tokens to compute.')
    return scores
  }

  return {
    cachedLength,
    async compute(sequenceId, tokens) {
      const cachedTokens = cachedLength(sequenceId, tokens)
      // Logits come only with a forward pass, so at least the last token must be computed.
      const from = cachedTokens < tokens.length ? cachedTokens : 0
      // The content of the KV cache is unknown until the forward pass succeeds.
      resident = null
      const scores = await run(tokens, from).catch((thrown: unknown) => {
        throw deviceFailure(thrown) ?? thrown
      })
      resident = { sequenceId, tokens }
      return scores
    },
  }
}

/** Opens a sequence that has the tokens of `start`. They are computed with the next ones. */
function openSequence(cache: KvCache, sequenceId: symbol, start: readonly number[]): Sequence {
  let tokens = start
  const append = async (more: readonly number[]): Promise<Float32Array> => {
    const all = [...tokens, ...more]
    const scores = await cache.compute(sequenceId, all)
    tokens = all
    return scores
  }
  return {
    get length() {
      return tokens.length
    },
    // The KV cache is allocated when the model is loaded, not per sequence.
    bytes: 0,
    async extend(more) {
      await append(more)
    },
    async forward(more, rows = 1) {
      if (rows !== 1)
        throw new InoriginError('internal', 'WebLLM returns the logits of one token at a time.')
      return createCpuLogits([await append(more)])
    },
    reusableLength: (length) =>
      length >= tokens.length && cache.cachedLength(sequenceId, tokens) === tokens.length
        ? tokens.length
        : 0,
    checkpoint() {},
    async truncate(length) {
      tokens = tokens.slice(0, length)
    },
    fork: async (length) => openSequence(cache, sequenceId, tokens.slice(0, length)),
    close() {},
  }
}
