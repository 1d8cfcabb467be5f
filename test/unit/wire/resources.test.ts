import { describe, expect, it } from 'vitest'
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
  ])('give %s', async (range, text, told) => {
    const response = await ranged(range)
    expect(response.status).toBe(206)
    expect(response.headers.get('content-range')).toBe(told)
    expect(response.headers.get('content-length')).toBe(String(text.length))
    expect(response.headers.get('content-security-policy')).toBe('sandbox')
    expect(await response.text()).toBe(text)
  })

  it.each(['bytes=10-', 'bytes=10-12', 'bytes=-0'])('refuse %s', async (range) => {
    const response = await ranged(range)
    expect(response.headers.get('content-range')).toBe('bytes */10')
    await errorOf(response, 416)
  })

  it.each(['bytes=0-1,4-5', 'bytes=5-2', 'bytes=a-b', 'bytes=-', 'bits=0-1', ''])(
    'take %j for the whole',
    async (range) => {
      const response = await ranged(range)
      expect([response.status, await response.text()]).toEqual([200, '0123456789'])
    },
  )

  it('give a range only of what the client has the rest of', async () => {
    expect((await ranged('bytes=0-0', { 'if-range': `"${DIGEST}"` })).status).toBe(206)
    expect((await ranged('bytes=0-0', { 'if-range': '"other"' })).status).toBe(200)
  })

  it('tell HEAD of a range', async () => {
    const response = await ranged('bytes=2-5', {}, 'HEAD')
    expect([response.status, response.headers.get('content-length')]).toEqual([206, '4'])
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
