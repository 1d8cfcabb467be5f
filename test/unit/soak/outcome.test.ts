/** Which answers of the soak are good. */
import { expect, test } from 'vitest'
import type { Received } from '../../support/requests.ts'
import type { Transcript } from '../../support/transcript.ts'
import { FAULTS } from '../../soak/faults.ts'
import { judge } from '../../soak/outcome.ts'

const whole: Transcript = {
  reasoning: '',
  text: 'It is a server.',
  calls: [],
  finish: 'stop',
  tokens: [5, 4],
  error: null,
}

/** Judges an answer without a stream that arrived whole, with these differences. */
function verdictOf(
  received: Partial<Received>,
  circumstances: Partial<Parameters<typeof judge>[1]> = {},
): string {
  const message = { role: 'assistant', content: whole.text }
  const usage = { prompt_tokens: 5, completion_tokens: 4 }
  const body = { choices: [{ message, finish_reason: 'stop' }], usage }
  return judge(
    { status: 200, text: JSON.stringify(body), arrivals: [], end: 'done', ...received },
    {
      question: {
        style: 'chat',
        body: {},
        stream: false,
        client: 'fetch',
        frames: 0,
        abortAfter: null,
      },
      fault: FAULTS.none,
      whole,
      struckAt: null,
      lostServiceWorker: false,
      passage: 'none',
      ...circumstances,
    },
  ).verdict
}

test('the same answer is good, and another one is not', () => {
  expect(verdictOf({})).toBe('same')
  expect(verdictOf({}, { whole: { ...whole, text: 'It is a client.' } })).toBe('wrong')
})

test('a request that reached the web server is good only if its page was told', () => {
  const received = { status: 405, text: '405' }
  expect(verdictOf(received, { passage: 'told' })).toBe('passed by')
  expect(verdictOf(received, { passage: 'untold' })).toBe('wrong')
  expect(verdictOf(received)).toBe('wrong')
})

test('a network error is good only if the service worker of the request died', () => {
  const received = { text: '', end: 'TypeError: network error' }
  expect(verdictOf(received, { lostServiceWorker: true })).toBe('allowed error')
  expect(verdictOf(received)).toBe('wrong')
})
