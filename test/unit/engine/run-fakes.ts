/** The loop with a fake decoder, sampler, constraint and text. */
import { vi } from 'vitest'
import type { Constraint } from '../../../src/engine/constraint.ts'
import type { ConstraintCompiler } from '../../../src/engine/constraint/types.ts'
import type { DecodeLoopSetup } from '../../../src/engine/run/decode-loop.ts'
import { runDecodeLoop } from '../../../src/engine/run/decode-loop.ts'
import type { Output } from '../../../src/engine/run/output.ts'
import { createScheduler } from '../../../src/engine/run/scheduler.ts'
import { createSampler, type Sampler } from '../../../src/engine/sampling/sampler.ts'
import type {
  GenerationResult,
  GenerateOptions,
  TextChunk,
  GenerationUpdate,
} from '../../../src/engine/engine.ts'
import type { ErrorCode } from '../../../src/error-codes.ts'
import { InoriginError } from '../../../src/error.ts'
import { END, fakeDecoder, logitsOf, VOCABULARY } from './run-decoder.ts'
import type { FakeDecoder, FakeOptions } from './run-decoder.ts'

/** The next tokens of a greedy answer, of which `may` may follow. */
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

/** Without a seed greedy, else at random. */
export const samplerOf = (seed?: number): Sampler =>
  createSampler(
    seed === undefined ? {} : { temperature: 1, seed },
    { temperature: 0, topP: 1, topK: 0, minP: 0, repetitionPenalty: 1, suppress: [] },
    [],
  )

/** Tokens are written as numbers with a space behind. */
export const textOf = (tokens: readonly number[]): string =>
  tokens.map((token) => `${token} `).join('')

const encode = (text: string): number[] =>
  text
    .split(' ')
    .filter((each) => each !== '')
    .map(Number)

/** Knows `pattern` `even`, which allows even tokens, and `constant`, after which it ends. */
function fakeConstraints(): ConstraintCompiler {
  return {
    open: async (constraint: Constraint) => {
      const wanted = constraint.type === 'constant' ? [...encode(constraint.text), END] : null
      let count = 0
      const may = (token: number): boolean =>
        wanted ? wanted[count] === token : constraint.type === 'pattern' && token % 2 === 0
      return {
        mask: async () => {
          const bits = new Int32Array(VOCABULARY / 32)
          for (let id = 0; id < VOCABULARY; id += 1)
            if (may(id)) bits[id >> 5] = (bits[id >> 5] as number) | (1 << (id & 31))
          return bits
        },
        forced: () => textOf(wanted?.slice(count, -1) ?? []),
        canExtend: () => false,
        accept: (token) => {
          if (!may(token)) return false
          count += 1
          return true
        },
        close: () => undefined,
      }
    },
    close: () => undefined,
  }
}

export function failure(code: ErrorCode): InoriginError {
  return new InoriginError('unavailable', `It failed: ${code}.`, { code })
}

export interface Engine {
  decoder: FakeDecoder
  /** Decoders that were opened in place of the first. */
  reopened: FakeDecoder[]
  run(prompt: readonly number[], options?: RunOptions): Running
  close(): Promise<void>
}

interface RunOptions extends Partial<GenerateOptions> {
  boundaries?: readonly number[]
  seed?: number
  logprob?: Output['toLogprob']
  text?: Output['detokenizer']
  /** What is said after each piece. */
  steer?: (piece: number) => GenerationUpdate | undefined
}

export interface Running {
  pieces: AsyncGenerator<TextChunk, GenerationResult, GenerationUpdate | undefined>
  cached: number | null
  /** All of it. */
  all(): Promise<{ text: string; ending: GenerationResult; pieces: TextChunk[] }>
}

export interface EngineOptions extends FakeOptions {
  sequences?: number
  bytes?: number
  contextWindow?: number
  drafts?: boolean
  /** What is opened in place of a decoder that failed. */
  reopenOptions?: FakeOptions
}

export function fakeEngine(given: EngineOptions = {}): Engine {
  const { clock = { now: 0 } } = given
  const options = { ...given, clock }
  const { sequences = 8, bytes = 1e6, contextWindow = 1000, reopenOptions } = options
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now)
  const decoder = fakeDecoder({ contextWindow, ...options })
  const reopened: FakeDecoder[] = []
  const scheduler = createScheduler({
    decoder,
    budget: { sequences, bytes },
    reopen: async () => {
      const last = reopened.at(-1) ?? decoder
      await last.close()
      if (!reopenOptions) throw failure('no_webgpu')
      const next = fakeDecoder({ ...options, fail: undefined, ...reopenOptions })
      reopened.push(next)
      return next
    },
  })
  const setup: DecodeLoopSetup = {
    scheduler,
    constraints: fakeConstraints(),
    encode,
    endTokens: new Set([END]),
    contextWindow,
    drafts: options.drafts ?? false,
  }
  const run: Engine['run'] = (tokens, runOptions = {}) => {
    const running: Running = {
      cached: null,
      pieces: runDecodeLoop(
        setup,
        {
          sampler: samplerOf(runOptions.seed),
          detokenizer: runOptions.text ?? { push: (token) => `${token} `, drop: () => undefined },
          ...(runOptions.logprob && { toLogprob: runOptions.logprob }),
        },
        { tokens, boundaries: runOptions.boundaries ?? [], opening: '' },
        {
          maxTokens: 10,
          sampling: {},
          signal: new AbortController().signal,
          onStart: ({ cachedTokens }) => {
            if (running.cached !== null) throw new Error('It was told twice.')
            running.cached = cachedTokens
          },
          ...runOptions,
        },
      ),
      all: async () => {
        const pieces: TextChunk[] = []
        let said: GenerationUpdate | undefined
        for (;;) {
          const { value, done } = await running.pieces.next(said)
          if (done) return { text: pieces.map(({ text }) => text).join(''), ending: value, pieces }
          pieces.push(value)
          said = runOptions.steer?.(pieces.length)
        }
      },
    }
    return running
  }
  return { decoder, reopened, run, close: () => scheduler.close() }
}

/** Numbers from `from` on, within the vocabulary. */
export const numbers = (count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, index) => (from + index * 7) % END)
