/** Files of models and predictors: which are stored, gone, damaged or still to be looked up. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { chooseImplementation } from '../../../src/catalog/choose-implementation.ts'
import { completeMlcEntry, expandMlcEntry } from '../../../src/catalog/mlc/expand-entry.ts'
import type { Entry, Implementation, Resource } from '../../../src/catalog/schema.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { type ErrorCode, type ErrorKind, InoriginError } from '../../../src/error.ts'
import { selectMeasurable } from '../../../src/host/choice/benchmark.ts'
import { createFailureExplainer } from '../../../src/host/library/explain-failure.ts'
import { Predictions } from '../../../src/host/library/predictions.ts'
import {
  findInEntry,
  findUnavailable,
  parseStoredImplementation,
  resolveImplementation,
  toStoredEntry,
} from '../../../src/host/library/stored-implementation.ts'
import { createResources } from '../../../src/host/library/resources.ts'
import { SingleFlight } from '../../../src/values/promises.ts'
import { createStorage } from '../../../src/host/library/storage.ts'
import type { PredictionRecord } from '../../../src/store/db.ts'
import type { ensureResources } from '../../../src/store/ensure.ts'
import type { PredictionRequest } from '../../../src/types/index.ts'
import { createDeferred } from '../../support/deferred.ts'
import { memoryDatabase } from '../../support/memory-database.ts'
import { deviceOf, gpuOf } from '../../support/samples.ts'
import { HASH, model, predictor } from '../catalog/entries.ts'

beforeEach(() => {
  vi.stubGlobal('IDBKeyRange', { bound: () => null })
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const never = new AbortController().signal

const file: Resource = {
  type: 'onnx',
  url: 'https://a.test/m.onnx',
  name: 'm.onnx',
  bytes: 10,
  sha256: HASH,
}
const [wasm] = model().implementations as [Implementation]
const other = { ...wasm, id: 'other' }

const recordOf = (entry: unknown): PredictionRecord => ({
  id: 'pred_1',
  tag: '@acme/tiny',
  clientId: 'app',
  configurationId: '',
  deviceId: 'dev',
  configuration: 'conf_1',
  implementation: 'wasm',
  created: '2026-01-01T00:00:00.000Z',
  resources: [{ type: 'onnx', name: 'm.onnx', sha256: HASH }],
  entry,
  lastUsed: Date.now(),
})

/** A database with a record of each file whose only chunk was lost. */
function damagedDatabase() {
  const reads: string[] = []
  const record = { verified: true, bytes: 1000, chunkBytes: 1000, chunks: ['noted'] }
  const database = memoryDatabase({
    get: async (store) => (store === 'resources' && reads.push(store) ? record : undefined),
    getAllKeys: async () => [],
    delete: async () => undefined,
  })
  return { database, reads }
}

describe('a failure', () => {
  const failure = (kind: ErrorKind, code?: ErrorCode) =>
    new InoriginError(kind, 'It failed.', { code })

  /** An explainer, and the parts that it read to explain. */
  function open() {
    const { database, reads } = damagedDatabase()
    const read = async <T>(part: string, value: T): Promise<T> => {
      reads.push(part)
      return value
    }
    const explain = createFailureExplainer({
      database,
      entries: { all: () => read<Entry[]>('entries', [model()]) } as never,
      device: () => read('device', deviceOf()),
      preference: 'auto',
    })
    return { reads, explain: (error: unknown) => explain(error, model(), wasm) }
  }

  test('names the model, once, and wraps what the runtime says', async () => {
    const { explain } = open()
    const raw = new Error('failed to call OrtRun(). ERROR_CODE: 1, ERROR_MESSAGE: Bad node')
    await explain(raw)
    const explained = InoriginError.from(await explain(raw))
    expect(explained).toMatchObject({
      kind: 'internal',
      code: 'model_failed',
      cause: { cause: raw },
    })
    expect(explained.message).toMatch(/^@acme\/tiny failed\. Bad node\. Try again\. /)
    expect(await explain(explained)).toBe(explained)
    const lost = InoriginError.from(await explain(failure('unavailable', 'device_lost')))
    expect(lost.message).toBe('@acme/tiny failed. It failed.')
    expect(await explain(lost)).toBe(lost)
    for (const kind of ['invalid_request', 'rate_limit'] as const) {
      const refused = failure(kind)
      expect(await explain(refused)).toBe(refused)
    }
  })

  test.each([
    new DOMException('The answer was canceled.', 'AbortError'),
    failure('aborted'),
    failure('rate_limit'),
    failure('invalid_request'),
    failure('unavailable', 'device_lost'),
    failure('unavailable', 'out_of_memory'),
  ])('that no damage explains reads no files, and a later one may: %s', async (error) => {
    const { explain, reads } = open()
    const { kind, code } = InoriginError.from(error)
    const explained = await explain(error)
    if (kind === 'aborted') expect(explained).toBe(error)
    else expect(explained).toMatchObject({ kind, code })
    // Others are compared with what the catalog offers.
    expect(reads).toEqual(kind === 'aborted' ? [] : ['entries', 'device'])
    const damaged = { code: 'storage_damaged', retryAfter: 1 }
    expect(await explain(new TypeError('bad graph'))).toMatchObject(damaged)
    expect(reads).toContain('resources')
  })

  test('has the files checked once', async () => {
    const { explain } = open()
    const unusable = failure('unavailable', 'model_unusable')
    expect(await explain(unusable)).toMatchObject({ code: 'storage_damaged' })
    expect(await explain(unusable)).toMatchObject({ code: 'model_unusable' })
  })
})

test('of tags that share all their files, the one that is loaded is in use', async () => {
  const held = [{ name: `test:use:${HASH}` }]
  vi.stubGlobal('navigator', { locks: { query: async () => ({ held }) } })
  const record = {
    sha256: HASH,
    bytes: 10,
    chunkBytes: 10,
    chunks: ['noted'],
    verified: true,
    lastUsed: 0,
    tags: ['@me/one', '@me/two'],
  }
  const storage = createStorage({
    database: memoryDatabase({
      index: () => ({ getAll: async () => [record] }),
      getAllKeys: async (store) => (store === 'chunks' ? [[HASH, 0]] : []),
    }),
    onDownload: () => undefined,
    background: { clear: async () => undefined },
    entries: { all: async () => [] } as never,
    models: { ofTag: (tag: string) => (tag === '@me/two' ? [{}] : []) } as never,
  })
  const stored = await storage.storedTags()
  expect(stored.map(({ tag, inUse }) => [tag, inUse])).toEqual([
    ['@me/one', false],
    ['@me/two', true],
  ])
})

describe('an implementation of an earlier prediction', () => {
  const hub = {
    repository: 'a/b',
    revision: 'main',
    host: 'https://hub.test/',
    dtypes: null,
    maxInputTokens: null,
    maxOutputTokens: null,
    created: null,
  }
  const changes = { implementations: [other, wasm], card: '# Long', description: 'Long' }

  test.each<[string, Entry]>([
    ['model', model({ ...changes, hub })],
    ['predictor', predictor(changes)],
  ])('of a %s is stored without what does not run', (_, entry) => {
    const stored = structuredClone(toStoredEntry({ entry, implementation: wasm }))
    const restored = parseStoredImplementation(recordOf(stored))
    expect(restored?.implementation).toEqual(wasm)
    const { tag, type } = entry
    expect(restored?.entry).toMatchObject({ tag, type, implementations: [wasm] })
    for (const field of ['card', 'description', 'hub'])
      expect(restored?.entry).not.toHaveProperty(field)
  })

  test.each([undefined, { tag: '@acme/tiny', implementations: [] }])(
    'is not read from a record of another form: %j',
    (entry) => {
      expect(parseStoredImplementation(recordOf(entry))).toBeUndefined()
    },
  )

  test('is still in a catalog that has the same files under the same name', () => {
    const record = recordOf(undefined)
    expect(findInEntry(model(), record)).toEqual(wasm)
    const renewed = { ...wasm, resources: [{ ...wasm.resources[0]!, sha256: 'b'.repeat(64) }] }
    for (const one of [renewed, other])
      expect(findInEntry(model({ implementations: [one] }), record)).toBeUndefined()
  })
})

describe('a file that is not stored', () => {
  /** A response of this origin, whose headers can be read. */
  const own = (status = 200, headers: Record<string, string> = {}) =>
    Object.defineProperty(new Response(null, { status, headers }), 'type', { value: 'basic' })
  const foreign = (headers: Record<string, string>) => new Response(null, { headers })

  function probe(responses: Array<Response | Error>, resource = file, isStored = false) {
    const fetching = vi.fn<typeof fetch>(async () => {
      const response = responses.shift()
      if (response instanceof Response) return response
      throw response
    })
    vi.stubGlobal('fetch', fetching)
    const record = isStored ? { verified: true, chunks: ['noted'] } : undefined
    const database = memoryDatabase({
      get: async () => record,
      getAllKeys: async () => [['', 0]],
    })
    return { gone: findUnavailable(database, [resource], never), fetching }
  }

  const length = (bytes: string) => ({ 'content-length': bytes })
  const range = (text: string) => ({ 'content-range': text })
  test.each<[string, 'here' | 'gone' | 'unknown', Response | Error, Response?]>([
    ['of the length of the file', 'here', own(200, length('10'))],
    ['of no length', 'here', own()],
    ['with an encoding', 'here', own(200, { ...length('7'), 'content-encoding': 'gzip' })],
    ['of another origin, which hides its encoding', 'here', foreign(length('7'))],
    ['with status 404', 'gone', own(404)],
    ['of another length', 'gone', own(200, length('7'))],
    ['with a page', 'gone', foreign({ 'content-type': 'text/html; charset=utf-8' })],
    ['that fails', 'unknown', new TypeError('Failed to fetch')],
    ['of a busy server', 'unknown', own(503)],
    // A server that rejects HEAD is asked as a download asks.
    ['of a server without HEAD', 'here', own(405), own(206)],
    ['of a URL signed for GET', 'here', own(403), own(206, range('bytes 0-0/10'))],
    ['of a server without HEAD and ranges', 'here', own(501), own(200, length('10'))],
    ['of a URL signed for another file', 'gone', own(403), own(206, range('bytes 0-0/11'))],
    ['of a server without HEAD and the file', 'gone', own(405), own(404)],
    ['without a byte of the file', 'gone', own(400), own(416)],
    ['without credentials', 'unknown', own(401), own(401)],
    ['without permission', 'unknown', own(403), own(403)],
  ])('after a response %s is %s', async (_, verdict, ...responses) => {
    const expected = responses.length
    const { gone, fetching } = probe(responses.filter((one) => one !== undefined))
    if (verdict === 'unknown')
      await expect(gone).rejects.toMatchObject({
        kind: 'unavailable',
        code: 'resource_unreachable',
        retryAfter: 5,
      })
    else expect(await gone).toEqual(verdict === 'gone' ? file : undefined)
    const calls = fetching.mock.calls.map(([url, init]) => [url, init?.method ?? init?.headers])
    const both = [
      [file.url, 'HEAD'],
      [file.url, { range: 'bytes=0-0' }],
    ]
    expect(calls).toEqual(both.slice(0, expected))
  })

  test('is asked for by its first part if it has parts', async () => {
    const { gone, fetching } = probe([own(200, length('4'))], { ...file, partBytes: 4 })
    expect(await gone).toBeUndefined()
    expect(fetching.mock.calls[0]?.[0]).toBe('https://a.test/m.onnx.0')
  })

  test.each([
    ['gone if it was imported', 'import:m.onnx', false],
    ['not asked for if it is stored after all', file.url, true],
  ])('is %s', async (_, url, isStored) => {
    const resource = { ...file, url }
    const { gone, fetching } = probe([], resource, isStored)
    expect(await gone).toEqual(isStored ? undefined : resource)
    expect(fetching).not.toHaveBeenCalled()
  })
})

describe('a prediction whose implementation is gone', () => {
  const implementation = { ...wasm, resources: [file] }
  const { tag, ...rest } = predictor({ implementations: [implementation] })
  const record = { ...recordOf({ tag, ...rest }), tag }

  /** Predictions with a record that the catalog no longer lists. Its server responds with the status. */
  function open(status = 404) {
    vi.stubGlobal('fetch', async () => new Response(null, { status }))
    return new Predictions({
      database: memoryDatabase({
        get: async (store, key) =>
          store === 'predictions' && key === record.id ? record : undefined,
        getAllFromIndex: async (_store, index, key) =>
          index === 'configuration' && key === record.configuration ? [record] : [],
        put: async () => undefined,
      }),
      scope: 'https://app.test/',
      entries: { all: async () => [] } as never,
      device: async () => ({}) as never,
      selector: {} as never,
    })
  }
  const create = (more: Partial<PredictionRequest>) =>
    open().create({ tag, clientId: 'app', ...more }, never)

  test.each<[string, () => Promise<unknown>]>([
    ['predictionId', () => create({ predictionId: record.id })],
    ['configurationId', () => create({ configurationId: record.configuration })],
    ['configuration', () => open().resolveConfiguration(tag, record.configuration, never)],
  ])('is rejected with the parameter that names it: %s', async (param, ask) => {
    await expect(ask()).rejects.toMatchObject({
      kind: 'not_found',
      code: 'implementation_gone',
      param,
      message: expect.stringMatching(new RegExp(`without ${param}\\b`)),
    })
  })

  test('is not stored for a caller that has left', async () => {
    const request = { tag, clientId: 'other', predictionId: record.id }
    await expect(open(200).create(request, AbortSignal.abort())).rejects.toMatchObject({
      name: 'AbortError',
    })
  })
})

describe('a file by its digest', () => {
  const ensure = vi.fn<typeof ensureResources>()
  const open = (all: Entry[]) =>
    createResources({
      database: {} as never,
      ensure,
      onDownload: () => undefined,
      entries: { all: async () => all } as never,
      predictions: { findResource: async () => ({ resource: file, tag: '@me/old' }) } as never,
    })

  test('that only an earlier prediction lists is stored for its tag', async () => {
    ensure.mockResolvedValue(new Map([[file.name, new Blob(['0123456789'])]]))
    const resources = open([])
    expect(await resources.info(HASH)).toEqual({ sha256: HASH, name: file.name, bytes: 10 })
    expect((await resources.body(HASH, never)).blob.size).toBe(10)
    expect(ensure.mock.calls[0]?.slice(1)).toMatchObject([
      [file],
      { signal: never, tag: '@me/old' },
    ])
  })

  test.each<[string, Entry[], number, ErrorCode, object]>([
    ['gone', [], 404, 'download_failed', { kind: 'not_found', code: 'resource_gone' }],
    ['denied', [], 403, 'download_failed', { kind: 'unavailable' }],
    ['gone but listed', [model()], 404, 'download_failed', { kind: 'unavailable' }],
    // The browser lost a part of a file of the user, which nobody sends again.
    ['imported', [model()], 0, 'import_lost', { kind: 'not_found', code: 'import_lost' }],
  ])('that is %s', async (_, all, status, code, expected) => {
    const options = { code, details: { status } }
    ensure.mockRejectedValue(new InoriginError('unavailable', 'Could not download.', options))
    await expect(open(all).body(HASH, never)).rejects.toMatchObject(expected)
  })
})

describe('files that the catalog does not list', () => {
  const record = (model_id: string) => ({
    model_id,
    model: `https://h.test/me/${model_id}/`,
    model_lib: 'https://h.test/l.wasm',
  })
  const limits = { maxStorageBuffersPerShaderStage: 10, maxComputeWorkgroupStorageSize: 32_768 }
  const gpu = (...features: string[]) => deviceOf({ webgpu: gpuOf({ features, limits }) })

  /** Resolves an entry of those models. `needs` are features that their files turn out to need. */
  async function resolve(
    ids: readonly string[],
    capabilities: Capabilities,
    needs: Record<string, string[]> = {},
  ) {
    const listed: string[] = []
    const library = { ...file, type: 'wasm' as const, name: 'l.wasm' }
    const entries = {
      complete: async (entry: Entry) => entry,
      listFiles: async (entry: Entry, { id }: { id: string }) => {
        listed.push(id)
        const found = {
          revision: null,
          created: undefined,
          context: 2048,
          features: needs[id] ?? [],
          resources: [library],
        }
        return entry.type === 'model' ? completeMlcEntry(entry, record(id), found) : entry
      },
    } as never
    const selector = {
      select: async (entry: Entry) => chooseImplementation(entry, capabilities),
    } as never
    const mlc = { tag: '@me/mlc' as const, mlc: [] as never }
    const entry = expandMlcEntry(mlc, ids.map(record), undefined)
    const resolved = await resolveImplementation({ entries, selector }, entry, never)
    return { id: resolved.implementation.id, listed, entry: resolved.entry }
  }

  const both = ['x-q4f16_1', 'x-q4f32_1']
  test.each([
    [both, gpu('shader-f16'), {}, { id: 'x-q4f16_1', listed: ['x-q4f16_1'] }],
    [both, gpu(), {}, { id: 'x-q4f32_1', listed: ['x-q4f32_1'] }],
    // The files of the first need more than the device has.
    [['one', 'two'], gpu(), { one: ['shader-f16'] }, { id: 'two', listed: ['one', 'two'] }],
  ])('are looked up for the chosen implementation only: %j', async (ids, device, needs, found) => {
    const { entry, ...resolved } = await resolve(ids, device, needs)
    expect(resolved).toEqual(found)
    expect(entry).toMatchObject({ maxInputTokens: 2048, maxOutputTokens: 2048 })
  })

  test('say why no implementation is left', async () => {
    await expect(resolve(['one'], gpu(), { one: ['shader-f16'] })).rejects.toMatchObject({
      code: 'no_implementation',
      message: expect.stringContaining('one: the GPU has no shader-f16'),
    })
  })

  test('are not looked up for a measurement', async () => {
    vi.stubGlobal('navigator', {})
    const { entry } = await resolve(both, gpu('shader-f16'))
    const measurable = await selectMeasurable(null as never, entry.implementations)
    expect(measurable.map(({ id }) => id)).toEqual(['x-q4f16_1'])
  })
})

describe('work that several callers share', () => {
  /** Work that the test ends, and how often it was begun and aborted. */
  function open() {
    const seen = { begun: 0, aborted: 0 }
    let current = createDeferred<string>()
    const work = (signal: AbortSignal) => {
      seen.begun += 1
      signal.addEventListener('abort', () => (seen.aborted += 1))
      current = createDeferred()
      return current.promise
    }
    const singleFlight = new SingleFlight()
    return {
      seen,
      start: (signal = never) => singleFlight.run('a', work, signal),
      end: () => current.resolve('done'),
      fail: () => current.reject(new Error('no')),
    }
  }

  test('runs once for all who ask while it runs, and anew for later callers', async () => {
    const { seen, start, end, fail } = open()
    const both = [start(), start()]
    expect(seen.begun).toBe(1)
    end()
    expect(await Promise.all(both)).toEqual(['done', 'done'])
    const third = start()
    fail()
    await expect(third).rejects.toThrow('no')
    expect(seen).toEqual({ begun: 2, aborted: 0 })
  })

  test('continues while a caller waits, and is aborted with the last', async () => {
    const { seen, start, end } = open()
    const [one, two] = [new AbortController(), new AbortController()]
    const [first, second] = [start(one.signal), start(two.signal)]
    one.abort(new InoriginError('aborted', 'Enough.'))
    await expect(first).rejects.toMatchObject({ kind: 'aborted' })
    expect(seen).toEqual({ begun: 1, aborted: 0 })
    two.abort()
    await expect(second).rejects.toMatchObject({ kind: 'aborted' })
    expect(seen.aborted).toBe(1)
    const again = start()
    expect(seen.begun).toBe(2)
    end()
    expect(await again).toBe('done')
  })

  test('does not begin for a caller that has left', async () => {
    const { seen, start } = open()
    await expect(start(AbortSignal.abort())).rejects.toMatchObject({ kind: 'aborted' })
    expect(seen.begun).toBe(0)
  })
})
