/** Upstream servers that are slow, broken or hostile, over real connections. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Upstream } from '../../../src/catalog/upstream-schema.ts'
import { embedUpstream, generateUpstream } from '../../../src/engine/upstream/index.ts'
import { SILENCE_TIMEOUT_MS } from '../../../src/engine/upstream/connection.ts'
import { InoriginError } from '../../../src/error.ts'
import { createTrace, withTrace } from '../../../src/host/requests/trace.ts'
import type { HostService, TraceEvent } from '../../../src/types/index.ts'
import {
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

const stream = { 'content-type': 'text/event-stream' }
const FIRST = chunkOf({ content: 'Hello' })
const MEBIBYTE = 1024 * 1024

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

describe('a response without end', () => {
  test('as one event is cut at its limit', async () => {
    let written: Promise<number> | undefined
    const { call } = await open((response) => {
      response.writeHead(200, stream).write('data: ')
      written = writeForever(response, 'a'.repeat(64 * 1024))
    })
    const { code, message } = await failureOf(askUpstream(call))
    expect([code, message]).toEqual([
      'upstream_invalid',
      expect.stringContaining('an event is too long'),
    ])
    expect(await written).toBeLessThan(32 * MEBIBYTE)
  })

  test('is read no faster than its reader reads', async () => {
    let written: Promise<number> | undefined
    const { call } = await open((response) => {
      response.writeHead(200, stream)
      written = writeForever(response, `data: ${JSON.stringify(FIRST)}\n\n`.repeat(1_000))
    })
    const { events } = await generateUpstream(REQUEST, MODEL, call)
    const texts: string[] = []
    for await (const event of events) {
      if (event.type === 'text') texts.push(event.text)
      if (texts.length === 3) break
    }
    expect(texts).toEqual(['Hello', 'Hello', 'Hello'])
    expect(await written).toBeLessThan(32 * MEBIBYTE)
  })

  test('with the vectors of one text is cut at what they need', async () => {
    let written: Promise<number> | undefined
    const { call } = await open((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      written = writeForever(response, ' '.repeat(64 * 1024))
    })
    const request = { model: '@a/b', input: ['a'] } as const
    const failure = await failureOf(embedUpstream({ ...request, input: ['a'] }, 2, call))
    expect(failure.message).toContain('it is too long')
    expect(await written).toBeLessThan(32 * MEBIBYTE)
  })

  test.each([
    [200, 'upstream_invalid'],
    [500, 'upstream_error'],
  ])('that is compressed, with status %i, is not unpacked', async (status, code) => {
    const packed = gzipSync(`data: ${'a'.repeat(64 * MEBIBYTE)}`)
    const { call, server } = await open((response) => {
      response.writeHead(status, { ...stream, 'content-encoding': 'gzip' })
      response.write(packed)
    })
    const closed = server.closed()
    const failure = await failureOf(askUpstream(call))
    expect(failure.code).toBe(code)
    expect(failure.message.length).toBeLessThan(1_000)
    await closed
  })
})

describe('a server that is slow', () => {
  /** Has the faked time pass in steps of 10 s, after each of which the network gets its turn. */
  async function pass(milliseconds: number, step: () => void = () => undefined): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += 10_000) {
      step()
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
      await vi.advanceTimersByTimeAsync(10_000)
    }
  }
  const fakeTime = () => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })

  test('fails when it sends single bytes, and no event', async () => {
    let response: ServerResponse | undefined
    const { call } = await open((given) => {
      response = given
      sendEvents(given, [FIRST])
    })
    const { events } = await generateUpstream(REQUEST, MODEL, call)
    fakeTime()
    const failed = failureOf(readAll(events))
    await pass(SILENCE_TIMEOUT_MS + 20_000, () => response?.write('x'))
    expect((await failed).code).toBe('upstream_timeout')
  })

  test('may take its time as long as it says that it works', async () => {
    let response: ServerResponse | undefined
    const { call } = await open((given) => {
      response = given
      sendEvents(given, [FIRST])
    })
    const { events } = await generateUpstream(REQUEST, MODEL, call)
    fakeTime()
    const read = readAll(events)
    await pass(3 * SILENCE_TIMEOUT_MS, () => response?.write(': still here\n\n'))
    response?.end(`data: ${JSON.stringify(chunkOf({}, 'stop'))}\n\ndata: ${DONE}\n\n`)
    expect((await read).at(-1)).toMatchObject({ type: 'finish' })
  })

  test('is not blamed for the pause of a reader', async () => {
    let response: ServerResponse | undefined
    const { call } = await open((given) => {
      response = given
      sendEvents(given, [FIRST])
    })
    fakeTime()
    const { events } = await generateUpstream(REQUEST, MODEL, call)
    await pass(2 * SILENCE_TIMEOUT_MS)
    response?.end(`data: ${JSON.stringify(chunkOf({}, 'stop'))}\n\ndata: ${DONE}\n\n`)
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
])('a chunk is refused or read, and never breaks anything: %.60s', async (chunk) => {
  const { call } = await open((response) => {
    response.writeHead(200, stream)
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
  test('before the request sends nothing', async () => {
    const { call, abort, server } = await open(() => undefined)
    abort.abort()
    expect(await failureOf(askUpstream(call))).toMatchObject({ kind: 'aborted' })
    expect(server.counts().bytes).toBe(0)
  })

  const never: Respond = () => undefined
  const headersOnly: Respond = (response) => void response.writeHead(200, stream).flushHeaders()
  const retried: Respond = (response) => {
    response.writeHead(429, { 'retry-after': '9' }).end()
  }
  const failing: Respond = (response) => void response.writeHead(500).write('{')
  test.each([
    ['before the status', never, 'server'],
    ['before the first event', headersOnly, 'client'],
    ['in the wait for a retry', retried, 'client'],
    ['in the body of an error', failing, 'client'],
  ] as const)('%s ends the request', async (_phase, respond, side) => {
    let arrived = (_at: 'server' | 'client'): void => undefined
    const reached = new Promise<void>((resolve) => {
      arrived = (at) => void (at === side && resolve())
    })
    const { fetch } = globalThis
    vi.stubGlobal('fetch', async (...given: Parameters<typeof fetch>) => {
      const response = await fetch(...given)
      arrived('client')
      return response
    })
    const { call, abort, received, server } = await open(async (...given) => {
      await respond(...given)
      arrived('server')
    })
    const closed = server.closed()
    const failed = failureOf(askUpstream(call))
    await reached
    abort.abort()
    expect(await failed).toMatchObject({ kind: 'aborted' })
    await closed
    expect(received).toHaveLength(1)
  })

  test('while the app makes the headers sends nothing', async () => {
    const { call, abort, server } = await open(() => undefined)
    const failed = failureOf(
      askUpstream({
        ...call,
        getHeaders: (_url, signal) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
            abort.abort()
          }),
      }),
    )
    expect(await failed).toMatchObject({ kind: 'aborted' })
    expect(server.counts().bytes).toBe(0)
  })
})

describe('a key', () => {
  const SECRET = 'sk-of-the-app-0123456789'

  test('that a server quotes is in no error', async () => {
    for (const quote of [
      ((response, { headers }) => {
        const message = `Wrong key: ${headers['authorization']} for ${headers['x-token']}`
        response.writeHead(401).end(JSON.stringify({ error: { message } }))
      }) satisfies Respond,
      ((response, { headers }) => {
        sendEvents(response, [FIRST, { error: { message: `Expired: ${headers['x-token']}` } }])
        response.end()
      }) satisfies Respond,
    ]) {
      const { call } = await open(quote, { forwardAuthorization: true })
      const getHeaders = async () => ({ 'x-token': SECRET })
      const error = await failureOf(askUpstream({ ...call, key: 'sk-of-the-client', getHeaders }))
      expect(error.code).toBe('upstream_error')
      expect(error.message).toContain('[redacted]')
      expect(JSON.stringify(error.toRecord())).not.toMatch(/sk-of/)
    }
  })

  test('that is no valid header is in no error', async () => {
    const { call, server } = await open(() => undefined)
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
    const trace = createTrace()
    const methods = {
      generate: () => generateUpstream(REQUEST, MODEL, { ...call, key: SECRET }),
    } as unknown as HostService
    const reporter = {
      report: (event: Parameters<typeof trace.report>[0]) =>
        void events.push({ ...event, time: '' }),
    }
    const caller = { key: SECRET, signal: call.signal }
    await failureOf(withTrace(methods, reporter).generate(REQUEST, caller))
    expect(events.map(({ type }) => type)).toEqual(['request', 'failure'])
    expect(JSON.stringify(events)).not.toMatch(/sk-of|Hi/)
  })

  test('of one client is not sent for another', async () => {
    const { call, received } = await open(
      (response) => {
        sendEvents(response, [chunkOf({ content: 'a' }, 'stop'), DONE])
        response.end()
      },
      { forwardAuthorization: true },
    )
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
