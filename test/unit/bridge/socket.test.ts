/** What the command itself answers over HTTP, whatever a client sends over its connection. */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runs } from '../../support/runs.ts'
import { fetchOf, scriptedHost } from '../wire/scripted-host.ts'
import { parseErrorBody } from '../../support/error-body.ts'
import { closeAll, open, TOKEN } from './open-bridge.ts'

let bridge: Awaited<ReturnType<typeof open>>
/** Bodies of the requests that reached the tab. */
let reached: string[]
beforeEach(async () => {
  reached = []
  bridge = await open()
  await bridge.lend(async (request) => {
    reached.push(await request.text())
    return new Response('ok')
  })
})
afterEach(closeAll)

interface Raw {
  status: number
  headers: Record<string, string>
  text: string
  /** Bytes after the first `Content-Length` bytes of the body. */
  rest: string
}

/** Sends bytes and resolves with the last response when the server closes the connection. */
async function sendRaw(...pieces: Array<string | Uint8Array>): Promise<Raw> {
  const socket = connect(bridge.port, '127.0.0.1')
  const received: Buffer[] = []
  const errors: unknown[] = []
  socket.on('data', (data) => received.push(data))
  socket.on('error', (error) => errors.push(error))
  for (const piece of pieces) if (!socket.write(piece)) await once(socket, 'drain')
  await once(socket, 'close')
  expect(errors).toEqual([])
  const whole = Buffer.concat(received).toString()
  const last = whole.slice(whole.lastIndexOf('HTTP/1.1 '))
  const [head = '', body = ''] = last.split('\r\n\r\n')
  const [line = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map((each) => [
      each.slice(0, each.indexOf(':')).toLowerCase(),
      each.slice(each.indexOf(':') + 2),
    ]),
  )
  const length = Number(headers['content-length'])
  const bytes = Buffer.from(body)
  return {
    status: Number(line.split(' ')[1]),
    headers,
    text: bytes.subarray(0, length).toString(),
    rest: bytes.subarray(length).toString(),
  }
}

const hostLine = () => `host: 127.0.0.1:${bridge.port}`
const MIB = 2 ** 20
const TOO_LARGE = 'The body is larger than 33554432 bytes. Send less at once.'
const JSON_LINES = 'content-type: application/json\r\n'

describe('a body that is too large', () => {
  const size = 34 * MIB
  const body = 'x'.repeat(size)

  const times = <T>(count: number, work: () => Promise<T>) =>
    Promise.all(Array.from({ length: count }, work))
  const expected = [413, TOO_LARGE]

  test('is refused for 12 of 12 clients that read nothing before they have sent it', async () => {
    const head = `POST /v1/messages HTTP/1.1\r\n${hostLine()}\r\n${JSON_LINES}`
    const answers = await times(12, async () => {
      const { status, text, headers } = await sendRaw(
        `${head}content-length: ${size}\r\n\r\n`,
        body,
      )
      return [status, parseErrorBody(text, headers).message]
    })
    for (const answer of answers) expect(answer).toEqual(expected)
    expect(reached).toEqual([])
  })

  test('is refused for all calls of fetch', async () => {
    const answers = await times(3, async () => {
      const headers = { 'content-type': 'application/json' }
      const url = `${bridge.server.url}/v1/messages`
      const response = await fetch(url, { method: 'POST', headers, body })
      const text = await response.text()
      return [response.status, parseErrorBody(text, Object.fromEntries(response.headers)).message]
    })
    for (const answer of answers) expect(answer).toEqual(expected)
  })

  test.each([
    ['its header', `content-length: ${size}`, [body]],
    [
      'its bytes',
      'transfer-encoding: chunked',
      [
        ...Array.from({ length: 34 }, () => `${MIB.toString(16)}\r\n${body.slice(0, MIB)}\r\n`),
        '0\r\n\r\n',
      ],
    ],
  ])('is refused by %s, and read to its end', async (_, header, pieces) => {
    const { status, text, rest, headers } = await sendRaw(
      `POST /v1/messages HTTP/1.1\r\n${hostLine()}\r\n${JSON_LINES}${header}\r\n\r\n`,
      ...pieces,
    )
    expect([status, rest, headers['connection']]).toEqual([413, '', 'close'])
    expect(parseErrorBody(text, headers)).toMatchObject({
      message: TOO_LARGE,
      type: 'request_too_large',
      code: 'request_too_large',
    })
  })

  test('is refused before it is sent if the client waits for that', async () => {
    const head = `POST /v1/messages HTTP/1.1\r\n${hostLine()}\r\n${JSON_LINES}`
    const socket = connect(bridge.port, '127.0.0.1')
    socket.write(`${head}expect: 100-continue\r\ncontent-length: ${size}\r\n\r\n`)
    const [first] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    expect(first.toString()).toMatch(/^HTTP\/1\.1 413 Payload Too Large\r\n/)
    expect(reached).toEqual([])
  })
})

test('a client that waits with its body is told to send it', async () => {
  const asked = httpRequest(`${bridge.server.url}/v1/messages`, {
    method: 'POST',
    agent: false,
    headers: { expect: '100-continue', 'content-length': 2, 'content-type': 'application/json' },
  })
  asked.flushHeaders()
  await once(asked, 'continue')
  asked.end('{}')
  const [response] = await once(asked, 'response')
  expect([response.statusCode, reached]).toEqual([200, ['{}']])
  response.resume()
})

const TEXT = JSON.stringify({ a: Array.from({ length: 120 }, (_, at) => at * at).join(' ') })
/** The text, compressed by zstd 1.5.4 with level 19. */
const ZSTD = Buffer.from(
  'KLUv/WRFAc0IAFZkRROgFSTpq35VzfP3bnJLsm23/c8aPwA/AEAAuyV7RHZnuyg2JfZaR9QjTQouCW7QR3qDuWQm' +
    '8ZFH8DVMCRfJHXlEbu3qJvdkR+zR7MUbHrm75jsCAAIBAgICgY8IbwWvVpik8CQIRzQ8YpgN4aKEGxYeiXBXcgXJ' +
    'jEBeVI4YeUGZEeQKkbvJIyE31C7SZoM96o7onswmuashEnUD0cXSLOmR0BGjJxVMBsHVCW6F4BEJ7kRwEXVK0Nfp' +
    'EeyjdFL0kpobBPNI5wacS8JM2jzGHFF8DTilvIi8EwMC67gpFXZRw+4w7BEJu1Wyq4FscmRPguyIyR7RNtvtIrcb' +
    'ZHsktjuKXdHYDMZeSOyIiL2gmtG6gnUn9QQATKPe+Q==',
  'base64',
)

describe('a compressed body', () => {
  const post = (encoding: string, body: Uint8Array) =>
    sendRaw(
      `POST /v1/messages HTTP/1.1\r\n${hostLine()}\r\n${JSON_LINES}connection: close\r\n` +
        `content-encoding: ${encoding}\r\ncontent-length: ${body.byteLength}\r\n\r\n`,
      body,
    )
  const refusedBy = async (encoding: string, body: Uint8Array) => {
    const { status, text, headers } = await post(encoding, body)
    return { status, headers, ...parseErrorBody(text, headers) }
  }

  test.each([
    ['gzip', gzipSync(TEXT)],
    ['x-gzip', gzipSync(TEXT)],
    ['GZIP', gzipSync(TEXT)],
    ['br', brotliCompressSync(TEXT)],
    ['zstd', ZSTD],
    ['zstd', Buffer.concat([skippable(), ZSTD, skippable()])],
    ['identity', Buffer.from(TEXT)],
    ['', Buffer.from(TEXT)],
  ])('in %s reaches the tab as it was', async (encoding, body) => {
    expect((await post(encoding, body)).status).toBe(200)
    expect(reached).toEqual([TEXT])
  })

  test.each(['deflate', 'compress', 'gzip, br', 'x'.repeat(500)])(
    'in %s is refused by name',
    async (encoding) => {
      const refused = await refusedBy(encoding, deflateSync(TEXT))
      expect(refused).toMatchObject({ status: 415, code: 'invalid_content_encoding' })
      expect(refused.message).toContain(`The content-encoding "${encoding.slice(0, 100)}`)
      expect(refused.headers['accept-encoding']).toBe('gzip, br, zstd')
      expect(reached).toEqual([])
    },
  )

  const zeros = Buffer.alloc(64 * MIB)
  test.each([
    ['gzip', gzipSync(zeros)],
    ['br', brotliCompressSync(zeros)],
    // A frame of 64 MiB in blocks of 128 KiB that repeat one byte.
    ['zstd', zstdOfZeros(512)],
    ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, 1, 0, 0, ...Array(20).fill(0)])],
  ])('in %s that decodes to too much is refused', async (encoding, body) => {
    expect(body.byteLength).toBeLessThan(MIB)
    expect(await refusedBy(encoding, body)).toMatchObject({ status: 413, message: TOO_LARGE })
  })

  test.each(['gzip', 'br', 'zstd'])('that is no %s is refused', async (encoding) => {
    const valid = { gzip: gzipSync(TEXT), br: brotliCompressSync(TEXT), zstd: ZSTD }
    const whole = valid[encoding as keyof typeof valid]
    for (const body of [Buffer.from(TEXT), whole.subarray(0, -5)]) {
      const { status, code, message } = await refusedBy(encoding, body)
      expect([status, code]).toEqual([400, 'invalid_content_encoding'])
      expect(message).toMatch(new RegExp(`^The body is not valid ${encoding}: .+\\.$`))
    }
    expect(reached).toEqual([])
  })

  test('in any bytes that begin like zstd ends in an answer', async () => {
    for (let at = 4; at < ZSTD.byteLength; at += runs(5, 1)) {
      const body = Buffer.from(ZSTD)
      body[at] = (body[at] ?? 0) ^ 0xff
      expect([200, 400, 413]).toContain((await post('zstd', body)).status)
    }
  })
})

/** A frame that decoders skip. */
function skippable(): Buffer {
  return Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
}

/** A frame with so many blocks of 128 KiB. */
function zstdOfZeros(blocks: number): Buffer {
  const header = [0x28, 0xb5, 0x2f, 0xfd, 0, 0x58]
  const block = (isLast: boolean) => {
    const word = (2 ** 17 * 8) | 2 | Number(isLast)
    return [word & 255, (word >> 8) & 255, word >> 16, 0]
  }
  return Buffer.from([
    ...header,
    ...Array.from({ length: blocks }, (_, index) => block(index === blocks - 1)).flat(),
  ])
}

describe('a method', () => {
  test.each([
    ['TRACE', '/v1/chat/completions', 'POST'],
    ['TRACE', '/v1/models?limit=1', 'GET, HEAD'],
    ['TRACE', '/v1', 'GET, HEAD'],
    ['CONNECT', '/v1/models', 'GET, HEAD'],
    ['BREW', '/v1/messages', 'POST'],
    ['get', '/v1/models/@acme/tiny', 'GET, HEAD'],
    ['X-Y!', '/v1/responses/resp_1', 'GET, HEAD, DELETE'],
  ])('%s of %s is refused with the methods of the path', async (method, path, allow) => {
    const { status, text, headers } = await sendRaw(
      `${method} ${path} HTTP/1.1\r\n${hostLine()}\r\nconnection: close\r\n\r\n`,
    )
    expect([status, headers['allow']]).toEqual([405, allow])
    const { message } = parseErrorBody(text, headers)
    expect(message).toBe(`${method} is not allowed on this path. Use ${allow}.`)
    expect(reached).toEqual([])
  })

  test.each(['TRACE', 'BREW', 'CONNECT'])('%s of a path of Ollama has its form', async (method) => {
    const { status, text } = await sendRaw(
      `${method} /api/tags HTTP/1.1\r\n${hostLine()}\r\nconnection: close\r\n\r\n`,
    )
    const error = expect.stringContaining('use GET /v1/models')
    expect([status, JSON.parse(text)]).toEqual([404, { error }])
  })

  test.each(['TRACE', 'BREW', 'CONNECT'])('%s of an unknown path is a 404', async (method) => {
    const { status, text, headers } = await sendRaw(
      `${method} /v1/nothing HTTP/1.1\r\n${hostLine()}\r\nconnection: close\r\n\r\n`,
    )
    expect([status, parseErrorBody(text, headers).type]).toEqual([404, 'not_found_error'])
  })
})

describe('an offer to use HTTP/2', () => {
  const lines =
    'connection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n'

  test.each([
    ['POST /v1/messages', '{"a":1}'],
    ['POST /v1/messages', 'x'.repeat(MIB)],
    ['GET /v1/models', ''],
  ])('is ignored: %s is answered', async (line, body) => {
    const { status } = await sendRaw(
      `${line} HTTP/1.1\r\n${hostLine()}\r\n${lines}${JSON_LINES}content-length: ${body.length}\r\n\r\n`,
      body,
    )
    expect([status, reached]).toEqual([200, [body]])
  })

  test('does not close the connection', async () => {
    const offer = lines.replace(', close', '')
    const head = `GET /v1/models HTTP/1.1\r\n${hostLine()}\r\n`
    const { status } = await sendRaw(
      `${head}${offer}\r\n`,
      `${head}${offer}\r\n`,
      `${head}connection: close\r\n\r\n`,
    )
    expect([status, reached.length]).toEqual([200, 3])
  })
})

test.each(['GET', 'HEAD'])('the body of a %s is left out', async (method) => {
  const { status } = await bridge.ask({
    path: '/v1/models',
    method,
    headers: { 'content-length': 2 },
    body: '{}',
  })
  expect([status, reached]).toEqual([200, ['']])
})

describe('a request that is no valid HTTP', () => {
  test.each([
    ['a line', 'GET\r\n\r\n', 400],
    ['a version', () => `GET /v1/models HTTP/9.9\r\n${hostLine()}\r\n\r\n`, 400],
    [
      'a length',
      () => `POST /v1/models HTTP/1.1\r\n${hostLine()}\r\ncontent-length: x\r\n\r\n`,
      400,
    ],
    [
      'a chunk',
      () => `POST /v1/models HTTP/1.1\r\n${hostLine()}\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`,
      400,
    ],
    [
      'headers',
      () => `GET /v1/models HTTP/1.1\r\n${hostLine()}\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
      431,
    ],
    [
      'an expectation',
      () =>
        `POST /v1/models HTTP/1.1\r\n${hostLine()}\r\nexpect: x\r\nconnection: close\r\n` +
        'content-length: 2\r\n\r\n{}',
      417,
    ],
    ['a version that is HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
    [
      'a WebSocket without a key',
      () =>
        `GET /v1/responses HTTP/1.1\r\n${hostLine()}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`,
      400,
    ],
    ['no host', 'GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
  ])('because of %s has a body', async (_, sent, status) => {
    const answered = await sendRaw(typeof sent === 'string' ? sent : sent())
    expect([answered.status, answered.rest]).toEqual([status, ''])
    const { type, message } = parseErrorBody(answered.text, answered.headers)
    expect(type).toBe('invalid_request_error')
    expect(message).toMatch(/^The .+\.$/)
    expect(reached).toEqual([])
  })

  test('after a valid one on the same connection has a body, too', async () => {
    const { status, text, headers } = await sendRaw(
      `GET /v1/models HTTP/1.1\r\n${hostLine()}\r\n\r\n`,
      'nonsense\r\n\r\n',
    )
    expect([status, parseErrorBody(text, headers).type]).toEqual([400, 'invalid_request_error'])
  })
})

describe('a path', () => {
  test.each(['/v1', '/v1/', '/v1?x=1'])('%s lists the endpoints, without a tab', async (path) => {
    const alone = await open()
    const { status, text, headers } = await alone.ask({ path })
    expect(status).toBe(200)
    expect(headers['request-id']).toMatch(/^req_[0-9a-f]{24}$/)
    expect(JSON.parse(text)).toMatchObject({
      object: 'list',
      data: expect.arrayContaining([{ method: 'POST', path: '/v1/messages' }]),
    })
    expect((await alone.ask({ path, method: 'HEAD' })).text).toBe('')
    expect((await alone.ask({ path, method: 'POST' })).status).toBe(405)
  })

  test('/v1 needs the key if the command says so', async () => {
    const keyed = await open({ requireKey: true })
    expect((await keyed.ask({ path: '/v1' })).status).toBe(401)
    expect((await keyed.ask({ path: '/v1', headers: { 'x-api-key': TOKEN } })).status).toBe(200)
  })

  test.each([
    ['GET', '/api/tags', 'GET /v1/models'],
    ['POST', '/api/chat', 'POST /v1/chat/completions'],
    ['POST', '/api/generate/', 'POST /v1/chat/completions'],
    ['POST', '/api/embed', 'POST /v1/embeddings'],
    ['GET', '/api/version', 'the paths below /v1'],
  ])('%s %s has the form of Ollama, and names what is here', async (method, path, instead) => {
    const body = method === 'POST' ? '{}' : ''
    const { status, text, headers } = await bridge.ask({ method, path, body })
    const start = `${method} ${path} is not an endpoint here; use ${instead}.`
    expect([status, headers['content-type']]).toEqual([404, 'application/json'])
    expect(JSON.parse(text)).toEqual({ error: expect.stringContaining(start) })
    expect(reached).toEqual([])
  })

  test.each(['/chat/completions', '/models', '/health'])(
    '%s says that all is below /v1',
    async (path) => {
      const { status, text, headers } = await bridge.ask({ path })
      const { message } = parseErrorBody(text, headers as Record<string, string>)
      expect([status, message]).toEqual([
        404,
        expect.stringContaining('GET /v1 lists all endpoints'),
      ])
    },
  )

  test('/v1/realtime as a WebSocket is refused with a body', async () => {
    const { status, text, headers } = await sendRaw(
      `GET /v1/realtime?model=x HTTP/1.1\r\n${hostLine()}\r\nconnection: upgrade\r\n` +
        'upgrade: websocket\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n' +
        'sec-websocket-version: 13\r\n\r\n',
    )
    expect([status, parseErrorBody(text, headers).message]).toEqual([
      404,
      expect.stringContaining('POST /v1/responses'),
    ])
  })

  test('/v1/completions is refused by the tab, by the name of what is here', async () => {
    const other = await open()
    await other.lend(fetchOf(scriptedHost()))
    const { status, text } = await other.ask({
      path: '/v1/completions',
      method: 'POST',
      body: '{}',
    })
    expect([status, text]).toEqual([404, expect.stringContaining('use POST /v1/chat/completions')])
  })
})
