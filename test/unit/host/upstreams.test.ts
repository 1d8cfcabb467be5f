/**
 * Where a request is answered: the conditions of the catalog, and the header of the request. A request
 * that must stay on the device sends no byte to a server, whatever fails.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createTestServer } from '../../../src/extras/testing/server.ts'
import { CONDITIONS, type Condition, type Upstream } from '../../../src/catalog/upstream-schema.ts'
import { resolveUpstream } from '../../../src/catalog/upstreams.ts'
import {
  ERROR_CODES,
  type ErrorCode,
  type ErrorKind,
  InoriginError,
  STATUS,
} from '../../../src/error.ts'
import { continueGeneration, Delivery } from '../../../src/link/failover.ts'
import type { Route } from '../../../src/types/index.ts'
import { createChance, type Chance } from '../../support/random.ts'
import {
  chatOf,
  DEVICE_LOST,
  embedder,
  openHost,
  PHASES,
  type Fault,
  type Phase,
} from '../../support/routed-host.ts'
import { runs } from '../../support/runs.ts'
import {
  chunkOf,
  DONE,
  sendEvents,
  startFetchServer,
  startUpstream,
  type UpstreamServer,
} from '../../support/upstream-server.ts'
import { model } from '../catalog/entries.ts'

const TAG = '@acme/tiny'

let server: UpstreamServer
let clock: NodeJS.Timeout
beforeAll(async () => {
  const far = createTestServer({ models: [{ tag: '@far/big', answers: () => 'far' }] })
  server = await startFetchServer(async (request) =>
    request.url.endsWith('/embeddings')
      ? Response.json({ data: [{ index: 0, embedding: [1, 2] }] })
      : far.fetch(request),
  )
  // Headers are sent after 5 s. These pass in 100 ms.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  clock = setInterval(() => vi.advanceTimersByTime(50), 1)
})
afterAll(async () => {
  clearInterval(clock)
  vi.useRealTimers()
  await server?.close()
})

const upstreamOf = (changes: Partial<Upstream> = {}): Upstream => ({
  id: 'server',
  url: server.url,
  model: '@far/big',
  when: ['unavailable'],
  forwardAuthorization: false,
  continues: false,
  unsupported: [],
  refusal: null,
  ...changes,
})

/** A model with a server that answers under the conditions. */
const modelWith = (...when: Condition[]) => model({ upstreams: [upstreamOf({ when })] })

type Opened = ReturnType<typeof openHost>

const ask = ({ post }: Pick<Opened, 'post'>, route?: string) =>
  post('chat/completions', { ...chatOf(TAG), stream: true }, route)

const failIn = (phase: Phase, kind: ErrorKind, code: ErrorCode): Fault => ({
  phase,
  error: new InoriginError(kind, `It: ${code}.`, { code }),
})
const UNFIT = failIn('select', 'unavailable', 'no_implementation')

describe('the usage of a server that sends it in its last chunk', () => {
  let counting: UpstreamServer
  beforeAll(async () => {
    const usage = {
      prompt_tokens: 40,
      completion_tokens: 8,
      prompt_tokens_details: { cached_tokens: 30 },
      completion_tokens_details: { reasoning_tokens: 2 },
    }
    counting = await startUpstream((response) => {
      const chunks = [
        chunkOf({ role: 'assistant' }),
        chunkOf({ content: 'far' }),
        chunkOf({}, 'stop'),
      ]
      sendEvents(response, [...chunks, { choices: [], usage }, DONE])
      response.end()
    })
  })
  afterAll(() => counting?.close())

  const entryOf = (...when: Condition[]) =>
    model({ upstreams: [upstreamOf({ url: counting.url, continues: true, when })] })
  const bodies: Array<[path: string, body: object, event: RegExp]> = [
    ['chat/completions', { stream_options: { include_usage: true } }, /"usage":{.*}/],
    ['messages', { max_tokens: 9 }, /"message_delta".*"usage":{.*}/],
    ['responses', { messages: undefined, input: 'Hi' }, /"response.completed".*"usage":{.*}/],
  ]

  /** Returns the numbers of input, cached and output tokens, as the style counts them. */
  function countsIn(text: string): number[] {
    const numberOf = (...names: string[]) => {
      const found = new RegExp(`"(?:${names.join('|')})":(\\d+)`).exec(text)
      return Number(found?.[1])
    }
    return [
      numberOf('prompt_tokens', 'input_tokens'),
      numberOf('cached_tokens', 'cache_read_input_tokens'),
      numberOf('completion_tokens', 'output_tokens'),
    ]
  }

  async function usageOf(
    opened: Opened,
    [path, fields, event]: (typeof bodies)[number],
    stream: boolean,
  ) {
    const body = { ...chatOf(TAG), ...fields, stream }
    const { status, text } = await opened.post(
      path,
      stream ? body : { ...body, stream_options: null },
    )
    expect([status, text]).toEqual([200, expect.stringContaining('far')])
    const [found = ''] = (stream ? text.match(event) : /"usage":{.*}/.exec(text)) ?? []
    const [input = NaN, cached = NaN, output] = countsIn(found)
    return [path === 'messages' ? input + cached : input, cached, output]
  }

  describe.each(bodies)('in %s', (...style) => {
    test.each([true, false])('is that of the answer, streamed: %s', async (stream) => {
      const opened = openHost(entryOf('always'))
      expect(await usageOf(opened, style, stream)).toEqual([40, 30, 8])
    })

    test.each([true, false])('is that after failover, streamed: %s', async (stream) => {
      const failing = openHost(entryOf('unavailable'), {
        faults: Array.from({ length: 4 }, () => ({ phase: 'load', error: DEVICE_LOST }) as const),
        isReady: false,
      })
      expect(await usageOf(failing, style, stream)).toEqual([40, 30, 8])
    })

    test.each([true, false])('adds to that of the device, streamed: %s', async (stream) => {
      const broken = openHost(entryOf('interrupted'), {
        faults: Array.from({ length: 4 }, () => ({ phase: 'middle', error: DEVICE_LOST }) as const),
      })
      // The prompt is that of the client, which the device counted.
      expect(await usageOf(broken, style, stream)).toEqual([1, 0, 9])
    })
  })
})

describe('a prompt that is too long, and no server may answer it,', () => {
  const message = 'prompt is too long: 9000 tokens > 2047 maximum.'
  const tooLong: Fault = {
    phase: 'accept',
    error: new InoriginError('invalid_request', message, {
      code: 'context_length_exceeded',
      param: 'messages',
      details: { tokens: 9_000, maximum: 2_047 },
    }),
  }
  const larger = (tag: string, maxInputTokens: number) => model({ tag, maxInputTokens })
  const failWith = async (
    path: string,
    others: ReturnType<typeof model>[],
    fields: object = { max_tokens: 9 },
  ) => {
    const opened = openHost(model(), { faults: [tooLong], others })
    const { status, text } = await opened.post(path, { ...chatOf(TAG), ...fields })
    return [status, JSON.parse(text).error]
  }
  const OTHERS = [larger('@a/huge', 131_072), larger('@a/same', 9_000), larger('@a/just', 9_001)]

  test.each(['chat/completions', 'messages', 'messages/count_tokens', 'responses'])(
    'is refused in %s with the models that would hold it',
    async (path) => {
      const fields = path === 'responses' ? { messages: undefined, input: 'Hi' } : undefined
      const [status, error] = await failWith(path, OTHERS, fields)
      expect(status).toBe(400)
      expect(error).toMatchObject({
        code: 'context_length_exceeded',
        details: { tokens: 9_000, maximum: 2_047, models: ['@a/just', '@a/huge'] },
      })
      const models = '@a/just (9001), @a/huge (131072)'
      expect(error.message).toBe(
        `${message} These models of the catalog have a larger context, in tokens: ${models}.`,
      )
    },
  )

  test('is refused with at most five of them, or with none', async () => {
    const many = Array.from({ length: 9 }, (_, at) => larger(`@a/m${at}`, 10_000 + at))
    const [, error] = await failWith('messages', many)
    expect(error.details.models).toEqual(['@a/m0', '@a/m1', '@a/m2', '@a/m3', '@a/m4'])
    const [, alone] = await failWith('messages', [])
    expect(alone.details.models).toEqual([])
    expect(alone.message).toContain('No model of the catalog has a context of that many tokens.')
  })
})

describe('a condition', () => {
  const cases: [Condition, Fault | null, boolean][] = [
    ['always', null, true],
    ['unavailable', UNFIT, true],
    ['unavailable', { phase: 'load', error: DEVICE_LOST }, true],
    ['unavailable', { phase: 'acquire', error: DEVICE_LOST }, true],
    ['not-loaded', null, false],
    ['busy', failIn('accept', 'rate_limit', 'queue_full'), true],
    ['too-long', failIn('accept', 'invalid_request', 'context_length_exceeded'), true],
  ]
  test.each(cases)('%s has the server answer', async (condition, fault, isReady) => {
    const local = { faults: Array.from({ length: 4 }, () => fault), isReady }
    const { status, served, text } = await ask(openHost(modelWith(condition), local))
    expect([status, served, text.includes('"content":"far"')]).toEqual([200, 'upstream', true])
    expect(text).toContain(': served by upstream')
    // Any other condition leaves it to this device.
    const before = server.counts()
    const others = cases.map(([one]) => one).filter((one) => one !== condition)
    const late = others.filter((one) => one !== 'always' && one !== 'not-loaded')
    for (const when of ['never', ...late] as const)
      expect((await ask(openHost(modelWith(when), local))).served).not.toBe('upstream')
    expect(server.counts()).toEqual(before)
  })

  test('not-loaded loads the local model meanwhile', async () => {
    const entry = modelWith('not-loaded')
    const opened = openHost(entry, { isReady: false })
    expect((await ask(opened)).served).toBe('upstream')
    expect(opened.seen).toMatchObject({ loads: 1, released: 1 })
    expect((await ask(openHost(entry))).served).toBe('local')
  })

  test('holds for embeddings and for both other styles', async () => {
    const faults = [UNFIT]
    const upstreams = [upstreamOf()]
    const body = { model: '@acme/embed', input: 'Hi' }
    const embedded = await openHost(embedder({ upstreams }), { faults }).post('embeddings', body)
    expect(JSON.parse(embedded.text)).toMatchObject({ data: [{ embedding: [1, 2] }] })
    expect(embedded.served).toBe('upstream')
    const { post } = openHost(modelWith('unavailable'), { faults })
    const message = await post('messages', { ...chatOf(TAG), max_tokens: 9 })
    expect(JSON.parse(message.text)).toMatchObject({ content: [{ type: 'text', text: 'far' }] })
    const response = await post('responses', { model: TAG, input: 'Hi' })
    expect(response).toMatchObject({ status: 200, served: 'upstream' })
  })
})

describe('an answer that this device cannot finish', () => {
  const faults: Fault[] = Array.from({ length: 4 }, () => ({ phase: 'middle', error: DEVICE_LOST }))
  const entryOf = (when: readonly Condition[]) =>
    model({ upstreams: [upstreamOf({ when: [...when], continues: true })] })

  test('is continued by the server if the catalog entry says so', async () => {
    const { post } = openHost(entryOf(['interrupted']), { faults })
    const { status, served, text } = await ask({ post })
    expect([status, served]).toEqual([200, 'local'])
    const parts = ['"content":"near"', ': continued by upstream', '"content":"far"', '[DONE]']
    const places = parts.map((part) => text.indexOf(part))
    expect(places).toEqual(places.toSorted((one, other) => one - other))
    expect(places[0]).toBeGreaterThan(0)
    expect(server.received.at(-1)?.body).toMatchObject({
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'near' },
      ],
      max_tokens: entryOf([]).maxOutputTokens - 1,
      continue_final_message: true,
    })
    const whole = await post('messages', { ...chatOf(TAG), max_tokens: 9 })
    expect(JSON.parse(whole.text)).toMatchObject({ content: [{ type: 'text', text: 'nearfar' }] })
  })

  test.each([
    ['the entry does not say so', ['unavailable', 'busy'], {}, undefined],
    ['the request is local', ['interrupted'], {}, 'local'],
    ['it has a format', ['interrupted'], { response_format: { type: 'json_object' } }, undefined],
  ] as const)('fails here if %s', async (_why, when, changes, route) => {
    const before = server.counts()
    const body = { ...chatOf(TAG), stream: true, ...changes }
    const { text } = await openHost(entryOf(when), { faults }).post('chat/completions', body, route)
    expect(text).toContain('device_lost')
    expect(server.counts()).toEqual(before)
  })

  test('is not continued for a request that says so by itself', () => {
    const entry = entryOf(['unavailable', 'busy'])
    const before = server.counts()
    const request = { model: entry.tag, messages: [], sampling: {}, stop: [] }
    const caller = { key: null, signal: new AbortController().signal }
    const { upstreams } = openHost(entry)
    const interrupted = { text: 'near', tokens: 1 }
    expect(() => upstreams.continueAnswer(entry, request, interrupted, caller)).toThrow(
      expect.objectContaining({ code: 'upstream_not_allowed' }),
    )
    expect(server.counts()).toEqual(before)
  })
})

test('the header x-inorigin-route narrows to one place, never widens, and has two values', async () => {
  const always = modelWith('always')
  expect((await ask(openHost(always), 'upstream')).served).toBe('upstream')
  const before = server.counts()
  expect((await ask(openHost(always), 'local')).served).toBe('local')
  const others = (['unavailable', 'busy', 'too-long', 'never'] as const).map((one) =>
    modelWith(one),
  )
  for (const entry of [...others, model()]) {
    const opened = openHost(entry)
    const { status, text } = await ask(opened, 'upstream')
    const { loads } = opened.seen
    expect([status, text.includes('upstream_not_allowed'), loads]).toEqual([403, true, 0])
  }
  for (const route of ['Local', 'none', ''])
    expect((await ask(openHost(always), route)).status).toBe(400)
  expect(server.counts()).toEqual(before)
})

describe('the header x-inorigin-served-by', () => {
  test('is missing while the weights may fail to load, and the stream says it then', async () => {
    const faults: Fault[] = [
      { phase: 'load-late', error: DEVICE_LOST },
      { phase: 'load-late', error: DEVICE_LOST },
    ]
    const failed = await ask(openHost(modelWith('unavailable'), { faults, isReady: false }))
    expect([failed.status, failed.served]).toEqual([200, null])
    expect(failed.text).toContain(': served by upstream')
    expect(failed.text).toContain('"content":"far"')
    const loaded = await ask(openHost(modelWith('unavailable'), { isReady: false }))
    expect(loaded.served).toBe(null)
    expect(loaded.text).toContain(': served by local')
  })

  test.each([
    ['the model is loaded', true, ['unavailable']],
    ['no server may answer', false, ['interrupted']],
  ] as const)('is local if %s', async (_why, isReady, when) => {
    const upstreams = [upstreamOf({ when: [...when], continues: true })]
    const { served, text } = await ask(openHost(model({ upstreams }), { isReady }))
    expect([served, text.includes(': served by')]).toEqual(['local', false])
  })

  test('is missing if an embedding takes long, and true otherwise', async () => {
    const embed = (...phases: Phase[]) =>
      openHost(embedder({ upstreams: [upstreamOf()] }), {
        faults: phases.map((phase) => ({ phase, error: DEVICE_LOST })),
      }).post('embeddings', { model: '@acme/embed', input: 'Hi' })
    expect((await embed()).served).toBe('local')
    expect((await embed('middle', 'middle')).served).toBe('upstream')
    const late = await embed('acquire-late', 'acquire-late')
    expect([late.served, JSON.parse(late.text).data[0].embedding]).toEqual([null, [1, 2]])
  })
})

/** Reasons why a request stays on the device: its header, the app, the catalog entry, or no server. */
const REASONS = ['header', 'header', 'no consent', 'never', 'none'] as const
type Reason = (typeof REASONS)[number]

const ANY = CONDITIONS.filter((condition) => condition !== 'never')

/** Conditions that depend on a fault: the others have the server answer before one. */
const AFTER_A_FAULT = ANY.filter((one) => one !== 'always' && one !== 'not-loaded')

/** Returns the server as validation leaves it. With no consent, its catalog came from another site. */
function upstreamsFor(reason: Reason | 'allowed', when: readonly Condition[]) {
  if (reason === 'none') return []
  const written = {
    id: 'server',
    engine: 'upstream' as const,
    url: server.url,
    model: '@far/big',
    when: reason === 'never' ? ['never' as const] : [...when],
    continues: true,
    forwardAuthorization: true,
  }
  const isGiven = reason !== 'no consent'
  const policy = { scope: 'https://app.test/', isGiven, allowed: ['https://other.test'] }
  return [resolveUpstream(written, server.url, policy)]
}

/** Requests, each of which ends with its response or its error. */
const OPERATIONS = {
  'chat/completions': ({ post }: Opened, body: object, route?: Route) =>
    post('chat/completions', { ...chatOf(TAG), ...body }, route),
  messages: ({ post }: Opened, body: object, route?: Route) =>
    post('messages', { ...chatOf(TAG), max_tokens: 9, ...body }, route),
  responses: ({ post }: Opened, body: object, route?: Route) =>
    post('responses', { model: TAG, input: 'Hi', ...body }, route),
  embeddings: ({ post }: Opened, _body: object, route?: Route) =>
    post('embeddings', { model: '@acme/embed', input: 'Hi' }, route),
  'messages/count_tokens': ({ post, sendHeaders }: Opened, _body: object, route?: Route) => {
    // It has no headers before its answer.
    sendHeaders()
    return post('messages/count_tokens', chatOf(TAG), route)
  },
  /** A background response that another host began, and that this one continues. */
  resumption: async ({ generate, sendHeaders }: Opened, _body: object, route?: Route) => {
    const delivery = new Delivery()
    delivery.select({ type: 'start', promptTokens: 1, cachedTokens: 0 })
    delivery.select({ type: 'text', text: 'ne', tokens: [1] })
    const request = { ...chatOf(TAG), sampling: {}, stop: [], ...(route && { route }) }
    const caller = { key: 'sk-1', signal: new AbortController().signal }
    try {
      const { events } = await continueGeneration(generate, request as never, caller, delivery)
      sendHeaders()
      for await (const _ of events);
      return { status: 200, served: null }
    } catch (error) {
      return { status: InoriginError.from(error).status, served: null }
    }
  },
}
type Operation = keyof typeof OPERATIONS
const NAMES = Object.keys(OPERATIONS) as Operation[]

function openFor(
  operation: Operation,
  reason: Reason | 'allowed',
  when: readonly Condition[],
  fault: Fault | null,
  isReady: boolean,
) {
  const upstreams = upstreamsFor(reason, when)
  const entry = operation === 'embeddings' ? embedder({ upstreams }) : model({ upstreams })
  return openHost(entry, { faults: Array.from({ length: 9 }, () => fault), isReady })
}

test('a server that may answer does so after a fault in each phase', async () => {
  const reached = async (operation: Operation, phase: Phase) => {
    const fault = { phase, error: DEVICE_LOST }
    const opened = openFor(operation, 'allowed', AFTER_A_FAULT, fault, !phase.endsWith('late'))
    await OPERATIONS[operation](opened, { stream: true })
    return opened.seen.headers > 0
  }
  const found = await Promise.all(
    NAMES.map(async (operation) => {
      const isReached = await Promise.all(PHASES.map((phase) => reached(operation, phase)))
      return [operation, PHASES.filter((_, at) => isReached[at])] as const
    }),
  )
  const generation = PHASES.filter((phase) => phase !== 'start')
  // The next test covers these faults, and those in which nothing leaves the device anyway.
  expect(Object.fromEntries(found)).toEqual({
    'chat/completions': generation,
    messages: generation,
    responses: generation,
    embeddings: PHASES.filter((phase) => phase !== 'open'),
    'messages/count_tokens': [],
    resumption: PHASES.filter((phase) => phase !== 'select'),
  })
})

/** Returns any error at all: of any kind and code, or none of inorigin's. */
function pickError({ pick, often }: Chance): unknown {
  if (often(0.1)) return new TypeError('It is a bug.')
  // Most errors of a device are of this kind, which has a server answer.
  const kinds = often(0.5) ? (['unavailable'] as const) : (Object.keys(STATUS) as ErrorKind[])
  return new InoriginError(pick(kinds), 'It failed.', { code: pick(ERROR_CODES) })
}

/** Each operation, reason and phase once. */
const GRID = NAMES.flatMap((operation) =>
  REASONS.flatMap((reason) => PHASES.map((phase) => ({ operation, reason, phase }))),
)

test('requests that must stay on the device send no byte over all fault paths', async () => {
  const chance = createChance(20)
  const { pick, often } = chance
  const before = server.counts()
  // The grid first, then random requests of it. Many at once, because those that fail late wait.
  const requests = Array.from({ length: runs(400, 1_000) }, async (_, at) => {
    const { operation, reason, phase } = GRID[at] ?? pick(GRID)
    const isFaulty = at < GRID.length || often(0.9)
    const fault = isFaulty ? { phase, error: pickError(chance) } : null
    const opened = openFor(operation, reason, ANY, fault, often(0.5))
    const route = reason === 'header' ? 'local' : undefined
    const body = { stream: often(0.5) }
    const { status, served } = await OPERATIONS[operation](opened, body, route)
    return { status, served, headers: opened.seen.headers }
  })
  const answers = await Promise.all(requests)
  expect(server.counts()).toEqual(before)
  expect(answers.filter(({ served, headers }) => served === 'upstream' || headers > 0)).toEqual([])
  // They were answered, rejected, and failed in every way.
  const statuses = new Set(answers.map(({ status }) => status))
  expect([...statuses].toSorted()).toEqual([200, ...Object.values(STATUS)].toSorted())
})
