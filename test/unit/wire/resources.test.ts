import { describe, expect, it } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { handle } from '../../../src/wire/handler.ts'
import { DIGEST, errorOf, ORIGIN, scriptedHost, send } from './scripted-host.ts'

const PATH = `/v1/resources/${DIGEST}`

const ranged = (range: string, headers: Record<string, string> = {}, method = 'GET') =>
  send(scriptedHost(), PATH, { method, headers: { range, ...headers } })

describe('resources', () => {
  it.each([
    PATH,
    `${PATH}/area.onnx`,
    `${PATH}/onnx/area.onnx`,
    PATH.toUpperCase().replace('/V1/RESOURCES', '/v1/resources'),
  ])('are read at %s, and cannot be taken for anything else', async (path) => {
    const response = await send(scriptedHost(), path)
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('0123456789')
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

  it('tell HEAD what there is', async () => {
    const response = await send(scriptedHost(), PATH, { method: 'HEAD' })
    expect([
      response.status,
      response.headers.get('content-length'),
      await response.text(),
    ]).toEqual([200, '10', ''])
  })

  it.each([
    ['bytes=0-0', '0', 'bytes 0-0/10'],
    ['bytes=2-5', '2345', 'bytes 2-5/10'],
    ['bytes=7-', '789', 'bytes 7-9/10'],
    ['bytes=7-99', '789', 'bytes 7-9/10'],
    ['bytes=-3', '789', 'bytes 7-9/10'],
    ['bytes=-99', '0123456789', 'bytes 0-9/10'],
    ['bytes=0-', '0123456789', 'bytes 0-9/10'],
    ['BYTES = 4-4', '4', 'bytes 4-4/10'],
    ['bytes=2-4, 3-5', '2345', 'bytes 2-5/10'],
    ['bytes=99-, 8-9', '89', 'bytes 8-9/10'],
  ])('give %s', async (range, text, told) => {
    const response = await ranged(range)
    expect(response.status).toBe(206)
    expect(response.headers.get('content-range')).toBe(told)
    expect(response.headers.get('content-length')).toBe(String(text.length))
    expect(response.headers.get('content-security-policy')).toBe('sandbox')
    expect(await response.text()).toBe(text)
  })

  it.each(['bytes=10-', 'bytes=10-12', 'bytes=-0', 'bytes=10-,-0,99-'])(
    'refuse %s',
    async (range) => {
      const response = await ranged(range)
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
  ])('take %j for the whole', async (range) => {
    const response = await ranged(range)
    expect([response.status, await response.text()]).toEqual([200, '0123456789'])
  })

  it('give a range only of what the client has the rest of', async () => {
    expect((await ranged('bytes=0-0', { 'if-range': `"${DIGEST}"` })).status).toBe(206)
    expect((await ranged('bytes=0-0', { 'if-range': '"other"' })).status).toBe(200)
  })

  it('tell HEAD of the whole, whatever range it names, and read nothing for it', async () => {
    const resource = async () => Promise.reject(new Error('read'))
    const host = scriptedHost({ overrides: { resource } })
    const headers = { range: 'bytes=2-5' }
    const response = await send(host, PATH, { method: 'HEAD', headers })
    expect([response.status, response.headers.get('content-length')]).toEqual([200, '10'])
  })

  it.each([
    ['bytes=0-1,4-5', ['0-1', '4-5'], ['01', '45']],
    ['bytes=-2, 0-0', ['8-9', '0-0'], ['89', '0']],
    ['bytes=0-1,1-2,7-7,20-', ['0-2', '7-7'], ['012', '7']],
  ])('give %s in parts', async (range, told, texts) => {
    const response = await ranged(range)
    expect(response.status).toBe(206)
    expect(response.headers.get('content-range')).toBeNull()
    const [, boundary = ''] =
      /^multipart\/byteranges; boundary=(\S+)$/.exec(response.headers.get('content-type') ?? '') ??
      []
    const text = await response.text()
    expect(response.headers.get('content-length')).toBe(String(text.length))
    const [before, ...parts] = text.split(`--${boundary}`)
    expect([before, parts.pop()]).toEqual(['', '--\r\n'])
    expect(parts).toEqual(
      texts.map(
        (part, index) =>
          `\r\ncontent-type: application/octet-stream\r\ncontent-range: bytes ${told[index]}/10\r\n\r\n${part}\r\n`,
      ),
    )
  })

  it.each([`"${DIGEST}"`, `W/"${DIGEST}"`, '*', `"other", "${DIGEST}"`])(
    'are not sent again to whoever has %s',
    async (tags) => {
      const response = await ranged('bytes=0-1', { 'if-none-match': tags })
      expect([response.status, await response.text()]).toEqual([304, ''])
      expect(response.headers.get('etag')).toBe(`"${DIGEST}"`)
      expect(response.headers.get('content-type')).toBeNull()
    },
  )

  it('are sent to whoever has something else', async () => {
    const headers = { 'if-none-match': '"other"' }
    expect((await send(scriptedHost(), PATH, { headers })).status).toBe(200)
  })

  describe('that are still on their way', () => {
    const body = { sha256: DIGEST, name: 'area.onnx', blob: new Blob(['0123456789']) }

    /** A host whose resource arrives when told to. */
    function slowHost() {
      let resolve: (arrived: typeof body) => void = () => {}
      let reject: (reason: unknown) => void = () => {}
      const arriving = new Promise<typeof body>((...both) => ([resolve, reject] = both))
      const signals: AbortSignal[] = []
      const host = scriptedHost({
        overrides: {
          resource(_, { signal }) {
            signals.push(signal)
            signal.addEventListener('abort', () => reject(signal.reason))
            return arriving
          },
        },
      })
      return { host, signals, resolve, reject }
    }

    it('have their headers first, then their bytes', async () => {
      const { host, resolve } = slowHost()
      const response = await send(host, PATH, { headers: { range: 'bytes=2-4' } })
      expect([response.status, response.headers.get('content-length')]).toEqual([206, '3'])
      setTimeout(() => resolve(body), 20)
      expect(await response.text()).toBe('234')
    })

    it('break off when they cannot be had', async () => {
      const { host, reject } = slowHost()
      const response = await send(host, PATH)
      setTimeout(() => reject(new Error('gone')), 20)
      await expect(response.text()).rejects.toThrow('gone')
    })

    it('are given up with the answer', async () => {
      const { host, signals } = slowHost()
      const response = await send(host, PATH)
      const cancelled = response.body?.cancel()
      // WebKit hangs where a listener of the signal runs inside of `cancel`.
      expect(signals[0]?.aborted).toBe(false)
      await cancelled
      expect(signals[0]?.aborted).toBe(true)
    })

    it('are a status when they fail at once', async () => {
      const { host, reject } = slowHost()
      reject(new InoriginError('unavailable', 'The server answers 404.'))
      expect((await errorOf(await send(host, PATH), 503)).message).toContain('404')
    })
  })

  it.each(['abc', 'cd'.repeat(32), `x${DIGEST}`, `${DIGEST}ab`, '..%2f..%2fetc'])(
    'are not found at %s',
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
  ])('are refused to a %s of %s', async (property, value) => {
    const request = new Request(ORIGIN + PATH)
    Object.defineProperty(request, property, { value })
    expect((await errorOf(await handle(request, scriptedHost()), 403)).type).toBe(
      'permission_error',
    )
  })

  it('need no key', async () => {
    expect((await send(scriptedHost({ keyed: true }), PATH)).status).toBe(200)
  })
})
