/** The two ends of `inorigin bridge` over real WebSockets and real HTTP: the command and its tabs. */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { Answers, lend as lendTab } from '../../../src/bridge/lend.ts'
import {
  encodePiece,
  MAX_FRAME_BYTES,
  MAX_PIECE_BYTES,
  SUBPROTOCOL,
  WINDOW_BYTES,
  type TabMessage,
} from '../../../src/bridge/protocol.ts'
import { Tab } from '../../../src/cli/bridge/tab.ts'
import type { BridgeState } from '../../../src/types/index.ts'
import { ALLOWED, closeAll, type Fetch, open, TOKEN } from './open-bridge.ts'

const sockets: Socket[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const socket of sockets.splice(0)) socket.destroy()
  await closeAll()
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

const forever: Fetch = () => new Promise(() => {})

const until = (check: () => void) => vi.waitFor(check, { interval: 10, timeout: 20_000 })

const BROKEN = /aborted|hang up|reset/

/** Paths that are not in `/v1/`. */
const OUTSIDE = ['/v1/../account', '/v1/%2e%2e/account', '/v1x']

describe('a request', () => {
  test('reaches the tab as it was sent, and its response comes back', async () => {
    const { lend, post } = await open()
    const seen: unknown[] = []
    await lend(async (request) => {
      seen.push(request.method, request.url, await request.text(), [...request.headers])
      return new Response('{"a":1}', { status: 429, headers: { 'retry-after': '3' } })
    })
    const body = JSON.stringify({ long: 'x'.repeat(300_000) })
    const answered = await post(body, { authorization: 'Bearer sk-1', cookie: 'secret=1' })
    const headers = { 'retry-after': '3' }
    expect(answered).toMatchObject({ status: 429, headers, text: '{"a":1}' })
    expect(seen).toEqual([
      'POST',
      'http://localhost:1/v1/chat/completions',
      body,
      [
        ['authorization', 'Bearer sk-1'],
        ['content-type', 'application/json'],
      ],
    ])
  })

  test('keeps its body apart from those of others at the same time', async () => {
    const { lend, post } = await open()
    await lend((request) => new Response(request.body, { status: 200 }))
    const bodies = Array.from({ length: 12 }, (_, at) => String(at).repeat(200_000))
    const answered = await Promise.all(bodies.map((body) => post(body)))
    expect(answered.map(({ text }) => text)).toEqual(bodies)
  })

  test('whose client reads nothing stops the tab', async () => {
    const { lend, models } = await open()
    const { seen, response } = endless(new Uint8Array(2 ** 14))
    await lend(() => response)
    const asked = httpRequest(models, { agent: false })
    asked.end()
    await once(asked, 'response')
    // The kernel keeps some MB for a connection. The rest must not be produced.
    let before = -1
    await vi.waitFor(
      () => {
        const isStill = before === seen.pieces
        before = seen.pieces
        expect(isStill).toBe(true)
      },
      { interval: 300, timeout: 60_000 },
    )
    expect(seen.pieces * 2 ** 14).toBeGreaterThan(WINDOW_BYTES)
    asked.destroy()
    await until(() => expect(seen.isCanceled).toBe(true))
  })

  test('whose client leaves before the status is canceled in the tab', async () => {
    const { lend, models } = await open()
    const signals: AbortSignal[] = []
    const states: BridgeState[] = []
    const fetch: Fetch = (request) => {
      signals.push(request.signal)
      return forever(request)
    }
    await lend(fetch, { onChange: (state) => states.push(state) })
    const asked = httpRequest(models, { agent: false })
    asked.on('error', () => undefined)
    asked.end()
    await until(() => expect(states.at(-1)?.requests).toBe(1))
    asked.destroy()
    await until(() => expect(signals[0]?.aborted).toBe(true))
    expect(states.at(-1)).toMatchObject({ status: 'connected', requests: 0, answered: 1 })
  })

  test('is answered by the most capable tab, or by the next one if that closes', async () => {
    const { lend, post } = await open()
    const weak = await lend(() => new Response('weak'), { cores: 2 })
    const strong = await lend(forever, { cores: 8 })
    const answered = post('{}')
    await until(() => expect(strong.state.requests).toBe(1))
    strong.close()
    expect((await answered).text).toBe('weak')
    await strong.closed
    expect((await post('{}')).text).toBe('weak')
    weak.close()
    await weak.closed
    expect(await post('{}')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '2' },
      text: expect.stringContaining('"code":"bridge_no_tab"'),
    })
  })

  test('whose stream fails, or whose tab closes, breaks instead of ending', async () => {
    const { lend, ask: asking } = await open()
    const unfinished = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode('data: {}\n\n')),
    })
    const tab = await lend(() => new Response(unfinished))
    const answered = asking()
    await until(() => expect(tab.state.requests).toBe(1))
    tab.close()
    await expect(answered).rejects.toThrow(BROKEN)
    const failing = new ReadableStream({
      pull: (controller) => controller.error(new Error('lost')),
    })
    await lend(() => new Response(failing))
    await expect(asking()).rejects.toThrow(BROKEN)
  })

  test('that fails before its status is an error of the tab', async () => {
    const { lend, post } = await open()
    await lend(() => Promise.reject(new Error('no luck')))
    const { status, text } = await post('{}')
    expect([status, JSON.parse(text).error.message]).toEqual([500, 'no luck'])
  })
})

describe('a tab', () => {
  test.each(OUTSIDE)('fetches nothing outside of /v1/: %s', async (path) => {
    const fetch = vi.fn<typeof globalThis.fetch>()
    const sent: TabMessage[] = []
    const answers = new Answers({
      origin: 'https://app.example',
      fetch,
      send: (message) => sent.push(message),
      sendPiece: () => undefined,
      onCount: () => undefined,
    })
    answers.receive({ type: 'request', id: 1, method: 'GET', path, headers: [], bodyBytes: 0 })
    await until(() => expect(sent).toMatchObject([{ type: 'fail', id: 1 }]))
    expect(fetch).not.toHaveBeenCalled()
  })

  test('rejects with the reason why it was not lent', async () => {
    const { server, post } = await open()
    vi.stubGlobal('navigator', { hardwareConcurrency: 1 })
    const { signal: closing } = new AbortController()
    const page = { origin: 'http://localhost:1', fetch: async () => new Response(), closing }
    await expect(lendTab(server.url, { token: 'wrong' }, page)).rejects.toMatchObject({
      kind: 'authentication',
      code: 'bridge_refused',
    })
    await expect(lendTab('https://example.com', { token: TOKEN }, page)).rejects.toMatchObject({
      kind: 'invalid_request',
      param: 'url',
    })
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(lendTab(server.url, { token: TOKEN, signal }, page)).rejects.toThrow('enough')
    expect((await post('{}')).status).toBe(503)
  })

  test('learns that the command ended', async () => {
    const { server, lend } = await open()
    const tab = await lend(() => new Response())
    const ended = tab.closed.catch((error: unknown) => error)
    await server.close()
    expect(await ended).toMatchObject({ code: 'bridge_unreachable' })
    await until(() => expect(tab.state.status).toBe('closed'))
  })

  describe('that reconnects', () => {
    /** A tab whose command has ended. */
    async function loseCommand() {
      const { server, lend, port } = await open()
      const states: string[] = []
      const onChange = ({ status }: BridgeState) => void states.push(status)
      const tab = await lend(() => new Response('ok'), { reconnect: true, onChange })
      const becomes = (status: BridgeState['status']) =>
        until(() => expect(tab.state.status).toBe(status))
      const ended = tab.closed.catch(({ code }: { code: string }) => code)
      await server.close()
      await becomes('reconnecting')
      return { tab, states, becomes, ended, port }
    }

    test('connects to a command with the same token', async () => {
      const { tab, states, becomes, port } = await loseCommand()
      const next = await open({ port })
      await becomes('connected')
      expect((await next.ask()).text).toBe('ok')
      tab.close()
      await tab.closed
      expect([...new Set(states)]).toEqual(['connected', 'reconnecting', 'closed'])
      expect(tab.state).toMatchObject({ status: 'closed', answered: 1 })
    })

    test('stops at a command with another token, and when it is closed', async () => {
      const { tab, becomes, ended, port } = await loseCommand()
      const next = await open({ port, token: 'another-token-of-the-test' })
      expect(await ended).toBe('bridge_refused')
      await becomes('closed')
      expect((await next.ask()).text).toContain('bridge_no_tab')
      const waiting = await loseCommand()
      waiting.tab.close()
      await waiting.tab.closed
      await waiting.becomes('closed')
      expect(tab.state.status).toBe('closed')
      const last = await open({ port: waiting.port })
      expect((await last.ask()).text).toContain('bridge_no_tab')
    })
  })
})

describe('the guard', () => {
  let bridge: Awaited<ReturnType<typeof open>>
  /** API keys of the requests that reached the tab. */
  const reached: string[] = []
  const lendAll = ({ lend }: typeof bridge) =>
    lend((request) => {
      reached.push(request.headers.get('authorization') ?? 'none')
      return new Response('ok')
    })
  beforeEach(async () => {
    reached.length = 0
    bridge = await open()
    await lendAll(bridge)
  })

  test.each(['evil.example', 'evil.example:PORT', '127.0.0.1', '127.0.0.1:1', '192.168.0.1:PORT'])(
    'rejects a Host that is not this machine: %s',
    async (host) => {
      const headers = { host: host.replace('PORT', String(bridge.port)) }
      const { status, text } = await bridge.ask({ headers })
      expect([status, text]).toEqual([403, expect.stringContaining('The header Host')])
      expect(reached).toEqual([])
    },
  )

  test('allows localhost', async () => {
    const answered = await bridge.ask({ headers: { host: `localhost:${bridge.port}` } })
    expect(answered).toMatchObject({ status: 200, text: 'ok' })
  })

  test.each([...OUTSIDE, '//v1/models', '*'])(
    'rejects a path outside of /v1/: %s',
    async (path) => {
      expect(await bridge.ask({ path })).toMatchObject({ status: 404 })
      expect(reached).toEqual([])
    },
  )

  test.each([
    ['/bridge', 'evil.example', 403],
    ['/other', '127.0.0.1', 404],
  ])('rejects a WebSocket to %s on %s before it opens', async (path, host, expected) => {
    const status = await new Promise<number | undefined>((resolve) => {
      const headers = { host: `${host}:${bridge.port}` }
      const url = `ws://127.0.0.1:${bridge.port}${path}`
      const socket = new WebSocket(url, [SUBPROTOCOL], { headers })
      socket.on('unexpected-response', (_request, { statusCode }) => resolve(statusCode))
      socket.on('error', () => undefined)
    })
    expect(status).toBe(expected)
  })

  test.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('rejects a web page that is not allowed: %o', async (headers) => {
    const answered = await bridge.ask({ headers })
    expect(answered.status).toBe(403)
    expect(answered.headers).not.toHaveProperty('access-control-allow-origin')
    expect(reached).toEqual([])
  })

  test('allows a named origin', async () => {
    const allowed = { 'access-control-allow-origin': ALLOWED }
    const preflight = await bridge.ask({
      method: 'OPTIONS',
      headers: { origin: ALLOWED, 'access-control-request-headers': 'authorization' },
    })
    expect(preflight).toMatchObject({
      status: 204,
      headers: { ...allowed, 'access-control-allow-headers': 'authorization' },
    })
    expect(reached).toEqual([])
    const answered = await bridge.ask({ headers: { origin: ALLOWED } })
    expect(answered).toMatchObject({ status: 200, headers: allowed })
  })

  test('requires the key if the command says so, and hides it from the tab', async () => {
    const keyed = await open({ requireKey: true })
    await lendAll(keyed)
    expect(await keyed.ask()).toMatchObject({
      status: 401,
      text: expect.stringContaining('invalid_api_key'),
    })
    expect(await keyed.ask({ headers: { authorization: 'Bearer x' } })).toMatchObject({
      status: 401,
    })
    expect(reached).toEqual([])
    for (const headers of [{ authorization: `Bearer ${TOKEN}` }, { 'x-api-key': TOKEN }])
      expect((await keyed.ask({ headers })).status).toBe(200)
    expect(reached).toEqual(['none', 'none'])
  })

  test.each([
    ['is no message', '{"type":"hello"}', [4400]],
    ['is too long', 'x'.repeat(MAX_FRAME_BYTES + 1), [1006, 1009]],
  ])('closes the connection of a tab whose frame %s', async (_, frame, codes) => {
    const socket = bridge.connectTab()
    socket.on('open', () => socket.send(frame))
    socket.on('error', () => undefined)
    const [code] = await new Promise<[number]>((resolve) =>
      socket.on('close', (closed) => resolve([closed])),
    )
    expect(codes).toContain(code)
  })
})

describe('limits:', () => {
  test('at most 64 requests are open, and the next one learns when to retry', async () => {
    const { lend, ask: asking } = await open()
    const waiting: Array<() => void> = []
    await lend(() => new Promise((resolve) => waiting.push(() => resolve(new Response('ok')))))
    const answers = Array.from({ length: 64 }, () => asking())
    await until(() => expect(waiting).toHaveLength(64))
    expect(await asking()).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1' },
      text: expect.stringContaining('"code":"queue_full"'),
    })
    for (const end of waiting.splice(0)) end()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(64).fill(200))
    const next = asking()
    await until(() => expect(waiting).toHaveLength(1))
    waiting[0]?.()
    expect((await next).status).toBe(200)
  })

  test('at most 16 tabs are connected, and one that leaves makes room', async () => {
    const { lend } = await open()
    const lendOne = () => lend(() => new Response('ok'))
    const [first] = await Promise.all(Array.from({ length: 16 }, lendOne))
    await expect(lendOne()).rejects.toMatchObject({
      code: 'bridge_unreachable',
      message: expect.stringContaining('More than 16 tabs'),
    })
    first?.close()
    await first?.closed
    expect((await lendOne()).state.status).toBe('connected')
  })

  test('a connection with the token that sends nothing is closed after 10 s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const socket = (await open()).connectTab()
    const closed = once(socket, 'close')
    await once(socket, 'open')
    await vi.advanceTimersByTimeAsync(10_000)
    expect((await closed)[0]).toBe(4408)
  })

  test('at most 256 connections are open, and the next one is closed at once', async () => {
    const { port } = await open()
    const connectOne = async (): Promise<Socket> => {
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket)
      await once(socket, 'connect')
      return socket
    }
    for (let count = 0; count < 256; count += 1) await connectOne()
    const last = await connectOne()
    last.on('error', () => undefined)
    await once(last, 'close')
    expect(sockets.filter(({ closed }) => closed)).toEqual([last])
  })
})

describe('a page', () => {
  const REQUEST = { method: 'GET', path: '/v1/models', headers: [], body: new Uint8Array() }
  const { signal } = new AbortController()

  let server: WebSocketServer
  let page: WebSocket
  let tab: Tab
  /** Types of the messages that the page received. */
  let received: string[]
  async function openTab(pongTimeoutMs = 2_000) {
    server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    const connected = once(server, 'connection') as Promise<[WebSocket]>
    page = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
    received = []
    page.on('message', (data) => received.push(JSON.parse(String(data)).type))
    const [socket] = await connected
    await once(page, 'open')
    const capability = { gpu: 'none', gpuBufferBytes: 0, memoryBytes: 0, threads: 1 } as const
    const times = { pingIntervalMs: 50, pongTimeoutMs }
    tab = new Tab(socket, { capability, origin: 'https://app.example' }, times)
  }
  afterEach(() => {
    page.terminate()
    server.close()
  })

  const send = (message: object) => page.send(JSON.stringify(message))
  const closed = async () => ((await once(page, 'close')) as [number])[0]

  test('that is silent loses its requests and its connection', async () => {
    await openTab(200)
    const gone = { code: 'bridge_tab_gone', retryAfter: 1 }
    await expect(tab.request(REQUEST, signal)).rejects.toMatchObject(gone)
    expect(received.toSorted()).toEqual(['ping', 'request'])
    await expect(tab.request(REQUEST, signal)).rejects.toMatchObject({ code: gone.code })
    await tab.closed
  })

  test('that answers pings keeps its requests, and is pinged again', async () => {
    await openTab()
    page.on('message', (data) => {
      if (JSON.parse(String(data)).type === 'ping') send({ type: 'pong' })
    })
    const asked = tab.request(REQUEST, signal)
    await until(() =>
      expect(received.filter((type) => type === 'ping').length).toBeGreaterThanOrEqual(3),
    )
    send({ type: 'response', id: 1, status: 204, headers: [] })
    send({ type: 'end', id: 1 })
    expect(await asked).toMatchObject({ status: 204, headers: [] })
  })

  test('that sends more bytes than its credit loses its connection', async () => {
    await openTab()
    const asked = tab.request(REQUEST, signal)
    send({ type: 'response', id: 1, status: 200, headers: [] })
    const { body } = await asked
    // Half of a window is read ahead for the client, and gives credit again.
    for (let sent = 0; sent <= 2 * WINDOW_BYTES; sent += MAX_PIECE_BYTES)
      page.send(encodePiece(1, new Uint8Array(MAX_PIECE_BYTES)))
    expect(await closed()).toBe(4400)
    await expect(body.getReader().closed).rejects.toMatchObject({ code: 'bridge_tab_gone' })
  })

  test('that ends a request without a response causes an error', async () => {
    await openTab()
    const asked = tab.request(REQUEST, signal)
    send({ type: 'end', id: 1 })
    await expect(asked).rejects.toMatchObject({ kind: 'internal' })
  })

  test.each(['no JSON', '{"type":"hello"}', '{"type":"unknown"}', '{"type":"end","id":0}'])(
    'that sends an invalid message loses its connection: %s',
    async (text) => {
      await openTab()
      page.send(text)
      expect(await closed()).toBe(4400)
    },
  )
})
