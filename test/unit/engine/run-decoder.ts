/**
 * A decoder whose scores are a function of all the tokens it was given, so that whatever goes wrong
 * with a cache, a batch or a draft changes the text.
 */
import type { Decoder, Logits, Sequence } from '../../../src/engine/decoder.ts'
import { createCpuLogits } from '../../../src/engine/sampling/logits.ts'

export const VOCABULARY = 64
export const END = 63

export interface FakeOptions {
  chunk?: number
  /** Largest chunk of a sequence of this length. Default: `chunk`. */
  chunkAt?: (length: number) => number
  batch?: number
  /** `true` if a sequence can be truncated only to its checkpoints. */
  checkpointsOnly?: boolean
  /** Throws in the middle of the call with this number, counted from 1. */
  fail?: (call: number, what: string) => Error | null
  /** Returns `true` if an image in these tokens has to be encoded. Default: there are no images. */
  encodes?: (tokens: readonly number[]) => boolean
  /** Spoils scores. */
  change?: (scores: Float32Array) => void
  /** Logits of the token that follows these; default: {@link logitsOf}. */
  logitsFunction?: (tokens: readonly number[]) => Float32Array
  /** Most tokens of a sequence. */
  contextWindow?: number
  /** Milliseconds that a forward of so many tokens of one sequence takes; default: none. */
  cost?: (tokens: number) => number
  /** The clock on which they pass. No real time passes, so a busy machine changes nothing. */
  clock?: { now: number }
}

export interface FakeDecoder extends Decoder {
  /** What each forward took: `extend 4`, `forward 2`, `step 3`. */
  readonly calls: string[]
  /** Sequences that were not closed. */
  readonly alive: Set<Sequence>
  closed: boolean
}

/** Returns the logits of the token that follows these. */
export function logitsOf(tokens: readonly number[]): Float32Array {
  let hash = 2166136261
  for (const token of tokens) hash = Math.imul(hash ^ (token + 1), 16777619)
  const scores = new Float32Array(VOCABULARY)
  for (let id = 0; id < VOCABULARY; id += 1) {
    let mixed = Math.imul(hash ^ (id * 0x9e3779b1), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    scores[id] = ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 29
  }
  scores[END] = -1
  return scores
}

/** Of a text that repeats itself after so many tokens, but for one in ten. */
export const repeating =
  (period: number) =>
  (tokens: readonly number[]): Float32Array => {
    const scores = logitsOf(tokens)
    const same = tokens.at(-period)
    if (same !== undefined && (scores[0] as number) > 0.8) scores[same] = 100
    return scores
  }

export function fakeDecoder(options: FakeOptions = {}): FakeDecoder {
  const { chunk = 8, batch = 4, checkpointsOnly = false, fail, change } = options
  const { logitsFunction = logitsOf, cost = () => 0, clock = { now: 0 } } = options
  const { contextWindow = Infinity } = options
  const calls: string[] = []
  const alive = new Set<Sequence>()
  const memory = new WeakMap<Sequence, { tokens: number[]; checkpoints: Set<number> }>()
  let busy = false

  const memoryOf = (sequence: Sequence): { tokens: number[]; checkpoints: Set<number> } => {
    const found = memory.get(sequence)
    if (!found || !alive.has(sequence)) throw new Error('The sequence is closed.')
    return found
  }

  const exclusive = async <T>(what: string, work: () => T, tokens = 1): Promise<T> => {
    if (busy) throw new Error('Two runs at once hang the thread.')
    if (decoder.closed) throw new Error('The decoder is closed.')
    busy = true
    calls.push(what)
    const number = calls.length
    await new Promise((resolve) => setTimeout(resolve, 0))
    clock.now += cost(tokens)
    busy = false
    const thrown = fail?.(number, what)
    if (thrown) throw thrown
    return work()
  }

  const logits = (rows: Float32Array[]): Logits => {
    for (const row of rows) change?.(row)
    return createCpuLogits(rows)
  }

  const open = (tokens: readonly number[] = []): Sequence => {
    const reusableLength = (length: number): number => {
      const { checkpoints, tokens: taken } = memoryOf(sequence)
      if (length > taken.length) throw new Error('It was not taken yet.')
      if (!checkpointsOnly) return length
      return Math.max(0, ...[...checkpoints, taken.length].filter((each) => each <= length))
    }
    const maxChunkTokens = (): number => options.chunkAt?.(sequence.length) ?? chunk
    const sequence: Sequence = {
      get length() {
        return memoryOf(sequence).tokens.length
      },
      get bytes() {
        return memoryOf(sequence).tokens.length
      },
      get maxChunkTokens() {
        return maxChunkTokens()
      },
      extend: (more) =>
        exclusive(
          `extend ${checked(more, maxChunkTokens())}`,
          () => {
            memoryOf(sequence).tokens.push(...more)
          },
          more.length,
        ),
      forward: (more, rows = 1) =>
        exclusive(
          `forward ${checked(more, maxChunkTokens())}`,
          () => {
            const { tokens: taken } = memoryOf(sequence)
            taken.push(...more)
            if (taken.length > contextWindow) throw new Error('The context ends before.')
            const last = Array.from({ length: rows }, (_, index) => taken.length - rows + 1 + index)
            return logits(last.map((length) => logitsFunction(taken.slice(0, length))))
          },
          more.length,
        ),
      reusableLength,
      checkpoint: () => {
        const { checkpoints, tokens: taken } = memoryOf(sequence)
        checkpoints.add(taken.length)
      },
      truncate: (length) =>
        exclusive(`truncate ${length}`, () => {
          if (reusableLength(length) !== length) throw new Error('It cannot be cut there.')
          memoryOf(sequence).tokens.length = length
        }),
      fork: (length) =>
        exclusive(`fork ${length}`, () => {
          if (reusableLength(length) !== length) throw new Error('It cannot be forked there.')
          return open(memoryOf(sequence).tokens.slice(0, length))
        }),
      close: () => {
        alive.delete(sequence)
      },
    }
    alive.add(sequence)
    memory.set(sequence, {
      tokens: [...tokens],
      checkpoints: new Set(tokens.length ? [tokens.length] : []),
    })
    return sequence
  }

  const { encodes } = options
  const decoder: FakeDecoder = {
    ...(encodes && {
      encodeNext: (tokens: readonly number[]) => exclusive('encode', () => encodes(tokens)),
    }),
    maxChunkTokens: chunk,
    maxBatchSize: batch,
    calls,
    alive,
    closed: false,
    open,
    step: (entries) =>
      exclusive(`step ${checked(entries, batch)}`, () =>
        logits(
          entries.map(({ sequence, token }) => {
            const { tokens } = memoryOf(sequence)
            tokens.push(token)
            return logitsFunction(tokens)
          }),
        ),
      ),
    synchronize: async () => undefined,
    close: async () => {
      decoder.closed = true
      alive.clear()
    },
  }
  return decoder
}

function checked(things: readonly unknown[], most: number): number {
  if (things.length < 1 || things.length > most) throw new Error(`${things.length} of ${most}`)
  return things.length
}
