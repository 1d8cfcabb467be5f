/** Rules of the next token, by the scores that they leave. */
import { expect, test } from 'vitest'
import type { TokenRules } from '../../../src/catalog/decoder-schema.ts'
import { applyRules, findBest } from '../../../src/predictor/writer/token-rules.ts'

const START = [7]
const END = [1]

/** Returns the tokens of ten equal scores that the rules still allow after those of a text. */
function allowedAfter(own: readonly number[], rules: TokenRules): number[] {
  const scores = new Float32Array(10)
  applyRules(scores, { start: START, own }, rules, END)
  return [...scores.keys()].filter((token) => scores[token] !== -Infinity)
}

const all = Array.from({ length: 10 }, (_, token) => token)
const without = (...tokens: number[]) => all.filter((token) => !tokens.includes(token))

test.each<[string, TokenRules, number[], number[]]>([
  ['nothing', {}, [2, 3], all],
  ['the first token', { firstToken: 4 }, [], [4]],
  ['the first token only once', { firstToken: 4 }, [4], all],
  ['the last token', { lastToken: 1, maxTokens: 3 }, [2, 3], [1]],
  ['no end yet', { minTokens: 3 }, [2, 3], without(1)],
  ['an end', { minTokens: 3 }, [2, 3, 4], all],
  ['suppressed tokens', { suppress: [5, 6] }, [2], without(5, 6)],
  ['suppressed tokens at first', { suppressFirst: [5] }, [], without(5)],
  ['them later', { suppressFirst: [5] }, [2], all],
  ['them after a given first token', { suppressFirst: [5], firstToken: 4 }, [4], without(5)],
  ['no repetition of one token', { noRepeat: 1 }, [2, 3], without(2, 3, 7)],
  ['no repetition of three', { noRepeat: 3 }, [2, 3, 4, 2, 3], without(4)],
  ['a short text', { noRepeat: 3 }, [], all],
  ['no excluded token', { exclude: [[8], [2, 9]] }, [3], without(8)],
  [
    'no excluded sequence',
    {
      exclude: [
        [2, 9],
        [7, 2, 4],
      ],
    },
    [2],
    without(9, 4),
  ],
  ['an end, even if it is excluded', { exclude: [[1]] }, [2], all],
])('They leave %s', (_, rules, own, expected) => {
  expect(allowedAfter(own, rules)).toEqual(expected)
})

test('A penalty lowers the scores of tokens that are there, also of the one at the start', () => {
  const scores = Float32Array.of(1, 1, -1, 2, 0, 0, 0, 4)
  applyRules(scores, { start: START, own: [2, 3, 3] }, { repetitionPenalty: 2 }, END)
  expect([...scores]).toEqual([1, 1, -2, 1, 0, 0, 0, 2])
})

test('The first of the best tokens comes next', () => {
  expect(findBest(Float32Array.of(-Infinity, -2, -1, -1))).toBe(2)
})
