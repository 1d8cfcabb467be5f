import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { createCoalescer } from '../../../src/generation/coalesce.ts'
import { ask, collect, scripted, sum, use } from './scripted.ts'

const WORDS = ['Hello', ' wor', 'ld']
const CALL = [
  '<tool',
  '_call>\n{"name": ',
  '"get_weather", "arguments": {"city"',
  ': "Rome"}}',
  '\n</tool_call>',
]

test('tells the counts of the prompt, the text, and the true usage', async () => {
  expect(await collect(scripted(WORDS, { cachedTokens: 2 }))).toEqual([
    { type: 'start', promptTokens: 3, cachedTokens: 2 },
    { type: 'text', text: 'Hello' },
    { type: 'text', text: ' wor' },
    { type: 'text', text: 'ld' },
    {
      type: 'finish',
      reason: 'stop',
      stopSequence: null,
      usage: { promptTokens: 3, cachedTokens: 2, completionTokens: 4, reasoningTokens: 0 },
    },
  ])
})

test('reports a limit as such', async () => {
  const events = await collect(scripted(WORDS, { ending: 'length' }))
  expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'length' })
})

test('tells the start before the first piece', async () => {
  const engine = scripted([])
  let release: (() => void) | undefined
  const computed = new Promise<void>((resolve) => (release = resolve))
  engine.generate = async function* (_prompt, options) {
    options.onStart?.({ cachedTokens: 1 })
    await computed
    yield { text: 'a', tokens: 1 }
    return { reason: 'stop', completionTokens: 2 }
  }
  const events = await ask(engine)
  expect((await events.next()).value).toEqual({ type: 'start', promptTokens: 3, cachedTokens: 1 })
  release?.()
  expect((await events.next()).value).toEqual({ type: 'text', text: 'a' })
})

test('starts also with an engine that does not say so', async () => {
  const engine = scripted([])
  engine.generate = async function* () {
    yield { text: 'a', tokens: 1 }
    return { reason: 'stop', completionTokens: 2 }
  }
  expect((await collect(engine)).map(({ type }) => type)).toEqual(['start', 'text', 'finish'])
})

test('merges events, and sends those that were held before an error', async () => {
  const engine = scripted(WORDS, { ending: new InoriginError('unavailable', 'It broke.') })
  const events = await ask(engine, {}, { coalescer: createCoalescer(() => 0) })
  const texts: string[] = []
  const read = async () => {
    for await (const event of events) if (event.type === 'text') texts.push(event.text)
  }
  await expect(read()).rejects.toMatchObject({ message: 'It broke.' })
  expect(texts).toEqual(['Hello', ' world'])
})

describe('the tokens of events', () => {
  const piece = (text: string, ...tokenIds: number[]) => ({
    text,
    tokens: tokenIds.length,
    tokenIds,
  })

  test('come with the last event of a piece, and with the next one if it has none', async () => {
    const pieces = [piece('a', 1, 2), piece('b', 3), piece('c', 4), piece('d', 5)]
    const events = await collect(scripted(pieces), { stop: ['bcx'] })
    expect(events.slice(1, -1)).toEqual([
      { type: 'text', text: 'a', tokens: [1, 2] },
      { type: 'text', text: 'bcd', tokens: [3, 4, 5] },
    ])
  })

  test('are merged with the events', async () => {
    const engine = scripted([piece('a', 1), piece('b', 2), piece('c', 3)])
    const events = await collect(engine, {}, { coalescer: createCoalescer(() => 0) })
    expect(events.slice(1, -1)).toEqual([
      { type: 'text', text: 'a', tokens: [1] },
      { type: 'text', text: 'bc', tokens: [2, 3] },
    ])
  })

  test('of an interrupted run are passed to the engine', async () => {
    const engine = scripted(WORDS)
    await collect(engine, { resumeTokens: [7, 8] })
    expect(engine.asked[0]?.resumeTokens).toEqual([7, 8])
  })
})

describe('stop texts', () => {
  test('end the answer, are not shown, and count the tokens made so far', async () => {
    const engine = scripted(WORDS)
    const events = await collect(engine, { stop: [' w'] })
    expect(events.slice(1)).toEqual([
      { type: 'text', text: 'Hello' },
      {
        type: 'finish',
        reason: 'stop_sequence',
        stopSequence: ' w',
        usage: { promptTokens: 3, cachedTokens: 0, completionTokens: 2, reasoningTokens: 0 },
      },
    ])
    expect(engine.given).toBe(2)
    expect(engine.closed).toBe(true)
  })

  test('that never came give back what was held', async () => {
    const events = await collect(scripted(WORDS), { stop: ['ld!'] })
    expect(sum(events)).toMatchObject({ text: 'Hello world', reason: 'stop' })
  })

  test('are of the text alone, not of reasoning or arguments', async () => {
    const engine = scripted(['<think>', 'Rome', '</think>', 'So ', ...CALL], {
      template: '<think></think>',
    })
    const events = await collect(engine, { stop: ['Rome', 'city'], tools: use() })
    expect(sum(events)).toMatchObject({
      reasoning: 'Rome',
      text: 'So',
      calls: [{ name: 'get_weather', arguments: '{"city": "Rome"}' }],
      reason: 'tool_calls',
    })
  })

  test('of white space are found in front of a call', async () => {
    const engine = scripted(['So', '.\n', ...CALL])
    const events = await collect(engine, { stop: ['\n'], tools: use() })
    expect(sum(events)).toMatchObject({ text: 'So.', calls: [], reason: 'stop_sequence' })
  })

  test('end an answer that is held for a call that never comes', async () => {
    const events = await collect(scripted(['a <tool', '_ca']), { stop: ['_ca'], tools: use() })
    expect(sum(events)).toMatchObject({ text: 'a <tool', reason: 'stop_sequence' })
  })
})

describe('calls', () => {
  test('are told as they are written', async () => {
    const events = await collect(scripted(['One', ' moment.\n', ...CALL]), { tools: use() })
    const call = events.find(({ type }) => type === 'tool_call')
    const id = call?.type === 'tool_call' ? call.id : ''
    expect(id).toMatch(/^call_[0-9A-Za-z]{24}$/)
    expect(events.slice(1, -1)).toEqual([
      { type: 'text', text: 'One' },
      { type: 'text', text: ' moment.' },
      { type: 'tool_call', index: 0, id, name: 'get_weather' },
      { type: 'tool_arguments', index: 0, text: '{"city"' },
      { type: 'tool_arguments', index: 0, text: ': "Rome"}' },
    ])
    expect(events.at(-1)).toMatchObject({ reason: 'tool_calls' })
  })

  test('several have an index and an id each', async () => {
    const events = await collect(scripted([...CALL, '\n', ...CALL]), { tools: use() })
    const calls = events.flatMap((event) => (event.type === 'tool_call' ? [event] : []))
    expect(calls.map(({ index }) => index)).toEqual([0, 1])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
    expect(sum(events).calls).toHaveLength(2)
  })

  test('one alone ends the answer where there may be no more', async () => {
    const engine = scripted([...CALL, '\n', ...CALL])
    const events = await collect(engine, { tools: use({ parallel: false }) })
    expect(sum(events)).toMatchObject({ calls: [{ name: 'get_weather' }], reason: 'tool_calls' })
    expect(engine.closed).toBe(true)
    expect(engine.given).toBeLessThanOrEqual(CALL.length)
  })

  test('cut by a limit end with that, and with the arguments so far', async () => {
    const events = await collect(scripted(CALL.slice(0, 3), { ending: 'length' }), { tools: use() })
    expect(sum(events)).toMatchObject({
      calls: [{ name: 'get_weather', arguments: '{"city"' }],
      reason: 'length',
    })
  })

  test('are text where no tools are given, or none may be called', async () => {
    for (const tools of [undefined, use({ choice: 'none' })]) {
      const events = await collect(scripted(CALL), { tools })
      expect(sum(events)).toMatchObject({ text: CALL.join(''), calls: [], reason: 'stop' })
    }
  })

  test('of tools that may not be called are text', async () => {
    const events = await collect(scripted(CALL), { tools: use({ only: ['get_time'] }) })
    expect(sum(events)).toMatchObject({ text: CALL.join(''), calls: [], reason: 'stop' })
  })

  test('come in the format that the template or the catalog says', async () => {
    const python = ['<|tool_call_start|>[get_weather(', 'city="Rome")]<|tool_call_end|>']
    const calls = [{ name: 'get_weather', arguments: '{"city": "Rome"}' }]
    const said = scripted(python, { template: '{% if tools %}List of tools: ' })
    expect(sum(await collect(said, { tools: use() }))).toMatchObject({ calls })
    const named = await collect(scripted(python), { tools: use() }, { ways: { toolFormat: 'lfm' } })
    expect(sum(named)).toMatchObject({ calls })
  })
})

test.each([
  [undefined, 50],
  [10, 10],
  [4096, 50],
])('asks for %s tokens: gets at most %d', async (maxTokens, most) => {
  const engine = scripted([])
  await collect(engine, { maxTokens, sampling: { temperature: 0.5 } })
  expect(engine.asked).toMatchObject([{ maxTokens: most, sampling: { temperature: 0.5 } }])
})

test('passes on what the engine has to know', async () => {
  const engine = scripted([], { template: '<think></think>' })
  const format = { type: 'json_object' } as const
  await collect(
    engine,
    { logprobs: 3, tools: use({ choice: 'required' }), format, reasoningBudget: 0 },
    { partition: 'p' },
  )
  expect(engine.asked).toMatchObject([
    {
      logprobs: 3,
      partition: 'p',
      visible: ['<think>', '</think>', '<tool_call>', '</tool_call>'],
      constraint: { type: 'sequence' },
    },
  ])
})

test('frees the engine when nobody reads on', async () => {
  const engine = scripted(WORDS)
  for await (const event of await ask(engine)) if (event.type === 'text') break
  expect(engine.closed).toBe(true)
  expect(engine.given).toBe(1)
})

test('passes on why the engine failed', async () => {
  const lost = new InoriginError('unavailable', 'The GPU was lost.')
  await expect(collect(scripted(WORDS, { ending: lost }))).rejects.toBe(lost)
  await expect(collect(scripted(WORDS, { ending: new Error('odd') }))).rejects.toMatchObject({
    kind: 'internal',
    message: 'odd',
  })
})
