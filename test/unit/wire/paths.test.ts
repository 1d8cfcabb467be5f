import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { handle } from '../../../src/wire/handler.ts'
import { chatOf, errorOf, KEY, messageOf, scriptedHost, send } from './scripted-host.ts'

const POSTS = [
  '/v1/chat/completions',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/responses',
  '/v1/embeddings',
  '/v1/predictions',
  '/v1/predictions/remote',
]

/** Request with a body that may be a stream. */
const streamed = (body: BodyInit): Request =>
  new Request('http://localhost/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    duplex: 'half',
  } as RequestInit)

describe('paths', () => {
  it.each([
    ['/v1/nothing', 'GET'],
    ['/v1/', 'GET'],
    ['/v1', 'GET'],
    ['/', 'GET'],
    ['/v2/models', 'GET'],
    ['/v1x/models', 'GET'],
    ['/v1/v1/v1/models', 'GET'],
    ['/v1/messages/count_token', 'POST'],
    ['/v1/users', 'GET'],
    ['/v1/predictors', 'GET'],
    ['/v1/resources', 'GET'],
    ['/app/v1/models', 'GET'],
  ])('%s is none: 404', async (path, method) => {
    const error = await errorOf(await send(scriptedHost({ keyed: true }), path, { method }), 404)
    expect(error.type).toBe('not_found_error')
    expect(error.message).toContain(`${method} ${path} is not an endpoint here`)
    expect(error.message).toContain('/v1/chat/completions')
  })

  it.each([
    ['/v1/', 404],
    ['/v1/models/', 404],
    ['/v1/responses/', 404],
  ])('%s and a very long name are repeated in part only', async (path, status) => {
    const response = await send(scriptedHost(), path + 'x'.repeat(1_000_000))
    expect(response.status).toBe(status)
    expect((await response.text()).length).toBeLessThan(3000)
  })

  it('of a million slashes are none', async () => {
    const error = await errorOf(await send(scriptedHost(), `/v1/${'/'.repeat(1_000_000)}x/`), 404)
    expect(error.type).toBe('not_found_error')
  })

  it('that do not take a method say so in the body too', async () => {
    const { type, message } = await errorOf(
      await send(scriptedHost(), '/v1/messages', { method: 'PUT' }),
      405,
    )
    expect([type, message]).toEqual([
      'invalid_request_error',
      'PUT is not allowed on this path. Use POST.',
    ])
  })

  it.each([
    ['GET', '/v1/chat/completions', 'POST'],
    ['PUT', '/v1/messages', 'POST'],
    ['HEAD', '/v1/messages', 'POST'],
    ['OPTIONS', '/v1/predictions', 'POST'],
    ['DELETE', '/v1/models', 'GET, HEAD'],
    ['POST', '/v1/models/@acme/tiny', 'GET, HEAD'],
    ['POST', '/v1/predictors/@yusuf/area', 'GET, HEAD'],
    ['PATCH', '/v1/resources/x', 'GET, HEAD'],
    ['GET', '/v1/responses', 'POST'],
    ['GET', '/v1/responses/input_tokens', 'POST'],
    ['DELETE', '/v1/responses/input_tokens', 'POST'],
    ['HEAD', '/v1/v1/responses/input_tokens/', 'POST'],
    ['POST', '/v1/responses/resp_1', 'GET, HEAD, DELETE'],
    ['DELETE', '/v1/responses/resp_1/input_items', 'GET, HEAD'],
    ['GET', '/v1/messages/count_tokens', 'POST'],
    ['GET', '/v1/predictions/remote', 'POST'],
    ['GET', '/v1/embeddings', 'POST'],
  ])('%s %s: 405', async (method, path, allow) => {
    const response = await send(scriptedHost({ keyed: true }), path, { method })
    expect(response.headers.get('allow')).toBe(allow)
    expect(response.status).toBe(405)
  })

  it.each([
    '/v1/v1/models',
    '/v1/models/',
    '/v1/models?limit=1&beta=true',
    '/v1/v1/models/',
    '/v1//models',
    '/v1//v1///models//',
  ])('%s is the list of models', async (path) => {
    expect(await (await send(scriptedHost(), path)).json()).toMatchObject({ object: 'list' })
  })

  it('may have a second /v1 everywhere', async () => {
    expect((await send(scriptedHost(), '/v1/v1/messages', { body: messageOf() })).status).toBe(200)
    expect((await send(scriptedHost(), '/v1/v1/chat/completions', { body: chatOf() })).status).toBe(
      200,
    )
  })

  it('are below the scope', async () => {
    const host = scriptedHost()
    const base = '/app/'
    expect((await send(host, '/app/v1/models', { base })).status).toBe(200)
    expect((await send(host, '/app/v1/v1/models', { base })).status).toBe(200)
    expect((await send(host, '/app/v1/models/@acme%2Ftiny', { base })).status).toBe(200)
    await errorOf(await send(host, '/v1/models', { base }), 404)
    await errorOf(await send(host, '/apple/v1/models', { base }), 404)
    await errorOf(await send(host, '/app/models', { base }), 404)
  })

  it.each([
    ['/v1/models', 200],
    ['/v1/models/nope', 404],
    ['/v1/nope', 404],
    ['/v1/messages', 405],
  ])('answer HEAD %s as GET, but without a body', async (path, status) => {
    const of = (method: string) => send(scriptedHost(), path, { method })
    const [head, get] = await Promise.all([of('HEAD'), of('GET')])
    expect(head.status).toBe(status)
    expect(head.body).toBeNull()
    expect(get.status).toBe(status)
    const headers = (response: Response) =>
      [...response.headers].filter(([name]) => !name.endsWith('request-id'))
    expect(headers(head)).toEqual(headers(get))
    expect(head.headers.get('request-id')).toMatch(/^req_/)
  })

  it('have an id for every request, under both names', async () => {
    const [a, b] = await Promise.all([
      send(scriptedHost(), '/v1/models'),
      send(scriptedHost(), '/v1/models'),
    ])
    expect(a.headers.get('request-id')).toMatch(/^req_[0-9a-f]{24}$/)
    expect(a.headers.get('x-request-id')).toBe(a.headers.get('request-id'))
    expect(b.headers.get('request-id')).not.toBe(a.headers.get('request-id'))
  })

  it('answer what is neither kept nor guessed at', async () => {
    const response = await send(scriptedHost(), '/v1/models')
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  })
})

describe('keys', () => {
  it.each([
    [{ authorization: `Bearer ${KEY}` }, KEY],
    [{ authorization: `bearer   ${KEY} ` }, KEY],
    [{ 'x-api-key': KEY }, KEY],
    [{ authorization: `Bearer ${KEY}`, 'x-api-key': 'other' }, KEY],
    [{ authorization: '', 'x-api-key': KEY }, KEY],
    [{ authorization: 'Bearer ', 'x-api-key': KEY }, KEY],
    [{ authorization: 'Basic dTpw', 'x-api-key': KEY }, KEY],
    [{ authorization: '' }, null],
    [{ 'x-api-key': ' ' }, null],
    [{}, null],
  ])('%o carries %s', async (headers, key) => {
    const host = scriptedHost()
    await send(host, '/v1/models', { headers: headers as Record<string, string> })
    expect(host.callers[0]?.key).toBe(key)
  })

  it.each([
    ['/v1/models', undefined],
    ['/v1/models/@acme/tiny', undefined],
    ['/v1/predictors/@yusuf/area', undefined],
    ['/v1/chat/completions', chatOf()],
    ['/v1/messages', messageOf()],
    ['/v1/embeddings', { model: '@acme/embed', input: 'x' }],
    ['/v1/predictions', { tag: '@yusuf/area', clientId: 'node' }],
  ])('guard %s, whichever header carries them', async (path, body) => {
    const host = scriptedHost({ keyed: true })
    expect(
      (await send(host, path, { body, headers: { authorization: `Bearer ${KEY}` } })).status,
    ).toBe(200)
    expect((await send(host, path, { body, headers: { 'x-api-key': KEY } })).status).toBe(200)
    const wrong: Record<string, string>[] = [{}, { 'x-api-key': 'sk-bad' }]
    for (const headers of wrong) {
      const response = await send(host, path, { body, headers })
      expect(response.headers.get('x-should-retry')).toBe('false')
      expect(await errorOf(response, 401)).toMatchObject({
        type: 'authentication_error',
        code: 'invalid_api_key',
      })
    }
  })

  it.each(POSTS)('come before what is wrong with the body of %s', async (path) => {
    const host = scriptedHost({ keyed: true })
    for (const body of ['{', '', '[]', {}, { model: 5 }]) {
      expect((await send(host, path, { body })).status).toBe(401)
      expect((await send(host, path, { body, headers: { 'x-api-key': KEY } })).status).toBe(400)
    }
    expect(
      (await send(host, path, { body: 'x', headers: { 'content-type': 'text/plain' } })).status,
    ).toBe(401)
  })

  it('that cannot be checked do not hide what is wrong with the body', async () => {
    const authorize = () => Promise.reject(new InoriginError('unavailable', 'There is no host.'))
    expect(
      (await send(scriptedHost({ overrides: { authorize } }), '/v1/messages', { body: {} })).status,
    ).toBe(400)
  })
})

describe('bodies', () => {
  it.each(POSTS)('of %s that are no JSON objects: 400', async (path) => {
    for (const [body, said] of [
      ['{', 'is not JSON'],
      ['', 'it is empty'],
      ['[1', 'is not JSON'],
      ['null', 'an object, not null'],
      ['5', 'an object, not 5'],
      ['"x"', 'an object, not "x"'],
      ['[]', 'must be an object, not an array of 0'],
      [new Uint8Array([0x7b, 0xff, 0x7d]), 'is not UTF-8'],
    ] as const) {
      const error = await errorOf(await send(scriptedHost(), path, { body }), 400)
      expect(error.type).toBe('invalid_request_error')
      expect(error.message).toContain(said)
    }
  })

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'text/json',
    '',
  ])('of the type %j are refused by name', async (type) => {
    const response = await send(scriptedHost(), '/v1/chat/completions', {
      body: chatOf(),
      headers: { 'content-type': type },
    })
    const error = await errorOf(response, 400)
    expect(error.message).toContain('application/json')
    expect(error.code).toBe('invalid_content_type')
  })

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'application/vnd.api+json;x=y',
  ])('of the type %j are read', async (type) => {
    const response = await send(scriptedHost(), '/v1/chat/completions', {
      body: chatOf(),
      headers: { 'content-type': type },
    })
    expect(response.status).toBe(200)
  })

  it('may begin with a byte order mark', async () => {
    expect(
      (
        await send(scriptedHost(), '/v1/chat/completions', {
          body: `\ufeff${JSON.stringify(chatOf())}`,
        })
      ).status,
    ).toBe(200)
  })

  it('that are too large, by their own word or by size: 413', async () => {
    const headers = { 'content-length': String(33 * 1024 * 1024) }
    expect(
      (await errorOf(await send(scriptedHost(), '/v1/messages', { body: '{}', headers }), 413))
        .code,
    ).toBe('request_too_large')
    await errorOf(
      await send(scriptedHost(), '/v1/messages', { body: ' '.repeat(32 * 1024 * 1024 + 1) }),
      413,
    )
  })

  it.each(POSTS)('of %s have a tag of at most 1000 characters', async (path) => {
    const field = path.startsWith('/v1/predictions') ? 'tag' : 'model'
    const fields = { ...messageOf(), input: 'Hi', clientId: 'a' }
    const errorFor = async (length: number) => {
      const body = { ...fields, [field]: 'x'.repeat(length) }
      const response = await send(scriptedHost(), path, { body })
      return ((await response.json()) as { error?: { message: string } }).error?.message ?? ''
    }
    expect(await errorFor(1001)).toBe(
      `\`${field}\` must be a string of at most 1000 characters, not "${'x'.repeat(59)}....`,
    )
    expect(await errorFor(1000)).not.toContain('must be a string')
  })

  it('that are too large are not read to their end', async () => {
    let sent = 0
    let canceled = false
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 2 ** 20
        controller.enqueue(new Uint8Array(2 ** 20))
        if (sent >= 2 ** 30) controller.close()
      },
      cancel() {
        canceled = true
      },
    })
    await errorOf(await handle(streamed(body), scriptedHost()), 413)
    expect(canceled).toBe(true)
    expect(sent).toBeLessThanOrEqual(35 * 2 ** 20)
  })

  it('in pieces that split a character are read', async () => {
    const bytes = new TextEncoder().encode(JSON.stringify(chatOf({ user: 'é' })))
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      },
    })
    expect((await handle(streamed(body), scriptedHost())).status).toBe(200)
  })

  it.each([undefined, null])('are read where the stream of a body is %s', async (body) => {
    const request = streamed(JSON.stringify(chatOf()))
    Object.defineProperty(request, 'body', { value: body })
    expect((await handle(request, scriptedHost())).status).toBe(200)
  })

  it('that are just as large as may be are read', async () => {
    const body = JSON.stringify(chatOf()).padEnd(32 * 1024 * 1024)
    const response = await send(scriptedHost(), '/v1/chat/completions', { body })
    expect(response.status).toBe(200)
  })

  it('sent by a navigation are refused', async () => {
    const host = scriptedHost()
    const request = new Request('http://localhost/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify(chatOf()),
      headers: { 'content-type': 'application/json' },
    })
    Object.defineProperty(request, 'mode', { value: 'navigate' })
    expect((await errorOf(await handle(request, host), 403)).type).toBe('permission_error')
    expect(host.requests).toEqual([])
  })
})
