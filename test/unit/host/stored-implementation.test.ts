import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Resource } from '../../../src/catalog/schema.ts'
import {
  findInEntry,
  findUnavailable,
  parseStoredImplementation,
  toStoredEntry,
} from '../../../src/host/library/stored-implementation.ts'
import type { PredictionRecord } from '../../../src/store/db.ts'
import type { Database } from '../../../src/store/database.ts'
import { HASH, model, predictor } from '../catalog/entries.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

function recordOf(entry: unknown, changes: Partial<PredictionRecord> = {}): PredictionRecord {
  return {
    id: 'pred_1',
    tag: '@acme/tiny',
    clientId: 'a',
    configurationId: '',
    deviceId: 'dev',
    configuration: 'conf_1',
    implementation: 'wasm',
    created: '2026-01-01T00:00:00.000Z',
    resources: [{ type: 'onnx', name: 'onnx/model.onnx', sha256: HASH }],
    entry,
    ...changes,
  }
}

describe('what is kept of an entry', () => {
  const [wasm] = model().implementations
  const other = { ...wasm!, id: 'other' }
  const hub = {
    repository: 'a/b',
    revision: 'main',
    host: 'https://hub.test/',
    dtypes: null,
    maxInputTokens: null,
    maxOutputTokens: null,
    created: null,
  }

  test.each([
    ['model', model({ implementations: [other, wasm!], card: '# Long', description: 'Long', hub })],
    ['predictor', predictor({ implementations: [other, wasm!], card: '# Long' })],
  ])('of a %s runs it again, and is no more than that', (_, entry) => {
    const restored = parseStoredImplementation(
      recordOf(structuredClone(toStoredEntry({ entry, implementation: wasm! }))),
    )
    expect(restored?.implementation).toEqual(wasm)
    expect(restored?.entry).toMatchObject({
      tag: entry.tag,
      type: entry.type,
      implementations: [wasm],
    })
    expect(Object.keys(restored?.entry ?? {})).not.toEqual(expect.arrayContaining(['card']))
    expect(restored?.entry).not.toHaveProperty('hub')
    expect(restored?.entry).not.toHaveProperty('description')
  })

  test('is nothing where a record is of another form', () => {
    expect(parseStoredImplementation(recordOf(undefined))).toBeUndefined()
    expect(
      parseStoredImplementation(recordOf({ tag: '@acme/tiny', implementations: [] })),
    ).toBeUndefined()
  })

  test('is still in a catalog that has the same files under the same name', () => {
    expect(findInEntry(model(), recordOf(undefined))).toEqual(wasm)
    const renewed = { ...wasm!, resources: [{ ...wasm!.resources[0]!, sha256: 'b'.repeat(64) }] }
    expect(findInEntry(model({ implementations: [renewed] }), recordOf(undefined))).toBeUndefined()
    expect(findInEntry(model({ implementations: [other] }), recordOf(undefined))).toBeUndefined()
  })
})

describe('a file that is not stored', () => {
  const file: Resource = {
    type: 'onnx',
    url: 'https://a.test/m.onnx',
    name: 'm.onnx',
    bytes: 10,
    sha256: HASH,
  }
  const nothing = { name: 'test', use: async () => undefined } as unknown as Database
  const here = {
    name: 'test',
    use: async () => ({ verified: true, chunks: ['noted'] }),
  } as unknown as Database
  const never = new AbortController().signal

  const probe = (
    answer: () => Response | Promise<Response>,
    resource = file,
    database = nothing,
  ) => {
    const fetching = vi.fn<typeof fetch>(async () => answer())
    vi.stubGlobal('fetch', fetching)
    return { gone: findUnavailable(database, [resource], never), fetching }
  }
  /** As of this origin, where headers are there to be read. */
  const own = (headers: Record<string, string>, status = 200) =>
    Object.defineProperty(new Response(null, { status, headers }), 'type', { value: 'basic' })

  test.each<[string, Response, boolean]>([
    ['is had where the server says so', own({ 'content-length': '10' }), false],
    ['is had where it says nothing of its length', own({}), false],
    [
      'is had where its length is that of an encoding',
      own({ 'content-length': '7', 'content-encoding': 'gzip' }),
      false,
    ],
    [
      'is had where another origin keeps that from us',
      new Response(null, { headers: { 'content-length': '7' } }),
      false,
    ],
    ['is gone where the server says so', own({}, 404), true],
    ['is gone where it is another one', own({ 'content-length': '7' }), true],
    [
      'is gone where a page is in its place',
      new Response(null, { headers: { 'content-type': 'text/html; charset=utf-8' } }),
      true,
    ],
  ])('%s', async (_, response, isGone) => {
    const { gone, fetching } = probe(() => response)
    expect(await gone).toEqual(isGone ? file : undefined)
    expect(fetching.mock.calls.map(([url, init]) => [url, init?.method])).toEqual([
      [file.url, 'HEAD'],
    ])
  })

  test.each<[string, Response[], boolean]>([
    ['does not know the question and has it', [own({}, 405), own({}, 206)], false],
    [
      'is for that one question signed otherwise',
      [own({}, 403), own({ 'content-range': 'bytes 0-0/10' }, 206)],
      false,
    ],
    ['knows no ranges', [own({}, 501), own({ 'content-length': '10' })], false],
    ['has another one', [own({}, 403), own({ 'content-range': 'bytes 0-0/11' }, 206)], true],
    ['does not know the question, nor has it', [own({}, 405), own({}, 404)], true],
    ['has nothing of it', [own({}, 400), own({}, 416)], true],
  ])('is asked for as a download does where the server %s', async (_, answers, isGone) => {
    const left = [...answers]
    const { gone, fetching } = probe(() => left.shift() as Response)
    expect(await gone).toEqual(isGone ? file : undefined)
    expect(fetching.mock.calls.map(([, init]) => init?.method ?? init?.headers)).toEqual([
      'HEAD',
      { range: 'bytes=0-0' },
    ])
  })

  test('is asked for by its first part where it lies in parts', async () => {
    const { gone, fetching } = probe(() => own({ 'content-length': '4' }), {
      ...file,
      partBytes: 4,
    })
    expect(await gone).toBeUndefined()
    expect(fetching.mock.calls[0]?.[0]).toBe('https://a.test/m.onnx.0')
  })

  test.each([
    ['cannot be reached', () => Promise.reject(new TypeError('Failed to fetch'))],
    ['is busy', () => own({}, 503)],
    ['wants to be told who asks', () => own({}, 401)],
    ['tells it to others alone', () => own({}, 403)],
  ])('is neither here nor gone where its server %s', async (_, answer) => {
    await expect(probe(answer).gone).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'resource_unreachable',
      retryAfter: 5,
    })
  })

  test('is gone where it was imported, as nobody can be asked for it', async () => {
    const imported = { ...file, url: 'import:m.onnx' }
    const { gone, fetching } = probe(() => own({}), imported)
    expect(await gone).toEqual(imported)
    expect(fetching).not.toHaveBeenCalled()
  })

  test('is not asked for where it is stored after all', async () => {
    const { gone, fetching } = probe(() => own({}, 404), file, here)
    expect(await gone).toBeUndefined()
    expect(fetching).not.toHaveBeenCalled()
  })
})
