/** Timestamps among the tokens of speech: which may come next, and the segments that they divide. */
import { expect, test } from 'vitest'
import {
  applyTimestampRules,
  divideSegments,
  framesToNext,
} from '../../../src/predictor/writer/timestamps.ts'

// Tokens 0 to 4 are text, 5 ends it, 6 says that there are no timestamps, 7 to 11 are timestamps.
const TOKENS = { first: 7, end: 5 }

function allowedAfter(own: readonly number[], maxInitial?: number, likely = 0): number[] {
  const scores = new Float32Array(12)
  scores[likely] = 9
  applyTimestampRules(scores, own, { ...TOKENS, maxInitial })
  return [...scores.keys()].filter((token) => scores[token] !== -Infinity)
}

test.each<[string, number[], number[], number?]>([
  ['a timestamp at first', [], [7, 8, 9, 10, 11]],
  ['text after the first timestamp', [8], [0, 1, 2, 3, 4, 5]],
  ['text or a later timestamp after text', [8, 0], [0, 1, 2, 3, 4, 5, 9, 10, 11]],
  ['the same timestamp again, or the end', [8, 0, 10], [5, 10, 11], 5],
  ['text after two timestamps', [8, 0, 10, 10], [0, 1, 2, 3, 4, 5]],
])('Rules leave %s', (_, own, expected, likely) => {
  expect(allowedAfter(own, undefined, likely)).toEqual(expected)
})

test('The first timestamp may be limited', () => {
  expect(allowedAfter([], 2)).toEqual([7, 8, 9])
})

test('A timestamp comes if it is more probable than any text', () => {
  expect(allowedAfter([8, 0], undefined, 10)).toEqual([9, 10, 11])
})

test('Segments end at pairs of timestamps, and the next window begins after the last one', () => {
  expect(divideSegments([7, 1, 2, 9, 9, 3, 10, 10, 4], 50, TOKENS)).toEqual({
    segments: [
      { start: 0, end: 2, tokens: [7, 1, 2, 9] },
      { start: 2, end: 3, tokens: [9, 3, 10] },
    ],
    next: 3,
  })
})

test('A single timestamp at the end says that nothing follows it', () => {
  expect(divideSegments([7, 1, 9, 9, 3, 10], 50, TOKENS)).toEqual({
    segments: [
      { start: 0, end: 2, tokens: [7, 1, 9] },
      { start: 2, end: 3, tokens: [9, 3, 10] },
    ],
    next: null,
  })
})

test('Text without pairs is one segment', () => {
  expect(divideSegments([7, 1, 2], 50, TOKENS).segments).toMatchObject([{ start: 0, end: 50 }])
  expect(divideSegments([7, 1, 2, 9], 50, TOKENS)).toMatchObject({
    segments: [{ start: 0, end: 2 }],
    next: null,
  })
})

test.each([
  ['at a timestamp', 30, 60],
  ['at its end, whose last frame has no timestamp', null, 101],
  ['at its end if nothing was written', 0, 101],
])('The next window begins %s', (_, next, frames) => {
  expect(framesToNext(next, 101, 2)).toBe(frames)
})
