import { expect, test } from 'vitest'
import { createCoalescer } from '../../../src/generation/coalesce.ts'
import type { GenerationEvent, TokenLogprob } from '../../../src/types/index.ts'

const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: 4, reasoningTokens: 0 }
const start: GenerationEvent = { type: 'start', promptTokens: 1, cachedTokens: 0 }
const finish: GenerationEvent = { type: 'finish', reason: 'stop', stopSequence: null, usage }
const text = (piece: string): GenerationEvent => ({ type: 'text', text: piece })
const thought = (piece: string): GenerationEvent => ({ type: 'reasoning', text: piece })
const call = (index: number): GenerationEvent => ({
  type: 'tool_call',
  index,
  id: `call_${index}`,
  name: 'f',
})
const args = (index: number, piece: string): GenerationEvent => ({
  type: 'tool_arguments',
  index,
  text: piece,
})

/** Events at given times, in milliseconds. The last may be an error, which ends them. */
async function run(timed: readonly [number, GenerationEvent | Error][]): Promise<unknown[]> {
  let time = 0
  const { push, flush } = createCoalescer(() => time)
  const seen: unknown[] = []
  for (const [at, event] of timed) {
    time = at
    seen.push(...(event instanceof Error ? [...flush(), event] : push(event)))
  }
  return [...seen, ...flush()]
}

test('the first text is never held, nor one that comes later than the interval', async () => {
  const events: [number, GenerationEvent][] = [
    [0, start],
    [1, text('a')],
    [9, text('b')],
    [17, text('c')],
    [17, finish],
  ]
  expect(await run(events)).toEqual([start, text('a'), text('b'), text('c'), finish])
})

test('texts that follow fast are put together, in order, and none is lost', async () => {
  const events: [number, GenerationEvent][] = [
    [0, start],
    [0, text('a')],
    [1, text('b')],
    [2, text('c')],
    [8.5, text('d')],
    [9, text('e')],
    [9, finish],
  ]
  expect(await run(events)).toEqual([start, text('a'), text('bcd'), text('e'), finish])
})

test('a fast model is heard once a frame, until it slows down', async () => {
  const times = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 40, 49, 58]
  const texts = times.map((at): [number, GenerationEvent] => [
    at,
    text(String.fromCharCode(97 + times.indexOf(at))),
  ])
  expect(await run([[0, start], ...texts, [60, finish]])).toEqual([
    start,
    text('a'),
    text('bcde'),
    text('fghijklm'),
    text('n'),
    text('o'),
    text('p'),
    finish,
  ])
})

test('so are reasoning and the arguments of one call, and kinds stay apart and in order', async () => {
  const events: [number, GenerationEvent][] = [
    [0, start],
    [0, thought('a')],
    [1, thought('b')],
    [2, thought('c')],
    [3, text('d')],
    [4, text('e')],
    [5, call(0)],
    [5, args(0, '{')],
    [5, args(0, '}')],
    [6, call(1)],
    [6, args(1, '{')],
    [7, args(1, '}')],
    [7, finish],
  ]
  expect(await run(events)).toEqual([
    start,
    thought('a'),
    thought('bc'),
    text('de'),
    call(0),
    args(0, '{}'),
    call(1),
    args(1, '{}'),
    finish,
  ])
  expect(
    await run([
      [0, text('a')],
      [1, args(0, 'b')],
      [2, args(1, 'c')],
      [3, text('d')],
    ]),
  ).toEqual([text('a'), args(0, 'b'), args(1, 'c'), text('d')])
})

test('probabilities stay with their texts', async () => {
  const logprob = (token: string): TokenLogprob => ({
    text: token,
    bytes: [1],
    logprob: -1,
    top: [],
  })
  const told = (token: string): GenerationEvent => ({
    type: 'text',
    text: token,
    logprobs: [logprob(token)],
  })
  expect(
    await run([
      [0, told('a')],
      [1, told('b')],
      [2, told('c')],
      [3, finish],
    ]),
  ).toEqual([
    told('a'),
    { type: 'text', text: 'bc', logprobs: [logprob('b'), logprob('c')] },
    finish,
  ])
})

test('what was held comes before an error, and before an end without one', async () => {
  const broken = new Error('device lost')
  expect(
    await run([
      [0, start],
      [0, text('a')],
      [1, text('b')],
      [2, broken],
    ]),
  ).toEqual([start, text('a'), text('b'), broken])
  expect(
    await run([
      [0, text('a')],
      [1, text('b')],
    ]),
  ).toEqual([text('a'), text('b')])
})
