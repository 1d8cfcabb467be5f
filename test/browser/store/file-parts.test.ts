import { describe, expect, test } from 'vitest'
import { download } from '../../../src/store/download.ts'
import { hasResource } from '../../../src/store/resources.ts'
import { chunkHashes, type Fault } from '../../support/content.ts'
import { bytesOf, fileOn, freshDatabase, KIB, never, QUICK, same } from './fixture.ts'

/** Parts end in the middle of chunks, and chunks in the middle of parts. */
const BYTES = 100 * KIB + 7
const PART = 30_000
const options = { signal: never(), tuning: QUICK }

describe('puts a file together of its parts whatever the server does:', () => {
  const cases: Record<string, Fault[]> = {
    'nothing wrong': [],
    'the connection breaks in every part': [
      { cut: 20_000 },
      {},
      { cut: 10 },
      {},
      { cut: 29_999 },
      {},
      { cut: 5 },
    ],
    'ranges of a later part are ignored': [{}, { cut: 20_000, sure: true }, { ignoreRange: true }],
    'a part ends too early as if it were whole': [{}, {}, { end: 1000 }],
    'a later part is busy': [{}, { status: 503 }, { status: 429, retryAfter: '0' }],
    'a later part has another tag': [{}, { etag: '"two"' }, { etag: '"three"' }],
    'the first part changes': [{ cut: 20_000, sure: true, corrupt: 3, etag: '"old"' }],
  }
  test.for(Object.entries(cases))('%s', async ([, faults]) => {
    const database = freshDatabase()
    const { resource, content } = await fileOn({ bytes: BYTES, faults, partBytes: PART })
    const blob = await download(database, resource, options)
    expect(same(await bytesOf(blob), content)).toBe(true)
  })
})

test('asks for each part once', async () => {
  const { resource, seen } = await fileOn({ bytes: 3 * PART, partBytes: PART })
  await download(freshDatabase(), resource, options)
  expect((await seen()).map(({ range, sent }) => [range, sent])).toEqual(
    [0, 1, 2].map(() => [null, PART]),
  )
})

test('a chunk that came wrong over the edge of two parts is fetched again alone', async () => {
  const { resource, content, seen } = await fileOn({
    bytes: BYTES,
    partBytes: PART,
    faults: [{ corrupt: 20_000 }],
  })
  const chunks = await chunkHashes(content, QUICK.chunkBytes)
  const blob = await download(freshDatabase(), { ...resource, chunks }, options)
  expect(same(await bytesOf(blob), content)).toBe(true)
  expect((await seen())[2]?.range).toBe(`bytes=${16 * KIB}-`)
})

test('names the part that is not there, and counts nothing as whole', async () => {
  const database = freshDatabase()
  const { resource } = await fileOn({
    bytes: BYTES,
    partBytes: PART,
    faults: [{}, {}, { status: 404 }],
  })
  const failed = download(database, resource, options)
  await expect(failed).rejects.toMatchObject({
    code: 'download_failed',
    message: expect.stringMatching(/file\/[^/]+\.2\?.*returned 404/),
  })
  expect(await hasResource(database, resource.sha256)).toBe(false)
})

test.each([{ extra: 1 }, { corrupt: 1 }])('parts that are wrong end it: %j', async (fault) => {
  const database = freshDatabase()
  const faults = Array.from({ length: 20 }, (): Fault => fault)
  const { resource } = await fileOn({ bytes: BYTES, partBytes: PART, faults })
  await expect(download(database, resource, options)).rejects.toMatchObject({ kind: 'unavailable' })
  expect(await hasResource(database, resource.sha256)).toBe(false)
})
