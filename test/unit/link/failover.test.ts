/** Streams whose hosts die, put together again. */
import { describe, expect, test } from 'vitest'
import type { ErrorCode } from '../../../src/error-codes.ts'
import { InoriginError } from '../../../src/error.ts'
import { withFailover } from '../../../src/link/failover.ts'
import type { GenerationEvent, GenerationRequest, Host } from '../../../src/types/index.ts'

const caller = { key: null, signal: new AbortController().signal }
const request: GenerationRequest = { model: '@a/b', messages: [], sampling: {}, stop: [] }
const progress: GenerationEvent = {
  type: 'progress',
  progress: {
    tag: '@a/b',
    phase: 'download',
    loadedBytes: 1,
    totalBytes: 2,
    bytesPerSecond: 0,
    remainingSeconds: null,
  },
}
const start = (cachedTokens: number): GenerationEvent => ({
  type: 'start',
  promptTokens: 9,
  cachedTokens,
})
const finish = (cachedTokens: number): GenerationEvent => ({
  type: 'finish',
  reason: 'stop',
  stopSequence: null,
  usage: { promptTokens: 9, cachedTokens, completionTokens: 6, reasoningTokens: 2 },
})

const failure = (code: ErrorCode): InoriginError =>
  new InoriginError('unavailable', `It failed: ${code}.`, { code })
const gone = failure('host_gone')

/** Events of one host, and the error that ends it. Without events, it does not accept the request. */
interface Life {
  events?: readonly GenerationEvent[]
  error?: InoriginError
}

/** Reads a generation from hosts that live one after the other. */
async function read(lives: readonly Life[], given: GenerationRequest = request) {
  const requests: GenerationRequest[] = []
  const generate: Host['generate'] = async (received) => {
    const life = lives[requests.length]
    requests.push(received)
    if (!life) throw new Error('There is no further host.')
    const { events, error } = life
    if (!events) throw error
    return {
      ignored: [`host ${requests.length}`],
      events: (async function* () {
        yield* structuredClone(events)
        if (error) throw error
      })(),
    }
  }
  const events: GenerationEvent[] = []
  let error: unknown
  let ignored: string[] | undefined
  try {
    const generation = await withFailover({ generate } as Host).generate(given, caller)
    ignored = generation.ignored
    for await (const event of generation.events) events.push(event)
  } catch (thrown) {
    error = thrown
  }
  return { events, error, ignored, requests }
}

const withoutTokens = (events: readonly GenerationEvent[]) =>
  events.map((event) => ({ ...event, tokens: undefined }))

const whole: GenerationEvent[] = [
  start(0),
  { type: 'reasoning', text: 'Hmm, ', tokens: [1] },
  { type: 'reasoning', text: 'so', tokens: [2] },
  { type: 'text', text: 'One ' },
  { type: 'text', text: 'two', tokens: [3] },
  { type: 'tool_call', index: 0, id: 'call_a', name: 'add' },
  { type: 'tool_arguments', index: 0, text: '{"a":', tokens: [4, 5] },
  { type: 'tool_arguments', index: 0, text: '1}', tokens: [6] },
  finish(0),
]

/** What a host that continues sends: the same in other pieces, with calls that have other ids. */
const again: GenerationEvent[] = [
  progress,
  start(7),
  { type: 'reasoning', text: 'Hmm, so', tokens: [1, 2] },
  { type: 'text', text: 'One two', tokens: [3] },
  { type: 'tool_call', index: 0, id: 'call_b', name: 'add' },
  { type: 'tool_arguments', index: 0, text: '{"a":1}', tokens: [4, 5, 6] },
  finish(7),
]

/** What a client has after all events. */
function join(events: readonly GenerationEvent[]) {
  const all = { reasoning: '', text: '', arguments: '', calls: [] as string[], ends: 0, starts: 0 }
  for (const event of events) {
    if (event.type === 'reasoning') all.reasoning += event.text
    else if (event.type === 'text') all.text += event.text
    else if (event.type === 'tool_arguments') all.arguments += event.text
    else if (event.type === 'tool_call') all.calls.push(event.name)
    else if (event.type === 'start') all.starts += 1
    else if (event.type === 'finish') all.ends += 1
  }
  return all
}

describe('a generation', () => {
  test('without a death is passed on as it is, with a seed', async () => {
    const { events, requests, ignored } = await read([{ events: whole }])
    expect(events).toEqual(whole)
    expect(ignored).toEqual(['host 1'])
    expect(requests).toEqual([{ ...request, sampling: { seed: expect.any(Number) } }])
  })

  test.each(whole.map((_event, count) => count).slice(1))(
    'continues after %i events, without a word missing or twice',
    async (count) => {
      const lives = [{ events: whole.slice(0, count), error: gone }, { events: again }]
      const { events, requests } = await read(lives)
      expect(join(events)).toEqual(join(whole))
      expect(withoutTokens(events.slice(0, count))).toEqual(withoutTokens(whole.slice(0, count)))
      expect(events.at(-1)).toEqual(finish(0))
      expect(events).not.toContainEqual(progress)
      const resumeTokens = whole
        .slice(0, count)
        .flatMap((event) => ('tokens' in event ? (event.tokens ?? []) : []))
      const seed = requests[0]?.sampling.seed
      expect(requests[1]).toEqual({
        ...request,
        sampling: { seed },
        ...(resumeTokens.length > 0 && { resumeTokens }),
      })
    },
  )

  test('continues again while the next host repeats what was delivered', async () => {
    const lives = [
      { events: whole.slice(0, 7), error: gone },
      { events: again.slice(0, 3), error: gone },
      { events: again },
    ]
    const { events, requests } = await read(lives)
    expect(join(events)).toEqual(join(whole))
    expect(requests.map(({ resumeTokens }) => resumeTokens)).toEqual([
      undefined,
      [1, 2, 3, 4, 5],
      [1, 2, 3, 4, 5],
    ])
  })

  test('keeps the seed of the request', async () => {
    const { requests } = await read([{ events: whole }], { ...request, sampling: { seed: 3 } })
    expect(requests[0]?.sampling).toEqual({ seed: 3 })
  })

  test('delivers each logprob once', async () => {
    const logprob = (text: string) => ({ text, bytes: [], logprob: -1, top: [] })
    const text = (parts: string[], tokens: number[]): GenerationEvent => ({
      type: 'text',
      text: parts.join(''),
      tokens,
      logprobs: parts.map(logprob),
    })
    const { events } = await read([
      { events: [start(0), text(['a'], [1]), text(['b', 'c'], [2, 3])], error: gone },
      { events: [start(0), text(['a', 'b'], [1, 2]), text(['c', '', 'd'], [3, 4, 5]), finish(0)] },
    ])
    const texts = events.flatMap((event) => (event.type === 'text' ? event : []))
    expect(texts.flatMap(({ logprobs = [] }) => logprobs.map((each) => each.text))).toEqual([
      'a',
      'b',
      'c',
      '',
      'd',
    ])
    expect(texts.map((each) => each.text).join('')).toBe('abcd')
  })

  test('is not continued after its finish', async () => {
    const { events, requests } = await read([{ events: whole, error: gone }])
    expect([events.length, requests.length]).toEqual([whole.length, 1])
  })

  test.each(['worker_ended', 'model_unresponsive', 'storage_damaged', 'runtime_crashed'] as const)(
    'whose model ends with %s continues once it has started',
    async (code) => {
      const late = await read([
        { events: whole.slice(0, 1), error: failure(code) },
        { events: again },
      ])
      expect(join(late.events)).toEqual(join(whole))
    },
  )

  test.each([
    ['worker_ended', 2],
    ['model_unresponsive', 1],
    ['storage_damaged', 1],
    ['runtime_crashed', 1],
  ] as const)(
    'whose model ends with %s before the start runs at most %i times',
    async (code, runs) => {
      const error = failure(code)
      const life = { events: [progress], error }
      const result = await read(Array.from({ length: 9 }, () => life))
      expect([result.error, result.requests.length]).toEqual([error, runs])
      if (runs > 1)
        expect(join((await read([life, { events: whole }])).events)).toEqual(join(whole))
    },
  )

  test.each([
    ['worker_ended', 4],
    ['model_unresponsive', 2],
    ['storage_damaged', 2],
    ['runtime_crashed', 2],
  ] as const)('whose model keeps ending with %s runs %i times', async (code, runs) => {
    const error = failure(code)
    const lives = Array.from({ length: 9 }, () => ({ events: whole.slice(0, 4), error }))
    const result = await read(lives)
    expect(result.error).toBe(error)
    expect(result.requests).toHaveLength(runs)
  })

  test('waits for an election that takes longer than one search', async () => {
    const lost = failure('host_unreachable')
    const lives = [{ events: whole.slice(0, 4), error: gone }, { error: lost }, { events: again }]
    expect(join((await read(lives)).events)).toEqual(join(whole))
  })

  test('starts on the next host if the first dies before it accepts the request', async () => {
    const { events, requests } = await read([{ error: gone }, { events: whole }])
    expect(events).toEqual(whole)
    expect(requests).toHaveLength(2)
  })

  test('fails with the error of the fourth host that dies', async () => {
    const life = { events: whole.slice(0, 4), error: gone }
    const { error, requests } = await read([life, life, { error: gone }, life, { events: again }])
    expect(error).toBe(gone)
    expect(requests).toHaveLength(4)
  })

  test.each(['host_unreachable', 'queue_full', 'out_of_memory', undefined] as const)(
    'fails with other errors: %s',
    async (code) => {
      const error = code ? failure(code) : new InoriginError('internal', 'It failed.')
      expect((await read([{ events: whole.slice(0, 3), error }])).error).toBe(error)
      expect((await read([{ error }])).error).toBe(error)
    },
  )
})

describe('an answer that its device cannot finish', () => {
  const lost = (code: ErrorCode = 'device_lost') =>
    new InoriginError('unavailable', 'It is lost.', { code, mayContinueUpstream: true })
  const elsewhere: GenerationEvent[] = [
    { type: 'served_by', servedBy: 'upstream', continues: true },
    { type: 'start', promptTokens: 20, cachedTokens: 3 },
    { type: 'text', text: ', three' },
    finish(3),
  ]

  test('is continued by a server, which is marked, with the tokens of both', async () => {
    const { events, requests, error } = await read([
      { events: whole.slice(0, 5), error: lost() },
      { events: elsewhere },
    ])
    expect(error).toBeUndefined()
    expect(requests[1]?.interrupted).toEqual({ text: 'One two', tokens: 3 })
    expect(requests[1]).not.toHaveProperty('resumeTokens')
    const usage = { promptTokens: 9, cachedTokens: 0, completionTokens: 9, reasoningTokens: 4 }
    expect(events).toEqual([
      ...whole.slice(0, 5),
      elsewhere[0],
      elsewhere[2],
      { type: 'finish', reason: 'stop', stopSequence: null, usage },
    ])
  })

  test('is asked for anew on a server if nothing of it was delivered', async () => {
    const { events, requests } = await read([
      { events: [start(0)], error: lost() },
      { events: elsewhere },
    ])
    expect(requests[1]?.interrupted).toEqual({ text: '', tokens: 0 })
    expect(join(events)).toMatchObject({ text: ', three', starts: 1, ends: 1 })
  })

  test('is continued there after all hosts have failed, and by the next host if one dies', async () => {
    const life = { events: whole.slice(0, 4), error: lost('worker_ended') }
    const { requests, error } = await read([life, life, life, life, { events: elsewhere }])
    expect([error, requests[4]?.interrupted]).toEqual([undefined, { text: 'One ', tokens: 2 }])
    const next = await read([
      { events: whole.slice(0, 4), error: lost() },
      { error: gone },
      { events: elsewhere },
    ])
    expect(next.requests[2]?.interrupted).toEqual({ text: 'One ', tokens: 2 })
    expect(join(next.events).text).toBe('One , three')
  })

  test.each([
    ['without consent', [{ events: whole.slice(0, 5), error: failure('device_lost') }]],
    ['before its start', [{ events: [progress], error: lost() }]],
    ['within its reasoning', [{ events: whole.slice(0, 3), error: lost() }]],
    ['after a tool call', [{ events: whole.slice(0, 7), error: lost() }]],
    [
      'twice',
      [
        { events: whole.slice(0, 5), error: lost() },
        { events: elsewhere.slice(0, 3), error: lost() },
      ],
    ],
  ])('is not continued %s', async (_when, lives) => {
    const { error, requests } = await read([...lives, { events: elsewhere }])
    expect([(error as InoriginError).code, requests.length]).toEqual(['device_lost', lives.length])
  })
})

describe('a stream with one result', () => {
  const result = { type: 'finish', result: 1 }

  test.each(['embed', 'createRemotePrediction'] as const)('%s is computed anew', async (method) => {
    let calls = 0
    const open = async () => ({
      events: (async function* () {
        yield { type: 'heartbeat' }
        if ((calls += 1) < 3) throw gone
        yield result
      })(),
    })
    const host = withFailover({ [method]: open } as unknown as Host)
    const { events } = await (host[method] as unknown as typeof open)()
    const received: unknown[] = []
    for await (const event of events) received.push(event)
    expect(received.at(-1)).toEqual(result)
    expect(calls).toBe(3)
  })
})
