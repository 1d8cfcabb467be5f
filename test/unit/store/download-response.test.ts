/** What a download does with the response of a server. */
import { describe, expect, test } from 'vitest'
import type { WantedResource } from '../../../src/store/db.ts'
import { interpretResponse } from '../../../src/store/download.ts'

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

/** The rest of the file, of 600 bytes. */
const REST = 'bytes 400-999/1000'
const encoded = (encoding: string) => part(REST, { 'content-encoding': encoding })
const zipped = response(200, { 'content-length': '300', 'content-encoding': 'gzip' })

const interpret = (given: Response, from = 0, etag: string | null = null) =>
  interpretResponse(given, wanted, from, etag)

test.each<[string, Response, number, number]>([
  ['the whole file', response(200), 0, 0],
  ['the whole file in place of a part', response(200), 400, 0],
  ['a compressed file, whose length says nothing', zipped, 0, 0],
  ['a length of another origin', response(200, { 'content-length': '300' }, 'cors'), 0, 0],
  ['the whole file as a part', part('bytes 0-999/1000'), 0, 0],
  ['the rest', part(REST), 400, 400],
  ['a part of the rest', part('bytes 400-700/1000'), 400, 400],
  ['the rest of a file of unknown length', part('bytes 400-999/*'), 400, 400],
  ['a part of another origin, which may hide its range', response(206, {}, 'cors'), 400, 400],
  ['a part without an encoding', encoded('identity'), 400, 400],
])('%s is used', (_, given, from, expected) => {
  expect(interpret(given, from)).toEqual({ type: 'take', from: expected })
})

test.each<[string, Response]>([
  ...[
    'bytes 0-999/1000',
    'bytes 401-999/1000',
    'bytes 400-999/2000',
    'bytes */1000',
    'bytes=400-999',
    '',
  ].map((range): [string, Response] => [`a part with the range "${range}"`, part(range)]),
  ['a part without a range', response(206)],
  ['a part of something else, as it is encoded', encoded('gzip')],
  ['an unsatisfiable range', response(416)],
])('%s restarts the download', (_, given) => {
  expect(interpret(given, 400)).toMatchObject({ type: 'restart' })
})

test.each([
  ['"a"', '"b"', 'restart'],
  ['"a"', '"a"', 'take'],
  ['W/"a"', '"a"', 'take'],
  ['"a"', undefined, 'take'],
])('a part of version %s after a part of version %s: %s', (before, etag, expected) => {
  const rest = part(REST, etag ? { etag } : {})
  expect(interpret(rest, 400, before).type).toBe(expected)
  // Each chunk has a digest, which shows whether it is of the same file.
  const listed = { ...wanted, chunks: ['a', 'b'] }
  expect(interpretResponse(rest, listed, 400, before)).toEqual({ type: 'take', from: 400 })
})

describe('an error', () => {
  test.each([408, 425, 429, 500, 502, 503, 504])('%i is retried', (status) => {
    expect(interpret(response(status))).toMatchObject({ type: 'retry', after: null })
  })

  test.each([301, 400, 401, 403, 404, 410, 416, 451])('%i is final', (status) => {
    expect(() => interpret(response(status))).toThrow(`the server returned ${status}`)
  })

  test.each(['text/html', 'text/html; charset=utf-8', 'application/xhtml+xml', 'TEXT/HTML'])(
    'is a page of type %s',
    (type) => {
      expect(() => interpret(response(200, { 'content-type': type }))).toThrow('HTML page')
    },
  )

  test('is another length, before the body is read', () => {
    expect(() => interpret(response(200, { 'content-length': '999' }))).toThrow(
      'https://models.test/m.onnx: the catalog says 1000 bytes, the server has 999',
    )
  })

  test('is retried when the server says, within a minute', () => {
    const busy = (after: string) => interpret(response(429, { 'retry-after': after }))
    expect(busy('7')).toMatchObject({ type: 'retry', after: 7 })
    expect(busy('soon')).toMatchObject({ type: 'retry', after: null })
    const inTenSeconds = new Date(Date.now() + 10_000).toUTCString()
    const soon = expect.toSatisfy((seconds: number) => seconds > 7 && seconds <= 11)
    expect(busy(inTenSeconds)).toMatchObject({ after: soon })
    expect(() => busy('61')).toThrow('asks to retry after 61 s')
  })
})
