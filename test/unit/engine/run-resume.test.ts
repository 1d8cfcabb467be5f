/** Runs that begin with the tokens of an interrupted run. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { GenerateOptions, TextChunk } from '../../../src/engine/engine.ts'
import { repeating } from './run-decoder.ts'
import { fakeEngine, numbers, type Engine, type EngineOptions } from './run-fakes.ts'

let engine: Engine | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await engine?.close()
})

const TOKENS = 12
const prompt = numbers(21, 3)

/** Returns the token ids of a run. */
const idsOf = (pieces: readonly TextChunk[]): number[] =>
  pieces.flatMap(({ tokenIds = [] }) => tokenIds)

type RunOptions = Parameters<Engine['run']>[1]

/** Text that becomes certain with every second token only. */
function pairs(): NonNullable<NonNullable<RunOptions>['text']> {
  let first: number | null = null
  return {
    push(token) {
      if (first === null) {
        first = token
        return ''
      }
      const text = `${first} ${token} `
      first = null
      return text
    },
    drop: () => (first = null),
  }
}

const row = (scores: Float32Array, token: number) => {
  const logprob = scores[token] as number
  return { text: `${token} `, bytes: [token], logprob, top: [] }
}

const cases: [string, () => RunOptions, EngineOptions?][] = [
  ['greedy', () => ({})],
  ['with a seed', () => ({ seed: 5 })],
  ['with a constraint', () => ({ seed: 5, constraint: { type: 'pattern', pattern: 'even' } })],
  ['with forced tokens', () => ({ constraint: { type: 'constant', text: '5 6 7 8 9' } })],
  [
    'with text that is appended',
    () => ({ seed: 5, steer: (piece) => (piece === 4 ? { append: '40 41 42 ' } : undefined) }),
  ],
  [
    'with a constraint that begins later',
    () => ({
      seed: 5,
      steer: (piece) =>
        piece === 4 ? { constraint: { type: 'pattern', pattern: 'even' } } : undefined,
    }),
  ],
  ['with characters of several tokens', () => ({ seed: 5, text: pairs() })],
  ['with logprobs', () => ({ seed: 5, logprob: row })],
  ['with drafts', () => ({ seed: 5 }), { drafts: true, logitsFunction: repeating(3) }],
]

describe.each(cases)('a run %s', (_what, optionsOf, engineOptions) => {
  const run = (more: Partial<GenerateOptions> = {}) => {
    engine = fakeEngine(engineOptions)
    return engine.run(prompt, { maxTokens: TOKENS, ...optionsOf(), ...more }).all()
  }

  test('continues after any number of its tokens', async () => {
    const whole = await run()
    const ids = idsOf(whole.pieces)
    for (let count = 1; count <= ids.length; count += 1) {
      await engine?.close()
      const resumed = await run({ resumeTokens: ids.slice(0, count) })
      expect({ count, ...resumed }).toEqual({ count, ...whole })
    }
  })
})

test('computes the tokens of the interrupted run as part of the prompt', async () => {
  engine = fakeEngine({ chunk: 8 })
  const { pieces } = await engine.run(prompt, { maxTokens: TOKENS }).all()
  await engine.close()
  engine = fakeEngine({ chunk: 8 })
  const resumeTokens = idsOf(pieces).slice(0, 10)
  await engine.run(prompt, { maxTokens: TOKENS, resumeTokens }).all()
  expect(engine.decoder.calls).toEqual(['extend 8', 'extend 8', 'extend 8', 'forward 7', 'step 1'])
})

test('a token that the constraint does not allow is an error', async () => {
  engine = fakeEngine()
  const options = { constraint: { type: 'pattern', pattern: 'even' }, resumeTokens: [3] } as const
  await expect(engine.run(prompt, options).all()).rejects.toMatchObject({ kind: 'internal' })
})
