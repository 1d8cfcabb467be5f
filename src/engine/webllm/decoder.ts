/**
 * A decoder over WebLLM, which computes one conversation at a time and cannot take a token of it
 * back. A conversation is here no more than its tokens: the one that was computed last goes on where
 * it is, any other begins anew.
 */
import { InoriginError } from '../../error.ts'
import type { Decoder, Sequence } from '../decoder.ts'
import { deviceFailure } from '../failure.ts'
import { createCpuLogits } from '../sampling/logits.ts'

/**
 * What is computed with: the documented low-level calls of WebLLM (0.2.86). There is none between them that
 * would take back a part, so a prompt that leaves an earlier one anywhere but at its end is computed anew.
 */
export interface Pipeline {
  /** Takes tokens behind those before, and gives the scores of what follows. */
  forward(tokens: readonly number[]): Promise<Float32Array>
  /** Forgets all tokens. */
  reset(): Promise<void>
}

/** Tokens that are given at once, so that nobody is kept waiting. */
const CHUNK = 512

/** What the device holds: tokens, and the conversation they were computed for. */
interface Resident {
  line: symbol
  tokens: readonly number[]
}

export function createDecoder(pipeline: Pipeline): Decoder {
  /** `null` while it is not known. */
  let resident: Resident | null = null

  /**
   * How many of those tokens the device holds, all that it holds among them. What was computed for
   * others is not gone on from, though it may be the same: it would tell that they asked it.
   */
  const held = (line: symbol, tokens: readonly number[]): number => {
    if (resident?.line !== line || resident.tokens.length > tokens.length) return 0
    return resident.tokens.every((token, at) => tokens[at] === token) ? resident.tokens.length : 0
  }

  async function compute(line: symbol, tokens: readonly number[]): Promise<Float32Array> {
    const known = held(line, tokens)
    // The last token's scores are wanted, and come with it alone.
    const from = known < tokens.length ? known : 0
    // Until the device has answered, what it holds is not known.
    resident = null
    const scores = await run(tokens, from).catch((thrown: unknown) => {
      throw deviceFailure(thrown) ?? thrown
    })
    resident = { line, tokens }
    return scores
  }

  async function run(tokens: readonly number[], from: number): Promise<Float32Array> {
    if (from === 0) await pipeline.reset()
    let scores: Float32Array | undefined
    for (let at = from; at < tokens.length; at += CHUNK) {
      scores = await pipeline.forward(tokens.slice(at, at + CHUNK))
    }
    if (!scores) throw new InoriginError('internal', 'There were no tokens to compute.')
    return scores
  }

  function open(line: symbol, start: readonly number[]): Sequence {
    let tokens = start
    const take = async (more: readonly number[]): Promise<Float32Array> => {
      const all = [...tokens, ...more]
      const scores = await compute(line, all)
      tokens = all
      return scores
    }
    return {
      get length() {
        return tokens.length
      },
      // It holds none of its own: the device's memory is laid out when the model is loaded.
      bytes: 0,
      async extend(more) {
        await take(more)
      },
      async predict(more, rows = 1) {
        if (rows !== 1)
          throw new InoriginError('internal', 'Scores of one token are to be had at once.')
        return createCpuLogits([await take(more)])
      },
      reach: (length) =>
        length >= tokens.length && held(line, tokens) === tokens.length ? tokens.length : 0,
      mark() {},
      async cut(length) {
        tokens = tokens.slice(0, length)
      },
      fork: async (length) => open(line, tokens.slice(0, length)),
      close() {},
    }
  }

  return {
    chunk: CHUNK,
    batch: 1,
    marks: false,
    open: () => open(Symbol('conversation'), []),
    async step(entries) {
      const [entry, ...others] = entries
      if (!entry || others.length > 0) {
        throw new InoriginError('internal', 'One sequence is computed at a time.')
      }
      return entry.sequence.predict([entry.token])
    },
    // Scores are here when a call resolves, so nothing is left to be computed.
    settled: async () => {},
    async close() {},
  }
}
