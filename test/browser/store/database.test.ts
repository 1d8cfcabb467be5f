import { openDB } from 'idb'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { DB_VERSION } from '../../../src/store/migrations.ts'
import { UNKNOWN_DIGEST, type WantedResource } from '../../../src/store/db.ts'
import { download } from '../../../src/store/download.ts'
import { getDeviceFact, putDeviceFact } from '../../../src/store/device-facts.ts'
import {
  runAndCommit,
  openDatabase,
  type Connection,
  type Database,
} from '../../../src/store/database.ts'
import {
  findPredictionByConfiguration,
  findPredictionById,
  findPredictionByKey,
  putPrediction,
} from '../../../src/store/prediction-records.ts'
import { readResource, findResourceRecord } from '../../../src/store/resources.ts'
import { chunkHashes } from '../../support/content.ts'
import { bytesOf, fileOn, freshDatabase, never, QUICK, same } from './fixture.ts'

const isText = (value: unknown): value is string => typeof value === 'string'

test('makes every store and index of the schema', async () => {
  const database = freshDatabase()
  await database.use(async (connection) => {
    const stores = [...connection.objectStoreNames]
    expect(stores).toEqual([
      'background',
      'backgroundParts',
      'chunks',
      'device',
      'entries',
      'pins',
      'predictions',
      'resources',
    ])
    const { store } = connection.transaction('predictions')
    expect([...store.indexNames]).toEqual(['asker', 'configuration'])
    expect([...connection.transaction('resources').store.indexNames]).toEqual(['lastUsed'])
  })
})

test('opens again, once, when the connection was lost under the work', async () => {
  const database = freshDatabase()
  const connections: Connection[] = []
  const count = await database.use(async (connection) => {
    connections.push(connection)
    if (connections.length === 1) connection.close()
    return connection.count('resources')
  })
  expect(count).toBe(0)
  expect(connections).toHaveLength(2)
  expect(connections[0]).not.toBe(connections[1])
})

test('opens again when Safari says that its server is gone', async () => {
  const database = freshDatabase()
  let runs = 0
  const answer = await database.use(async () => {
    runs += 1
    if (runs > 1) return 'here'
    const words = 'Connection to Indexed Database server lost. Refresh the page to try again'
    throw new DOMException(words, 'UnknownError')
  })
  expect(answer).toBe('here')
})

test('gives up with a clear error when the connection is lost twice', async () => {
  const database = freshDatabase()
  const use = database.use(async (connection) => {
    connection.close()
    return connection.count('resources')
  })
  await expect(use).rejects.toMatchObject({ kind: 'unavailable', code: 'store_unavailable' })
})

test('opens again when a transaction was aborted for no reason that it tells', async () => {
  const database = freshDatabase()
  let runs = 0
  await database.use((connection) => {
    const transaction = connection.transaction('device', 'readwrite')
    return runAndCommit(transaction, async () => {
      runs += 1
      await transaction.store.put('fact', 'subject')
      if (runs === 1) transaction.abort()
    })
  })
  expect([runs, await getDeviceFact(database, 'subject', isText)]).toEqual([2, 'fact'])
})

test('tells why a transaction was aborted, not that its requests were', async () => {
  const aborted = new DOMException('The transaction was aborted.', 'AbortError')
  const done = Promise.reject<void>(new DOMException('', 'QuotaExceededError'))
  done.catch(() => undefined)
  const database = freshDatabase()
  const use = database.use(() => runAndCommit({ done }, () => Promise.reject(aborted)))
  await expect(use).rejects.toMatchObject({ code: 'storage_full' })
})

describe('where a site may store nothing', () => {
  afterEach(() => {
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
  })

  test.each<[string, () => void]>([
    [
      'by the settings for cookies',
      () => {
        const denied = new DOMException(
          'access to the Indexed Database API is denied',
          'SecurityError',
        )
        vi.spyOn(IDBFactory.prototype, 'open').mockImplementation(() => {
          throw denied
        })
      },
    ],
    ['without IndexedDB', () => vi.stubGlobal('indexedDB', undefined)],
  ])('says so: %s', async (_, refuse) => {
    const database = openDatabase(`test:${crypto.randomUUID()}`)
    refuse()
    await expect(getDeviceFact(database, 'subject', isText)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'store_unavailable',
      message: expect.stringMatching(/private windows/),
    })
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
    // It is asked again the next time.
    expect(await getDeviceFact(database, 'subject', isText)).toBeUndefined()
    database.close()
    indexedDB.deleteDatabase(database.name)
  })

  test('or its disk fails', async () => {
    const broken = new DOMException('Internal error.', 'UnknownError')
    const use = freshDatabase().use(() => Promise.reject(broken))
    await expect(use).rejects.toMatchObject({ kind: 'unavailable', code: 'store_unavailable' })
  })
})

test('does not repeat work that is itself wrong', async () => {
  const database = freshDatabase()
  let runs = 0
  const use = database.use(async () => {
    runs += 1
    throw new Error('wrong')
  })
  await expect(use).rejects.toThrow('wrong')
  expect(runs).toBe(1)
})

test('lets another tab upgrade, then says that the store is newer', async () => {
  const database = freshDatabase()
  await putDeviceFact(database, 'subject', 'fact')
  const newer = await openDB(database.name, DB_VERSION + 1)
  await expect(getDeviceFact(database, 'subject', isText)).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'store_newer',
  })
  newer.close()
})

describe('a database of version 1', () => {
  /** As the first version of the app left it: one resource whole, one cut off, one given to somebody. */
  async function makeFirst(database: Database, wanted: WantedResource[], content: Blob) {
    const first = await openDB(database.name, 1, {
      upgrade(connection) {
        const resources = connection.createObjectStore('resources', { keyPath: 'sha256' })
        resources.createIndex('lastUsed', 'lastUsed')
        connection.createObjectStore('chunks')
        const predictions = connection.createObjectStore('predictions', { keyPath: 'id' })
        predictions.createIndex('asker', ['tag', 'clientId', 'configurationId'])
        predictions.createIndex('configuration', 'configuration')
        connection.createObjectStore('device')
      },
    })
    for (const [place, resource] of wanted.entries()) {
      const verified = place === 0
      const chunks = verified ? 7 : 3
      const { chunks: _, ...described } = resource
      await first.put('resources', {
        ...described,
        chunkBytes: QUICK.chunkBytes,
        etag: null,
        chunks,
        verified,
        writer: verified ? null : 'gone',
        lastUsed: 1000 + place,
        pinned: false,
      })
      for (let index = 0; index < chunks; index++) {
        const chunk = content.slice(index * QUICK.chunkBytes, (index + 1) * QUICK.chunkBytes)
        await first.put('chunks', chunk, [resource.sha256, index])
      }
    }
    const resources = wanted.slice(0, 1).map(({ type, name, sha256 }) => ({ type, name, sha256 }))
    await first.put('predictions', prediction('pred_1', { resources }))
    await first.put('device', 'fact', 'subject')
    first.close()
  }

  test('keeps all that it holds', async () => {
    const database = freshDatabase()
    const whole = await fileOn({ bytes: 6 * QUICK.chunkBytes + 5 })
    const partial = { ...whole.resource, sha256: 'e'.repeat(64) }
    await makeFirst(database, [whole.resource, partial], new Blob([whole.content]))
    const blob = await readResource(database, whole.resource.sha256)
    expect(same(await bytesOf(blob), whole.content)).toBe(true)
    const record = await findResourceRecord(database, whole.resource.sha256)
    expect(record).toMatchObject({
      tags: ['@a/b'],
      chunks: Array(7).fill(UNKNOWN_DIGEST),
      lastUsed: 1000,
    })
    expect(record).not.toHaveProperty('pinned')
    const chunks = [...Array(3).fill(UNKNOWN_DIGEST), null, null, null, null]
    expect(await findResourceRecord(database, partial.sha256)).toMatchObject({ tags: [], chunks })
    expect(await getDeviceFact(database, 'subject', isText)).toBe('fact')
    expect(await findPredictionById(database, 'pred_1')).toMatchObject({ tag: '@a/b' })
    expect(await whole.seen()).toEqual([])
  })

  test('goes on with what was cut off, and notes the hashes of chunks', async () => {
    const database = freshDatabase()
    const file = await fileOn({ bytes: 6 * QUICK.chunkBytes + 5 })
    const other = { ...file.resource, sha256: 'e'.repeat(64) }
    await makeFirst(database, [other, file.resource], new Blob([file.content]))
    const options = { signal: never(), tuning: QUICK }
    const blob = await download(database, file.resource, options)
    expect(same(await bytesOf(blob), file.content)).toBe(true)
    expect((await file.seen()).map(({ range }) => range)).toEqual([
      `bytes=${3 * QUICK.chunkBytes}-`,
    ])
    const record = await findResourceRecord(database, file.resource.sha256)
    expect(record?.chunks).toEqual(await chunkHashes(file.content, QUICK.chunkBytes))
  })

  test('fetches a chunk that it lost alone, though it had noted no hashes', async () => {
    const database = freshDatabase()
    const file = await fileOn({ bytes: 6 * QUICK.chunkBytes + 5 })
    await makeFirst(database, [file.resource], new Blob([file.content]))
    const key: [string, number] = [file.resource.sha256, 2]
    await database.use((connection) => connection.delete('chunks', key))
    const blob = await download(database, file.resource, { signal: never(), tuning: QUICK })
    expect(same(await bytesOf(blob), file.content)).toBe(true)
    expect((await file.seen()).map(({ sent }) => sent)).toEqual([QUICK.chunkBytes])
  })

  test('that a sleeping tab keeps open is waited for, then said to be', async () => {
    const database = freshDatabase()
    await makeFirst(database, [], new Blob([]))
    // It does not close its connection when it is asked to.
    const asleep = await openDB(database.name, 1)
    const impatient = openDatabase(database.name, 50)
    onTestFinished(() => impatient.close())
    await expect(getDeviceFact(impatient, 'subject', isText)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'store_blocked',
      message: expect.stringMatching(/other tabs/),
    })
    asleep.close()
    await vi.waitUntil(
      () => getDeviceFact(impatient, 'subject', isText).then(Boolean, () => false),
      20_000,
    )
  })
})

test('is deleted by another tab while it is open, and made again', async () => {
  const database = freshDatabase()
  await putDeviceFact(database, 'subject', 'fact')
  await new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(database.name)
    request.onsuccess = resolve
    request.onblocked = reject
  })
  expect(await getDeviceFact(database, 'subject', isText)).toBeUndefined()
})

test('says so when it is used after it was closed', async () => {
  const database = openDatabase(`test:${crypto.randomUUID()}`)
  database.close()
  await expect(getDeviceFact(database, 'subject', isText)).rejects.toMatchObject({
    kind: 'unavailable',
  })
})

test('keeps facts, and ignores those of another form', async () => {
  const database = freshDatabase()
  await putDeviceFact(database, 'speed', { tokensPerSecond: 12 })
  const isSpeed = (value: unknown): value is { tokensPerSecond: number } =>
    typeof value === 'object' && value !== null && 'tokensPerSecond' in value
  expect(await getDeviceFact(database, 'speed', isSpeed)).toEqual({ tokensPerSecond: 12 })
  expect(await getDeviceFact(database, 'speed', isText)).toBeUndefined()
})

test('finds predictions by id, by who asked, and by configuration', async () => {
  const database = freshDatabase()
  const first = prediction('pred_1', { created: '2026-01-01T00:00:00.000Z', configuration: 'one' })
  const second = prediction('pred_2', { created: '2026-01-02T00:00:00.000Z', configuration: 'two' })
  const other = prediction('pred_3', { clientId: 'other', configurationId: 'mine' })
  for (const record of [second, first, other]) await putPrediction(database, record)

  expect(await findPredictionById(database, 'pred_1')).toEqual(first)
  expect(await findPredictionById(database, 'pred_9')).toBeUndefined()
  const asker = { tag: '@a/b', clientId: 'app', configurationId: '' }
  expect(await findPredictionByKey(database, asker)).toEqual(second)
  const withConfiguration = { ...asker, clientId: 'other', configurationId: 'mine' }
  expect(await findPredictionByKey(database, withConfiguration)).toEqual(other)
  expect(await findPredictionByKey(database, { ...asker, clientId: 'nobody' })).toBeUndefined()
  expect(await findPredictionByConfiguration(database, 'one')).toEqual(first)
  expect(await findPredictionByConfiguration(database, 'nine')).toBeUndefined()
})

function prediction(id: string, changes: object) {
  return {
    id,
    tag: '@a/b',
    clientId: 'app',
    configurationId: '',
    deviceId: 'dev_test',
    configuration: id,
    implementation: 'wasm',
    resources: [],
    created: '2026-01-01T00:00:00.000Z',
    ...changes,
  }
}
