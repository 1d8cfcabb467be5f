/** The two ends of the bridge over a real WebSocket and real HTTP. */
import { request as httpRequest } from 'node:http'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createAnswers } from '../../../src/bridge/answers.ts'
import { type TabMessage, WINDOW_BYTES } from '../../../src/bridge/protocol.ts'
import type { BridgeState } from '../../../src/types/index.ts'
import { ask, openBridge, TOKEN, type OpenBridge } from '../../support/bridge.ts'

let bridge: OpenBridge
beforeEach(async () => {
  bridge = await openBridge({})
})
afterEach(() => bridge.server.close())

const url = (path = '/v1/models') => bridge.server.url + path
const post = (body: string, headers: object = {}) =>
  ask(url('/v1/chat/completions'), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })

/** A response that never ends by itself, and what its reader did. */
function endless(piece: Uint8Array) {
  const seen = { pieces: 0, isCanceled: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        seen.pieces += 1
        controller.enqueue(piece)
      },
      cancel: () => void (seen.isCanceled = true),
    },
    { highWaterMark: 0 },
  )
  return { seen, response: new Response(body) }
}

test('a request reaches the tab as it was sent, and its response comes back', async () => {
  const seen: unknown[] = []
  await bridge.lend(async (request) => {
    seen.push(request.method, request.url, await request.text(), [...request.headers])
    return new Response('{"a":1}', { status: 429, headers: { 'retry-after': '3' } })
  })
  const answered = await post('{"long":"' + 'x'.repeat(300_000) + '"}', {
    authorization: 'Bearer sk-1',
    cookie: 'secret=1',
  })
  expect(answered).toMatchObject({
    status: 429,
    headers: { 'retry-after': '3' },
    text: '{"a":1}',
  })
  const [method, path, body, headers] = seen
  expect([method, path]).toEqual(['POST', 'http://localhost:1/v1/chat/completions'])
  expect(body).toHaveLength(300_011)
  expect(headers).toEqual([
    ['authorization', 'Bearer sk-1'],
    ['content-type', 'application/json'],
  ])
})

test.each(['/v1/../account', '/v1/%2e%2e/account', '/v1', '/v1x'])(
  'a tab fetches nothing outside of /v1/, whatever the command says: %s',
  async (path) => {
    const fetch = vi.fn<typeof globalThis.fetch>()
    const sent: TabMessage[] = []
    const answers = createAnswers({
      origin: 'https://app.example',
      fetch,
      send: (message) => sent.push(message),
      sendPiece: () => undefined,
      onCount: () => undefined,
    })
    answers.receive({ type: 'request', id: 1, method: 'GET', path, headers: [], bodyBytes: 0 })
    await vi.waitFor(() => expect(sent).toMatchObject([{ type: 'fail', id: 1 }]), 20_000)
    expect(fetch).not.toHaveBeenCalled()
  },
)

test('bodies of many requests at once are not mixed', async () => {
  await bridge.lend((request) => new Response(request.body, { status: 200 }))
  const bodies = Array.from({ length: 12 }, (_, at) => String(at).repeat(200_000))
  const answered = await Promise.all(bodies.map((body) => post(body)))
  expect(answered.map(({ text }) => text)).toEqual(bodies)
})

test('a client that reads nothing stops the tab', async () => {
  const { seen, response } = endless(new Uint8Array(2 ** 14))
  await bridge.lend(() => response)
  const asked = httpRequest(url(), { agent: false })
  const answered = new Promise<void>((resolve) => asked.on('response', () => resolve()))
  asked.end()
  await answered
  // The kernel keeps some MB for a connection. The rest must not be produced.
  let before = -1
  await vi.waitFor(
    () => {
      const isStill = before === seen.pieces
      before = seen.pieces
      expect(isStill).toBe(true)
    },
    { interval: 500, timeout: 60_000 },
  )
  expect(seen.pieces * 2 ** 14).toBeGreaterThan(WINDOW_BYTES)
  asked.destroy()
  await vi.waitFor(() => expect(seen.isCanceled).toBe(true), 20_000)
})

test('a client that leaves before the status cancels the work of the tab', async () => {
  const signals: AbortSignal[] = []
  const states: BridgeState[] = []
  await bridge.lend(
    ({ signal }) => {
      signals.push(signal)
      return new Promise(() => {})
    },
    { onChange: (state) => states.push(state) },
  )
  const asked = httpRequest(url(), { agent: false })
  asked.on('error', () => undefined)
  asked.end()
  await vi.waitFor(() => expect(states.at(-1)?.requests).toBe(1), 20_000)
  asked.destroy()
  await vi.waitFor(() => expect(signals[0]?.aborted).toBe(true), 20_000)
  expect(states.at(-1)).toMatchObject({ status: 'connected', requests: 0, answered: 1 })
})

test('the most capable tab answers, and the next one takes its requests over', async () => {
  const weak = await bridge.lend(() => new Response('weak'), { cores: 2 })
  let isAsked = false
  const strong = await bridge.lend(
    () => {
      isAsked = true
      return new Promise(() => {})
    },
    { cores: 8 },
  )
  const answered = post('{}')
  await vi.waitFor(() => expect(isAsked).toBe(true), 20_000)
  strong.close()
  expect((await answered).text).toBe('weak')
  await strong.closed
  expect((await post('{}')).text).toBe('weak')
  weak.close()
  await weak.closed
  const refused = await post('{}')
  expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
  expect(refused.text).toContain('"code":"bridge_no_tab"')
})

test('a stream breaks if its tab is closed, and does not end as if it were whole', async () => {
  const { response } = endless(new TextEncoder().encode('data: {}\n\n'))
  const tab = await bridge.lend(() => response)
  const answered = ask(url(), {})
  await vi.waitFor(() => expect(tab.state.requests).toBe(1), 20_000)
  tab.close()
  await expect(answered).rejects.toThrow(/aborted|hang up|reset/)
})

test('a response that fails in the tab breaks the connection', async () => {
  const failing = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.error(new Error('lost'))
    },
  })
  await bridge.lend(() => new Response(failing))
  await expect(ask(url(), {})).rejects.toThrow(/aborted|hang up|reset/)
})

test('a wrong token is refused, and the error says so', async () => {
  const { lend } = await import('../../../src/bridge/lend.ts')
  const { signal: closing } = new AbortController()
  vi.stubGlobal('navigator', { hardwareConcurrency: 1 })
  const server = { origin: 'http://localhost:1', fetch: async () => new Response(), closing }
  await expect(lend(bridge.server.url, { token: 'wrong' }, server)).rejects.toMatchObject({
    kind: 'authentication',
    code: 'bridge_refused',
  })
  await expect(lend('https://example.com', { token: TOKEN }, server)).rejects.toMatchObject({
    kind: 'invalid_request',
    param: 'url',
  })
  const aborted = AbortSignal.abort(new Error('enough'))
  const options = { token: TOKEN, signal: aborted }
  await expect(lend(bridge.server.url, options, server)).rejects.toThrow('enough')
  expect((await post('{}')).status).toBe(503)
})

test('an answer that fails before its status is an error of the tab', async () => {
  await bridge.lend(() => Promise.reject(new Error('no luck')))
  const answered = await post('{}')
  expect([answered.status, JSON.parse(answered.text).error.message]).toEqual([500, 'no luck'])
})

test('the tab learns that the command ended', async () => {
  const states: string[] = []
  const own = await openBridge({})
  const tab = await own.lend(() => new Response(), {
    onChange: ({ status }) => states.push(status),
  })
  const ended = tab.closed.catch((error: unknown) => error)
  await own.server.close()
  expect(await ended).toMatchObject({ code: 'bridge_unreachable' })
  await vi.waitFor(() => expect(states.at(-1)).toBe('closed'), 20_000)
})
