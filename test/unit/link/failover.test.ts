/** Streams whose hosts die, put together again. */
import { describe, expect, test } from 'vitest'
import { type ErrorCode, InoriginError } from '../../../src/error.ts'
import { Delivery, withFailover } from '../../../src/link/failover.ts'
import type {
  GenerationEvent,
  GenerationRequest,
  Host,
  Transcript,
  TranscriptionEvent,
  TranscriptionRequest,
} from '../../../src/types/index.ts'
import { progressOf } from '../../support/samples.ts'
import { collect } from '../wire/scripted-host.ts'

const caller = { key: null, signal: new AbortController().signal }
const request: GenerationRequest = { model: '@a/b', messages: [], sampling: {}, stop: [] }
const progress: GenerationEvent = { type: 'progress', progress: progressOf() }
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
const text = (value: string, ...tokens: number[]): GenerationEvent => ({
  type: 'text',
  text: value,
  ...(tokens.length > 0 && { tokens }),
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
      events: (async function* () {
        yield { type: 'accepted' as const, ignored: [`host ${requests.length}`] }
        yield* structuredClone(events)
        if (error) throw error
      })(),
    }
  }
  const events: GenerationEvent[] = []
  let error: unknown
  let ignored: readonly string[] | undefined
  try {
    const generation = await withFailover({ generate } as Host).generate(given, caller)
    for await (const event of generation.events) {
      if (event.type === 'accepted') ignored = event.ignored
      else events.push(event)
    }
  } catch (thrown) {
    error = thrown
  }
  return { events, error, ignored, requests }
}

const repeat = (life: Life): Life[] => Array.from({ length: 9 }, () => life)

const withoutTokens = (events: readonly GenerationEvent[]) =>
  events.map((event) => ({ ...event, tokens: undefined }))

const whole: GenerationEvent[] = [
  start(0),
  { type: 'reasoning', text: 'Hmm, ', tokens: [1] },
  { type: 'reasoning', text: 'so', tokens: [2] },
  text('One '),
  text('two', 3),
  { type: 'tool_call', index: 0, id: 'call_a', name: 'add' },
  { type: 'tool_arguments', index: 0, text: '{"a":', tokens: [4, 5] },
  { type: 'tool_arguments', index: 0, text: '1}', tokens: [6] },
  finish(0),
]

/** Events of a host that continues: the same in other pieces, with calls that have other ids. */
const again: GenerationEvent[] = [
  progress,
  start(7),
  { type: 'reasoning', text: 'Hmm, so', tokens: [1, 2] },
  text('One two', 3),
  { type: 'tool_call', index: 0, id: 'call_b', name: 'add' },
  { type: 'tool_arguments', index: 0, text: '{"a":1}', tokens: [4, 5, 6] },
  finish(7),
]

/** Content that a client has after all events. */
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
    const seeded = await read([{ events: whole }], { ...request, sampling: { seed: 3 } })
    expect(seeded.requests[0]?.sampling).toEqual({ seed: 3 })
  })

  test.each([...whole.keys()].slice(1))(
    'continues after %i events, without a word missing or twice',
    async (count) => {
      const delivered = whole.slice(0, count)
      const { events, requests } = await read([
        { events: delivered, error: gone },
        { events: again },
      ])
      expect(join(events)).toEqual(join(whole))
      expect(withoutTokens(events.slice(0, count))).toEqual(withoutTokens(delivered))
      expect(events.at(-1)).toEqual(finish(0))
      expect(events).not.toContainEqual(progress)
      const resumeTokens = delivered.flatMap((event) =>
        'tokens' in event ? (event.tokens ?? []) : [],
      )
      expect(requests[1]).toEqual({
        ...request,
        sampling: { seed: requests[0]?.sampling.seed },
        ...(resumeTokens.length > 0 && { resumeTokens }),
      })
    },
  )

  test('continues again while the next host repeats what was delivered', async () => {
    const { events, requests } = await read([
      { events: whole.slice(0, 7), error: gone },
      { events: again.slice(0, 3), error: gone },
      { events: again },
    ])
    expect(join(events)).toEqual(join(whole))
    const tokens = [1, 2, 3, 4, 5]
    expect(requests.map(({ resumeTokens }) => resumeTokens)).toEqual([undefined, tokens, tokens])
  })

  test('delivers each logprob once', async () => {
    const withLogprobs = (parts: string[], ...tokens: number[]): GenerationEvent => ({
      type: 'text',
      text: parts.join(''),
      tokens,
      logprobs: parts.map((part) => ({ text: part, bytes: [], logprob: -1, top: [] })),
    })
    const { events } = await read([
      { events: [start(0), withLogprobs(['a'], 1), withLogprobs(['b', 'c'], 2, 3)], error: gone },
      {
        events: [
          start(0),
          withLogprobs(['a', 'b'], 1, 2),
          withLogprobs(['c', '', 'd'], 3, 4, 5),
          finish(0),
        ],
      },
    ])
    const texts = events.flatMap((event) => (event.type === 'text' ? event : []))
    const logprobs = texts.flatMap((event) => event.logprobs ?? [])
    expect(logprobs.map((each) => each.text)).toEqual(['a', 'b', 'c', '', 'd'])
    expect(texts.map((each) => each.text).join('')).toBe('abcd')
  })

  test('is not continued after its finish', async () => {
    const { events, requests } = await read([{ events: whole, error: gone }])
    expect([events.length, requests.length]).toEqual([whole.length, 1])
  })

  test.each<[ErrorCode, number, number]>([
    ['worker_ended', 2, 4],
    ['model_unresponsive', 1, 2],
    ['storage_damaged', 1, 2],
    ['runtime_crashed', 1, 2],
  ])(
    'whose model ends with %s runs at most %i times before its start, and %i times after it',
    async (code, early, late) => {
      const error = failure(code)
      const before = { events: [progress], error }
      const after = { events: whole.slice(0, 4), error }
      for (const [life, runs] of [
        [before, early],
        [after, late],
      ] as const) {
        const failed = await read(repeat(life))
        expect([failed.error, failed.requests.length]).toEqual([error, runs])
        if (runs === 1) continue
        const { events } = await read([life, { events: again }])
        expect(join(events)).toEqual(join(whole))
      }
    },
  )

  test.each<[string, Life[]]>([
    [
      'waits for an election that takes longer than one search',
      [{ events: whole.slice(0, 4), error: gone }, { error: failure('host_unreachable') }],
    ],
    ['starts on the next host if the first dies before it accepts the request', [{ error: gone }]],
  ])('%s', async (_, lives) => {
    const { events, requests } = await read([...lives, { events: again }])
    expect(join(events)).toEqual(join(whole))
    expect(requests).toHaveLength(lives.length + 1)
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

describe('an answer of a server, which counts the prompt at its end,', () => {
  const far: GenerationEvent[] = [
    { type: 'served_by', servedBy: 'upstream' },
    { type: 'start', promptTokens: 0, cachedTokens: 0 },
    text('far'),
    finish(4),
  ]

  test.each<[string, Life[]]>([
    ['', []],
    ['if its host dies before any content', [{ events: far.slice(0, 2), error: gone }]],
    ['if a host has started before', [{ events: [start(0)], error: gone }]],
  ])('has those counts %s', async (_when, lives) => {
    const { events, error } = await read([...lives, { events: far }])
    expect(error).toBeUndefined()
    expect(join(events)).toMatchObject({ text: 'far', starts: 1 })
    expect(events.at(-1)).toEqual(finish(4))
  })

  test('has those of the host that answers in place of the server', async () => {
    const lives = [
      { events: far.slice(0, 2), error: gone },
      { events: whole, error: gone },
    ]
    const { events, requests } = await read([...lives, { events: again }])
    expect(requests).toHaveLength(2)
    expect(events.at(-1)).toEqual(finish(0))
  })
})

describe('an answer that its device cannot finish', () => {
  const lost = (code: ErrorCode = 'device_lost') =>
    new InoriginError('unavailable', 'It is lost.', { code, mayContinueUpstream: true })
  const elsewhere: GenerationEvent[] = [
    { type: 'served_by', servedBy: 'upstream', continues: true },
    { type: 'start', promptTokens: 20, cachedTokens: 3 },
    text(', three'),
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

  const life = { events: whole.slice(0, 4), error: lost('worker_ended') }
  test.each<[string, Life[], GenerationRequest['interrupted'], string]>([
    [
      'from its beginning if nothing of it was delivered',
      [{ events: [start(0)], error: lost() }],
      { text: '', tokens: 0 },
      ', three',
    ],
    [
      'after all hosts have failed',
      [life, life, life, life],
      { text: 'One ', tokens: 2 },
      'One , three',
    ],
    [
      'by the next host if one dies',
      [{ ...life, error: lost() }, { error: gone }],
      { text: 'One ', tokens: 2 },
      'One , three',
    ],
  ])('is continued there %s', async (_when, lives, interrupted, expected) => {
    const { events, requests, error } = await read([...lives, { events: elsewhere }])
    expect(error).toBeUndefined()
    expect(requests[lives.length]?.interrupted).toEqual(interrupted)
    expect(join(events)).toMatchObject({ text: expected, starts: 1, ends: 1 })
  })

  test.each<[string, Life[]]>([
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

test.each(['embed', 'createRemotePrediction'] as const)(
  'a stream of %s, which has one result, is computed anew',
  async (method) => {
    const result = { type: 'finish', result: 1 }
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
    expect((await collect(events)).at(-1)).toEqual(result)
    expect(calls).toBe(3)
  },
)

test('speech that is streamed is written again from its start, with the same seed', async () => {
  const pieces = ['One ', 'two ', 'three']
  const seeds: unknown[] = []
  const transcribe = async ({ seed }: TranscriptionRequest) => ({
    events: (async function* (): AsyncGenerator<TranscriptionEvent> {
      const isFirst = seeds.push(seed) === 1
      // Each host divides the text in its own way.
      for (const piece of isFirst ? pieces.slice(0, 2) : ['One t', 'wo three'])
        yield { type: 'text', text: piece }
      if (isFirst) throw gone
      yield { type: 'finish', transcript: { text: 'One two three' } as Transcript }
    })(),
  })
  const host = withFailover({ transcribe } as unknown as Host)
  const { events } = await host.transcribe({} as TranscriptionRequest, caller)
  expect(await collect(events)).toEqual([
    ...pieces.map((piece) => ({ type: 'text', text: piece })),
    { type: 'finish', transcript: { text: 'One two three' } },
  ])
  expect(seeds).toEqual([expect.any(Number), seeds[0]])
})

describe('a delivery', () => {
  test('that has selected the events of another one continues where that one was', () => {
    const delivery = new Delivery()
    const select = (...events: GenerationEvent[]) =>
      events.flatMap((event) => delivery.select(event) ?? [])
    const before = select(text('One ', 1), text('two', 2))
    expect(delivery.resumption()).toEqual({ resumeTokens: [1, 2] })
    const after = select(text('One t', 1), text('wo three', 2, 3), text(' four', 4))
    const selected = [text('One ', 1), text('two', 2), text(' three', 3), text(' four', 4)]
    expect([...before, ...after]).toEqual(selected)
    const next = new Delivery()
    for (const event of selected) next.select(event)
    expect(next.resumption()).toEqual({ resumeTokens: [1, 2, 3, 4] })
  })

  test('of another server cannot continue once it has content, which no host can repeat', () => {
    const delivery = new Delivery()
    delivery.select({ type: 'served_by', servedBy: 'upstream' })
    delivery.select({ type: 'start', promptTokens: 1, cachedTokens: 0 })
    expect(delivery.canContinue).toBe(true)
    delivery.select(text('One '))
    expect(delivery.canContinue).toBe(false)
  })
})
