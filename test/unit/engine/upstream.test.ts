/** Requests to an upstream server and its answers, over real connections. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Upstream } from '../../../src/catalog/upstream-schema.ts'
import { SILENCE_TIMEOUT_MS } from '../../../src/engine/upstream/connection.ts'
import { embedUpstream, generateUpstream } from '../../../src/engine/upstream/index.ts'
import { InoriginError } from '../../../src/error.ts'
import { Trace, withTrace } from '../../../src/host/requests/middleware.ts'
import type { HostService, TraceEvent } from '../../../src/types/index.ts'
import { createDeferred } from '../../support/deferred.ts'
import {
  acceptUpstream,
  askUpstream,
  failureOf,
  MODEL,
  openUpstreamCall,
  readAll,
  REQUEST,
} from '../../support/upstream-call.ts'
import {
  chunkOf,
  DONE,
  sendEvents,
  type Respond,
  type UpstreamServer,
} from '../../support/upstream-server.ts'

const servers: UpstreamServer[] = []
afterEach(async () => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

async function open(respond: Respond, changes: Partial<Upstream> = {}) {
  const opened = await openUpstreamCall(respond, changes)
  servers.push(opened.server)
  return opened
}

const USAGE = {
  prompt_tokens: 7,
  completion_tokens: 3,
  prompt_tokens_details: { cached_tokens: 2 },
  completion_tokens_details: { reasoning_tokens: 1 },
}
const END = [{ choices: [], usage: USAGE }, DONE]
const HELLO = [chunkOf({ role: 'assistant', content: 'Hel' }), chunkOf({ content: 'lo' }, 'stop')]
const FIRST = chunkOf({ content: 'Hello' })
const STREAM = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }
const MEBIBYTE = 1024 * 1024

/** Answers with the events of these chunks. */
const answers =
  (...chunks: unknown[]): Respond =>
  (response) => {
    sendEvents(response, chunks)
    response.end()
  }
/** Answers with a status and no body. */
const rejects =
  (status: number, headers: Record<string, string> = {}): Respond =>
  (response) =>
    void response.writeHead(status, headers).end()
const never: Respond = () => undefined

const LARK_TOOL = {
  name: 'run',
  parameters: true,
  input: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' },
} as const

describe('an answer', () => {
  test('has text and usage', async () => {
    const { call, received } = await open(answers(...HELLO, ...END))
    const { events } = await askUpstream(call, {
      sampling: { temperature: 0.5, seed: 3 },
      maxTokens: 999,
    })
    expect(events).toEqual([
      { type: 'served_by', servedBy: 'upstream' },
      { type: 'start', promptTokens: 0, cachedTokens: 0 },
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
      {
        type: 'finish',
        reason: 'stop',
        stopSequence: null,
        usage: { promptTokens: 7, cachedTokens: 2, completionTokens: 3, reasoningTokens: 1 },
      },
    ])
    expect(received[0]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { 'x-app': 'token', 'content-type': 'application/json' },
      body: {
        model: 'big',
        messages: [{ role: 'user', content: 'Hi' }],
        max_tokens: 50,
        temperature: 0.5,
        seed: 3,
        stream: true,
        stream_options: { include_usage: true },
      },
    })
    expect(received[0]?.headers).not.toHaveProperty('authorization')
  })

  test('has reasoning, tool calls and log probabilities', async () => {
    const call1 = { index: 0, id: 'a', function: { name: 'add', arguments: '{"x"' } }
    const { call } = await open(
      answers(
        chunkOf({ reasoning: 'Hm' }),
        chunkOf({ content: 'é' }, null, {
          logprobs: { content: [{ token: 'é', logprob: -1, top_logprobs: [] }] },
        }),
        chunkOf({ tool_calls: [call1] }),
        chunkOf({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
        // Some servers give every call the index 0.
        chunkOf({ tool_calls: [{ index: 0, id: 'b', function: { name: 'now' } }] }, 'stop'),
        ...END,
      ),
    )
    const { events } = await askUpstream(call, { logprobs: 1 })
    expect(events.slice(2)).toMatchObject([
      { type: 'reasoning', text: 'Hm' },
      { type: 'text', text: 'é', logprobs: [{ text: 'é', bytes: [195, 169], logprob: -1 }] },
      { type: 'tool_call', index: 0, id: 'a', name: 'add' },
      { type: 'tool_arguments', index: 0, text: '{"x"' },
      { type: 'tool_arguments', index: 0, text: ':1}' },
      { type: 'tool_call', index: 1, id: 'b', name: 'now' },
      { type: 'finish', reason: 'tool_calls' },
    ])
  })

  test('has the text of a custom tool, which the server calls as a function', async () => {
    const first = { index: 0, id: 'a', function: { name: 'run', arguments: '{"input": "l' } }
    const { call, received } = await open(
      answers(
        chunkOf({ tool_calls: [first] }),
        chunkOf({ tool_calls: [{ index: 0, function: { arguments: 's\\n"}' } }] }, 'tool_calls'),
        ...END,
      ),
    )
    const input = { type: 'grammar', syntax: 'regex', definition: 'l[sn]+' } as const
    const tool = { name: 'run', parameters: true, input } as const
    const tools = { tools: [tool], choice: 'auto', parallel: true } as const
    const { events } = await askUpstream(call, { tools })
    expect(events.slice(2, -1)).toEqual([
      { type: 'tool_call', index: 0, id: 'a', name: 'run', isCustom: true },
      { type: 'tool_arguments', index: 0, text: 'l' },
      { type: 'tool_arguments', index: 0, text: 's\n' },
    ])
    const properties = { input: { type: 'string', pattern: '^(?:l[sn]+)$' } }
    expect(received[0]?.body).toMatchObject({
      tools: [{ type: 'function', function: { name: 'run', parameters: { properties } } }],
    })
  })

  test('names the stop sequence if the server does', async () => {
    const { call } = await open(
      answers(chunkOf({ content: 'a' }, 'stop', { stop_reason: 'X' }), ...END),
    )
    const { events } = await askUpstream(call, { stop: ['X'] })
    expect(events.at(-1)).toMatchObject({ reason: 'stop_sequence', stopSequence: 'X' })
  })

  test.each([
    ['no end marker', [...HELLO], 'upstream_invalid'],
    ['no reason for its end', [chunkOf({ content: 'a' }), DONE], 'upstream_invalid'],
    ['an error in the middle', [HELLO[0], { error: { message: 'out of GPUs' } }], 'upstream_error'],
    ['a filtered end', [chunkOf({ content: 'a' }, 'content_filter'), DONE], 'upstream_refused'],
  ])('fails with %s', async (_name, chunks, code) => {
    const { call } = await open(answers(...chunks))
    expect(await failureOf(askUpstream(call))).toMatchObject({ code })
  })

  test('fails if its connection breaks', async () => {
    const { call } = await open((response) => {
      sendEvents(response, [HELLO[0]])
      response.write('data: {', () => response.destroy())
    })
    expect(await failureOf(askUpstream(call))).toMatchObject({ code: 'upstream_unreachable' })
  })

  test('is no redirect', async () => {
    const { call, received } = await open((...given) =>
      given[1].path === '/v1/chat/completions'
        ? rejects(307, { location: '/elsewhere' })(...given)
        : answers(...HELLO, ...END)(...given),
    )
    expect(await failureOf(askUpstream(call))).toMatchObject({ code: 'upstream_unreachable' })
    expect(received.map(({ path }) => path)).toEqual(['/v1/chat/completions'])
  })

  test('is a stream of events', async () => {
    const { call } = await open((response) => void response.writeHead(200, JSON_TYPE).end('{}'))
    expect(await failureOf(askUpstream(call))).toMatchObject({ code: 'upstream_invalid' })
  })
})

describe('a request', () => {
  test('keeps the status of a rejection and says where it came from', async () => {
    const { call } = await open((response) => {
      response.writeHead(422).end(JSON.stringify({ error: { message: 'no such sampler' } }))
    })
    const error = await failureOf(askUpstream(call))
    expect(error).toMatchObject({ kind: 'invalid_request', status: 422, code: 'upstream_error' })
    expect(error.message).toContain(
      `${call.upstream.url} responded with status 422: no such sampler`,
    )
    expect(InoriginError.fromRecord(error.toRecord()).status).toBe(422)
  })

  test('is retried twice if the server asks for it', async () => {
    const busy = rejects(429, { 'retry-after': '0' })
    const { call, received } = await open((response, request, attempt) =>
      (attempt < 3 ? busy : answers(...HELLO, ...END))(response, request, attempt),
    )
    await askUpstream(call)
    expect(received).toHaveLength(3)
  })

  test.each([
    [503, 0, 3],
    [429, 60, 1],
  ])(
    'with status %i and Retry-After of %i fails after %i attempts',
    async (status, wait, count) => {
      const { call, received } = await open(rejects(status, { 'retry-after': `${wait}` }))
      expect(await failureOf(askUpstream(call))).toMatchObject({ status, retryAfter: wait })
      expect(received).toHaveLength(count)
    },
  )

  test('has only the named tool, which every server understands', async () => {
    const { call, received } = await open(answers(...HELLO, ...END))
    const tools = ['add', 'now'].map((name) => ({ name, parameters: { type: 'object' } }))
    const use = { tools, choice: 'required', parallel: true } as const
    await askUpstream(call, { tools: { ...use, only: ['now'] } })
    await askUpstream(call, { tools: use })
    const format = { type: 'json_schema', schema: {} } as const
    await askUpstream(call, { tools: { ...use, tools: [{ ...tools[0]!, strict: true }] }, format })
    await askUpstream(call, { format: { ...format, strict: true } })
    expect(received[0]?.body).not.toHaveProperty('tools.0.function.strict')
    expect(received[2]?.body).toMatchObject({
      tools: [{ function: { name: 'add', strict: true } }],
      response_format: { json_schema: { strict: false } },
    })
    expect(received[3]?.body).toMatchObject({ response_format: { json_schema: { strict: true } } })
    const sent = received.map(({ body }) => body)
    expect(sent[0]).toMatchObject({
      tools: [{ function: { name: 'now' } }],
      tool_choice: 'required',
    })
    expect(sent[1]).toMatchObject({
      tools: [{ function: { name: 'add' } }, { function: { name: 'now' } }],
      tool_choice: 'required',
    })
  })

  test('rejects or lists fields that the server does not support', async () => {
    const { call, received } = await open(answers(...HELLO, ...END), {
      unsupported: ['top_k', 'response_format', 'reasoning_effort'],
    })
    const { ignored } = await askUpstream(call, {
      sampling: { topK: 3, topP: 0.5 },
      reasoningBudget: 64,
      maxDraftTokens: 0,
    })
    expect(ignored).toEqual(['top_k', 'reasoningBudget', 'speculative.n_max'])
    expect(received[0]?.body).toMatchObject({ top_p: 0.5 })
    expect(received[0]?.body).not.toHaveProperty('top_k')
    for (const [changes, param] of [
      [{ format: { type: 'json_object' } }, 'format'],
      [{ format: { type: 'grammar', grammar: 'root ::= "a"' } }, 'format'],
      [{ format: { type: 'regex', pattern: 'a*' } }, 'format'],
      [{ format: { type: 'choice', choices: ['a'] } }, 'format'],
      [{ sampling: { logitBias: { 1: 2 } } }, 'logit_bias'],
      [{ responsePrefix: 'Once' }, 'messages'],
      [{ logprobs: 2 }, 'logprobs'],
    ] as const)
      expect(await failureOf(askUpstream(call, changes))).toMatchObject({
        kind: 'invalid_request',
        code: 'unsupported_parameter',
        param,
      })
  })

  test('sends a grammar in Lark as a description, and lists it', async () => {
    const { call, received } = await open(answers(...HELLO, ...END))
    const tools = { tools: [LARK_TOOL], choice: 'auto', parallel: true } as const
    const { ignored } = await askUpstream(call, { tools })
    expect(ignored).toEqual(['tools[0].input.definition'])
    expect(JSON.stringify(received[0]?.body['tools'])).toContain('start: \\"a\\"')
  })

  test('rejects a format of a prefilled answer, which servers apply to the rest only', async () => {
    const { call, received } = await open(answers(...HELLO, ...END), { continues: true })
    await askUpstream(call, { responsePrefix: 'Once' })
    const asked = { responsePrefix: '{', format: { type: 'json_object' } } as const
    const error = { code: 'unsupported_parameter', param: 'format' }
    expect(await failureOf(askUpstream(call, asked))).toMatchObject(error)
    expect(received).toHaveLength(1)
  })
})

test('embeddings are vectors in the order of the texts', async () => {
  const data = [
    { index: 1, embedding: [3, 4] },
    { index: 0, embedding: [1, 2] },
  ]
  const body = { data, usage: { prompt_tokens: 9 } }
  const { call, received } = await open((response) => {
    response.writeHead(200, JSON_TYPE).end(JSON.stringify(body))
  })
  const request = { model: '@a/b', input: ['a', 'b'] }
  const { vectors, dimensions, tokens } = await embedUpstream(request, 2, call)
  expect([[...vectors], dimensions, tokens]).toEqual([[1, 2, 3, 4], 2, 9])
  expect(received[0]).toMatchObject({ path: '/v1/embeddings', body: { input: ['a', 'b'] } })
  expect(await failureOf(embedUpstream(request, 3, call))).toMatchObject({
    code: 'upstream_invalid',
  })
})

test('embeddings that fail after their status are the error in their body', async () => {
  const error = { message: 'The GPU is gone.', type: 'overloaded_error' }
  const { call } = await open((response) => {
    response.writeHead(200, JSON_TYPE).end(`  ${JSON.stringify({ type: 'error', error })}`)
  })
  const failure = await failureOf(embedUpstream({ model: '@a/b', input: ['a'] }, 2, call))
  expect(failure.code).toBe('upstream_error')
  expect(failure.message).toContain('The GPU is gone.')
})

/** Writes as long as the client takes it. Resolves with the number of bytes when it has left. */
async function writeForever(response: ServerResponse, piece: string): Promise<number> {
  const left = once(response, 'close')
  let bytes = 0
  while (!response.destroyed) {
    bytes += piece.length
    if (!response.write(piece)) await Promise.race([once(response, 'drain'), left])
  }
  return bytes
}

describe('an endless response', () => {
  /** Opens a server that writes the piece again and again. */
  async function openEndless(headers: Record<string, string>, start: string, piece: string) {
    const written = createDeferred<number>()
    const { call } = await open(async (response) => {
      response.writeHead(200, headers).write(start)
      written.resolve(await writeForever(response, piece))
    })
    return { call, written: written.promise }
  }

  test('of one event is cut at its limit', async () => {
    const { call, written } = await openEndless(STREAM, 'data: ', 'a'.repeat(64 * 1024))
    const failure = await failureOf(askUpstream(call))
    expect(failure.code).toBe('upstream_invalid')
    expect(failure.message).toContain('an event is too long')
    expect(await written).toBeLessThan(32 * MEBIBYTE)
  })

  test('is read no faster than its reader reads', async () => {
    const events = `data: ${JSON.stringify(FIRST)}\n\n`.repeat(1_000)
    const { call, written } = await openEndless(STREAM, '\n', events)
    const texts: string[] = []
    for await (const event of (await acceptUpstream(call)).events) {
      if (event.type === 'text') texts.push(event.text)
      if (texts.length === 3) break
    }
    expect(texts).toEqual(['Hello', 'Hello', 'Hello'])
    expect(await written).toBeLessThan(32 * MEBIBYTE)
  })

  test('with the vector of one text is cut at the length that it needs', async () => {
    const { call, written } = await openEndless(JSON_TYPE, ' ', ' '.repeat(64 * 1024))
    const failure = await failureOf(embedUpstream({ model: '@a/b', input: ['a'] }, 2, call))
    expect(failure.message).toContain('it is too long')
    expect(await written).toBeLessThan(32 * MEBIBYTE)
  })

  test.each([
    [200, 'upstream_invalid'],
    [500, 'upstream_error'],
  ])('that is compressed, with status %i, is not unpacked', async (status, code) => {
    const packed = gzipSync(`data: ${'a'.repeat(64 * MEBIBYTE)}`)
    const { call, server } = await open((response) => {
      response.writeHead(status, { ...STREAM, 'content-encoding': 'gzip' }).write(packed)
    })
    const closed = server.closed()
    const failure = await failureOf(askUpstream(call))
    expect(failure.code).toBe(code)
    expect(failure.message.length).toBeLessThan(1_000)
    await closed
  })
})

describe('a slow server', () => {
  /** Lets the fake time pass in steps of 10 s, after each of which the network gets its turn. */
  async function pass(milliseconds: number, step: () => void = () => undefined): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += 10_000) {
      step()
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
      await vi.advanceTimersByTimeAsync(10_000)
    }
  }

  /** Opens an answer whose first event has arrived. */
  async function openSlow() {
    const response = createDeferred<ServerResponse>()
    const { call } = await open((given) => {
      sendEvents(given, [FIRST])
      response.resolve(given)
    })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { events } = await acceptUpstream(call)
    return { events, response: await response.promise }
  }
  const END_EVENTS = `data: ${JSON.stringify(chunkOf({}, 'stop'))}\n\ndata: ${DONE}\n\n`

  test('times out if it sends single bytes, and no event', async () => {
    const { events, response } = await openSlow()
    const failed = failureOf(readAll(events))
    await pass(SILENCE_TIMEOUT_MS + 20_000, () => response.write('x'))
    expect((await failed).code).toBe('upstream_timeout')
  })

  test('does not time out while it sends comments', async () => {
    const { events, response } = await openSlow()
    const read = readAll(events)
    await pass(3 * SILENCE_TIMEOUT_MS, () => response.write(': still here\n\n'))
    response.end(END_EVENTS)
    expect((await read).at(-1)).toMatchObject({ type: 'finish' })
  })

  test('does not time out while its reader pauses', async () => {
    const { events, response } = await openSlow()
    await pass(2 * SILENCE_TIMEOUT_MS)
    response.end(END_EVENTS)
    expect((await readAll(events)).at(-1)).toMatchObject({ type: 'finish' })
  })
})

const NESTED = '['.repeat(50_000) + ']'.repeat(50_000)

test.each([
  'null',
  '[]',
  '"text"',
  '{',
  NESTED,
  `{"error":${NESTED}}`,
  '{"error":{"message":{"toString":1}}}',
  '{"choices":{"0":1}}',
  '{"choices":[null]}',
  '{"choices":[{"delta":[]}]}',
  '{"choices":[{"delta":{"content":{}}}],"usage":{"prompt_tokens":-1}}',
  '{"choices":[{"delta":{"tool_calls":{"length":9}}}]}',
  '{"choices":[{"delta":{"tool_calls":[null]}}]}',
  '{"choices":[{"delta":{"tool_calls":[{"index":"__proto__","function":{"name":7}}]}}]}',
  '{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[null,{"bytes":["x"]}]}}]}',
  '{"choices":[{"delta":{},"finish_reason":"__proto__"}]}',
  '{"__proto__":{"polluted":true},"choices":[{"delta":{}}]}',
])('a malformed chunk is rejected or ignored: %.60s', async (chunk) => {
  const { call } = await open((response) => {
    response.writeHead(200, STREAM)
    const end = JSON.stringify(chunkOf({}, 'stop'))
    response.end(`data: ${chunk}\n\ndata: ${end}\n\ndata: ${DONE}\n\n`)
  })
  const answered = askUpstream(call, { logprobs: 1 }).then(
    ({ events }) => events.at(-1),
    (error: unknown) => error,
  )
  const result = await answered
  if (result instanceof InoriginError) expect(result.code).toMatch(/^upstream_(invalid|error)$/)
  else expect(result).toMatchObject({ type: 'finish', usage: { promptTokens: 0 } })
  expect({}).not.toHaveProperty('polluted')
})

describe('an abort', () => {
  test('before the request sends no request', async () => {
    const { call, abort, server } = await open(never)
    abort.abort()
    expect(await failureOf(askUpstream(call))).toMatchObject({ kind: 'aborted' })
    expect(server.counts().bytes).toBe(0)
  })

  const headersOnly: Respond = (response) => void response.writeHead(200, STREAM).flushHeaders()
  const firstEvent: Respond = (response) => sendEvents(response, [FIRST])
  const failing: Respond = (response) => void response.writeHead(500).write('{')
  test.each([
    ['before the status', never, 'server'],
    ['before the first event', headersOnly, 'client'],
    ['after the first event', firstEvent, 'client'],
    ['before a retry', rejects(429, { 'retry-after': '9' }), 'client'],
    ['in the body of an error', failing, 'client'],
  ] as const)('%s closes the connection', async (_phase, respond, side) => {
    const reached = { client: createDeferred(), server: createDeferred() }
    const { fetch } = globalThis
    vi.stubGlobal('fetch', async (...given: Parameters<typeof fetch>) => {
      const response = await fetch(...given)
      reached.client.resolve()
      return response
    })
    const { call, abort, received, server } = await open(async (...given) => {
      await respond(...given)
      reached.server.resolve()
    })
    const closed = server.closed()
    const failed = failureOf(askUpstream(call))
    await reached[side].promise
    abort.abort()
    expect(await failed).toMatchObject({ kind: 'aborted' })
    await closed
    expect(received).toHaveLength(1)
  })

  test('while the app makes the headers sends no request', async () => {
    const { call, abort, server } = await open(never)
    const getHeaders: typeof call.getHeaders = (_url, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
        abort.abort()
      })
    const failed = failureOf(askUpstream({ ...call, getHeaders }))
    expect(await failed).toMatchObject({ kind: 'aborted' })
    expect(server.counts().bytes).toBe(0)
  })
})

describe('a key', () => {
  const SECRET = 'sk-of-the-app-0123456789'

  test('that a server quotes is in no error', async () => {
    const quotes: Respond[] = [
      (response, { headers }) => {
        const message = `Wrong key: ${headers['authorization']} for ${headers['x-token']}`
        response.writeHead(401).end(JSON.stringify({ error: { message } }))
      },
      (response, { headers }) => {
        sendEvents(response, [FIRST, { error: { message: `Expired: ${headers['x-token']}` } }])
        response.end()
      },
    ]
    for (const quote of quotes) {
      const { call } = await open(quote, { forwardAuthorization: true })
      const getHeaders = async () => ({ 'x-token': SECRET })
      const error = await failureOf(askUpstream({ ...call, key: 'sk-of-the-client', getHeaders }))
      expect(error.code).toBe('upstream_error')
      expect(error.message).toContain('[redacted]')
      expect(JSON.stringify(error.toRecord())).not.toMatch(/sk-of/)
    }
  })

  test('that is not a valid header is in no error', async () => {
    const { call, server } = await open(never)
    const getHeaders = async () => ({ 'x-token': `${SECRET}\né\u0000` })
    const error = await failureOf(askUpstream({ ...call, getHeaders }))
    expect([error.code, error.cause]).toEqual(['upstream_headers', undefined])
    expect(error.message).not.toContain(SECRET)
    expect(server.counts().bytes).toBe(0)
  })

  test('is not in the trace', async () => {
    const { call } = await open(
      (response, { headers }) => {
        response.writeHead(500).end(`Bearer: ${headers['authorization']}`)
      },
      { forwardAuthorization: true },
    )
    const events: TraceEvent[] = []
    const trace = new Trace()
    const methods = {
      generate: async () => ({
        events: generateUpstream(REQUEST, MODEL, { ...call, key: SECRET }),
      }),
    } as unknown as HostService
    const reporter = {
      report: (event: Parameters<typeof trace.report>[0]) =>
        void events.push({ ...event, time: '' }),
    }
    const caller = { key: SECRET, signal: call.signal }
    const { events: generated } = await withTrace(reporter)(methods).generate(REQUEST, caller)
    await failureOf(generated[Symbol.asyncIterator]().next())
    expect(events.map(({ type }) => type)).toEqual(['request', 'failure'])
    expect(JSON.stringify(events)).not.toMatch(/sk-of|Hi/)
  })

  test('of one client is not sent for another', async () => {
    const { call, received } = await open(answers(chunkOf({ content: 'a' }, 'stop'), DONE), {
      forwardAuthorization: true,
    })
    // Each request has a signal of its own, as those of pages have.
    const ask = (name: string) =>
      askUpstream(
        { ...call, key: `sk-${name}`, signal: new AbortController().signal },
        { messages: [{ role: 'user', content: name }] },
      )
    const names = Array.from({ length: 20 }, (_, at) => `client-${at}`)
    await Promise.all(names.map(ask))
    const pairs = received.map(({ headers, body }) => [
      headers.authorization,
      (body['messages'] as Array<{ content: string }>)[0]?.content,
    ])
    expect(pairs.toSorted()).toEqual(names.map((name) => [`Bearer sk-${name}`, name]).toSorted())
  })
})
