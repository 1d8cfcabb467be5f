/**
 * A decoder whose logits are a function of all tokens that it was given, so an error in a cache, a batch or a
 * draft changes the text; and the decode loop with it.
 */
import { onTestFinished, vi } from 'vitest'
import type { Constraint } from '../../../src/constraint/index.ts'
import type { Decoder, IdleRun, Logits, Sequence } from '../../../src/engine/decoder.ts'
import type {
  GenerateOptions,
  GenerationResult,
  GenerationUpdate,
  TextChunk,
} from '../../../src/engine/engine.ts'
import {
  type DecodeLoopSetup,
  type Output,
  runDecodeLoop,
} from '../../../src/engine/run/decode-loop.ts'
import type { ModelConstraints } from '../../../src/engine/run/constraints.ts'
import { Scheduler } from '../../../src/engine/run/scheduler.ts'
import { createCpuLogits } from '../../../src/engine/sampling/logits.ts'
import { Sampler } from '../../../src/engine/sampling/sampler.ts'
import { type ErrorCode, InoriginError } from '../../../src/error.ts'

const VOCABULARY = 64
const END = 63

export interface FakeOptions {
  chunk?: number
  /** Returns the length of the largest chunk of a sequence of this length. Default: `chunk`. */
  chunkAt?: (length: number) => number
  batch?: number
  /** Largest number of rows of a `forward`. Default: any number. */
  maxRows?: number
  /** `true` if a sequence can be truncated only to its checkpoints. */
  checkpointsOnly?: boolean
  /** Returns the error of the call with this number, counted from 1. */
  fail?: (call: number) => Error | null
  /** Returns `true` if an image in these tokens has to be encoded. Default: there are no images. */
  encodes?: (tokens: readonly number[]) => boolean
  /** Changes logits. */
  change?: (scores: Float32Array) => void
  /** Returns the logits of the token that follows these. Default: {@link logitsOf}. */
  logitsFunction?: (tokens: readonly number[]) => Float32Array
  contextWindow?: number
  /** As of the decoder; default: no limit. */
  maxShortLength?: number
  /** As of the decoder. */
  chunksOnlyAtStart?: boolean
  /** `true` if a sequence can append the best token of logits. Default: `false`. */
  goesAhead?: boolean
  /** Returns the milliseconds that a forward of so many tokens of one sequence takes. Default: none. */
  cost?: (tokens: number) => number
  /** Clock of the costs. No real time passes, so a busy machine changes nothing. */
  clock?: { now: number }
}

export interface FakeDecoder extends Decoder {
  /** Calls and their sizes: `extend 4`, `forward 2`, `step 3`; `ahead 1` appends a token that was not read. */
  readonly calls: string[]
  /** Sequences that are not closed. */
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

/** Returns the logits of a text that repeats itself after so many tokens, but for one in ten. */
export const repeating =
  (period: number) =>
  (tokens: readonly number[]): Float32Array => {
    const scores = logitsOf(tokens)
    const same = tokens.at(-period)
    if (same !== undefined && (scores[0] as number) > 0.8) scores[same] = 100
    return scores
  }

export function fakeDecoder(options: FakeOptions = {}): FakeDecoder {
  const { chunk = 8, batch = 4, checkpointsOnly = false, fail, change, encodes } = options
  const { logitsFunction = logitsOf, cost = () => 0, clock = { now: 0 } } = options
  const { contextWindow = Infinity, chunkAt = () => chunk, maxRows } = options
  const { maxShortLength = Infinity, chunksOnlyAtStart = false, goesAhead = false } = options
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
    await new Promise((resolve) => setImmediate(resolve))
    clock.now += cost(tokens)
    busy = false
    const thrown = fail?.(number)
    if (thrown) throw thrown
    return work()
  }

  /** Best token of the latest request, as a GPU keeps it. */
  let best = 0
  const logits = (rows: Float32Array[]): Logits => {
    for (const row of rows) change?.(row)
    const plain = createCpuLogits(rows)
    const top: Logits['top'] = async (requests) => {
      const candidates = await plain.top(requests)
      best = candidates[0]?.ids[0] ?? 0
      return candidates
    }
    return { ...plain, top }
  }

  const open = (tokens: readonly number[] = [], isLong = false): Sequence => {
    const reusableLength = (length: number): number => {
      const { checkpoints, tokens: computed } = memoryOf(sequence)
      if (length > computed.length) throw new Error('It is not computed yet.')
      if (!checkpointsOnly) return length
      return Math.max(0, ...[...checkpoints, computed.length].filter((each) => each <= length))
    }
    const assertReusable = (length: number): void => {
      if (reusableLength(length) !== length) throw new Error('It cannot be cut there.')
    }
    const compute = <T>(what: string, more: readonly number[], work: (all: number[]) => T) =>
      exclusive(
        `${what} ${checked(more, chunksOnlyAtStart ? Infinity : chunkAt(sequence.length))}`,
        () => {
          const { tokens: computed } = memoryOf(sequence)
          if (!isLong && computed.length + more.length > maxShortLength)
            throw new Error('It must be a long sequence.')
          if (chunksOnlyAtStart && computed.length > 0 && more.length > 1)
            throw new Error('It computes chunks at the start only.')
          computed.push(...more)
          return work(computed)
        },
        more.length,
      )
    const sequence: Sequence = {
      isLong,
      get length() {
        return memoryOf(sequence).tokens.length
      },
      get bytes() {
        return memoryOf(sequence).tokens.length
      },
      get maxChunkTokens() {
        return chunkAt(sequence.length)
      },
      extend: (more) => compute('extend', more, () => undefined),
      forward: (more, rows = 1) =>
        compute('forward', more, (all) => {
          if (rows > (maxRows ?? Infinity)) throw new Error(`It computes no ${rows} rows.`)
          if (all.length > contextWindow) throw new Error('The context ends before.')
          const last = Array.from({ length: rows }, (_, index) => all.length - rows + 1 + index)
          return logits(last.map((length) => logitsFunction(all.slice(0, length))))
        }),
      ...(goesAhead && {
        forwardBest: async () => {
          // The request is computed before the run.
          await Promise.resolve()
          return compute('ahead', [best], (all) => logits([logitsFunction(all)]))
        },
      }),
      reusableLength,
      checkpoint: () => {
        const { checkpoints, tokens: computed } = memoryOf(sequence)
        checkpoints.add(computed.length)
      },
      truncate: (length) =>
        exclusive(`truncate ${length}`, () => {
          assertReusable(length)
          memoryOf(sequence).tokens.length = length
        }),
      fork: (length) =>
        exclusive(`fork ${length}`, () => {
          assertReusable(length)
          return open(memoryOf(sequence).tokens.slice(0, length), isLong)
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

  const decoder: FakeDecoder = {
    ...(encodes && {
      encodeNext: (tokens: readonly number[]) => exclusive('encode', () => encodes(tokens)),
    }),
    maxChunkTokens: chunk,
    maxBatchSize: batch,
    maxRows,
    calls,
    alive,
    closed: false,
    maxShortLength,
    chunksOnlyAtStart,
    open: (isLong) => open([], isLong),
    step: (entries) =>
      exclusive(`step ${checked(entries, batch)}`, () =>
        logits(
          entries.map(({ sequence, token }) => {
            const { tokens } = memoryOf(sequence)
            if (!sequence.isLong && tokens.length >= maxShortLength)
              throw new Error('It must be a long sequence.')
            tokens.push(token)
            return logitsFunction(tokens)
          }),
        ),
      ),
    synchronize: async () => undefined,
    trim: () => void calls.push('trim'),
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

/** Returns the next tokens of a greedy answer, of which those may follow that `may` allows. */
export function greedy(
  prompt: readonly number[],
  count: number,
  may: (token: number) => boolean = () => true,
  logitsFunction: typeof logitsOf = logitsOf,
): number[] {
  const tokens = [...prompt]
  for (let index = 0; index < count; index += 1) {
    const scores = logitsFunction(tokens).map((score, id) => (may(id) ? score : -Infinity))
    tokens.push(scores.indexOf(Math.max(...scores)))
  }
  return tokens.slice(prompt.length)
}

/** Returns the text of tokens: their numbers, each with a space behind it. */
export const textOf = (tokens: readonly number[]): string =>
  tokens.map((token) => `${token} `).join('')

const encode = (text: string): number[] => text.split(' ').filter(Boolean).map(Number)

/** Knows the pattern `even`, which allows even tokens, and `constant`, after which it ends. */
const fakeConstraints: Pick<ModelConstraints, 'open'> = {
  open: async (constraint: Constraint) => {
    const wanted = constraint.type === 'constant' ? [...encode(constraint.text), END] : null
    let count = 0
    const may = (token: number): boolean =>
      wanted ? wanted[count] === token : constraint.type === 'pattern' && token % 2 === 0
    return {
      loosened: [],
      mask: () => {
        const bits = new Int32Array(VOCABULARY / 32)
        for (let id = 0; id < VOCABULARY; id += 1)
          if (may(id)) bits[id >> 5] = (bits[id >> 5] as number) | (1 << (id & 31))
        return bits
      },
      forced: () => new TextEncoder().encode(textOf(wanted?.slice(count, -1) ?? [])),
      canExtend: () => false,
      accept: (token) => {
        if (!may(token)) return false
        count += 1
        return true
      },
      close: () => undefined,
    }
  },
}

export const EVEN: Constraint = { type: 'pattern', pattern: 'even' }

export function failure(code: ErrorCode): InoriginError {
  return new InoriginError('unavailable', `It failed: ${code}.`, { code })
}

export interface Loop {
  decoder: FakeDecoder
  /** Decoders that were opened in place of the first. */
  reopened: FakeDecoder[]
  run(prompt: readonly number[], options?: RunOptions): Running
  close(): Promise<void>
}

export interface RunOptions extends Partial<GenerateOptions> {
  boundaries?: readonly number[]
  /** Default: the answer is greedy. */
  seed?: number
  logprob?: Output['toLogprob']
  text?: Output['detokenizer']
  /** Returns the update after each piece. */
  steer?: (piece: number) => GenerationUpdate | undefined
}

export interface Running {
  pieces: AsyncGenerator<TextChunk, GenerationResult, GenerationUpdate | undefined>
  cached: number | null
  /** Resolves with the whole answer. */
  all(): Promise<{ text: string; ending: GenerationResult; pieces: TextChunk[] }>
}

export interface LoopOptions extends FakeOptions {
  sequences?: number
  bytes?: number
  drafts?: boolean
  idleRuns?: readonly IdleRun[]
  /** Options of the decoder that is opened in place of one that failed. */
  reopenOptions?: FakeOptions
}

/** Opens the decode loop with a fake decoder, and the text and constraints of its tokens. It closes after the test. */
export function openLoop(given: LoopOptions = {}): Loop {
  const { clock = { now: 0 }, contextWindow = 1000 } = given
  const options = { ...given, clock, contextWindow }
  const { sequences = 8, bytes = 1e6, reopenOptions, drafts = false, idleRuns } = options
  const now = vi.spyOn(performance, 'now').mockImplementation(() => clock.now)
  const decoder = fakeDecoder(options)
  const reopened: FakeDecoder[] = []
  const scheduler = new Scheduler({
    decoder,
    budget: { sequences, bytes },
    idleRuns,
    reopen: async () => {
      await (reopened.at(-1) ?? decoder).close()
      if (!reopenOptions) throw failure('no_webgpu')
      const next = fakeDecoder({ ...options, fail: undefined, ...reopenOptions })
      reopened.push(next)
      return next
    },
  })
  onTestFinished(async () => {
    now.mockRestore()
    await scheduler.close()
  })
  const setup: DecodeLoopSetup = {
    scheduler,
    constraints: fakeConstraints,
    encode,
    endTokens: new Set([END]),
    contextWindow,
    drafts,
  }
  const run: Loop['run'] = (tokens, { seed, text, logprob, boundaries = [], ...wanted } = {}) => {
    const output: Output = {
      sampler: new Sampler(
        seed === undefined ? {} : { temperature: 1, seed },
        { temperature: 0, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1, suppress: [] },
        [],
      ),
      detokenizer: text ?? { push: (token) => `${token} `, drop: () => undefined },
      ...(logprob && { toLogprob: logprob }),
    }
    const onStart: GenerateOptions['onStart'] = ({ cachedTokens }) => {
      if (running.cached !== null) throw new Error('It started twice.')
      running.cached = cachedTokens
    }
    const { signal } = new AbortController()
    const generateOptions = { maxTokens: 10, sampling: {}, signal, onStart, ...wanted }
    const running: Running = {
      cached: null,
      pieces: runDecodeLoop(setup, output, { tokens, boundaries, opening: '' }, generateOptions),
      all: async () => {
        const pieces: TextChunk[] = []
        let update: GenerationUpdate | undefined
        for (;;) {
          const { value, done } = await running.pieces.next(update)
          if (done)
            return { text: pieces.map(({ text: each }) => each).join(''), ending: value, pieces }
          pieces.push(value)
          update = wanted.steer?.(pieces.length)
        }
      },
    }
    return running
  }
  return { decoder, reopened, run, close: () => scheduler.close() }
}

/** Returns so many tokens, not all different, beginning with `from`. */
export const numbers = (count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, index) => (from + index * 7) % END)
