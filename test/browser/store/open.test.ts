import { openDB } from 'idb'
import { expect, test } from 'vitest'
import { DB_VERSION } from '../../../src/store/db.ts'
import { readFact, writeFact } from '../../../src/store/facts.ts'
import { openDatabase, type Connection } from '../../../src/store/open.ts'
import {
  predictionByConfiguration, predictionById, predictionOf, putPrediction,
} from '../../../src/store/predictions.ts'
import { freshDatabase } from './fixture.ts'

const isText = (value: unknown): value is string => typeof value === 'string'

test('makes every store and index of the schema', async () => {
  const database = freshDatabase()
  await database.use(async (connection) => {
    const stores = [...connection.objectStoreNames]
    expect(stores).toEqual(['chunks', 'device', 'predictions', 'resources'])
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
  await writeFact(database, 'subject', 'fact')
  const newer = await openDB(database.name, DB_VERSION + 1)
  await expect(readFact(database, 'subject', isText)).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'store_newer',
  })
  newer.close()
})

test('is deleted by another tab while it is open, and made again', async () => {
  const database = freshDatabase()
  await writeFact(database, 'subject', 'fact')
  await new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(database.name)
    request.onsuccess = resolve
    request.onblocked = reject
  })
  expect(await readFact(database, 'subject', isText)).toBeUndefined()
})

test('says so when it is used after it was closed', async () => {
  const database = openDatabase(`test:${crypto.randomUUID()}`)
  database.close()
  await expect(readFact(database, 'subject', isText)).rejects.toMatchObject({ kind: 'unavailable' })
})

test('keeps facts, and ignores those of another form', async () => {
  const database = freshDatabase()
  await writeFact(database, 'speed', { tokensPerSecond: 12 })
  const isSpeed = (value: unknown): value is { tokensPerSecond: number } =>
    typeof value === 'object' && value !== null && 'tokensPerSecond' in value
  expect(await readFact(database, 'speed', isSpeed)).toEqual({ tokensPerSecond: 12 })
  expect(await readFact(database, 'speed', isText)).toBeUndefined()
})

test('finds predictions by id, by who asked, and by configuration', async () => {
  const database = freshDatabase()
  const first = prediction('pred_1', { created: '2026-01-01T00:00:00.000Z', configuration: 'one' })
  const second = prediction('pred_2', { created: '2026-01-02T00:00:00.000Z', configuration: 'two' })
  const other = prediction('pred_3', { clientId: 'other', configurationId: 'mine' })
  for (const record of [second, first, other]) await putPrediction(database, record)

  expect(await predictionById(database, 'pred_1')).toEqual(first)
  expect(await predictionById(database, 'pred_9')).toBeUndefined()
  const asker = { tag: '@a/b', clientId: 'app', configurationId: '' }
  expect(await predictionOf(database, asker)).toEqual(second)
  const withConfiguration = { ...asker, clientId: 'other', configurationId: 'mine' }
  expect(await predictionOf(database, withConfiguration)).toEqual(other)
  expect(await predictionOf(database, { ...asker, clientId: 'nobody' })).toBeUndefined()
  expect(await predictionByConfiguration(database, 'one')).toEqual(first)
  expect(await predictionByConfiguration(database, 'nine')).toBeUndefined()
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
