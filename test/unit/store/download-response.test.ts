import { describe, expect, test } from 'vitest'
import { interpretResponse } from '../../../src/store/download-response.ts'
import type { WantedResource } from '../../../src/store/db.ts'

const wanted: WantedResource = {
  type: 'onnx',
  url: 'https://models.test/m.onnx',
  name: 'm.onnx',
  bytes: 1000,
  sha256: '0',
}

function response(
  status: number,
  headers: Record<string, string> = {},
  type?: ResponseType,
): Response {
  const made = new Response(null, { status, headers })
  if (type) Object.defineProperty(made, 'type', { value: type })
  return made
}

const part = (range: string, more: Record<string, string> = {}) =>
  response(206, { 'content-range': range, ...more })

describe('an answer with everything', () => {
  test('is taken from the start, whatever was asked', () => {
    expect(interpretResponse(response(200), wanted, 0, null)).toEqual({ type: 'take', from: 0 })
    expect(interpretResponse(response(200), wanted, 400, null)).toEqual({ type: 'take', from: 0 })
  })

  test('of another length is refused before its body is read', () => {
    expect(() =>
      interpretResponse(response(200, { 'content-length': '999' }), wanted, 0, null),
    ).toThrow('https://models.test/m.onnx: the catalog says 1000 bytes, the server has 999')
  })

  test('that is compressed has a length that says nothing', () => {
    const zipped = response(200, { 'content-length': '300', 'content-encoding': 'gzip' })
    expect(interpretResponse(zipped, wanted, 0, null)).toEqual({ type: 'take', from: 0 })
    const hidden = response(200, { 'content-length': '300' }, 'cors')
    expect(interpretResponse(hidden, wanted, 0, null)).toEqual({ type: 'take', from: 0 })
  })

  test.each(['text/html', 'text/html; charset=utf-8', 'application/xhtml+xml', 'TEXT/HTML'])(
    'that is %s is refused',
    (type) => {
      const page = response(200, { 'content-type': type })
      expect(() => interpretResponse(page, wanted, 0, null)).toThrow('HTML page')
    },
  )
})

describe('an answer with a part', () => {
  test('is taken when it is the part that was asked for', () => {
    const taken = { type: 'take', from: 400 }
    expect(interpretResponse(part('bytes 400-999/1000'), wanted, 400, null)).toEqual(taken)
    expect(interpretResponse(part('bytes 400-700/1000'), wanted, 400, null)).toEqual(taken)
    expect(interpretResponse(part('bytes 400-999/*'), wanted, 400, null)).toEqual(taken)
    expect(interpretResponse(part('bytes 0-999/1000'), wanted, 0, null)).toEqual({
      type: 'take',
      from: 0,
    })
  })

  test.each([
    'bytes 0-999/1000',
    'bytes 401-999/1000',
    'bytes 400-999/2000',
    'bytes */1000',
    'bytes=400-999',
    '',
  ])('that says "%s" means starting over', (range) => {
    expect(interpretResponse(part(range), wanted, 400, null)).toMatchObject({ type: 'restart' })
  })

  test('that does not say which is taken from another origin only, where it may be hidden', () => {
    expect(interpretResponse(response(206), wanted, 400, null)).toMatchObject({ type: 'restart' })
    expect(interpretResponse(response(206, {}, 'cors'), wanted, 400, null)).toEqual({
      type: 'take',
      from: 400,
    })
  })

  test('that is encoded means starting over: it is a part of something else', () => {
    const encoded = (encoding: string) =>
      part('bytes 400-999/1000', { 'content-encoding': encoding })
    expect(interpretResponse(encoded('gzip'), wanted, 400, null)).toMatchObject({ type: 'restart' })
    expect(interpretResponse(encoded('identity'), wanted, 400, null)).toEqual({
      type: 'take',
      from: 400,
    })
  })

  test('of another version means starting over', () => {
    const verdict = (before: string, now?: string) => {
      const rest = part('bytes 400-999/1000', now ? { etag: now } : {})
      return interpretResponse(rest, wanted, 400, before).type
    }
    expect(verdict('"a"', '"b"')).toBe('restart')
    expect(verdict('"a"', '"a"')).toBe('take')
    expect(verdict('W/"a"', '"a"')).toBe('take')
    expect(verdict('"a"')).toBe('take')
  })

  test('of another version is taken where each chunk has a hash to be told by', () => {
    const listed = { ...wanted, chunks: ['a', 'b'] }
    const rest = part('bytes 400-999/1000', { etag: '"b"' })
    expect(interpretResponse(rest, listed, 400, '"a"')).toEqual({ type: 'take', from: 400 })
  })
})

describe('an answer that is none', () => {
  test.each([408, 425, 429, 500, 502, 503, 504])('%i is asked again', (status) => {
    expect(interpretResponse(response(status), wanted, 0, null)).toMatchObject({
      type: 'retry',
      after: null,
    })
  })

  test('is waited for as long as the server says, up to a minute', () => {
    const busy = (after: string) =>
      interpretResponse(response(429, { 'retry-after': after }), wanted, 0, null)
    expect(busy('7')).toMatchObject({ type: 'retry', after: 7 })
    expect(busy('soon')).toMatchObject({ type: 'retry', after: null })
    const inTenSeconds = new Date(Date.now() + 10_000).toUTCString()
    const soon = expect.toSatisfy((seconds: number) => seconds > 7 && seconds <= 11)
    expect(busy(inTenSeconds)).toMatchObject({ after: soon })
    expect(() => busy('61')).toThrow('asks to retry after 61 s')
  })

  test.each([301, 400, 401, 403, 404, 410, 451])('%i is final', (status) => {
    expect(() => interpretResponse(response(status), wanted, 0, null)).toThrow(
      `the server returned ${status}`,
    )
  })

  test('416 means starting over, once', () => {
    expect(interpretResponse(response(416), wanted, 400, null)).toMatchObject({ type: 'restart' })
    expect(() => interpretResponse(response(416), wanted, 0, null)).toThrow('416')
  })
})
