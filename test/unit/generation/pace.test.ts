import { expect, test } from 'vitest'
import { pace } from '../../../src/generation/pace.ts'
import type { GenerationEvent } from '../../../src/types/index.ts'

const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: 4 }
const start: GenerationEvent = { type: 'start', promptTokens: 1, cachedTokens: 0 }
const finish: GenerationEvent = { type: 'finish', reason: 'stop', stopSequence: null, usage }
const text = (piece: string): GenerationEvent => ({ type: 'text', text: piece })

/** Events at given times, in milliseconds. */
async function run(timed: readonly [number, GenerationEvent | Error][]): Promise<unknown[]> {
  let time = 0
  async function* events() {
    for (const [at, event] of timed) {
      time = at
      if (event instanceof Error) throw event
      yield event
    }
  }
  const seen: unknown[] = []
  try {
    for await (const event of pace(events(), () => time)) seen.push(event)
  } catch (error) {
    seen.push(error)
  }
  return seen
}

test('the first text is never held, nor one that comes later than the interval', async () => {
  const events: [number, GenerationEvent][] = [[0, start], [1, text('a')], [9, text('b')], [17, text('c')], [17, finish]]
  expect(await run(events)).toEqual([start, text('a'), text('b'), text('c'), finish])
})

test('texts that follow fast are put together, in order, and none is lost', async () => {
  const events: [number, GenerationEvent][] = [
    [0, start], [0, text('a')], [1, text('b')], [2, text('c')], [8.5, text('d')], [9, text('e')], [9, finish],
  ]
  expect(await run(events)).toEqual([start, text('a'), text('bcd'), text('e'), finish])
})

test('what was held comes before an error', async () => {
  const broken = new Error('device lost')
  expect(await run([[0, start], [0, text('a')], [1, text('b')], [2, broken]])).toEqual([
    start, text('a'), text('b'), broken,
  ])
})

test('leaving early ends the source', async () => {
  let ended = false
  async function* events(): AsyncGenerator<GenerationEvent> {
    try {
      for (;;) yield text('a')
    } finally {
      ended = true
    }
  }
  for await (const _event of pace(events())) break
  expect(ended).toBe(true)
})
