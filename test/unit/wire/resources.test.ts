/** Files of models: whole, in ranges, and while they are still downloaded. */
import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { handle } from '../../../src/wire/handler.ts'
import { createDeferred } from '../../support/deferred.ts'
import { DIGEST, errorOf, ORIGIN, scriptedHost, send } from './scripted-host.ts'

const PATH = `/v1/resources/${DIGEST}`
const WHOLE = '0123456789'

const get = (headers: Record<string, string> = {}, method = 'GET') =>
  send(scriptedHost({ keyed: true }), PATH, { method, headers })
const contentOf = async (response: Response) => [response.status, await response.text()]

describe('a resource', () => {
  it.each([
    PATH,
    `${PATH}/area.onnx`,
    `${PATH}/onnx/area.onnx`,
    PATH.toUpperCase().replace('/V1/RESOURCES', '/v1/resources'),
  ])('is found at %s without a key, and cannot be taken for a page', async (path) => {
    const response = await send(scriptedHost({ keyed: true }), path)
    expect(await contentOf(response)).toEqual([200, WHOLE])
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '10',
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'cache-control': 'no-store',
      'accept-ranges': 'bytes',
      etag: `"${DIGEST}"`,
    })
  })

  it.each(['abc', 'cd'.repeat(32), `x${DIGEST}`, `${DIGEST}ab`, '..%2f..%2fetc'])(
    'is not found at %s',
    async (digest) => {
      const error = await errorOf(await send(scriptedHost(), `/v1/resources/${digest}`), 404)
      expect(error.type).toBe('not_found_error')
    },
  )

  it.each([
    ['mode', 'navigate'],
    ['destination', 'document'],
    ['destination', 'script'],
    ['destination', 'worker'],
    ['destination', 'style'],
    ['destination', 'iframe'],
    ['destination', 'image'],
  ])('is refused to a request whose %s is %s', async (property, value) => {
    const request = new Request(ORIGIN + PATH)
    Object.defineProperty(request, property, { value })
    const error = await errorOf(await handle(request, scriptedHost()), 403)
    expect(error.type).toBe('permission_error')
  })

  it.each<Record<string, string>>([{}, { range: 'bytes=2-5' }])(
    'has its whole length for HEAD with %j, and is not read for it',
    async (headers) => {
      const resource = () => Promise.reject(new Error('It was read.'))
      const host = scriptedHost({ overrides: { resource } })
      const response = await send(host, PATH, { method: 'HEAD', headers })
      expect(response.headers.get('content-length')).toBe('10')
      expect(await contentOf(response)).toEqual([200, ''])
    },
  )

  it.each([
    ['bytes=0-0', '0', 'bytes 0-0/10'],
    ['bytes=2-5', '2345', 'bytes 2-5/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=7-99', '789', 'bytes 7-9/10'],
    ['bytes=-3', '789', 'bytes 7-9/10'],
    ['bytes=-99', WHOLE, 'bytes 0-9/10'],
    ['bytes=0-', WHOLE, 'bytes 0-9/10'],
    ['BYTES = 4-4', '4', 'bytes 4-4/10'],
    ['bytes=2-4, 3-5', '2345', 'bytes 2-5/10'],
    ['bytes=99-, 8-9', '89', 'bytes 8-9/10'],
  ])('has the range %s', async (range, text, contentRange) => {
    const response = await get({ range })
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-range': contentRange,
      'content-length': String(text.length),
      'content-security-policy': 'sandbox',
    })
    expect(await contentOf(response)).toEqual([206, text])
  })

  it.each(['bytes=10-', 'bytes=10-12', 'bytes=-0', 'bytes=10-,-0,99-'])(
    'has nothing for the range %s',
    async (range) => {
      const response = await get({ range })
      expect(response.headers.get('content-range')).toBe('bytes */10')
      await errorOf(response, 416)
    },
  )

  it.each([
    'bytes=5-2',
    'bytes=0-1,5-2',
    'bytes=a-b',
    'bytes=-',
    'bytes=',
    'bits=0-1',
    '',
    `bytes=${'0-0,'.repeat(65)}`,
  ])('is sent whole for the invalid range %j', async (range) => {
    expect(await contentOf(await get({ range }))).toEqual([200, WHOLE])
  })

  it.each([
    ['bytes=0-1,4-5', ['0-1', '4-5'], ['01', '45']],
    ['bytes=-2, 0-0', ['8-9', '0-0'], ['89', '0']],
    ['bytes=0-1,1-2,7-7,20-', ['0-2', '7-7'], ['012', '7']],
  ])('has several parts for the range %s', async (range, places, texts) => {
    const response = await get({ range })
    expect([response.status, response.headers.get('content-range')]).toEqual([206, null])
    const type = response.headers.get('content-type') ?? ''
    const [, boundary = ''] = /^multipart\/byteranges; boundary=(\S+)$/.exec(type) ?? []
    const text = await response.text()
    expect(response.headers.get('content-length')).toBe(String(text.length))
    const [before, ...parts] = text.split(`--${boundary}`)
    expect([before, parts.pop()]).toEqual(['', '--\r\n'])
    const head = '\r\ncontent-type: application/octet-stream\r\ncontent-range: bytes'
    expect(parts).toEqual(texts.map((part, at) => `${head} ${places[at]}/10\r\n\r\n${part}\r\n`))
  })

  it.each([
    [`"${DIGEST}"`, 206],
    ['"other"', 200],
  ])('with `if-range: %s` has the status %i', async (tag, status) => {
    expect((await get({ range: 'bytes=0-0', 'if-range': tag })).status).toBe(status)
  })

  it.each([
    [`"${DIGEST}"`, 304],
    [`W/"${DIGEST}"`, 304],
    ['*', 304],
    [`"other", "${DIGEST}"`, 304],
    ['"other"', 206],
  ])('with `if-none-match: %s` has the status %i', async (tags, status) => {
    const response = await get({ range: 'bytes=0-1', 'if-none-match': tags })
    expect(response.headers.get('etag')).toBe(`"${DIGEST}"`)
    const isSent = status === 206
    expect(response.headers.has('content-type')).toBe(isSent)
    expect(await contentOf(response)).toEqual([status, isSent ? '01' : ''])
  })
})

describe('a resource that is still downloaded', () => {
  /** A host whose resource arrives, or fails, when the test says so. */
  function slowHost() {
    const body = { sha256: DIGEST, name: 'area.onnx', blob: new Blob([WHOLE]) }
    const arriving = createDeferred<typeof body>()
    const signals: AbortSignal[] = []
    const host = scriptedHost({
      overrides: {
        resource(_, { signal }) {
          signals.push(signal)
          signal.addEventListener('abort', () => arriving.reject(signal.reason))
          return arriving.promise
        },
      },
    })
    return { host, signals, arrive: () => arriving.resolve(body), fail: arriving.reject }
  }

  it('has its headers first, then its bytes', async () => {
    const { host, arrive } = slowHost()
    const response = await send(host, PATH, { headers: { range: 'bytes=2-4' } })
    expect(response.headers.get('content-length')).toBe('3')
    arrive()
    expect(await contentOf(response)).toEqual([206, '234'])
  })

  it('breaks off if it fails', async () => {
    const { host, fail } = slowHost()
    const response = await send(host, PATH)
    fail(new Error('gone'))
    await expect(response.text()).rejects.toThrow('gone')
  })

  it('is canceled with its response', async () => {
    const { host, signals } = slowHost()
    const response = await send(host, PATH)
    const canceled = response.body?.cancel()
    // WebKit hangs where a listener of the signal runs inside of `cancel`.
    expect(signals[0]?.aborted).toBe(false)
    await canceled
    expect(signals[0]?.aborted).toBe(true)
  })

  it('has a status if it fails at once', async () => {
    const { host, fail } = slowHost()
    fail(new InoriginError('unavailable', 'The server answers 404.'))
    expect((await errorOf(await send(host, PATH), 503)).message).toContain('404')
  })
})
