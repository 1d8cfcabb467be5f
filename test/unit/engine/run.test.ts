import { expect, test } from 'vitest'
import type { Ending, Piece } from '../../../src/engine/engine.ts'
import type { Decoder } from '../../../src/engine/onnx/decoder/decoder.ts'
import { decode, type Run } from '../../../src/engine/onnx/run/run.ts'

interface Counting extends Decoder {
  /** How many tokens each call took, `predict` with a minus. */
  calls: number[]
  open: () => ReturnType<Decoder['open']>
  closed: number
}

/** Always scores the token after the last one highest; `change` may do so otherwise. */
function counting(
  onCall: () => void = () => undefined,
  change: (scores: Float32Array) => void = () => undefined,
): Counting {
  const decoder: Counting = {
    chunk: 4,
    calls: [],
    closed: 0,
    open: () => {
      let length = 0
      const took = (tokens: readonly number[], sign: number): void => {
        length += tokens.length
        decoder.calls.push(sign * tokens.length)
        onCall()
      }
      return {
        get length() {
          return length
        },
        extend: (tokens) => Promise.resolve(took(tokens, 1)),
        predict: (tokens) => {
          took(tokens, -1)
          const scores = new Float32Array(100)
          scores[(tokens.at(-1) ?? 0) + 1] = 1
          change(scores)
          return Promise.resolve(scores)
        },
        close: () => {
          decoder.closed += 1
        },
      }
    },
  }
  return decoder
}

/** Says a letter for each token; odd ones wait for the next. */
function letters(): Run['text'] {
  let held = ''
  return {
    push: (token) => {
      held += String.fromCharCode(97 + (token % 26))
      if (token % 2 === 1) return ''
      const said = held
      held = ''
      return said
    },
    flush: () => held,
  }
}

function run(
  decoder: Decoder,
  { tokens = [0, 1], maxTokens = 5, signal = new AbortController().signal } = {},
) {
  return decode(
    {
      decoder,
      text: letters(),
      endTokens: new Set([9]),
      contextWindow: 12,
      sampling: { temperature: 0, topP: 1, topK: 0 },
    },
    { tokens },
    { maxTokens, sampling: {}, signal },
  )
}

async function collect(
  running: AsyncGenerator<Piece, Ending>,
): Promise<{ pieces: Piece[]; ending: Ending }> {
  const pieces: Piece[] = []
  for (;;) {
    const { value, done } = await running.next()
    if (done) return { pieces, ending: value }
    pieces.push(value)
  }
}

test('takes the prompt in chunks, then one token at a time', async () => {
  const decoder = counting()
  await collect(run(decoder, { tokens: [1, 2, 3, 4, 5, 6, 7, 8, 0], maxTokens: 2 }))
  expect(decoder.calls).toEqual([4, 4, -1, -1])
  expect(decoder.closed).toBe(1)
})

test('counts every token, and gives the ones without text to the next piece', async () => {
  const { pieces, ending } = await collect(run(counting()))
  expect(pieces).toEqual([
    { text: 'c', tokens: 1 },
    { text: 'de', tokens: 2 },
    { text: 'fg', tokens: 2 },
  ])
  expect(ending).toEqual({ reason: 'length', cachedTokens: 0, completionTokens: 5 })
})

test('says at the end what was held back', async () => {
  const { pieces } = await collect(run(counting(), { maxTokens: 2 }))
  expect(pieces.map(({ text }) => text)).toEqual(['c', 'd'])
})

test('ends at an end token without computing more', async () => {
  const decoder = counting()
  const { pieces, ending } = await collect(run(decoder, { tokens: [6], maxTokens: 50 }))
  expect(pieces.map(({ text }) => text).join('')).toBe('hi')
  expect(ending).toEqual({ reason: 'stop', cachedTokens: 0, completionTokens: 3 })
  expect(decoder.calls).toEqual([-1, -1, -1])
})

test('ends at the end of the context', async () => {
  const { ending } = await collect(run(counting(), { tokens: Array(9).fill(10), maxTokens: 50 }))
  expect(ending).toMatchObject({ reason: 'length', completionTokens: 3 })
})

test.each([
  ['before the first chunk', 0, []],
  ['after the first chunk', 1, [4]],
  ['after the first token', 3, [4, 4, -1]],
])('sees an abort %s', async (_, after, calls) => {
  const cancelling = new AbortController()
  const decoder = counting(() => {
    if (decoder.calls.length === after) cancelling.abort()
  })
  if (after === 0) cancelling.abort()
  const running = run(decoder, { tokens: [1, 2, 3, 4, 5, 6, 7, 8, 0], signal: cancelling.signal })
  await expect(collect(running)).rejects.toMatchObject({ kind: 'aborted' })
  expect(decoder.calls).toEqual(calls)
  expect(decoder.closed).toBe(1)
})

test.each([
  ['all', (scores: Float32Array) => scores.fill(Number.NaN)],
  ['all but the first', (scores: Float32Array) => scores.fill(Number.NaN, 1).fill(-Infinity, 0, 1)],
  ['the best', (scores: Float32Array) => scores.fill(Number.POSITIVE_INFINITY, 50)],
  ['all are least', (scores: Float32Array) => scores.fill(Number.NEGATIVE_INFINITY)],
])('does not go on with numbers that are none: %s', async (_, change) => {
  const running = run(counting(undefined, change))
  await expect(collect(running)).rejects.toMatchObject({ code: 'invalid_numbers' })
})

test('goes on where a token that is not chosen has no score', async () => {
  const decoder = counting(undefined, (scores) => scores.fill(Number.NaN, 0, 1))
  const { pieces } = await collect(run(decoder, { maxTokens: 2 }))
  expect(pieces.map(({ text }) => text)).toEqual(['c', 'd'])
})
