/** What the server of `inorigin bridge` refuses, over real HTTP. */
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { MAX_BODY_BYTES, MAX_FRAME_BYTES, SUBPROTOCOL } from '../../../src/bridge/protocol.ts'
import { ask, openBridge, TOKEN, type OpenBridge } from '../../support/bridge.ts'

const ALLOWED = 'https://app.example'

let open: OpenBridge
let keyed: OpenBridge
const asked: string[] = []
beforeEach(async () => {
  asked.length = 0
  open = await openBridge({ origins: [ALLOWED] })
  keyed = await openBridge({ requireKey: true })
  for (const bridge of [open, keyed]) {
    await bridge.lend((request) => {
      asked.push(request.headers.get('authorization') ?? 'none')
      return new Response('ok')
    })
  }
})
afterEach(() => Promise.all([open, keyed].map(({ server }) => server.close())))

const models = () => `${open.server.url}/v1/models`
const port = () => new URL(open.server.url).port

test.each(['evil.example', 'evil.example:PORT', '127.0.0.1', '127.0.0.1:1', '192.168.0.1:PORT'])(
  'a Host that is not this machine is refused: %s',
  async (host) => {
    const answered = await ask(models(), { headers: { host: host.replace('PORT', port()) } })
    expect(answered.status).toBe(403)
    expect(answered.text).toContain('The header Host')
    expect(asked).toEqual([])
  },
)

test.each(['/v1/../account', '/v1/%2e%2e/account', '/v1', '/v1x', '//v1/models', '*'])(
  'a path outside of /v1/ never reaches a tab: %s',
  async (path) => {
    expect(await ask(models(), { path })).toMatchObject({ status: 404 })
    expect(asked).toEqual([])
  },
)

test('a WebSocket with another Host or path is refused before it opens', async () => {
  const refusal = (path: string, host: string) =>
    new Promise<number | undefined>((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port()}${path}`, [SUBPROTOCOL], {
        headers: { host },
      })
      socket.on('unexpected-response', (_request, { statusCode }) => resolve(statusCode))
      socket.on('error', () => undefined)
    })
  expect(await refusal('/bridge', `evil.example:${port()}`)).toBe(403)
  expect(await refusal('/other', `127.0.0.1:${port()}`)).toBe(404)
})

test('localhost is this machine', async () => {
  const answered = await ask(models(), { headers: { host: `localhost:${port()}` } })
  expect(answered).toMatchObject({ status: 200, text: 'ok' })
})

test.each([
  { origin: 'https://evil.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
])('a web page that is not allowed is refused: %o', async (headers) => {
  const answered = await ask(models(), { headers })
  expect(answered.status).toBe(403)
  expect(answered.headers).not.toHaveProperty('access-control-allow-origin')
  expect(asked).toEqual([])
})

test('an origin that was named may use the bridge', async () => {
  const preflight = await ask(models(), {
    method: 'OPTIONS',
    headers: { origin: ALLOWED, 'access-control-request-headers': 'authorization' },
  })
  expect(preflight).toMatchObject({
    status: 204,
    headers: {
      'access-control-allow-origin': ALLOWED,
      'access-control-allow-headers': 'authorization',
    },
  })
  expect(asked).toEqual([])
  const answered = await ask(models(), { headers: { origin: ALLOWED } })
  expect(answered).toMatchObject({
    status: 200,
    headers: { 'access-control-allow-origin': ALLOWED },
  })
})

test('clients need the key if the command says so, and the tab does not see it', async () => {
  const url = `${keyed.server.url}/v1/models`
  const missing = await ask(url, {})
  expect(missing.status).toBe(401)
  expect(missing.text).toContain('invalid_api_key')
  expect((await ask(url, { headers: { authorization: 'Bearer x' } })).status).toBe(401)
  expect(asked).toEqual([])
  expect((await ask(url, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(200)
  expect((await ask(url, { headers: { 'x-api-key': TOKEN } })).status).toBe(200)
  expect(asked).toEqual(['none', 'none'])
})

/** Sends what is no valid request to `fetch`, and resolves with the first line of the response. */
function sendRaw(headers: string, pieces: Iterable<string>): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(port()), '127.0.0.1')
    let text = ''
    socket.on('data', (data) => (text += data.toString()))
    // The server closes although bytes are on their way, which some systems report as a reset.
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(text.split('\r\n', 1)[0] ?? ''))
    socket.write(`POST /v1/models HTTP/1.1\r\nhost: 127.0.0.1:${port()}\r\n${headers}\r\n\r\n`)
    for (const piece of pieces) socket.write(piece)
  })
}

test('a body that is too large is refused, by its header and by its bytes', async () => {
  const tooLarge = 'HTTP/1.1 413 Payload Too Large'
  expect(await sendRaw(`content-length: ${MAX_BODY_BYTES + 1}`, [])).toBe(tooLarge)
  const size = 2 ** 20
  const piece = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
  const pieces = Array.from({ length: MAX_BODY_BYTES / size + 1 }, () => piece)
  expect([tooLarge, '']).toContain(await sendRaw('transfer-encoding: chunked', pieces))
  expect(asked).toEqual([])
})

test('a tab that sends a frame that is too long or no message loses its connection', async () => {
  const end = (frame: string) =>
    new Promise<number>((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port()}/bridge`, [
        SUBPROTOCOL,
        `token.${TOKEN}`,
      ])
      socket.on('open', () => socket.send(frame))
      socket.on('close', resolve)
      socket.on('error', () => undefined)
    })
  expect(await end('{"type":"hello"}')).toBe(4400)
  expect([1006, 1009]).toContain(await end('x'.repeat(MAX_FRAME_BYTES + 1)))
})
