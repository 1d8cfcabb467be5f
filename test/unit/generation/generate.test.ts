import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { createCoalescer } from '../../../src/generation/coalesce.ts'
import { createDeferred } from '../../support/deferred.ts'
import { ask, collect, type Script, scripted, sum, use } from './scripted.ts'

const WORDS = ['Hello', ' wor', 'ld']
const CALL = [
  '<tool',
  '_call>\n{"name": ',
  '"get_weather", "arguments": {"city"',
  ': "Rome"}}',
  '\n</tool_call>',
]
const ROME = { name: 'get_weather', arguments: '{"city": "Rome"}' }
const text = (content: string, tokens?: number[]) => ({
  type: 'text',
  text: content,
  ...(tokens && { tokens }),
})

/** Returns the content of an answer. */
const answer = async (...[pieces, fields, script]: Given) =>
  sum(await collect(scripted(pieces, script), fields))
type Given = [string[], Parameters<typeof collect>[1]?, Script?]

test('An answer has a start, its text, and a finish with the usage', async () => {
  expect(await collect(scripted(WORDS, { cachedTokens: 2 }))).toEqual([
    { type: 'start', promptTokens: 3, cachedTokens: 2 },
    ...WORDS.map((word) => text(word)),
    {
      type: 'finish',
      reason: 'stop',
      stopSequence: null,
      usage: { promptTokens: 3, cachedTokens: 2, completionTokens: 4, reasoningTokens: 0 },
    },
  ])
  expect(await answer(WORDS, {}, { ending: 'length' })).toMatchObject({ reason: 'length' })
})

test('The usage has the draft tokens of the engine, also when a stop sequence ends the answer', async () => {
  const engine = scripted([])
  let most: number | undefined
  engine.generate = async function* (_prompt, { maxDraftTokens }) {
    most = maxDraftTokens
    yield { text: 'a', tokens: 1, drafts: { accepted: 0, rejected: 3 } }
    yield { text: 'b', tokens: 1, drafts: { accepted: 1, rejected: 3 } }
    const drafts = { accepted: 1, rejected: 10 }
    return { reason: 'stop', completionTokens: 3, drafts }
  }
  const usageOf = async (fields: Parameters<typeof collect>[1]) =>
    (await collect(engine, fields)).at(-1)
  expect(await usageOf({ maxDraftTokens: 7 })).toMatchObject({
    reason: 'stop',
    usage: { drafts: { accepted: 1, rejected: 10 } },
  })
  expect(most).toBe(7)
  expect(await usageOf({ stop: ['b'] })).toMatchObject({
    reason: 'stop_sequence',
    usage: { drafts: { accepted: 1, rejected: 3 } },
  })
  expect(most).toBeUndefined()
})

test('The start precedes the first piece, with or without the callback of the engine', async () => {
  const engine = scripted([])
  const computed = createDeferred()
  engine.generate = async function* (_prompt, options) {
    options.onStart?.({ cachedTokens: 1 })
    await computed.promise
    yield { text: 'a', tokens: 1 }
    return { reason: 'stop', completionTokens: 2 }
  }
  const events = await ask(engine)
  expect((await events.next()).value).toEqual({ type: 'start', promptTokens: 3, cachedTokens: 1 })
  computed.resolve()
  expect((await events.next()).value).toEqual(text('a'))
  engine.generate = async function* () {
    yield { text: 'a', tokens: 1 }
    return { reason: 'stop', completionTokens: 2 }
  }
  expect((await collect(engine)).map(({ type }) => type)).toEqual(['start', 'text', 'finish'])
})

test('Events are merged, and those that are held are sent before an error', async () => {
  const engine = scripted(WORDS, { ending: new InoriginError('unavailable', 'It broke.') })
  const events = await ask(engine, {}, { coalescer: createCoalescer(() => 0) })
  const texts: string[] = []
  const read = async () => {
    for await (const event of events) if (event.type === 'text') texts.push(event.text)
  }
  await expect(read()).rejects.toMatchObject({ message: 'It broke.' })
  expect(texts).toEqual(['Hello', ' world'])
})

describe('The tokens of events', () => {
  const pieces = [...'abcd'].map((letter, at) => ({ text: letter, tokens: 1, tokenIds: [at] }))
  const first = { text: 'a', tokens: 2, tokenIds: [8, 0] }

  test('come with the last event of a piece, and with the next one if it has none', async () => {
    const events = await collect(scripted([first, ...pieces.slice(1)]), { stop: ['bcx'] })
    expect(events.slice(1, -1)).toEqual([text('a', [8, 0]), text('bcd', [1, 2, 3])])
  })

  test('are merged with the events', async () => {
    const coalescer = createCoalescer(() => 0)
    const events = await collect(scripted(pieces), {}, { coalescer })
    expect(events.slice(1, -1)).toEqual([text('a', [0]), text('bcd', [1, 2, 3])])
  })
})

describe('Stop sequences', () => {
  test('end the answer, are not shown, and the tokens so far count', async () => {
    const engine = scripted(WORDS)
    const events = await collect(engine, { stop: [' w'] })
    expect(events.slice(1)).toEqual([
      text('Hello'),
      {
        type: 'finish',
        reason: 'stop_sequence',
        stopSequence: ' w',
        usage: { promptTokens: 3, cachedTokens: 0, completionTokens: 2, reasoningTokens: 0 },
      },
    ])
    expect(engine).toMatchObject({ given: 2, closed: true })
  })

  test.each<[string, Given, object]>([
    [
      'that never come release the held text',
      [WORDS, { stop: ['ld!'] }],
      { text: 'Hello world', reason: 'stop' },
    ],
    [
      'are not found in reasoning or arguments',
      [
        ['<think>', 'Rome', '</think>', 'So ', ...CALL],
        { stop: ['Rome', 'city'], tools: use() },
        { template: '<think></think>' },
      ],
      { reasoning: 'Rome', text: 'So', calls: [ROME], reason: 'tool_calls' },
    ],
    [
      'of white space are found before a call',
      [['So', '.\n', ...CALL], { stop: ['\n'], tools: use() }],
      { text: 'So.', calls: [], reason: 'stop_sequence' },
    ],
    [
      'end an answer that is held for a call that never comes',
      [['a <tool', '_ca'], { stop: ['_ca'], tools: use() }],
      { text: 'a <tool', reason: 'stop_sequence' },
    ],
  ])('%s', async (_, given, expected) => {
    expect(await answer(...given)).toMatchObject(expected)
  })
})

describe('Calls', () => {
  test('are streamed', async () => {
    const events = await collect(scripted(['One', ' moment.\n', ...CALL]), { tools: use() })
    const call = events.find(({ type }) => type === 'tool_call')
    const id = call?.type === 'tool_call' ? call.id : ''
    expect(id).toMatch(/^call_[0-9A-Za-z]{24}$/)
    expect(events.slice(1, -1)).toEqual([
      text('One'),
      text(' moment.'),
      { type: 'tool_call', index: 0, id, name: 'get_weather' },
      { type: 'tool_arguments', index: 0, text: '{"city"' },
      { type: 'tool_arguments', index: 0, text: ': "Rome"}' },
    ])
    expect(events.at(-1)).toMatchObject({ reason: 'tool_calls' })
  })

  test('of a custom tool have its text', async () => {
    const run = { name: 'run', parameters: true, input: { type: 'text' } } as const
    const called = [
      '<tool_call>\n{"name": "run", "arguments": {"inp',
      'ut": "l',
      's\\n',
      '"}}',
      '\n</tool_call>',
    ]
    const events = await collect(scripted(called), { tools: use({ tools: [run] }) })
    expect(events.slice(1, -1)).toMatchObject([
      { type: 'tool_call', index: 0, name: 'run', isCustom: true },
      { type: 'tool_arguments', text: '' },
      { type: 'tool_arguments', text: 'l' },
      { type: 'tool_arguments', text: 's\n' },
      { type: 'tool_arguments', text: '' },
    ])
    expect(sum(events)).toMatchObject({ calls: [{ name: 'run', arguments: 'ls\n' }] })
  })

  test('have an index and an id each', async () => {
    const events = await collect(scripted([...CALL, '\n', ...CALL]), { tools: use() })
    const calls = events.flatMap((event) => (event.type === 'tool_call' ? [event] : []))
    expect(calls.map(({ index }) => index)).toEqual([0, 1])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
    expect(sum(events).calls).toEqual([ROME, ROME])
  })

  test('end the answer after the first unless they may be parallel', async () => {
    const engine = scripted([...CALL, '\n', ...CALL])
    const events = await collect(engine, { tools: use({ parallel: false }) })
    expect(sum(events)).toMatchObject({ calls: [{ name: 'get_weather' }], reason: 'tool_calls' })
    expect(engine.closed).toBe(true)
    expect(engine.given).toBeLessThanOrEqual(CALL.length)
  })

  const untouched = { text: CALL.join(''), calls: [], reason: 'stop' }
  test.each<[string, Given, object]>([
    [
      'keep the arguments so far at a limit',
      [CALL.slice(0, 3), { tools: use() }, { ending: 'length' }],
      { calls: [{ ...ROME, arguments: '{"city"' }], reason: 'length' },
    ],
    ['are text without tools', [CALL], untouched],
    ['are text if no tool may be called', [CALL, { tools: use({ choice: 'none' }) }], untouched],
    [
      'of tools that may not be called are text',
      [CALL, { tools: use({ only: ['get_time'] }) }],
      untouched,
    ],
  ])('%s', async (_, given, expected) => {
    expect(await answer(...given)).toMatchObject(expected)
  })

  test('are read in the format of the template or the catalog', async () => {
    const python = ['<|tool_call_start|>[get_weather(', 'city="Rome")]<|tool_call_end|>']
    const template = '{% if tools %}List of tools: '
    expect(await answer(python, { tools: use() }, { template })).toMatchObject({ calls: [ROME] })
    const named = await collect(scripted(python), { tools: use() }, { ways: { toolFormat: 'lfm' } })
    expect(sum(named)).toMatchObject({ calls: [ROME] })
  })
})

test.each([
  [undefined, 50],
  [10, 10],
  [4096, 50],
])('A request for %s tokens gets at most %d', async (maxTokens, most) => {
  const engine = scripted([])
  await collect(engine, { maxTokens, sampling: { temperature: 0.5 } })
  expect(engine.asked).toMatchObject([{ maxTokens: most, sampling: { temperature: 0.5 } }])
})

test('The engine receives the options of the request', async () => {
  const engine = scripted([], { template: '<think></think>' })
  const fields = { logprobs: 3, reasoningBudget: 0, resumeTokens: [7, 8] }
  const tools = use({ choice: 'required' })
  await collect(engine, { ...fields, tools, format: { type: 'json_object' } }, { partition: 'p' })
  expect(engine.asked).toMatchObject([
    {
      logprobs: 3,
      partition: 'p',
      resumeTokens: [7, 8],
      visible: ['<think>', '</think>', '<tool_call>', '</tool_call>'],
      constraint: { type: 'sequence' },
    },
  ])
})

test('The engine is released when nobody reads on', async () => {
  const engine = scripted(WORDS)
  for await (const event of await ask(engine)) if (event.type === 'text') break
  expect(engine).toMatchObject({ given: 1, closed: true })
})

test('An error of the engine is that of the answer', async () => {
  const lost = new InoriginError('unavailable', 'The GPU was lost.')
  await expect(answer(WORDS, {}, { ending: lost })).rejects.toBe(lost)
  const odd = answer(WORDS, {}, { ending: new Error('odd') })
  await expect(odd).rejects.toMatchObject({ kind: 'internal', message: 'odd' })
})
