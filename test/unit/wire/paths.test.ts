/** Paths, methods, API keys and bodies of requests, whatever endpoint they are for. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { handle, refuseForbiddenMethod } from '../../../src/wire/handler.ts'
import { chatOf, EMBEDDER, errorOf, KEY, messageOf, scriptedHost, send } from './scripted-host.ts'
import type { Sent } from './scripted-host.ts'

const CHAT = '/v1/chat/completions'
const POSTS = [
  CHAT,
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/responses',
  '/v1/embeddings',
  '/v1/predictions',
  '/v1/predictions/remote',
]
const MIB = 1024 * 1024
const MAX_BODY = 32 * MIB

interface Endpoint {
  method: string
  path: string
}

const statusOf = async (path: string, sent: Sent = {}) =>
  (await send(scriptedHost(), path, sent)).status

/** A request whose body may be a stream. */
const streamed = (body: BodyInit): Request =>
  new Request(`http://localhost${CHAT}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    duplex: 'half',
  } as RequestInit)

describe('a path', () => {
  it.each([
    ['/v1/nothing', 'GET'],
    ['/', 'GET'],
    ['/v2/models', 'GET'],
    ['/v1x/models', 'GET'],
    ['/v1/v1/v1/models', 'GET'],
    ['/v1/messages/count_token', 'POST'],
    ['/v1/users', 'GET'],
    ['/v1/predictors', 'GET'],
    ['/v1/resources', 'GET'],
    ['/app/v1/models', 'GET'],
  ])('%s is unknown, whatever the key', async (path, method) => {
    const error = await errorOf(await send(scriptedHost({ keyed: true }), path, { method }), 404)
    expect(error.type).toBe('not_found_error')
    expect(error.message).toContain(`${method} ${path} is not an endpoint here`)
    expect(error.message).toContain(CHAT)
  })

  it.each(['/v1', '/v1/', '/v1/v1', '/v1/v1/', '/app/v1'])('%s lists all others', async (path) => {
    const base = path.startsWith('/app') ? '/app/' : '/'
    const response = await send(scriptedHost({ keyed: true }), path, { base })
    const { object, data } = (await response.json()) as { object: string; data: Endpoint[] }
    expect([response.status, object]).toEqual([200, 'list'])
    const posts = data.filter(({ method }) => method === 'POST').map((each) => each.path)
    expect(posts).toEqual(expect.arrayContaining(POSTS))
    expect(data).toContainEqual({ method: 'GET', path: '/v1/models/...' })
    expect(data).toContainEqual({ method: 'DELETE', path: '/v1/responses/...' })
  })

  it.each([
    ['POST', '/v1/completions', 'POST /v1/chat/completions'],
    ['POST', '/v1/complete', 'POST /v1/chat/completions'],
    ['GET', '/v1/realtime?model=x', 'POST /v1/responses'],
    ['POST', '/v1/realtime/client_secrets', 'POST /v1/responses'],
    ['POST', '/v1/threads/t/runs', 'POST /v1/responses'],
    ['POST', '/v1/messages/batches', 'POST /v1/responses'],
  ])('%s %s of another server names what is here', async (method, path, instead) => {
    const error = await errorOf(await send(scriptedHost(), path, { method }), 404)
    const [plain = ''] = path.split('?')
    const start = `${method} ${plain} is not an endpoint here; use ${instead}`
    expect([error.type, error.message.startsWith(start)]).toEqual(['not_found_error', true])
    expect(error.message).toContain('The endpoints are /v1/chat/completions, ')
  })

  it.each([
    ['TRACE', CHAT, 'POST'],
    ['CONNECT', '/v1/models', 'GET, HEAD'],
    ['BREW', '/v1/responses/resp_1', 'GET, HEAD, DELETE'],
    ['get', '/v1', 'GET, HEAD'],
  ])('refuses %s, which no Request can have: %s', async (method, path, allow) => {
    const response = refuseForbiddenMethod({ method, url: `http://localhost${path}` }, 'req_1')
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
    const { error } = (await response.json()) as { error: { message: string } }
    expect(error.message).toBe(`${method} is not allowed on this path. Use ${allow}.`)
  })

  it.each([
    ['GET', CHAT, 'POST'],
    ['PUT', '/v1/messages', 'POST'],
    ['POST', '/v1', 'GET, HEAD'],
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
  ])('has other methods than %s: %s', async (method, path, allow) => {
    const response = await send(scriptedHost({ keyed: true }), path, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
    if (method === 'HEAD') return
    const { type, message } = await errorOf(response, 405)
    expect(type).toBe('invalid_request_error')
    expect(message).toBe(`${method} is not allowed on this path. Use ${allow}.`)
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

  it('may have a second /v1', async () => {
    expect(await statusOf('/v1/v1/messages?beta=true', { body: messageOf() })).toBe(200)
    expect(await statusOf(`/v1${CHAT}`, { body: chatOf() })).toBe(200)
  })

  it.each([
    ['/app/v1/models', 200],
    ['/app/v1/v1/models', 200],
    ['/app/v1/models/@acme%2Ftiny', 200],
    ['/v1/models', 404],
    ['/apple/v1/models', 404],
    ['/app/models', 404],
  ])('%s below the scope /app/ has the status %i', async (path, status) => {
    expect(await statusOf(path, { base: '/app/' })).toBe(status)
  })

  it.each(['/v1/', '/v1/models/', '/v1/responses/'])(
    '%s with a long name is repeated in part',
    async (path) => {
      const response = await send(scriptedHost(), path + 'x'.repeat(1_000_000))
      expect(response.status).toBe(404)
      expect((await response.text()).length).toBeLessThan(3000)
    },
  )

  it('of a million slashes is unknown', async () => {
    expect(await statusOf(`/v1/${'/'.repeat(1_000_000)}x/`)).toBe(404)
  })

  it.each(['/v1/models', '/v1/models/nope', '/v1/nope', '/v1/messages'])(
    'has the same headers for HEAD %s as for GET, and no body',
    async (path) => {
      const of = (method: string) => send(scriptedHost(), path, { method })
      const [head, get] = await Promise.all([of('HEAD'), of('GET')])
      const headers = (response: Response) =>
        [...response.headers].filter(([name]) => !name.endsWith('request-id'))
      expect([head.status, head.body, headers(head)]).toEqual([get.status, null, headers(get)])
      expect(head.headers.get('request-id')).toMatch(/^req_/)
    },
  )

  it('has an id for every request, and an answer that is neither stored nor sniffed', async () => {
    const [one, other] = [
      await send(scriptedHost(), '/v1/models'),
      await send(scriptedHost(), '/v1/models'),
    ]
    const headers = Object.fromEntries(one.headers)
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'request-id': expect.stringMatching(/^req_[0-9a-f]{24}$/),
      'x-request-id': headers['request-id'],
    })
    expect(other.headers.get('request-id')).not.toBe(headers['request-id'])
  })
})

describe('an API key', () => {
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
  ])('in the headers %o is %s', async (headers, key) => {
    const host = scriptedHost()
    await send(host, '/v1/models', { headers: headers as Record<string, string> })
    expect(host.callers[0]?.key).toBe(key)
  })

  it.each([
    ['/v1/models', undefined],
    ['/v1/models/@acme/tiny', undefined],
    ['/v1/predictors/@yusuf/area', undefined],
    [CHAT, chatOf()],
    ['/v1/messages', messageOf()],
    ['/v1/embeddings', { model: EMBEDDER, input: 'x' }],
    ['/v1/predictions', { tag: '@yusuf/area', clientId: 'node' }],
    ['/v1/predictions/remote', { tag: '@yusuf/area', inputs: { radius: 1 } }],
  ])('guards %s, in either header', async (path, body) => {
    const host = scriptedHost({ keyed: true })
    const right: Record<string, string>[] = [
      { authorization: `Bearer ${KEY}` },
      { 'x-api-key': KEY },
    ]
    for (const headers of right)
      expect((await send(host, path, { body, headers })).status).toBe(200)
    const wrong: Record<string, string>[] = [{}, { 'x-api-key': 'sk-bad' }]
    for (const headers of wrong) {
      const response = await send(host, path, { body, headers })
      expect(response.headers.get('x-should-retry')).toBe('false')
      const error = { type: 'authentication_error', code: 'invalid_api_key' }
      expect(await errorOf(response, 401)).toMatchObject(error)
    }
  })

  it.each(POSTS)('is checked before the body of %s', async (path) => {
    const host = scriptedHost({ keyed: true })
    const ask = async (body: unknown, headers: Record<string, string>) =>
      (await send(host, path, { body, headers })).status
    for (const body of ['{', '', '[]', {}, { model: 5 }]) {
      expect([await ask(body, {}), await ask(body, { 'x-api-key': KEY })]).toEqual([401, 400])
    }
    expect(await ask('x', { 'content-type': 'text/plain' })).toBe(401)
  })

  it('that cannot be checked does not hide what is wrong with the body', async () => {
    const authorize = () => Promise.reject(new InoriginError('unavailable', 'There is no host.'))
    const host = scriptedHost({ overrides: { authorize } })
    expect((await send(host, '/v1/messages', { body: {} })).status).toBe(400)
  })
})

describe('a body', () => {
  it.each(POSTS)('of %s must be a JSON object', async (path) => {
    for (const [body, what] of [
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
      expect(error.message).toContain(what)
    }
  })

  it.each(POSTS)('of %s has a tag of at most 1000 characters', async (path) => {
    const field = path.startsWith('/v1/predictions') ? 'tag' : 'model'
    const fields = { ...messageOf(), input: 'Hi', clientId: 'a' }
    const errorFor = async (length: number): Promise<string> => {
      const body = { ...fields, [field]: 'x'.repeat(length) }
      const { error } = await (await send(scriptedHost(), path, { body })).json()
      return error?.message ?? ''
    }
    const start = `\`${field}\` must be a string of at most 1000 characters, not`
    expect(await errorFor(1001)).toBe(`${start} "${'x'.repeat(59)}....`)
    expect(await errorFor(1000)).not.toContain('must be a string')
  })

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'text/json',
    '',
  ])('of the type %j is rejected', async (type) => {
    const headers = { 'content-type': type }
    const error = await errorOf(await send(scriptedHost(), CHAT, { body: chatOf(), headers }), 400)
    expect(error.message).toContain('application/json')
    expect(error.code).toBe('invalid_content_type')
  })

  it.each(['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/vnd.api+json;x=y'])(
    'of the type %j is accepted',
    async (type) => {
      const headers = { 'content-type': type }
      expect(await statusOf(CHAT, { body: chatOf(), headers })).toBe(200)
    },
  )

  it('may begin with a byte order mark', async () => {
    expect(await statusOf(CHAT, { body: `\ufeff${JSON.stringify(chatOf())}` })).toBe(200)
  })

  it.each(['gzip', 'br', 'zstd', 'x'.repeat(1000)])(
    'in the encoding %s is refused',
    async (name) => {
      const headers = { 'content-encoding': name }
      const error = await errorOf(
        await send(scriptedHost(), CHAT, { body: chatOf(), headers }),
        415,
      )
      expect(error).toMatchObject({
        type: 'invalid_request_error',
        code: 'invalid_content_encoding',
        message: expect.stringContaining(`The content-encoding "${name.slice(0, 50)}`),
      })
      expect(error.message.length).toBeLessThan(200)
    },
  )

  it('has no encoding by the name identity', async () => {
    const headers = { 'content-encoding': 'identity' }
    expect(await statusOf(CHAT, { body: chatOf(), headers })).toBe(200)
  })

  it('has at most 32 MiB, by its header and by its bytes', async () => {
    const headers = { 'content-length': String(33 * MIB) }
    const declared = await send(scriptedHost(), '/v1/messages', { body: '{}', headers })
    expect((await errorOf(declared, 413)).code).toBe('request_too_large')
    expect(await statusOf('/v1/messages', { body: ' '.repeat(MAX_BODY + 1) })).toBe(413)
    expect(await statusOf(CHAT, { body: JSON.stringify(chatOf()).padEnd(MAX_BODY) })).toBe(200)
  })

  it('that is too large is not read to its end', async () => {
    let sent = 0
    let canceled = false
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += MIB
        controller.enqueue(new Uint8Array(MIB))
        if (sent >= 1024 * MIB) controller.close()
      },
      cancel() {
        canceled = true
      },
    })
    await errorOf(await handle(streamed(body), scriptedHost()), 413)
    expect(canceled).toBe(true)
    expect(sent).toBeLessThanOrEqual(35 * MIB)
  })

  it('may come in pieces that split a character', async () => {
    const bytes = new TextEncoder().encode(JSON.stringify(chatOf({ user: 'é' })))
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      },
    })
    expect((await handle(streamed(body), scriptedHost())).status).toBe(200)
  })

  it.each([undefined, null])('is read where its stream is %s', async (body) => {
    const request = streamed(JSON.stringify(chatOf()))
    Object.defineProperty(request, 'body', { value: body })
    expect((await handle(request, scriptedHost())).status).toBe(200)
  })

  it('of a navigation is rejected', async () => {
    const host = scriptedHost()
    const request = streamed(JSON.stringify(chatOf()))
    Object.defineProperty(request, 'mode', { value: 'navigate' })
    expect((await errorOf(await handle(request, host), 403)).type).toBe('permission_error')
    expect(host.requests).toEqual([])
  })
})
