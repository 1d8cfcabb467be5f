import { expect, test } from 'vitest'
import { createCoalescer } from '../../../src/generation/coalesce.ts'
import type { GenerationEvent, TokenLogprob } from '../../../src/types/index.ts'

const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: 4, reasoningTokens: 0 }
const finish: GenerationEvent = { type: 'finish', reason: 'stop', stopSequence: null, usage }

/** Reads `a` as text, `~a` as reasoning, `0:` as the call with index 0, and `0:a` as its arguments. */
function toEvent(written: string): GenerationEvent {
  if (written === 'finish') return finish
  if (written.startsWith('~')) return { type: 'reasoning', text: written.slice(1) }
  const [, at, text] = /^(\d):(.*)$/.exec(written) ?? []
  if (at === undefined) return { type: 'text', text: written }
  const index = Number(at)
  if (text) return { type: 'tool_arguments', index, text }
  return { type: 'tool_call', index, id: `call_${at}`, name: 'f' }
}

/** Pushes events at their times in milliseconds, and flushes at the end. */
function run(timed: readonly (readonly [number, GenerationEvent])[]): GenerationEvent[] {
  let time = 0
  const { push, flush } = createCoalescer(() => time)
  const sent = timed.flatMap(([at, event]) => {
    time = at
    return push(event)
  })
  return [...sent, ...flush()]
}

test.each([
  ['The first text is sent at once, and any text after the interval', '0 a, 8 b, 16 c', 'a b c'],
  ['Texts within the interval are merged', '0 a, 1 b, 2 c, 8.5 d, 9 e, 9 finish', 'a bcd e finish'],
  [
    'A fast model is sent once a frame, until it slows down',
    '0 a, 2 b, 4 c, 6 d, 8 e, 10 f, 12 g, 14 h, 16 i, 18 j, 20 k, 22 l, 24 m, 40 n, 49 o, 58 p',
    'a bcde fghijklm n o p',
  ],
  [
    'Only events of one kind and one call are merged, in order',
    '0 ~a, 1 ~b, 2 ~c, 3 d, 4 e, 5 0:, 5 0:{, 5 0:}, 6 1:, 6 1:{, 7 1:}, 7 finish',
    '~a ~bc de 0: 0:{} 1: 1:{} finish',
  ],
  ['Arguments of two calls stay apart', '0 a, 1 0:b, 2 1:c, 3 d', 'a 0:b 1:c d'],
  ['A held text is sent at the end', '0 a, 1 b', 'a b'],
])('%s', (_, timed, sent) => {
  const events = timed.split(', ').map((each) => {
    const [at, event = ''] = each.split(' ')
    return [Number(at), toEvent(event)] as const
  })
  expect(run(events)).toEqual(sent.split(' ').map(toEvent))
})

test('Logprobs stay with their texts', () => {
  const logprob = (text: string): TokenLogprob => ({ text, bytes: [1], logprob: -1, top: [] })
  const event = (text: string): GenerationEvent => ({
    type: 'text',
    text,
    logprobs: [...text].map(logprob),
  })
  const events = [event('a'), event('b'), event('c'), finish]
  const timed = events.map((each, at) => [at, each] as const)
  expect(run(timed)).toEqual([event('a'), event('bc'), finish])
})
