import { describe, expect, test } from 'vitest'
import type { Ending, Engine, GenerateOptions, Piece } from '../../../src/engine/engine.ts'
import { InoriginError } from '../../../src/error.ts'
import { generate } from '../../../src/generation/generate.ts'
import type { GenerationEvent, GenerationRequest } from '../../../src/types/index.ts'

const REQUEST: GenerationRequest = {
  model: '@test/fake',
  messages: [{ role: 'user', content: 'Hi' }],
  sampling: {},
  stop: [],
}
const ENDING: Ending = { reason: 'stop', cachedTokens: 2, completionTokens: 4 }

interface Fake extends Engine {
  asked: GenerateOptions[]
  /** Pieces that were computed. */
  given: number
  closed: boolean
  prepared: number
}

function fake(pieces: readonly Piece[], ending: Ending | Error = ENDING): Fake {
  const engine: Fake = {
    contextWindow: 100,
    asked: [],
    given: 0,
    closed: false,
    prepared: 0,
    load: () => Promise.resolve(),
    close: () => Promise.resolve(),
    prepare: () => {
      engine.prepared += 1
      return { tokens: [1, 2, 3] }
    },
    async *generate(_prompt, options) {
      engine.asked.push(options)
      try {
        for (const piece of pieces) {
          engine.given += 1
          yield piece
        }
        if (ending instanceof Error) throw ending
        return ending
      } finally {
        engine.closed = true
      }
    },
  }
  return engine
}

const LIMITS = { maxOutputTokens: 50 }
const signal = new AbortController().signal

async function collect(
  engine: Engine,
  request: Partial<GenerationRequest> = {},
): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = []
  for await (const event of generate(engine, { ...REQUEST, ...request }, LIMITS, signal))
    events.push(event)
  return events
}

const words = [
  { text: 'Hello', tokens: 1 },
  { text: ' wor', tokens: 2 },
  { text: 'ld', tokens: 1 },
]

test('tells the count of the prompt, the text, and the true usage', async () => {
  expect(await collect(fake(words))).toEqual([
    { type: 'start', promptTokens: 3, cachedTokens: 0 },
    { type: 'text', text: 'Hello' },
    { type: 'text', text: ' wor' },
    { type: 'text', text: 'ld' },
    {
      type: 'finish',
      reason: 'stop',
      stopSequence: null,
      usage: { promptTokens: 3, cachedTokens: 2, completionTokens: 4 },
    },
  ])
})

test('reports a limit as such', async () => {
  const events = await collect(fake(words, { ...ENDING, reason: 'length' }))
  expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'length' })
})

describe('stop texts', () => {
  test('end the answer, are not shown, and count the tokens made so far', async () => {
    const engine = fake(words)
    const events = await collect(engine, { stop: [' w'] })
    expect(events.slice(1)).toEqual([
      { type: 'text', text: 'Hello' },
      {
        type: 'finish',
        reason: 'stop_sequence',
        stopSequence: ' w',
        usage: { promptTokens: 3, cachedTokens: 0, completionTokens: 3 },
      },
    ])
    expect(engine.given).toBe(2)
    expect(engine.closed).toBe(true)
  })

  test('that never came give back what was held', async () => {
    const events = await collect(fake(words), { stop: ['ld!'] })
    expect(events.filter(({ type }) => type === 'text')).toEqual([
      { type: 'text', text: 'Hello' },
      { type: 'text', text: ' wor' },
      { type: 'text', text: 'ld' },
    ])
    expect(events.at(-1)).toMatchObject({ reason: 'stop', stopSequence: null })
  })
})

test.each([
  [undefined, 50],
  [10, 10],
  [4096, 50],
])('asks for %s tokens: gets at most %d', async (maxTokens, most) => {
  const engine = fake([])
  await collect(engine, { maxTokens, sampling: { temperature: 0.5 } })
  expect(engine.asked).toEqual([{ maxTokens: most, sampling: { temperature: 0.5 }, signal }])
})

test('does not prepare a prompt twice', async () => {
  const engine = fake([])
  for await (const event of generate(
    engine,
    REQUEST,
    { ...LIMITS, prompt: { tokens: [7] } },
    signal,
  )) {
    if (event.type === 'start') expect(event.promptTokens).toBe(1)
  }
  expect(engine.prepared).toBe(0)
})

test('frees the engine when nobody reads on', async () => {
  const engine = fake(words)
  for await (const event of generate(engine, REQUEST, LIMITS, signal))
    if (event.type === 'text') break
  expect(engine.closed).toBe(true)
  expect(engine.given).toBe(1)
})

test('passes on why the engine failed', async () => {
  const lost = new InoriginError('unavailable', 'The GPU was lost.')
  await expect(collect(fake(words, lost))).rejects.toBe(lost)
  await expect(collect(fake(words, new Error('odd')))).rejects.toMatchObject({
    kind: 'internal',
    message: 'odd',
  })
})
