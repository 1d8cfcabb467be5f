/** The comparison of answers with those of exporters' references. */
import { expect, test } from 'vitest'
import { compareAnswer, type Completion, type Scored } from '../exporters/compare.ts'

const bytesOf = (text: string): number[] => [...new TextEncoder().encode(text)]
const scored = (text: string, logprob: number): Scored => [bytesOf(text), logprob]

/** Three tokens, of which the second is as likely as another one, and the end. */
const REFERENCE = {
  promptTokens: 7,
  steps: [
    [scored('a', -0.1), scored('x', -3)],
    [scored('b', -0.7), scored('y', -0.71)],
    [scored('c', -0.2), scored('<|im_end|>', -4)],
    [scored('<|im_end|>', -0.1), scored('z', -5)],
  ],
}

/** Returns an answer with the logprobs of the reference, each higher by `shift`. */
function answerOf(
  text: string,
  changes: { finish?: string; prompt?: number; shift?: number } = {},
) {
  const { finish = 'length', prompt = 7, shift = 0 } = changes
  const content = [...text].map((token, at) => {
    const logprob = (REFERENCE.steps[at]?.[0]?.[1] ?? 0) + shift
    return { token, bytes: bytesOf(token), logprob }
  })
  const completion_tokens = content.length + Number(finish === 'stop')
  return {
    usage: { prompt_tokens: prompt, completion_tokens },
    choices: [{ finish_reason: finish, logprobs: { content } }],
  } satisfies Completion
}

test.each([
  ['the same answer', answerOf('abc', { finish: 'stop' }), { tokens: 4, equal: 4, isTie: false }],
  ['another likely token', answerOf('ayq'), { tokens: 1, equal: 1, isTie: true }],
  ['an unlikely token', answerOf('xbc'), { tokens: 4, equal: 0, isTie: false }],
  ['an unknown token', answerOf('abq'), { tokens: 4, equal: 2, isTie: false }],
  ['an early end', answerOf('ab', { finish: 'stop' }), { equal: 2, fault: 'it ends early' }],
  ['a short answer', answerOf('abc'), { equal: 3, fault: 'it ends early' }],
  ['another prompt', answerOf('abc', { prompt: 8 }), { fault: '8 tokens of prompt, not 7' }],
])('%s', (_, answer, expected) => {
  expect(compareAnswer(REFERENCE, answer, 0.05)).toMatchObject(expected)
})

test('a difference of logprobs is reported, and a missing entry', () => {
  expect(compareAnswer(REFERENCE, answerOf('abc', { shift: 0.25 }), 0.05).difference).toBeCloseTo(
    0.25,
  )
  const answer = answerOf('abc')
  answer.usage.completion_tokens = 4
  expect(compareAnswer(REFERENCE, answer, 0.05).fault).toBe('3 logprobs for 4 tokens')
})
